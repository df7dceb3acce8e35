/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Free memory of this process's control groups. At a group's limit fallocate()
 * does not fail: the kernel kills a process of the group. So near checks the
 * groups before each allocation. Best effort: others may allocate meantime.
 *
 * Cost: control path only; two small files per group with a limit, three if
 * the limit is near.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#define NEAR_GROUP_SPARE (1u << 20)	/* bytes that must remain */

/* True if size bytes may be allocated. */
bool near_group_has(size_t size);
/* The same for one group of version 1 or 2. */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
