/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * membarrier(GLOBAL_EXPEDITED): one process makes the stores of all others
 * that have registered visible to itself. Who has not registered fences.
 *
 * Registering takes the kernel 5 to 20 ms in a process of several threads
 * (it waits for RCU), as those of MPI jobs are, for their runtime's sake.
 * There a thread of ours does it, which ends with that, and nobody waits.
 */
#ifndef NEAR_LINK_BARRIER_H
#define NEAR_LINK_BARRIER_H

#include <stdbool.h>

/*
 * Registers the process, once: at once or behind our back. false: membarrier
 * is refused here, and near_barrier() must not be called.
 */
bool near_barrier_begin(void);
/* Others' near_barrier() now has our stores. */
bool near_barrier_ready(void);
/* false: it has failed, for want of memory for example. */
bool near_barrier(void);

#endif /* NEAR_LINK_BARRIER_H */
