/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Locks of the registry's directory: registry_dir.c and registry_owner.c. */
#ifndef DUO_REGISTRY_DIR_H
#define DUO_REGISTRY_DIR_H

#include <stdbool.h>

/* Waits 3 s at most. operation: LOCK_SH or LOCK_EX. Returns 0 or -errno. */
int duo_dir_lock(int fd, int operation);
/* True if the directory has no name any more. */
bool duo_dir_removed(int fd);

#endif /* DUO_REGISTRY_DIR_H */
