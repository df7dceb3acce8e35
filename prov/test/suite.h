/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What every unit test program uses: running suites, refused system calls. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <linux/seccomp.h>
#include <stdint.h>

/*
 * Defines a suite of the program, by adding its cases to a Suite *suite. One
 * without cases is skipped.
 */
#define UNIT_SUITE(name)						\
	static void name##_suite(Suite *suite);				\
	__attribute__((constructor)) static void name##_register(void)	\
	{								\
		unit_register(#name, name##_suite);			\
	}								\
	static void name##_suite(Suite *suite)

void unit_register(const char *name, void (*add_cases)(Suite *suite));

/* A test case of the suite; each runs in a process of its own. */
TCase *unit_case(Suite *suite, const char *name, void (*setup)(void),
		 void (*teardown)(void));

/* Runs the program's suites, prints the names of cases that fail; main's result. */
int unit_run(void);

/*
 * From now on a system call of this process has this result: SECCOMP_RET_ERRNO
 * and an error, for example.
 */
void unit_refuse(uint32_t call, uint32_t result);

#endif /* UNIT_SUITE_H */
