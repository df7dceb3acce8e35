/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Detects accesses out of bounds. mmap() places an inaccessible page before and
 * behind each mapping. process_vm_readv() and process_vm_writev() fail with
 * EFAULT for memory of this process that is in no permitted range. (Several
 * ports are in one process here. Otherwise a bad port could make another port
 * overwrite memory of a third.) The linker replaces these calls.
 */
#ifndef TORTURE_GUARD_H
#define TORTURE_GUARD_H

#include <stddef.h>

/* Permits peers to read and write this memory. */
void guard_permit(void *memory, size_t len);

#endif /* TORTURE_GUARD_H */
