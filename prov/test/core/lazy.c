/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* When deferred receives are posted to the core: docs/matching.md. */

#include "fixture.h"

static struct slot slot[4];

/*
 * Receives a message that "local" has sent over shm. This makes "local" a
 * confirmed source: ofi_duo expects all later messages of "local" over shm. The
 * core then gets no receives that name "local".
 */
static void confirm_local(void)
{
	post_recv(&slot[2], local, TAG);
	near("first");
	expect_recv(&slot[2], "first", local);
	ck_assert_int_eq(fake.core.posts, 0);
}

UNIT_CASE("lazy", pair_setup, fixture_close);

UNIT_TEST(wildcard_waits_for_idle_polls)
{
	confirm_local();
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fake.core.posts, 0);
	poll_cq(LAZY_POLLS - 1);
	ck_assert_int_eq(fake.core.posts, 0);
	poll_cq(1);
	ck_assert_int_eq(fake.core.posts, 1);
	poll_cq(4 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_uint_eq(stats_now().deferred_posted, 1);
}

/*
 * All messages are remote. The poll after a delivery must post the next receive
 * and poll the core once. It must not read the clock more often than other
 * polls do.
 */
UNIT_TEST(remote_delivery_costs_one_core_poll)
{
	uint64_t polls, reads;
	int i;

	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	poll_cq(4 * LAZY_POLLS);
	reads = unit_clock_reads();
	for (i = 0; i < 8; i++) {
		ck_assert_int_eq(fake.core.posts, i + 1);
		far("far");
		expect_recv(&slot[0], "far", remote);
		post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
		polls = stats_now().core_polls;
		poll_cq(1);
		ck_assert_uint_eq(stats_now().core_polls, polls + 1);
	}
	ck_assert_uint_le(unit_clock_reads() - reads, 2);
}

/*
 * Polls are 10 ms apart, and shm is never idle. The receive is posted to the
 * core after a time, not after a number of idle polls.
 */
UNIT_TEST(rare_polls_post_wildcard_by_time)
{
	int i;

	duo_params.defer_us = 200;
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	for (i = 0; i < 12; i++) {
		unit_pass(10000);	/* 10 ms later; shm is busy */
		fake_shm_arrive(DUO_TAGGED, local_name, TAG + 1, "x");
		poll_cq(1);
	}
	ck_assert_int_eq(fake.core.posts, 1);
}

/*
 * The core gets the receive, because its source may have chosen the core before
 * this endpoint was published.
 */
UNIT_TEST(unconfirmed_local_receive_is_posted)
{
	post_recv(&slot[0], local, TAG);
	ck_assert_int_eq(fake.core.posts, 0);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	fake_core_arrive(DUO_TAGGED, local, TAG, "over the core");
	expect_recv(&slot[0], "over the core", local);
}

UNIT_TEST(confirmed_local_receive_is_not_posted)
{
	confirm_local();
	post_recv(&slot[0], local, TAG);
	poll_cq(40 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 0);
	near("near");
	expect_recv(&slot[0], "near", local);
}

UNIT_TEST(receive_of_source_confirmed_later_stays_local)
{
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], local, TAG);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG + 1);
	near("first");
	expect_recv(&slot[0], "first", local);
	poll_cq(4 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	near("second");
	expect_recv(&slot[1], "second", local);
	ck_assert_int_eq(fake.core.cancels, 0);
}

UNIT_TEST(earlier_receive_of_other_source_stays_deferred)
{
	fi_addr_t other = peer_insert(3);

	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], other, TAG);
	ck_assert_int_eq(fake.core.posts, 1);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG);
	post_recv(&slot[3], other, TAG);
	ck_assert_int_eq(fake.core.posts, 4);
}

UNIT_TEST(earlier_receive_of_other_tag_stays_deferred)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG + 1);
	post_recv(&slot[1], remote, TAG);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
}

/*
 * A tagged receive for a remote source is posted to the core. An earlier
 * untagged receive must stay deferred.
 */
UNIT_TEST(earlier_untagged_receive_stays_deferred)
{
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	post_recv(&slot[1], remote, TAG);
	ck_assert_int_eq(fake.core.posts, 1);
	fake_shm_arrive(DUO_MSG, local_name, 0, "untagged");
	expect_entry(&slot[0], local);
	ck_assert_str_eq(slot[0].buf, "untagged");
}

/*
 * Two processes send to each other over the core, and read only their CQs for
 * sends. Each send needs a receive that the other process has posted to its
 * core. So reads of the CQ for sends must post receives.
 */
static void open_two_cqs(void)
{
	static const struct fixture_attr attr = { .two_cqs = true };

	fixture_close();
	fixture_start(&attr);
	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
}

UNIT_TEST(reads_of_send_cq_post_receive)
{
	int i;

	open_two_cqs();
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	for (i = 0; i < 2 * LAZY_POLLS; i++)
		ck_assert_int_eq(fi_cq_read(fx.tx_cq, NULL, 0), -FI_EAGAIN);
	ck_assert_int_eq(fake.core.posts, 1);
}

/* Repeats the call, because its timeout may pass before the thread sleeps. */
UNIT_TEST(sleep_on_send_cq_posts_receive)
{
	struct fi_cq_tagged_entry entry;

	open_two_cqs();
	fixture_ep()->lazy.limit = 1 << 30;
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	do {
		ck_assert_int_eq(fi_cq_sread(fx.tx_cq, &entry, 1, NULL, 1),
				 -FI_EAGAIN);
	} while (!fake.core.posts);
	ck_assert_int_eq(fake.core.posts, 1);
}

/* A local message matches first, and the core never gets the receive. */
UNIT_TEST(deferred_receive_gets_local_message)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("near");
	expect_recv(&slot[0], "near", local);
	poll_cq(4 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 0);
	ck_assert_int_eq(fake.core.cancels, 0);
}

UNIT_TEST(without_directed_caps_receives_are_wildcards)
{
	static const struct fixture_attr attr = { .no_caps = FI_DIRECTED_RECV };

	fixture_close();
	fixture_start(&attr);
	remote = peer_insert(2);
	post_recv(&slot[0], remote, TAG);
	ck_assert_int_eq(fake.core.posts, 0);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_uint_eq(TAILQ_FIRST(&fake.core.posted)->addr,
			  FI_ADDR_UNSPEC);
}

/*
 * duo_lazy_add_before() inserts a receive before a due receive in the list of
 * deferred receives. The inserted receive must become due, too. Both counters
 * of the list, lazy.due and lazy.count, must include the inserted receive.
 */
UNIT_TEST(receive_inserted_before_due_one_is_due)
{
	struct duo_ep *ep = fixture_ep();
	struct duo_rx *rx, *due;

	post_recv(&slot[0], remote, TAG);
	due = TAILQ_FIRST(&ep->lazy.list);
	rx = duo_rx_alloc(&ep->pool);
	rx->state = DUO_RX_READY;
	rx->kind = DUO_TAGGED;
	rx->addr = remote;
	duo_lazy_add_before(due, rx);
	ck_assert_ptr_eq(TAILQ_FIRST(&ep->lazy.list), rx);
	ck_assert_uint_eq(ep->lazy.due, 2);
	ck_assert_uint_eq(ep->lazy.count, 2);
	duo_lazy_drop(rx);
	duo_rx_release(&ep->pool, rx);
	ck_assert_uint_eq(ep->lazy.due, 1);
}
