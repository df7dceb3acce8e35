/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Which processes can be reached from here, and whether one lives. Pure. */
#ifndef DUO_PROCESS_H
#define DUO_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

/* A process's namespaces; 0: not known, without /proc. near_proc_ns(), inode. */
struct duo_place {
	uint64_t pid_ns;
	uint64_t net_ns;
};

void duo_place_read(struct duo_place *place);
uint64_t duo_user_ns(void);

/* Returns when the process started, in clock ticks from boot; 0: not known. */
uint64_t duo_process_start(pid_t pid);
/*
 * Returns 0 if the process that has had this pid since start lives, -ESRCH if
 * it has ended. Any other error: that cannot be told now. start 0: any process
 * with this pid.
 */
int duo_process_check(pid_t pid, uint64_t start);

#endif /* DUO_PROCESS_H */
