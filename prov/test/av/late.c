/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Peers that are published or inserted late, and so have no peer index when
 * their first message arrives. ofi_duo holds the message until it has looked up
 * the source, so that directed receives can match.
 */

#include <unistd.h>

#include "fixture.h"

static fi_addr_t peer;
static struct slot slot[4];

/* Inserts the peer's address and then publishes the peer. */
static void publish_late(void)
{
	peer = peer_insert(1);
	ck_assert_int_eq(fake.shm.inserted, 0);
	local_name = peer_publish(1);
}

UNIT_CASE("late", fixture_setup, fixture_close);

/*
 * The first send used the core, because the peer was not published yet. Later
 * sends must use the core, too, so that they do not overtake the first.
 */
UNIT_TEST(sends_after_a_core_send_use_core)
{
	int context;

	peer = peer_insert(1);
	ck_assert_int_eq(send_x(fx.ep, peer, &context), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	local_name = peer_publish(1);
	post_recv(&slot[0], peer, TAG);
	near("late");
	expect_recv(&slot[0], "late", peer);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(send_x(fx.ep, peer, &context), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 2);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 0);
}

/*
 * The peer looked up this endpoint before this endpoint was published. So the
 * peer sends over the core. This endpoint must nevertheless send over shm.
 */
UNIT_TEST(sends_to_peer_that_uses_core_use_shm)
{
	int i, context;

	local_name = peer_publish(1);
	peer = peer_insert(1);
	for (i = 0; i < 2; i++) {
		post_recv(&slot[i], i ? peer : FI_ADDR_UNSPEC, TAG);
		ck_assert_int_eq(send_x(fx.ep, peer, &context), 0);
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

/*
 * The peer is published after its insert. Nothing was sent to the peer before,
 * so the first send must look up the peer again, and use shm.
 */
UNIT_TEST(first_send_to_late_peer_uses_shm)
{
	int context;

	publish_late();
	ck_assert_int_eq(send_x(fx.ep, peer, &context), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}

UNIT_TEST(message_of_unknown_source_is_received)
{
	local_name = peer_publish(1);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("hello");
	expect_recv(&slot[0], "hello", FI_ADDR_NOTAVAIL);
}

/*
 * When the message arrives, this process cannot open files. So ofi_duo cannot
 * read the sender's record in the registry, and does not find the source. When
 * this process can open files again, a later poll must read the record.
 */
UNIT_TEST(record_unreadable_at_arrival_is_read_later)
{
	publish_late();
	post_recv(&slot[0], peer, TAG);
	unit_limit(RLIMIT_NOFILE, 0);
	near("late");
	expect_nothing();
	unit_pass(20000);
	expect_nothing();
	unit_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	unit_pass(50000);
	expect_recv(&slot[0], "late", peer);
	ck_assert_uint_eq(fixture_ep()->group->pending, 0);
}

/*
 * When the peer is inserted, this process cannot open files. ofi_duo must read
 * the record later, although the registry has not changed.
 */
UNIT_TEST(record_unreadable_at_insert_is_read_later)
{
	local_name = peer_publish(1);
	peer_insert(2);
	usleep(60000);
	fake_shm_arrive(DUO_TAGGED, "unknown", TAG + 1, "who");
	poll_cq(1);
	ck_assert_uint_ne(fixture_ep()->map->scanned, 0);
	unit_limit(RLIMIT_NOFILE, 0);
	peer = peer_insert(1);
	unit_limit(RLIMIT_NOFILE, RLIM_INFINITY);
	post_recv(&slot[0], peer, TAG);
	near("late");
	expect_recv(&slot[0], "late", peer);
}

/* A peer that is removed and inserted again keeps its index in shm. */
UNIT_TEST(reinserted_peer_keeps_unresolved_message)
{
	fi_addr_t again;

	local_name = peer_publish(1);
	peer = peer_insert(1);
	near("1");
	poll_cq(1);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
	ck_assert_int_eq(send_x(fx.ep, peer, NULL), -FI_EINVAL);
	ck_assert_int_eq(try_recv(&slot[1], peer, TAG), -FI_EINVAL);
	again = peer_insert(1);
	ck_assert_int_eq(fake.shm.inserted, 1);
	near("2");
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_uint_eq(expect_entry(&slot[0], again).len, 1);
	ck_assert_str_eq(slot[0].buf, "1");
	post_recv(&slot[1], again, TAG);
	expect_recv(&slot[1], "2", again);
}

/*
 * A message of a removed peer waits, and another peer gets the removed peer's
 * fi_addr. A receive that names the other peer must not match the message.
 */
UNIT_TEST(message_of_removed_peer_loses_source)
{
	fi_addr_t other;

	local_name = peer_publish(1);
	peer = peer_insert(1);
	near("old");
	poll_cq(1);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
	other = peer_insert(2);
	ck_assert_uint_eq(other, peer);
	post_recv(&slot[0], other, TAG);
	expect_nothing();
	fake_core_arrive(DUO_TAGGED, other, TAG, "new");
	expect_recv(&slot[0], "new", other);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	expect_recv(&slot[1], "old", FI_ADDR_NOTAVAIL);
}
