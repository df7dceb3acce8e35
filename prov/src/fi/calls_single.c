/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Compiles calls.c for the lock mode DUO_LOCK_SINGLE: the calls of endpoints
 * whose group has a single lock, which one thread at a time uses
 * (FI_THREAD_COMPLETION)
 */

#define DUO_LOCKED DUO_LOCK_SINGLE
#define DUO_NAME(name) name##_single

#include "fi/calls.c"
