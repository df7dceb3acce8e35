/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread waits until a counter changes: it sleeps on the counter's file
 * descriptor, or calls fi_cntr_wait(). A timer of ofi_duo makes the descriptor
 * readable again and again, so that the thread wakes and polls.
 */

#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wait_fixture.h"

static atomic_int sleeps, yields;

/* The next two functions replace those of the C library, and count calls. */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	sleeps++;
	return (int) syscall(SYS_nanosleep, time, left);
}

int sched_yield(void)
{
	yields++;
	return (int) syscall(SYS_sched_yield);
}

/* Endpoints without a CQ, and with a CQ that has no wait object */
static const struct fixture_attr modes[] = {
	{ .near = true, .cntr_flags = FI_SEND | FI_RECV,
	  .cntr_wait = FI_WAIT_FD, .no_cqs = true },
	{ .near = true, .cntr_flags = FI_SEND | FI_RECV,
	  .cntr_wait = FI_WAIT_FD },
};

UNIT_SETUP(setup, wait_open(&modes[0]));

static void setup_unspec(void)
{
	struct fixture_attr attr = modes[0];

	attr.cntr_wait = FI_WAIT_UNSPEC;
	wait_open(&attr);
}

static void expect_count(uint64_t good, uint64_t bad)
{
	int i;

	for (i = 0; fi_cntr_read(fx.cntr) != good && i < 10000; i++)
		trywait(&fx.cntr->fid);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), good);
	ck_assert_uint_eq(fi_cntr_readerr(fx.cntr), bad);
}

/*
 * An injected send to the local peer completes within the call, and causes no
 * CQ entry. The first fi_tinject() connects near's ports of the two endpoints,
 * so that the second one can complete within the call.
 */
static void injected_locally(void)
{
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
	ck_assert_int_eq(fi_cntr_set(fx.cntr, 0), 0);
	fall_asleep();
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
}

/*
 * The message arrives first. Then its receive is posted, as another thread
 * would post it during the sleep. The receive completes within fi_trecv().
 */
static void received_at_once(void)
{
	say("early");
	fall_asleep();
	post_recv(&slot[0], local, TAG);
}

static void added(void)
{
	fall_asleep();
	ck_assert_int_eq(fi_cntr_add(fx.cntr, 1), 0);
}

static void (*const wakers[])(void) = {
	local_message, far_message, receive_posted, injected_locally,
	received_at_once, added,
};

static const enum fi_threading levels[] = {
	FI_THREAD_SAFE, FI_THREAD_DOMAIN, FI_THREAD_COMPLETION,
};

UNIT_CASE("modes", NULL, NULL);

/*
 * The test has one thread. This thread prepares to sleep, and then itself calls
 * the functions that other threads would call during the sleep. So the test can
 * also run with the threading levels at which ofi_duo takes no lock.
 */
UNIT_LOOP(event_wakes_descriptor, 0,
	  ARRAY_SIZE(wakers) * ARRAY_SIZE(levels) * ARRAY_SIZE(modes))
{
	size_t setup_of = _i / ARRAY_SIZE(wakers);
	struct fixture_attr attr = modes[setup_of % ARRAY_SIZE(modes)];

	attr.threading = levels[setup_of / ARRAY_SIZE(modes)];
	wait_open(&attr);
	wakers[_i % ARRAY_SIZE(wakers)]();
	ck_assert_int_eq(woken(&fx.cntr->fid, LONG_MS), 1);
	expect_count(1, 0);
	wait_close();
}

UNIT_CASE("descriptor", setup, wait_close);

UNIT_TEST(error_wakes_descriptor)
{
	post_recv(&slot[0], remote, TAG);
	fall_asleep();
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	ck_assert_int_eq(woken(&fx.cntr->fid, LONG_MS), 1);
	expect_count(0, 1);
	ck_assert_int_eq(trywait(&fx.cntr->fid), -FI_EAGAIN);
	fall_asleep();
	ck_assert_int_eq(fi_cntr_adderr(fx.cntr, 1), 0);
	ck_assert_int_eq(woken(&fx.cntr->fid, LONG_MS), 1);
}

UNIT_TEST(change_before_sleep_prevents_it)
{
	fall_asleep();
	ck_assert_int_eq(fi_cntr_add(fx.cntr, 1), 0);
	ck_assert_int_eq(trywait(&fx.cntr->fid), -FI_EAGAIN);
	ck_assert_int_eq(trywait(&fx.cntr->fid), 0);
}

UNIT_TEST(counter_opens_only_a_timer)
{
	const struct duo_waiter *waiter = &duo_cntr_of(&fx.cntr->fid)->waiter;
	int fd;

	ck_assert_int_eq(fi_control(&fx.cntr->fid, FI_GETWAIT, &fd), 0);
	ck_assert_int_eq(fd, waiter->timer_fd);
	ck_assert_int_eq(waiter->fd, -1);
	ck_assert_int_eq(waiter->event_fd, -1);
}

UNIT_CASE("blocking", setup_unspec, wait_close);

UNIT_TEST(counter_without_descriptor_rejects_getwait)
{
	enum fi_wait_obj obj = FI_WAIT_NONE;
	int fd;

	ck_assert_int_eq(fi_control(&fx.cntr->fid, FI_GETWAITOBJ, &obj), 0);
	ck_assert_int_eq(obj, FI_WAIT_UNSPEC);
	ck_assert_int_eq(fi_control(&fx.cntr->fid, FI_GETWAIT, &fd),
			 -FI_ENODATA);
	ck_assert_int_eq(trywait(&fx.cntr->fid), -FI_EINVAL);
}

/* Calls fi_cntr_wait() until one of the calls has slept or yielded. */
static void wait_in_silence(void)
{
	int i;

	/* libraries may have called nanosleep() before */
	sleeps = yields = 0;
	for (i = 0; i < 1000 && !sleeps && !yields; i++)
		ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, 20), -FI_ETIMEDOUT);
}

UNIT_TEST(wait_sleeps)
{
	wait_in_silence();
	ck_assert_int_gt(sleeps, 0);
}

UNIT_CASE("modes", NULL, NULL);

UNIT_TEST(wait_yields_if_configured)
{
	struct fixture_attr attr = modes[0];

	attr.cntr_wait = FI_WAIT_YIELD;
	duo_params.yield_mask = 0; /* each read of an empty CQ may yield */
	wait_open(&attr);
	wait_in_silence();
	ck_assert_int_gt(yields, 0);
	ck_assert_int_eq(sleeps, 0);
	wait_close();
}

static const int timeouts[] = { -1, LONG_MS };

UNIT_CASE("blocking", setup_unspec, wait_close);

UNIT_LOOP(event_ends_blocking_wait, 0, ARRAY_SIZE(timeouts))
{
	pthread_t thread;

	post_recv(&slot[0], local, TAG);
	thread = unit_thread(say, "wake up");
	ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, timeouts[_i]), 0);
	unit_thread_end(thread);
	ck_assert_str_eq(slot[0].buf, "wake up");
}

/*
 * The first poll of the wait finds a failed operation: ofi_duo truncates a
 * message (_i is 0), or the core reports the error.
 */
UNIT_LOOP(error_ends_blocking_wait, 0, 2)
{
	if (_i)
		fake.core.cntr->bad++;
	else
		ck_assert_int_eq(fi_trecv(fx.ep, slot[0].buf, 1, NULL, local,
					  TAG, 0, &slot[0]), 0);
	if (!_i)
		say("longer");
	ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, LONG_MS), -FI_EAVAIL);
	ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, 0), -FI_ETIMEDOUT);
}

static void *wait_for(void *count)
{
	return (void *) (intptr_t) fi_cntr_wait(fx.cntr, (uintptr_t) count, -1);
}

UNIT_TEST(waits_for_different_counts_end)
{
	const struct timespec while_they_sleep = { .tv_nsec = 3000000 };
	pthread_t thread[4];
	int i;

	for (i = 0; i < 4; i++)
		thread[i] = unit_thread(wait_for, (void *) (uintptr_t)
					(10 * (i / 2 + 1)));
	for (i = 0; i < 20; i++) {
		nanosleep(&while_they_sleep, NULL);
		ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
	}
	for (i = 0; i < 4; i++)
		ck_assert_ptr_null(unit_thread_end(thread[i]));
}
