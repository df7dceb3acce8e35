/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The system call membarrier(GLOBAL_EXPEDITED): a full barrier on every CPU
 * that runs a thread of a registered process. A process that is not registered
 * yet executes fences itself.
 *
 * In a process with several threads, as those of MPI jobs are, the kernel takes
 * 5 to 20 ms for the registration, since it waits for an RCU grace period. To
 * keep this time out of MPI_Init, near registers such a process from a thread
 * of its own, which then exits.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/*
 * Registers this process once; may return before the registration is complete.
 * False: the system has no membarrier, so near_barrier() must not be called.
 */
bool near_barrier_begin(void);
/*
 * True if the registration is complete: near_barrier() of any process executes
 * a barrier on the CPUs of this process.
 */
bool near_barrier_ready(void);
/*
 * Executes the barrier. False: membarrier has failed, for example because the
 * kernel has no memory. Then assume that no thread has executed a barrier.
 */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
