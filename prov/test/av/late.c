/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Peers without an index when their first message arrives: they published
 * themselves or were inserted late. The message is held until its source was
 * looked up, so that directed receives match it.
 */

#include <sys/resource.h>
#include <unistd.h>

#include "fixture.h"

static fi_addr_t peer;
static struct slot slot[4];

/* In the AV first, published later, nothing sent to it. */
static void publish_late(void)
{
	peer = peer_insert(1);
	ck_assert_int_eq(fake.shm.inserted, 0);
	local_name = peer_publish(1);
}

UNIT_CASE("late", fixture_setup, fixture_close);

/* The path of sends stays, for the order per pair. */
UNIT_TEST(the_sends_stay_on_the_core)
{
	int context;

	peer = peer_insert(1);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	local_name = peer_publish(1);
	post_recv(&slot[0], peer, TAG);
	near("late");
	expect_recv(&slot[0], "late", peer);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 2);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
}

/*
 * The reverse: the peer chose its path before this endpoint was published.
 * Sends to it use shm, its messages arrive over the core.
 */
UNIT_TEST(the_peer_stays_on_the_core)
{
	int i, context;

	local_name = peer_publish(1);
	peer = peer_insert(1);
	for (i = 0; i < 2; i++) {
		post_recv(&slot[i], i ? peer : FI_ADDR_UNSPEC, TAG);
		ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG,
					  &context), 0);
		expect_entry(&context, FI_ADDR_NOTAVAIL);
	}
	fake_core_arrive(DUO_TAGGED, peer, TAG, "1");
	fake_core_arrive(DUO_TAGGED, peer, TAG, "2");
	poll_cq(2 * LAZY_POLLS);
	expect_recv(&slot[0], "1", peer);
	expect_recv(&slot[1], "2", peer);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 2);
}

/* Undecided: the first send looks it up again. */
UNIT_TEST(the_first_send_finds_it)
{
	int context;

	publish_late();
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}

UNIT_TEST(stranger_and_empty_av)
{
	local_name = peer_publish(1);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("hello");
	expect_recv(&slot[0], "hello", FI_ADDR_NOTAVAIL);
}

/* Sets the soft limit of open files to 0, or restores it. */
static void let_open(bool may)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = may ? limit.rlim_max : 0;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* The record is unreadable when the message arrives, but not later. */
UNIT_TEST(no_descriptor_for_a_moment)
{
	publish_late();
	post_recv(&slot[0], peer, TAG);
	let_open(false);
	near("late");
	expect_nothing();
	unit_pass(20000);
	expect_nothing();
	let_open(true);
	unit_pass(50000);
	expect_recv(&slot[0], "late", peer);
	ck_assert_uint_eq(duo_domain_of(fx.domain)->held, 0);
}

/* The record is unreadable at the insert; the registry does not change. */
UNIT_TEST(no_descriptor_for_the_insert)
{
	local_name = peer_publish(1);
	peer_insert(2);
	usleep(60000);
	fake_shm_arrive(DUO_TAGGED, "stranger", TAG + 1, "who");
	poll_cq(1);
	ck_assert_uint_ne(fixture_ep()->map->scanned, 0);
	let_open(false);
	peer = peer_insert(1);
	let_open(true);
	post_recv(&slot[0], peer, TAG);
	near("late");
	expect_recv(&slot[0], "late", peer);
}

/* Removed and inserted again: its place in shm and its messages stay. */
UNIT_TEST(removed_and_inserted_again)
{
	fi_addr_t again;

	local_name = peer_publish(1);
	peer = peer_insert(1);
	near("1");
	poll_cq(1);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, NULL),
			 -FI_EINVAL);
	ck_assert_int_eq(try_recv(&slot[1], peer, TAG), -FI_EINVAL);
	again = peer_insert(1);
	ck_assert_int_eq(fake.shm.inserted, 1);
	near("2");
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	poll_cq(0);
	ck_assert_uint_eq(expect_entry(&slot[0], again).len, 1);
	ck_assert_str_eq(slot[0].buf, "1");
	post_recv(&slot[1], again, TAG);
	expect_recv(&slot[1], "2", again);
}
