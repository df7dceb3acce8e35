/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <linux/filter.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "suite.h"

/* Without memory malloc returns NULL, as it does without a sanitizer. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
	return "allocator_may_return_null=1";
}

#define UNIT_SUITES 32

static struct {
	const char *name;
	void (*add_cases)(Suite *suite);
} unit_suites[UNIT_SUITES];
static int unit_count;

void unit_register(const char *name, void (*add_cases)(Suite *suite))
{
	if (unit_count == UNIT_SUITES)
		abort();
	unit_suites[unit_count].name = name;
	unit_suites[unit_count++].add_cases = add_cases;
}

TCase *unit_case(Suite *suite, const char *name, void (*setup)(void),
		 void (*teardown)(void))
{
	TCase *tcase = tcase_create(name);

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 60);	/* a busy machine */
	suite_add_tcase(suite, tcase);
	return tcase;
}

int unit_run(void)
{
	SRunner *runner = srunner_create(NULL);
	Suite *suite;
	int i, failed;

	for (i = 0; i < unit_count; i++) {
		suite = suite_create(unit_suites[i].name);
		unit_suites[i].add_cases(suite);
		srunner_add_suite(runner, suite);
	}

	/* what is tested warns on purpose */
	setenv("FI_LOG_LEVEL", "0", 0);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

void unit_refuse(uint32_t call, uint32_t result)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, result),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter),
			 0);
}
