/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What every unit test program uses: running a suite, refused system calls. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <linux/seccomp.h>
#include <stdint.h>

/* Runs the suite, prints the names of cases that fail; main's result. */
int unit_run(Suite *suite);

/*
 * From now on a system call of this process has this result: SECCOMP_RET_ERRNO
 * and an error, for example.
 */
void unit_refuse(uint32_t call, uint32_t result);

#endif /* UNIT_SUITE_H */
