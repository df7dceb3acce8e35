/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory that this process's control groups still permit: beyond it,
 * fallocate() does not fail, but the kernel kills a process. The check is best
 * effort, as other processes may allocate after it.
 *
 * Cost: only when peers connect and rings are resized. Two small files per
 * group with a limit, and a third close to the limit.
 */
#ifndef NEAR_LINK_GROUP_H
#define NEAR_LINK_GROUP_H

#include <stdbool.h>
#include <stddef.h>

/* bytes that must remain after an allocation */
#define NEAR_GROUP_SPARE (1u << 20)

/* True if each group keeps NEAR_GROUP_SPARE bytes after this allocation. */
bool near_group_has(size_t size);
/* near_group_has() for the group of directory dir; v2: version 2, else 1. */
bool near_group_dir_has(const char *dir, bool v2, size_t size);

#endif /* NEAR_LINK_GROUP_H */
