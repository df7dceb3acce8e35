/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A thread sleeps on a CQ, over near: events that must or must not wake it. */


#include "wait_fixture.h"

FIXTURE_SETUP(setup, wait_open, .near = true, .wait_obj = FI_WAIT_FD);
FIXTURE_SETUP(setup_unspec, wait_open, .near = true,
	      .wait_obj = FI_WAIT_UNSPEC);
FIXTURE_SETUP(setup_selective, wait_open, .near = true,
	      .wait_obj = FI_WAIT_FD,
	      .rx_bind_flags = FI_SELECTIVE_COMPLETION);
FIXTURE_SETUP(setup_two_cqs, wait_open, .near = true,
	      .wait_obj = FI_WAIT_FD, .two_cqs = true,
	      .rx_bind_flags = FI_SELECTIVE_COMPLETION);

/* Reads fx.cq at most 10,000 times, until it has a completion; returns it. */
static struct fi_cq_tagged_entry read_one(void)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret = -FI_EAGAIN;
	int i;

	for (i = 0; ret == -FI_EAGAIN && i < 10000; i++) {
		ret = fi_cq_read(fx.cq, &entry, 1);
		if (ret == -FI_EAGAIN)
			trywait(&fx.cq->fid);
	}
	ck_assert_int_eq(ret, 1);
	return entry;
}

UNIT_CASE("descriptor", setup, wait_close);

/*
 * The descriptor must not be readable before a message arrives, nor after the
 * message's completion was read.
 */
UNIT_TEST(no_event_does_not_wake)
{
	int i;

	for (i = 0; i < 3; i++) {
		fall_asleep();
		ck_assert_int_eq(woken(&fx.cq->fid, SILENCE_MS), 0);
		post_recv(&slot[0], local, TAG);
		say("x");
		ck_assert_ptr_eq(read_one().op_context, &slot[0]);
	}
}

/*
 * Two threads sleep on the same descriptor, and two messages arrive. After one
 * thread has read the first completion, the descriptor must stay readable for
 * the other thread.
 */
UNIT_TEST(second_sleeper_on_descriptor_wakes)
{
	/*
	 * the first message confirms the source: the core gets no later receive
	 * that names it
	 */
	post_recv(&slot[0], local, TAG);
	say("first");
	ck_assert_ptr_eq(read_one().op_context, &slot[0]);
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], local, TAG);
	fall_asleep();
	say("one");
	say("two");
	ck_assert_int_eq(woken(&fx.cq->fid, LONG_MS), 1);
	while (trywait(&fx.cq->fid) != -FI_EAGAIN)
		;
	ck_assert_ptr_eq(read_one().op_context, &slot[0]);
	ck_assert_int_eq(woken(&fx.cq->fid, 0), 1);
	ck_assert_ptr_eq(read_one().op_context, &slot[1]);
	fall_asleep();
	ck_assert_int_eq(woken(&fx.cq->fid, 0), 0);
}

static void any_message(void)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	fall_asleep();
	far("far");
}

/* A send to the local peer completes in the call. */
static void sent_locally(void)
{
	fall_asleep();
	ck_assert_int_eq(send_x(fx.ep, local, &slot[0]), 0);
}

static void sent_far(void)
{
	fall_asleep();
	ck_assert_int_eq(send_x(fx.ep, remote, &slot[0]), 0);
}

static void (*const wakers[])(void) = {
	local_message, far_message, any_message, receive_posted, sent_locally,
	sent_far,
};

UNIT_LOOP(event_wakes_descriptor, 0, ARRAY_SIZE(wakers))
{
	wakers[_i]();
	ck_assert_int_eq(woken(&fx.cq->fid, LONG_MS), 1);
	ck_assert_ptr_eq(read_one().op_context, &slot[0]);
	fall_asleep();
	ck_assert_int_eq(woken(&fx.cq->fid, SILENCE_MS / 4), 0);
}

UNIT_TEST(error_wakes_descriptor)
{
	struct fi_cq_tagged_entry entry;

	post_recv(&slot[0], remote, TAG);
	fall_asleep();
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	ck_assert_int_eq(woken(&fx.cq->fid, LONG_MS), 1);
	ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EAGAIN);
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), -FI_EAVAIL);
}

UNIT_TEST(signal_wakes_or_prevents_sleep)
{
	ck_assert_int_eq(fi_cq_signal(fx.cq), 0);
	ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EAGAIN);
	fall_asleep();
	ck_assert_int_eq(woken(&fx.cq->fid, SILENCE_MS / 4), 0);
	ck_assert_int_eq(fi_cq_signal(fx.cq), 0);
	ck_assert_int_eq(woken(&fx.cq->fid, LONG_MS), 1);
}

UNIT_CASE("two CQs", setup_two_cqs, wait_close);

static void fall_asleep_on_sends(void)
{
	while (trywait(&fx.tx_cq->fid))
		ck_assert_int_eq(fi_cq_read(fx.tx_cq, NULL, 0), -FI_EAGAIN);
}

/*
 * Posts a multi-receive buffer. A local message waits in the unexpected queue
 * while the core fills the buffer. At the end, fi_trywait() permits a sleep.
 */
static void fill_buffer(void *buf, size_t len)
{
	const struct iovec iov = { buf, len };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
	};

	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), 0);
	fall_asleep();
	ck_assert_uint_eq(fake_core_posted(), 1);
	fake.core.hold = true;
	fake_core_arrive(DUO_MSG, remote, 0, "far");
	ck_assert_int_eq(fi_inject(peer, "near", 4, to_us), 0);
	fall_asleep();
}

/*
 * The two CQs of an endpoint share its port. A read of one CQ consumes the
 * wakeup of the port. A thread that sleeps on the other CQ must still wake.
 */
UNIT_TEST(sleeper_on_other_cq_wakes)
{
	fall_asleep();
	ck_assert_int_eq(trywait(&fx.tx_cq->fid), 0);
	say("x");
	ck_assert_int_eq(fi_cq_signal(fx.cq), 0);
	ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EAGAIN);
	ck_assert_int_eq(woken(&fx.tx_cq->fid, LONG_MS), 1);
}

/*
 * A thread sleeps on the CQ of the sends, and another thread posts a receive.
 * Perhaps no thread reads the CQ of the receives. So the sleeping thread must
 * wake and post the receive to the core.
 */
UNIT_TEST(receive_wakes_sleeper_on_send_cq)
{
	fall_asleep_on_sends();
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_uint_eq(fake_core_posted(), 0);
	ck_assert_int_eq(woken(&fx.tx_cq->fid, 0), 1);
	fall_asleep_on_sends();
	ck_assert_uint_eq(fake_core_posted(), 1);
}

/*
 * The core fills a part of a multi-receive buffer. A local message waits until
 * the core reports the end of this part. A thread sleeps on the CQ of the
 * sends. Another thread reads the CQ of the receives, and finds this report.
 * From then on, the remainder of the buffer can receive the local message, but
 * only in a poll. Perhaps no thread reads the CQ of the receives again. So the
 * sleeping thread must wake, and its poll must start to receive the local
 * message.
 */
UNIT_TEST(ready_remainder_wakes_sleeper_on_send_cq)
{
	static char buf[128];

	fill_buffer(buf, sizeof(buf));
	fall_asleep_on_sends();
	fake_core_release();
	poll_cq(1);
	ck_assert(!TAILQ_EMPTY(&fixture_ep()->multi.ready));
	ck_assert_int_eq(woken(&fx.tx_cq->fid, 0), 1);
	fall_asleep_on_sends();
	ck_assert_str_eq(buf, "farnear");
}

UNIT_CASE("descriptor", setup, wait_close);

/*
 * fi_trywait() must not permit a sleep before the core has all receives:
 * otherwise a message at the core could not wake the thread.
 */
UNIT_TEST(receive_rejected_by_core_prevents_sleep)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	fake.core.eagain = 1;
	ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EAGAIN);
	fall_asleep();
	ck_assert_uint_eq(fake_core_posted(), 1);
}

UNIT_CASE("selective", setup_selective, wait_close);

/*
 * The receive of the multi-receive buffer has no FI_COMPLETION, so its messages
 * cause no CQ entries. The core fills a part of the buffer. A local message
 * waits until the core reports the end of this part. From then on, the
 * remainder of the buffer can receive the local message, but only in the next
 * poll. Therefore
 * - if fi_trywait() finds the core's report (_i is 0), fi_trywait() must not
 *   permit the sleep
 * - if another thread's read finds the report during the sleep (_i is 1), the
 *   sleeping thread must wake
 */
UNIT_LOOP(message_for_remainder_prevents_sleep, 0, 2)
{
	static char buf[128];

	fill_buffer(buf, sizeof(buf));
	fake_core_release();
	if (_i) {
		poll_cq(1);
		ck_assert(!TAILQ_EMPTY(&fixture_ep()->multi.ready));
		ck_assert_int_eq(woken(&fx.cq->fid, 0), 1);
	} else {
		ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EAGAIN);
	}
	fall_asleep();
	ck_assert_str_eq(buf, "farnear");
}

static int timeouts[] = { -1, LONG_MS };

UNIT_CASE("blocking", setup_unspec, wait_close);

UNIT_LOOP(message_ends_blocking_read, 0, ARRAY_SIZE(timeouts))
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;

	post_recv(&slot[0], local, TAG);
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 3), -FI_EAGAIN);
	thread = unit_thread(say, "wake up");
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, timeouts[_i]),
			 1);
	unit_thread_end(thread);
	ck_assert_str_eq(slot[0].buf, "wake up");
}

static void *signal_cq(void *arg)
{
	const struct timespec while_it_sleeps = { .tv_nsec = 20000000 };

	nanosleep(&while_it_sleeps, NULL);
	ck_assert_int_eq(fi_cq_signal(fx.cq), 0);
	return NULL;
}

UNIT_TEST(signal_ends_blocking_read)
{
	struct fi_cq_tagged_entry entry;
	pthread_t thread;

	thread = unit_thread(signal_cq, NULL);
	ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, -1), -FI_EAGAIN);
	unit_thread_end(thread);
}

UNIT_TEST(wait_unspec_getwait_fails)
{
	int fd;

	ck_assert_int_eq(fi_control(&fx.cq->fid, FI_GETWAIT, &fd),
			 -FI_ENODATA);
	ck_assert_int_eq(trywait(&fx.cq->fid), -FI_EINVAL);
}

UNIT_CASE("timer", NULL, NULL);

/*
 * A timer wakes the thread, because one of the paths cannot wake it. The reason
 * depends on _i:
 * - 0: the local transport is shm
 * - 1: the core's CQs have no wait objects
 * - 2: the core's CQs do not return their file descriptors
 * - 3: epoll rejects the file descriptors of the core's CQs
 */
UNIT_LOOP(without_wait_objects_timer_polls, 0, 4)
{
	const struct fixture_attr attr = {
		.near = _i, .wait_obj = FI_WAIT_FD,
	};
	int i;

	fixture_open(&attr);
	fake.core.no_wait = _i == 1;
	fake.core.no_getwait = _i == 2;
	fake.core.wait_file = _i == 3;
	ck_assert_int_eq(fixture_try(&attr), 0);
	for (i = 0; i < 3; i++) {
		fall_asleep();
		ck_assert_int_eq(woken(&fx.cq->fid, LONG_MS), 1);
	}
	fixture_close();
}
