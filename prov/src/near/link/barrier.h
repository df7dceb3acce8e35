/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * membarrier(2) with GLOBAL_EXPEDITED executes a full barrier on each CPU that
 * runs a thread of a registered process. A port calls membarrier in rare
 * operations, such as near_arm(). So its peers need no fence in their fast
 * paths. A process that is not registered yet executes fences: enum near_fence.
 *
 * In a process with threads, the registration waits 5 to 20 ms for an RCU grace
 * period. A short-lived thread registers the process, so that MPI_Init does not
 * wait.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/*
 * Begins to register this process, unless an earlier call of the process has
 * begun. False: there is no membarrier.
 */
bool near_barrier_begin(void);
/* True if this process is registered, so that membarrier acts on it. */
bool near_barrier_ready(void);
/* Executes membarrier. False: failed; threads may have executed no barrier. */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
