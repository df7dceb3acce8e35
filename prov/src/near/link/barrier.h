/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * membarrier(2) with GLOBAL_EXPEDITED executes a full barrier on each CPU that
 * runs a thread of a registered process. Before a port sleeps or makes rings
 * idle, which is rare, it calls membarrier for itself and its peers. So the
 * peers need no fence in their fast paths. A process that is not registered yet
 * executes fences instead: enum near_fence.
 *
 * In a process with threads, the registration waits for an RCU grace period, 5
 * to 20 ms. near therefore registers the process in a short-lived thread, so
 * that MPI_Init does not wait.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/*
 * Begins to register this process; further calls do nothing. False: the system
 * has no membarrier.
 */
bool near_barrier_begin(void);
/*
 * True if this process is registered, so that membarrier calls of other
 * processes execute a barrier in it.
 */
bool near_barrier_ready(void);
/*
 * Executes membarrier. False: it has failed, and threads may not have executed
 * a barrier.
 */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
