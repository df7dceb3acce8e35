/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Checks whether the control groups (cgroups of Linux) of this process permit
 * an allocation. At the limit of a control group fallocate() does not fail: the
 * kernel kills a process of the group instead. The check is best effort,
 * because other processes may allocate after the check.
 *
 * Cost: reads two small files for each group that has a limit, and a third file
 * if the group is close to its limit. Only near_segment_reserve() makes the
 * check: before near allocates or enlarges a segment, ring, table or stage.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

/* bytes that must remain after an allocation */
#define NEAR_GROUP_SPARE (1u << 20)

/* True if an allocation of size bytes leaves NEAR_GROUP_SPARE in each group. */
bool near_group_has(size_t size);
/*
 * Makes the check of near_group_has() for one group, that of this directory.
 * v2: true for version 2 of control groups, false for version 1.
 */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
