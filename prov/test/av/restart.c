/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer that has sent over shm ends, and the next process that has its
 * address sends over the core. Receives that name it have to go there, each
 * to its place.
 */

#include "fixture.h"

static struct slot slot[4];

/* A first message: what names it is not given to the core. */
static void setup_peers(void)
{
	pair_insert();
	post_recv(&slot[0], local, TAG);
	near("first");
	expect_recv(&slot[0], "first", local);
}

static void setup(void)
{
	fixture_setup();
	setup_peers();
}

static void restart(void)
{
	peer_withdraw();
	ck_assert_uint_eq(peer_insert(1), local);
}

static void far_from(fi_addr_t src, const char *text)
{
	fake_core_arrive(DUO_TAGGED, src, TAG, text);
}

static void expect_idle(void)
{
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	ck_assert_uint_eq(fake_core_posted(), 0);
}

UNIT_CASE("restart", setup, fixture_close);

UNIT_TEST(comes_before_a_later_wildcard)
{
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);	/* slot[1] */
	restart();
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 2);
	far_from(local, "1");
	far_from(local, "2");
	expect_recv(&slot[0], "1", local);
	expect_recv(&slot[1], "2", local);
	expect_idle();
}

/* Others behind that one go behind it again. */
UNIT_TEST(the_order_of_all_stays)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	post_recv(&slot[1], local, TAG);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG);
	post_recv(&slot[3], remote, TAG);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 3);
	restart();
	poll_cq(2 * LAZY_POLLS);
	far_from(local, "1");
	far_from(local, "2");
	far_from(remote, "3");
	far_from(remote, "4");
	expect_recv(&slot[0], "1", local);
	expect_recv(&slot[1], "2", local);
	expect_recv(&slot[2], "3", remote);
	expect_recv(&slot[3], "4", remote);
	expect_idle();
	ck_assert_int_eq(fake.core.cancels, 2);
}

/* It cannot be taken back: it has its message. */
UNIT_TEST(the_core_has_matched_one)
{
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	far_from(remote, "1");
	restart();
	poll_cq(2 * LAZY_POLLS);
	far_from(local, "2");
	far_from(remote, "3");
	fake_core_release();
	expect_recv(&slot[1], "1", remote);
	expect_recv(&slot[0], "2", local);
	expect_recv(&slot[2], "3", remote);
	expect_idle();
}

/* None of them is before it, and none is taken back. */
UNIT_TEST(earlier_ones_stay)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	post_recv(&slot[1], local, TAG);
	restart();
	poll_cq(2 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.cancels, 0);
	far_from(local, "1");
	far_from(local, "2");
	expect_recv(&slot[0], "1", local);
	expect_recv(&slot[1], "2", local);
	expect_idle();
}

/* util_srx could not take back what names its source. */
UNIT_TEST(untagged_ones_stay_where_they_are)
{
	static const struct fixture_attr attr = { .core = "efa" };

	fixture_close();
	fixture_start(&attr);
	setup_peers();
	ck_assert_int_eq(fi_recv(fx.ep, slot[0].buf, sizeof(slot[0].buf), NULL,
				 local, &slot[0]), 0);
	ck_assert_int_eq(fi_recv(fx.ep, slot[1].buf, sizeof(slot[1].buf), NULL,
				 FI_ADDR_UNSPEC, &slot[1]), 0);
	poll_cq(2 * LAZY_POLLS);
	restart();
	poll_cq(2 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_int_eq(fake.core.cancels, 0);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[1]), 0);
	expect_error(&slot[1], FI_ECANCELED);
}

/*
 * The core has a removed address in use, and gives its number to another one
 * when it has not: what was decided for the first is nothing to the second.
 */
UNIT_TEST(number_goes_to_another)
{
	fi_addr_t addr = remote;

	ck_assert_int_eq(fi_tinject(fx.ep, "far", 3, remote, TAG), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	fake.core.keeps = true;
	ck_assert_int_eq(fi_av_remove(fx.av, &addr, 1, 0), 0);
	fake_core_table(fixture_ep()->core_av->av_fid)->addr[remote] =
		FAKE_FREE;
	peer_publish(9);
	ck_assert_uint_eq(peer_insert(9), remote);
	ck_assert_int_eq(fi_tinject(fx.ep, "near", 4, remote, TAG), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}
