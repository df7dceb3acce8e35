/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Checks whether the control groups (cgroups of Linux) of this process permit
 * an allocation. At a group's limit fallocate() does not fail: the kernel kills
 * a process of the group. Best effort: processes may allocate after the check.
 *
 * Cost: reads two small files for each group that has a limit. If the usage is
 * close to the limit, reads a third one. Only near_segment_reserve() makes the
 * check.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

/* memory that must stay unused below each limit, bytes */
#define NEAR_GROUP_SPARE (1u << 20)

/*
 * True if after an allocation of size bytes, each control group of the process
 * has NEAR_GROUP_SPARE bytes left, or has no limit.
 */
bool near_group_has(size_t size);
/*
 * Like near_group_has(), but only for the control group of directory dir.
 * v2: the group is of version 2 of control groups.
 */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
