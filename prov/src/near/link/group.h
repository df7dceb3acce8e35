/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the memory control groups of this process have left. A group that is at
 * its limit does not refuse: the kernel kills one of its processes, whoever
 * asked, fallocate() included. So who takes memory looks here before.
 *
 * Cost: control path only, two small files for each group with a limit, three
 * if it is nearly reached. Another process may be faster: no promise.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

#define NEAR_GROUP_SPARE (1u << 20)	/* bytes that are left to others */

bool near_group_has(size_t size);
/* The same for one group, by the names that its version has for things. */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
