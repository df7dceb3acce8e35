/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Checks whether the control groups (cgroups of Linux) of this process permit
 * an allocation. At a group's limit fallocate() does not fail: the kernel kills
 * a process of the group. Best effort: processes may allocate after the check.
 *
 * Cost: reads two small files for each group that has a limit, and a third file
 * close to the limit. Only near_segment_reserve() makes the check.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#define NEAR_GROUP_SPARE (1u << 20)	/* bytes that must remain free */

/* True if an allocation of size bytes leaves NEAR_GROUP_SPARE in each group. */
bool near_group_has(size_t size);
/* Checks one group, that of directory dir. v2: version 2 of control groups. */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
