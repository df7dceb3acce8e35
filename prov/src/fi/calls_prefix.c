/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Compiles calls.c for endpoints with FI_MSG_PREFIX: the first buffer of each
 * message begins with space for a provider's header, the prefix. Neither the
 * core nor the local transport uses this space, so each call skips it. If the
 * first buffer is shorter than the prefix, the call returns -FI_EINVAL. All
 * calls take the slow path.
 */

#define DUO_LOCKED DUO_LOCK_OFF
#define DUO_PREFIX true
#define DUO_NAME(name) name##_prefix

#include "fi/calls.c"
