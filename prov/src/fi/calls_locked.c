/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* calls.c for groups with DUO_LOCK_SHARED */

#define DUO_LOCKED DUO_LOCK_SHARED
#define DUO_NAME(name) name##_locked

#include "fi/calls.c"
