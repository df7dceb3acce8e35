/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What every unit test program uses: running a suite, a scratch directory. */
#ifndef UNIT_H
#define UNIT_H

#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "duo.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* A test case of the suite; each runs in a process of its own. */
#define unit_case(suite, name, setup, teardown) ({			\
	TCase *unit_tcase = tcase_create(name);				\
									\
	tcase_add_checked_fixture(unit_tcase, setup, teardown);		\
	suite_add_tcase(suite, unit_tcase);				\
	unit_tcase;							\
})

/* Runs the suite, prints the names of cases that fail; main's result. */
int unit_run(Suite *suite);

/* Pseudo-random numbers, the same in every run. */
uint64_t unit_random(uint64_t *state);

/* A new directory, which duo_params.registry_dir names from then on. */
const char *unit_dir_make(void);
/* Removes it with the files in it. */
void unit_dir_remove(void);
/* How many entries it has. */
int unit_dir_count(void);

/* The tests' only calls of duo_registry_reserve() and _lookup(). */
static inline int unit_reserve(const char *dir, const void *addr, size_t len,
			       struct duo_publication *pub)
{
	return duo_registry_reserve(dir, addr, len, false, pub);
}

/* As an endpoint that is published elsewhere. */
enum fi_duo_reason unit_lookup(const char *dir, const void *addr, size_t len,
			       char *shm_name);

#endif /* UNIT_H */
