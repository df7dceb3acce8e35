/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* calls.c for groups with DUO_LOCK_SINGLE */

#define DUO_LOCKED DUO_LOCK_SINGLE
#define DUO_NAME(name) name##_single

#include "fi/calls.c"
