/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A thread sleeps until a counter changes, over near: events that must wake the
 * thread, and events that must not.
 */

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "wait_fixture.h"

static atomic_int short_sleeps, short_at_sleep, sleeps, yields;

/*
 * The next three functions replace those of the C library, and count the calls.
 */
int nanosleep(const struct timespec *time, struct timespec *left)
{
	short_sleeps++;
	return (int) syscall(SYS_nanosleep, time, left);
}

int sched_yield(void)
{
	yields++;
	return (int) syscall(SYS_sched_yield);
}

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	const struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	sleeps++;
	short_at_sleep = atomic_load(&short_sleeps);
	return (int) syscall(SYS_ppoll, fds, count, &time, NULL, 0);
}

/* Endpoints without a CQ, and with a CQ that has no wait object */
static const struct fixture_attr modes[] = {
	{ .near = true, .cntr_flags = FI_SEND | FI_RECV,
	  .cntr_wait = FI_WAIT_FD, .no_cqs = true },
	{ .near = true, .cntr_flags = FI_SEND | FI_RECV,
	  .cntr_wait = FI_WAIT_FD },
};

static void setup(void)
{
	wait_open(&modes[0]);
}

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
 * An injected send to the local peer completes in the call, without a CQ entry.
 * An earlier send has connected the two ports.
 */
static void injected_locally(void)
{
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
	ck_assert_int_eq(fi_cntr_set(fx.cntr, 0), 0);
	fall_asleep();
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
}

/* The message arrives before another thread posts its receive. */
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

/*
 * Events that must wake the thread. "timer": the event is a call of another
 * thread, which the sleeping thread finds by its timer.
 */
static const struct {
	void (*now)(void);
	bool timer;
} wakers[] = {
	{ local_message, false },
	{ far_message, false },
	{ receive_posted, true },
	{ injected_locally, true },
	{ received_at_once, true },
	{ added, true },
};

UNIT_CASE("modes", NULL, NULL);

/*
 * The test itself makes the calls of other threads, so that the test can also
 * run without a lock (odd _i).
 */
UNIT_LOOP(event_wakes_descriptor, 0, 2 * ARRAY_SIZE(wakers))
{
	struct fixture_attr attr = modes[0];

	attr.threading = _i % 2 ? FI_THREAD_DOMAIN : FI_THREAD_SAFE;
	if (!wakers[_i / 2].timer)
		duo_params.wait_poll_us = 2 * LONG_MS * 1000;
	wait_open(&attr);
	wakers[_i / 2].now();
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
	short_sleeps = short_at_sleep = sleeps = yields = 0;
	for (i = 0; i < 1000 && !sleeps && !yields; i++)
		ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, 20), -FI_ETIMEDOUT);
}

UNIT_TEST(wait_sleeps_without_timer)
{
	wait_in_silence();
	ck_assert_int_gt(sleeps, 0);
	ck_assert_int_eq(short_sleeps, short_at_sleep);
}

UNIT_CASE("modes", NULL, NULL);

UNIT_TEST(wait_yields_if_configured)
{
	struct fixture_attr attr = modes[0];

	attr.cntr_wait = FI_WAIT_YIELD;
	duo_params.yield_mask = 0; /* yield as often as a read of a CQ yields */
	wait_open(&attr);
	wait_in_silence();
	ck_assert_int_gt(yields, 0);
	ck_assert_int_eq(short_sleeps + sleeps, 0);
	wait_close();
}

static const int timeouts[] = { -1, LONG_MS };

UNIT_CASE("blocking", setup_unspec, wait_close);

UNIT_LOOP(event_ends_blocking_wait, 0, ARRAY_SIZE(timeouts))
{
	pthread_t thread;

	post_recv(&slot[0], local, TAG);
	ck_assert_int_eq(pthread_create(&thread, NULL, say, "wake up"), 0);
	ck_assert_int_eq(fi_cntr_wait(fx.cntr, 1, timeouts[_i]), 0);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
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
	void *ret;
	int i;

	for (i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, wait_for,
						(void *) (uintptr_t)
						(10 * (i / 2 + 1))), 0);
	for (i = 0; i < 20; i++) {
		nanosleep(&while_they_sleep, NULL);
		ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, local, TAG), 0);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_eq(pthread_join(thread[i], &ret), 0);
		ck_assert_ptr_null(ret);
	}
}

UNIT_CASE("modes", NULL, NULL);

/*
 * The thread polls by a timer, because (_i) 0: the local transport is shm; 1:
 * the core has no wait objects; 2: the endpoint's CQ has none.
 */
UNIT_LOOP(without_wait_objects_timer_polls, 0, 3)
{
	struct fixture_attr attr = modes[1];
	int i;

	attr.near = _i;
	fixture_open(&attr);
	fake.core.no_wait = _i == 1;
	attr.no_cqs = _i == 1;
	ck_assert_int_eq(fixture_try(&attr), 0);
	for (i = 0; i < 3; i++) {
		fall_asleep();
		ck_assert_int_eq(woken(&fx.cntr->fid, LONG_MS), 1);
	}
	fixture_close();
}

/*
 * With FI_THREAD_COMPLETION no other thread may call the core, so that the
 * blocked thread must poll, by a timer.
 */
UNIT_TEST(thread_completion_polls_in_waiter)
{
	struct fixture_attr attr = modes[0];
	int i;

	attr.threading = FI_THREAD_COMPLETION;
	wait_open(&attr);
	for (i = 0; i < 3; i++) {
		fall_asleep();
		ck_assert_int_eq(woken(&fx.cntr->fid, LONG_MS), 1);
	}
	wait_close();
}
