/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions of all unit test programs: running suites, failing system calls. */
#ifndef UNIT_SUITE_H
#define UNIT_SUITE_H

#include <check.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Each source file of tests is a suite.
 *
 * UNIT_CASE() begins a test case, to which the following tests belong. Tests
 * after several UNIT_CASE() in a row belong to each of them. Each test runs in
 * its own process, after setup and before teardown.
 *
 * 	UNIT_CASE("empty", setup, teardown);
 * 	UNIT_TEST(reads_nothing) { }
 *
 * UNIT_LOOP() runs the test for each _i from first to end - 1, each in its own
 * process. UNIT_ROUNDS() does the same in one process, with teardown and setup
 * between two runs (rounds), because the start of a process takes longer than
 * most rounds. Each round prints its _i first. So if a round fails, the number
 * printed last is the _i of this round.
 *
 * A test of UNIT_CASE() may take 300 s, for a busy host.
 */
#define UNIT_CASE(name, setup, teardown)				\
	UNIT_LONG_CASE(name, setup, teardown, 300)
/* A test case whose tests may each take this number of seconds */
#define UNIT_LONG_CASE(name, setup, teardown, seconds)			\
	UNIT_ITEM(UNIT_PASTE(case_, __LINE__), NULL, name, setup,	\
		  teardown, seconds)
/* Defines name(), a setup or teardown for UNIT_CASE() that does only this. */
#define UNIT_SETUP(name, action)					\
	static void name(void)						\
	{								\
		action;							\
	}								\
	struct unit_item
#define UNIT_TEST(name)							\
	UNIT_ADD(name, tcase_add_test(tcase, name))
#define UNIT_LOOP(name, first, end)					\
	UNIT_ADD(name, tcase_add_loop_test(tcase, name, first, end))
#define UNIT_ROUNDS(name, first, end)					\
	static void name##_round(int _i);				\
	UNIT_ADD(name, tcase_add_loop_test(tcase, name, unit_adding,	\
					   unit_adding + 1))		\
	{								\
		const int start = (int)(first), limit = (int)(end);	\
		int round;						\
									\
		for (round = start; round < limit; round++) {		\
			unit_round(_i, round, round == start);		\
			name##_round(round);				\
		}							\
	}								\
	static void name##_round(int _i)
/* A loop of tests that must each end by this signal */
#define UNIT_SIGNAL(name, signal, first, end)				\
	UNIT_ADD(name, tcase_add_loop_test_raise_signal(tcase, name,	\
							signal, first, end))
#define UNIT_ADD(name, add)						\
	START_TEST(name);						\
	static void name##_add(TCase *tcase)				\
	{								\
		add;							\
	}								\
	UNIT_ITEM(name, name##_add, NULL, NULL, NULL, 0);		\
	static void name##_fn(int _i CK_ATTRIBUTE_UNUSED)
#define UNIT_ITEM(id, add, name, setup, teardown, seconds)		\
	__attribute__((constructor)) static void			\
	UNIT_PASTE(id, _item)(void)					\
	{								\
		unit_item(&(struct unit_item) {				\
			__FILE__, __LINE__, add, name, setup, teardown,	\
			seconds });					\
	}								\
	struct unit_item
#define UNIT_PASTE(a, b) UNIT_PASTE_(a, b)
#define UNIT_PASTE_(a, b) a##b

struct unit_item {
	const char *file;
	int line;
	void (*add)(TCase *tcase);	/* NULL: a test case, not a test */
	/* this member and the next ones describe a test case */
	const char *name;
	void (*setup)(void), (*teardown)(void);
	int seconds;
};
void unit_item(const struct unit_item *item);

/* index of the test case to which the runner adds tests */
extern int unit_adding;

/*
 * Prints the number of a round. Before each round but the first, calls teardown
 * and setup of the test case with this index.
 */
void unit_round(int index, int round, bool first);

/* Runs the suites and prints failed tests; returns the result for main(). */
int unit_run(void);

/*
 * Makes a system call return this result in the calling thread, and in the
 * threads and processes that it starts later. The result is a seccomp action,
 * for example SECCOMP_RET_ERRNO | EPERM. There is no way to undo this.
 */
void unit_reject(uint32_t call, uint32_t result);
/*
 * The same as unit_reject(), but only for calls whose argument with this index
 * is `value` (32 bits).
 */
void unit_reject_if(uint32_t call, int index, uint32_t value, uint32_t result);
/*
 * Sets a soft limit of this process, but not above the hard limit. Returns the
 * soft limit's earlier value.
 */
rlim_t unit_limit(int resource, rlim_t soft);
/* Asserts that RLIMIT_AS prevents the allocation of 2 GiB of address space. */
void unit_check_space(void);

/* Returns the number in an environment variable; if unset, "usual". */
uint64_t unit_number(const char *name, uint64_t usual);

/* Returns the CPU time of this process, ms. It does not depend on load. */
uint64_t unit_cpu_ms(void);

/*
 * Returns a thread's state from /proc, for example 'S' (sleeps) or 'Z' (ended).
 * 0: no thread has this tid.
 */
char unit_state(pid_t tid);

pthread_t unit_thread(void *(*run)(void *), void *arg);
/*
 * Starts a thread. Returns when this thread waits for the lock that the caller
 * holds.
 */
pthread_t unit_waiter(void *(*run)(void *));
/* Waits for a thread's end. Returns what its function has returned. */
void *unit_thread_end(pthread_t thread);

void unit_join(pid_t pid);
/* Kills a child and waits for its end; nothing if pid is 0. */
void unit_kill(pid_t pid);

#endif /* UNIT_SUITE_H */
