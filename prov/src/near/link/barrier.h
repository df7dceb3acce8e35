/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * membarrier(GLOBAL_EXPEDITED): a full barrier on every CPU that runs a
 * registered process. A process that is not registered fences instead.
 *
 * In a process of several threads, as in MPI jobs, the kernel takes 5 to 20 ms
 * to register (it waits for RCU). There near registers in a thread of its own,
 * which then exits, so that MPI_Init does not wait.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/*
 * Registers the process, once; may return before it is registered. False:
 * membarrier is not available, and near_barrier() must not be called.
 */
bool near_barrier_begin(void);
/* True if near_barrier() of other processes now includes this process. */
bool near_barrier_ready(void);
/* Executes the barrier. False: it failed, for lack of memory for example. */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
