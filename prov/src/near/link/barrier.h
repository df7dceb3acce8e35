/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * membarrier(GLOBAL_EXPEDITED) executes a full barrier on each CPU that runs a
 * thread of a registered process. Before a port sleeps or makes rings idle,
 * which is rare, it executes this barrier for itself and its peers. So the
 * peers need no fence in their fast paths. A process that is not registered yet
 * executes fences instead: enum near_fence.
 *
 * In a process with threads, the registration waits for an RCU grace period, 5
 * to 20 ms. A short-lived thread registers the process, so that MPI_Init does
 * not wait.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/* Begins to register this process, once. False: there is no membarrier. */
bool near_barrier_begin(void);
/* True if this process is registered, so that barriers of others reach it. */
bool near_barrier_ready(void);
/* Executes the barrier. False: threads may not have executed a barrier. */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
