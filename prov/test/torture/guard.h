/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Accesses out of bounds are found: mmap() puts a page before and one behind each mapping
 * that nothing may access, and process_vm_readv() and process_vm_writev() fail with EFAULT
 * for memory of this process that is not in a range given here. (With several ports in one
 * process, a hostile one could make another one overwrite memory of a third.) The linker
 * wraps these calls.
 */
#ifndef TORTURE_GUARD_H
#define TORTURE_GUARD_H

#include <stddef.h>

/* Peers may read and write this memory. */
void guard_permit(void *memory, size_t len);

#endif /* TORTURE_GUARD_H */
