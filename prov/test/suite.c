/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <linux/filter.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "suite.h"

/* A failed malloc must return NULL under a sanitizer, too. */
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

#define UNIT_ITEMS 1024 /* largest number of tests and cases of a program */
#define UNIT_CASES 8		/* largest number of UNIT_CASE() in a row */

static struct unit_item unit_items[UNIT_ITEMS];
static int unit_count;
int unit_adding;

void unit_item(const struct unit_item *item)
{
	if (unit_count == UNIT_ITEMS)
		abort();
	unit_items[unit_count++] = *item;
}

/* Orders items by file and line: the order of constructors is undefined. */
static int unit_compare(const void *a, const void *b)
{
	const struct unit_item *one = a, *other = b;
	int files = strcmp(one->file, other->file);

	return files ? files : one->line - other->line;
}

static Suite *unit_suite(const char *file)
{
	const char *slash = strrchr(file, '/');

	return suite_create(slash ? slash + 1 : file);
}

static TCase *unit_case(const struct unit_item *item)
{
	TCase *tcase = tcase_create(item->name);

	tcase_add_checked_fixture(tcase, item->setup, item->teardown);
	tcase_set_timeout(tcase, item->seconds);
	return tcase;
}

static void unit_add_all(SRunner *runner)
{
	const struct unit_item *item, *end = unit_items + unit_count;
	Suite *suite = NULL;
	TCase *tcase[UNIT_CASES];
	int i, cases = 0, index[UNIT_CASES];

	for (item = unit_items; item < end; item++) {
		if (item == unit_items || strcmp(item->file, item[-1].file)) {
			suite = unit_suite(item->file);
			srunner_add_suite(runner, suite);
		}
		if (item->add) {
			for (i = 0; i < cases; i++) {
				unit_adding = index[i];
				item->add(tcase[i]);
			}
			continue;
		}
		if (item == unit_items || item[-1].add)
			cases = 0;
		index[cases] = (int)(item - unit_items);
		tcase[cases] = unit_case(item);
		suite_add_tcase(suite, tcase[cases++]);
	}
}

void unit_round(int index, int round, bool first)
{
	const struct unit_item *item = &unit_items[index];

	fprintf(stderr, "round %d\n", round);
	if (!first && item->teardown)
		item->teardown();
	if (!first && item->setup)
		item->setup();
}

int unit_run(void)
{
	SRunner *runner = srunner_create(NULL);
	int failed;

	qsort(unit_items, unit_count, sizeof(unit_items[0]), unit_compare);
	unit_add_all(runner);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

static void unit_filter(struct sock_filter *code, unsigned short count)
{
	struct sock_fprog filter = { count, code };

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_msg(!prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter),
		      "seccomp rejects the filter: %s", strerror(errno));
}

void unit_reject(uint32_t call, uint32_t result)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, result),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	unit_filter(code, ARRAY_SIZE(code));
}

void unit_reject_if(uint32_t call, int index, uint32_t value, uint32_t result)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args) +
				 (unsigned int)index * sizeof(uint64_t)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, result),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};

	unit_filter(code, ARRAY_SIZE(code));
}

rlim_t unit_limit(int resource, rlim_t soft)
{
	struct rlimit limit;
	rlim_t before;

	ck_assert_int_eq(getrlimit(resource, &limit), 0);
	before = limit.rlim_cur;
	limit.rlim_cur = soft < limit.rlim_max ? soft : limit.rlim_max;
	ck_assert_int_eq(setrlimit(resource, &limit), 0);
	return before;
}

void unit_check_space(void)
{
	void *space = mmap(NULL, (size_t)2 << 30, PROT_NONE, MAP_PRIVATE |
			   MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	ck_assert_msg(space == MAP_FAILED, "RLIMIT_AS has no effect");
}

char unit_state(pid_t tid)
{
	char path[64], text[512] = "", *at = NULL;
	FILE *file;

	/* not TID/stat: qemu-user replaces that file if TID is its own pid */
	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", (int)tid,
		 (int)tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fread(text, 1, sizeof(text) - 1, file))
		at = strrchr(text, ')');
	fclose(file);
	return at ? at[2] : 0;
}

pthread_t unit_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	return thread;
}

static atomic_int waiter_tid;
static void *(*waiter_run)(void *);

static void *waiter(void *arg)
{
	atomic_store(&waiter_tid, syscall(SYS_gettid));
	return waiter_run(arg);
}

pthread_t unit_waiter(void *(*run)(void *))
{
	pthread_t thread;

	atomic_store(&waiter_tid, 0);
	waiter_run = run;
	thread = unit_thread(waiter, NULL);
	while (unit_state(atomic_load(&waiter_tid)) != 'S')
		sched_yield();
	return thread;
}

void *unit_thread_end(pthread_t thread)
{
	void *result;

	ck_assert_int_eq(pthread_join(thread, &result), 0);
	return result;
}

void unit_join(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

void unit_kill(pid_t pid)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

uint64_t unit_cpu_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

uint64_t unit_number(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : usual;
}
