/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Medium messages: they go through the ring, unless a trial has shown that
 * single copy is fast.
 */

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"

#define LEN 16384

static struct rig *a, *b;
static struct near_peer *to_b, *from_a;
static uint8_t *big, *got;
static uint32_t seen;	/* number of b's events that were checked */
static long copy_ns;	/* duration of b's copies that are measured, ns */
/* result of the next call of clock_gettime(); tv_sec is 0: real time */
static struct timespec fake;

/* Replaces clock_gettime() of the C library. */
int clock_gettime(clockid_t id, struct timespec *ts)
{
	if (!fake.tv_sec || id != CLOCK_MONOTONIC)
		return (int) syscall(SYS_clock_gettime, id, ts);
	*ts = fake;
	fake.tv_nsec += copy_ns;
	return 0;
}

static void setup_with(size_t memory)
{
	a = rig_open(false);
	b = rig_open_with(false, memory);
	to_b = rig_peer(a, b);
	from_a = rig_peer(b, a);
	ck_assert_int_eq(rig_send(a, to_b, 1, "a", 1), 0);
	ck_assert_int_eq(rig_send(b, from_a, 1, "b", 1), 0);
	rig_until(a, b, 1);
	rig_until(b, NULL, 1);
	seen = 1;
	big = malloc(NEAR_MEDIUM_MAX + 1);
	got = calloc(1, NEAR_MEDIUM_MAX + 1);
	rig_fill(big, NEAR_MEDIUM_MAX + 1, 7);
	to_b->medium = 1;	/* the next messages are no trial */
	copy_ns = 1;		/* fast */
	from_a->ring_ns = 2000;
}

UNIT_SETUP(setup, setup_with(NEAR_MEMORY));

/* Makes rings that are smaller than the message. */
UNIT_SETUP(setup_poor, setup_with(100 * near_page_size()));

/* Sends len bytes; returns true if the message is in the ring. */
static bool sends(size_t len)
{
	int ret, tries = 0;

	while ((ret = rig_send(a, to_b, 9, big, len)) == -EAGAIN) {
		ck_assert_int_lt(tries++, 10);
		rig_poll(b, 1);		/* a resize is pending */
	}
	ck_assert(!ret || ret == NEAR_LARGE);
	if (ret)
		ck_assert_int_eq(rig_send_large(a, to_b, 9, big, len, big), 0);
	return !ret;
}

/* b receives the message that a has sent; eager: result of sends(). */
static void arrives(size_t len, bool eager)
{
	struct rig_event *event = &b->event[seen++];
	uint32_t sent = a->count;

	rig_until(b, NULL, seen);
	ck_assert_uint_eq(event->msg.len, len);
	if (eager) {
		ck_assert_int_eq(event->kind, RIG_MSG);
		ck_assert_uint_eq(event->sum, rig_sum(big, len));
		return;
	}
	ck_assert_int_eq(event->kind, RIG_RNDV);
	memset(got, 0, len);
	fake = (struct timespec){ .tv_sec = 1 };
	ck_assert(near_recv_now(b->port, from_a, &event->msg.rndv, got, len));
	fake.tv_sec = 0;
	ck_assert_mem_eq(got, big, len);
	rig_until_event(a, NULL, sent + 1, RIG_SENT, 0);
}

/* Sends a message until the ring has grown, and asserts that it is eager. */
static void grows_for(size_t len)
{
	int i;

	for (i = 0; i < 3 && !sends(len); i++)
		arrives(len, false);
	ck_assert_int_lt(i, 3);
	arrives(len, true);
}

UNIT_CASE("medium", setup, rig_close_all);

UNIT_TEST(medium_messages_are_eager)
{
	grows_for(NEAR_MEDIUM_MAX);
	ck_assert(sends(NEAR_EAGER_MAX + 1));
	arrives(NEAR_EAGER_MAX + 1, true);
	ck_assert(sends(NEAR_MEDIUM_MAX));
	arrives(NEAR_MEDIUM_MAX, true);
	ck_assert(!sends(NEAR_MEDIUM_MAX + 1));
	arrives(NEAR_MEDIUM_MAX + 1, false);
}

/* Only medium messages count for trials. */
UNIT_TEST(trial_has_two_of_32_messages)
{
	uint32_t i, large = 0;
	bool eager;

	grows_for(LEN);
	to_b->medium = 1;
	copy_ns = 1000000;
	for (i = 2; i < 2 + 3 * NEAR_TRIAL; i++) {
		ck_assert(sends(NEAR_EAGER_MAX));
		arrives(NEAR_EAGER_MAX, true);
		eager = sends(LEN);
		ck_assert_int_eq(eager, i % NEAR_TRIAL > 1);
		arrives(LEN, eager);
		if (!eager)
			ck_assert_uint_eq(b->event[seen - 1].msg.rndv.key,
					  i % NEAR_TRIAL == 1);
		large += !eager;
	}
	ck_assert_uint_eq(large, 3 * 2);
}

/*
 * Only the medium message before a trial is measured. It is eager even if
 * single copy is fast (_i is 1). The result of the trial is slow if no message
 * was measured before.
 */
UNIT_LOOP(message_before_trial_is_measured, 0, 2)
{
	uint32_t i;
	bool eager;

	grows_for(LEN);
	to_b->trial = _i ? NEAR_TRIAL_FAST : NEAR_TRIAL_SLOW;
	from_a->ring_ns = 0;
	to_b->medium = NEAR_TRIAL - 4;
	copy_ns = 3000;
	for (i = NEAR_TRIAL - 3; i < NEAR_TRIAL; i++) {
		ck_assert_uint_eq(from_a->ring_ns, 0);
		eager = sends(LEN);
		ck_assert_int_eq(eager, !_i || i == NEAR_TRIAL - 1);
		fake = (struct timespec){ .tv_sec = 1 };
		rig_until(b, NULL, seen + 1);
		ck_assert(sends(NEAR_EAGER_MAX));
		rig_until(b, NULL, seen + 2);
		fake.tv_sec = 0;
		arrives(LEN, eager);
		arrives(NEAR_EAGER_MAX, true);
	}
	ck_assert_uint_eq(from_a->ring_ns, 3000 * NEAR_MEDIUM_MAX / (LEN | 1));
	from_a->ring_ns = 0;
	to_b->medium = 0;
	copy_ns = 1;
	ck_assert(!sends(LEN));
	arrives(LEN, false);
	ck_assert_int_eq(to_b->trial, NEAR_TRIAL_SLOW);
}

/*
 * The single copy of a trial takes just the time that is fast (_i is 0), or
 * 1 ns more. Then the opposite result of the next trial changes the protocol.
 */
UNIT_LOOP(result_of_trial_selects_protocol, 0, 2)
{
	int i;

	grows_for(LEN);
	for (i = 0; i < 2; i++) {
		bool slow = i ^ _i;

		to_b->medium = 0;
		copy_ns = 1500 + slow;
		ck_assert(!sends(LEN));
		arrives(LEN, false);
		ck_assert_int_eq(to_b->trial,
				 slow ? NEAR_TRIAL_SLOW : NEAR_TRIAL_FAST);
		ck_assert_int_eq(sends(LEN), slow);
		arrives(LEN, slow);
		ck_assert(sends(NEAR_EAGER_MAX));
		arrives(NEAR_EAGER_MAX, true);
	}
}

/*
 * Neither the receive of a trial after its arrival (_i is 0 or 1) nor the
 * immediate copy of another message (2 or 3) changes the protocol.
 */
UNIT_LOOP(other_copies_have_no_result, 0, 4)
{
	const size_t len = NEAR_MEDIUM_MAX;
	enum near_trial before = _i % 2 ? NEAR_TRIAL_FAST : NEAR_TRIAL_SLOW;
	uint32_t sent = a->count;

	to_b->trial = before;
	to_b->medium = _i / 2;
	copy_ns = _i % 2 ? 1000000 : 1;
	ck_assert(!sends(len));
	if (_i < 2) {
		rig_until(b, NULL, seen + 1);
		ck_assert_uint_eq(b->event[seen].msg.rndv.key, 1);
		rig_take(b, seen, got, len);
		rig_until_event(a, b, sent + 1, RIG_SENT, 0);
	} else {
		arrives(len, false);
	}
	ck_assert_int_eq(to_b->trial, before);
}

/* The trial has messages that do not fit in the ring. */
UNIT_TEST(result_of_trial_lets_ring_grow)
{
	to_b->trial = NEAR_TRIAL_FAST;
	to_b->medium = 0;
	copy_ns = 1000000;
	ck_assert_uint_lt(to_b->tx.medium_max, NEAR_MEDIUM_MAX);
	ck_assert(!sends(NEAR_MEDIUM_MAX));
	arrives(NEAR_MEDIUM_MAX, false);
	ck_assert_int_eq(to_b->trial, NEAR_TRIAL_SLOW);
	grows_for(NEAR_MEDIUM_MAX);
}

/*
 * b receives the second message of a trial in device memory. So all messages
 * until the next trial use rendezvous, also the one before the trial.
 */
UNIT_TEST(trial_in_device_memory_excludes_eager_messages)
{
	struct near_rx_op *op;
	uint32_t sent, i;

	grows_for(LEN);
	sent = a->count;
	to_b->medium = 0;
	ck_assert(!sends(LEN));
	rig_until(b, NULL, ++seen);
	op = near_recv_begin(b->port, from_a, &b->event[seen - 1].msg.rndv,
			     got);
	near_recv_end(b->port, op, 0);
	rig_until_event(a, b, sent + 1, RIG_SENT, 0);
	ck_assert_int_eq(to_b->trial, NEAR_TRIAL_DEVICE);
	seen = b->count;
	for (i = 2; i < NEAR_TRIAL; i++) {
		ck_assert(!sends(LEN));
		arrives(LEN, false);
	}
	ck_assert_int_eq(to_b->trial, NEAR_TRIAL_DEVICE);
}

/* If single copy is fast, it is used, and rings need not grow. */
UNIT_TEST(fast_messages_need_no_larger_ring)
{
	uint32_t tier = to_b->resize.tier;

	to_b->trial = NEAR_TRIAL_FAST;
	ck_assert(!sends(LEN));
	arrives(LEN, false);
	ck_assert(!sends(NEAR_MEDIUM_MAX));
	arrives(NEAR_MEDIUM_MAX, false);
	ck_assert_uint_eq(to_b->tx.gated, 0);
	ck_assert_uint_eq(to_b->resize.tier, tier);
}

/* With a full ring, the message uses rendezvous; the order is kept. */
UNIT_TEST(full_ring_uses_rendezvous)
{
	uint32_t n = 0, i;

	grows_for(LEN);
	to_b->medium = 1;
	while (sends(LEN))
		ck_assert_uint_lt(++n, NEAR_TRIAL - 3);
	ck_assert_uint_gt(n, 2);
	ck_assert_uint_eq(to_b->resize.full, 0);
	for (i = 0; i < n; i++)
		arrives(LEN, true);
	arrives(LEN, false);
}

UNIT_CASE("poor", setup_poor, rig_close_all);

UNIT_TEST(small_ring_grows_for_medium_message)
{
	uint32_t tier;

	if (near_tier_least() > 3)
		return;		/* large pages: the message fits */
	ck_assert(!sends(LEN));
	tier = to_b->resize.tier;
	arrives(LEN, false);
	grows_for(LEN);
	ck_assert_uint_gt(to_b->resize.tier, tier);
}
