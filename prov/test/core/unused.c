/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* An unused core gets no polls and no receives: docs/matching.md. */

#include "fixture.h"

/*
 * Number of polls. If the core were used, ofi_duo would post receives and poll
 * the core after a smaller number.
 */
#define LONG 1000
#define SECOND 1000000	/* us */

static struct slot slot[2];

static void setup(void)
{
	fixture_setup();
	local_name = peer_publish(1);
	local = peer_insert(1);
}

static void expect_unused(void)
{
	poll_cq(LONG);
	ck_assert_int_eq(fake.core.posts, 0);
	ck_assert_int_eq(fake.core.polls, 0);
}

static void expect_used(void)
{
	poll_cq(LONG);
	ck_assert_int_gt(fake.core.polls, 0);
}

UNIT_CASE("unused", setup, fixture_close);

UNIT_TEST(local_messages_leave_core_unused)
{
	post_recv(&slot[0], local, TAG);
	expect_unused();
	near("near");
	expect_recv(&slot[0], "near", local);
	expect_unused();
	fixture_close_ep();
	ck_assert_int_eq(fake.core.polls, 0);
}

/*
 * The source is on this host, but cannot use shm, and sends over the core.
 * Receives that name it are posted to the core after 1 s.
 */
UNIT_TEST(receive_waits_a_second)
{
	post_recv(&slot[0], local, TAG);
	fake_core_arrive(DUO_TAGGED, local, TAG, "far");
	expect_unused();
	unit_pass(SECOND);
	poll_cq(2 * LONG);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_str_eq(slot[0].buf, "far");
}

/*
 * If at least one receive waits throughout 1 s, ofi_duo begins to use the core.
 * This time begins when a receive is posted while no other receive waits. Time
 * during which no receive waits does not count.
 */
UNIT_TEST(second_begins_with_first_receive)
{
	fi_addr_t other;

	peer_publish(3);
	other = peer_insert(3);
	post_recv(&slot[0], local, TAG);
	expect_unused();
	unit_pass(SECOND - 1);
	near("near");
	expect_recv(&slot[0], "near", local);
	unit_pass(SECOND);
	post_recv(&slot[0], other, TAG);
	expect_unused();
	unit_pass(SECOND - 1);
	expect_unused();
	post_recv(&slot[1], other, TAG);
	unit_pass(1);
	expect_used();
	ck_assert_int_eq(fake.core.posts, 2);
}

UNIT_TEST(core_is_polled_while_av_is_empty)
{
	fixture_close();
	fixture_setup();
	expect_used();
	local_name = peer_publish(1);
	local = peer_insert(1);
	fake.core.polls = 0;
	expect_unused();
}

static void use_by_wildcard(void)
{
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
}

static void use_by_remote_address(void)
{
	peer_insert(2);
}

/*
 * A program that cancels and reposts receives might never let one wait for a
 * second. So a cancel ends the unused state.
 */
static void use_by_cancel(void)
{
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	expect_error(&slot[0], FI_ECANCELED);
}

/* Peeks for a message of src, and asserts that there is none. */
static void peek_finds_nothing(fi_addr_t src)
{
	ck_assert_int_eq(recv_flags(&slot[1], NULL, 0, src, FI_PEEK), 0);
	expect_error(&slot[1], FI_ENOMSG);
}

static void use_by_peek(void)
{
	peek_finds_nothing(FI_ADDR_UNSPEC);
}

/* Repeats the call, because its timeout may pass before the thread sleeps. */
static void use_by_sleep(void)
{
	struct fi_cq_tagged_entry entry;

	do {
		ck_assert_int_eq(fi_cq_sread(fx.cq, &entry, 1, NULL, 1),
				 -FI_EAGAIN);
		poll_cq(LONG);
	} while (!fake.core.polls);
}

static void (*const use_by[])(void) = {
	use_by_wildcard, use_by_remote_address, use_by_cancel, use_by_peek,
	use_by_sleep,
};

UNIT_ROUNDS(core_is_used_after, 0, ARRAY_SIZE(use_by))
{
	post_recv(&slot[0], local, TAG);
	expect_unused();
	use_by[_i]();
	expect_used();
}

/* A peek for a local source begins a second in which the core gets no peek. */
UNIT_TEST(peek_waits_a_second)
{
	peek_finds_nothing(local);
	unit_pass(SECOND - 1);
	peek_finds_nothing(local);
	expect_unused();
	ck_assert_int_eq(fake.core.peeks, 0);
	fake_core_arrive(DUO_TAGGED, local, TAG, "far");
	unit_pass(1);
	ck_assert_int_eq(recv_flags(&slot[1], NULL, 0, local, FI_PEEK), 0);
	expect_entry(&slot[1], local);
	ck_assert_int_eq(fake.core.peeks, 1);
	expect_used();
}

/*
 * The source that the first peek named sends a local message. So the next peek
 * begins a new second. A peek for another source does not begin a new one.
 */
UNIT_TEST(second_begins_with_first_peek)
{
	fi_addr_t other;

	peer_publish(3);
	other = peer_insert(3);
	peek_finds_nothing(local);
	unit_pass(SECOND / 2);
	post_recv(&slot[0], local, TAG);
	near("near");
	expect_recv(&slot[0], "near", local);
	peek_finds_nothing(local);
	unit_pass(SECOND / 2);
	peek_finds_nothing(other);
	unit_pass(SECOND - 1);
	peek_finds_nothing(other);
	expect_unused();
	unit_pass(1);
	peek_finds_nothing(other);
	expect_used();
}

static const struct fixture_attr attrs[] = {
	{ .onesided = true }, { .wait_obj = FI_WAIT_FD }, { .no_shm = true },
};

UNIT_ROUNDS(core_is_used_with, 0, ARRAY_SIZE(attrs))
{
	fixture_close();
	fixture_start(&attrs[_i]);
	expect_used();
}
