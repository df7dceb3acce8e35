/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Compiles calls.c for the lock mode DUO_LOCK_SHARED: the calls of endpoints
 * whose group has a lock that several threads use
 */

#define DUO_LOCKED DUO_LOCK_SHARED
#define DUO_NAME(name) name##_locked

#include "fi/calls.c"
