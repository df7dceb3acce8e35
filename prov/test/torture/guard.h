/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Detects accesses out of bounds. The linker replaces these calls:
 * - mmap() places an inaccessible page before and behind each mapping.
 * - process_vm_readv() and process_vm_writev() fail with EFAULT for memory of
 *   this process that guard_permit() has not permitted. In these tests, all
 *   ports are in one process. Without the check, an address from a bad port
 *   could make another port overwrite the memory of a third port.
 */
#ifndef TORTURE_GUARD_H
#define TORTURE_GUARD_H

#include <stddef.h>

/* Permits peers to read and write this memory. */
void guard_permit(void *memory, size_t len);

#endif /* TORTURE_GUARD_H */
