/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * shm has a message for a receive that is on the core as well: fi_cancel
 * decides who gets it. And the application's own fi_cancel, in every state.
 */

#include "fixture.h"

static struct slot slot[4];

/* Wildcards, on the core as well. */
static void post_on_core(int count)
{
	int i;

	for (i = 0; i < count; i++)
		post_recv(&slot[i], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), count);
}

static void expect_arbitrations(uint64_t won, uint64_t lost)
{
	struct fi_duo_stats stats = stats_now();

	ck_assert_uint_eq(stats.arb_won, won);
	ck_assert_uint_eq(stats.arb_lost, lost);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.spent_count +
			  fixture_ep()->match[DUO_TAGGED].posted_count +
			  fixture_ep()->match[DUO_TAGGED].unexp_count);
}

UNIT_CASE("arbitrate", pair_setup, fixture_close);

UNIT_TEST(cancel_wins)
{
	post_on_core(1);
	near("near");
	expect_recv(&slot[0], "near", local);
	ck_assert_uint_eq(fake_core_posted(), 0);
	expect_arbitrations(1, 0);
}

/* Its completion lies in the core's CQ already. */
UNIT_TEST(core_wins)
{
	post_on_core(1);
	far("far");
	near("near");
	expect_recv(&slot[0], "far", remote);
	expect_arbitrations(0, 1);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	expect_recv(&slot[1], "near", local);
}

/* The core has matched a large message, which is still under way. */
UNIT_TEST(core_wins_and_completes_later)
{
	post_on_core(1);
	fake.core.hold = true;
	far("far");
	near("near");
	expect_nothing();
	ck_assert_uint_eq(stats_now().arb_lost, 1);
	fake_core_release();
	expect_recv(&slot[0], "far", remote);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	expect_recv(&slot[1], "near", local);
	expect_arbitrations(0, 1);
}

/* The message goes on to the next receive, which it gets. */
UNIT_TEST(core_wins_the_first_of_two)
{
	post_on_core(2);
	far("far");
	near("near");
	expect_recv(&slot[0], "far", remote);
	expect_recv(&slot[1], "near", local);
	expect_arbitrations(1, 1);
}

UNIT_TEST(core_wins_all)
{
	post_on_core(3);
	fake.core.hold = true;
	far("1");
	far("2");
	far("3");
	near("near");
	expect_nothing();
	fake_core_release();
	expect_recv(&slot[0], "1", remote);
	expect_recv(&slot[1], "2", remote);
	expect_recv(&slot[2], "3", remote);
	expect_arbitrations(0, 3);
}

/*
 * The cancelled entry queues behind what completed before: more than one
 * batch of it, and errors of others.
 */
UNIT_TEST(cancelled_entry_behind_others)
{
	char contexts[40];
	size_t i;

	post_on_core(1);
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, remote, TAG,
					  &contexts[i]), 0);
	fake_core_error(&slot[3], FI_EIO);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, remote, TAG,
				  &slot[2]), 0);
	near("near");
	poll_cq(1);
	ck_assert_uint_eq(fake_core_posted(), 0);
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		expect_entry(&contexts[i], FI_ADDR_NOTAVAIL);
	expect_error(&slot[3], FI_EIO);
	expect_entry(&slot[2], FI_ADDR_NOTAVAIL);
	expect_recv(&slot[0], "near", local);
	expect_arbitrations(1, 0);
}

/* The core matched it and failed: one error, and no second completion. */
UNIT_TEST(core_wins_with_an_error)
{
	static char text[100] = { [0 ... 98] = 'x' };

	post_on_core(2);
	far(text);	/* larger than a slot */
	near("near");
	expect_error(&slot[0], FI_ETRUNC);
	expect_recv(&slot[1], "near", local);
	expect_arbitrations(1, 1);
}

/* Directed to a local peer that may send over the core all the same. */
UNIT_TEST(directed_receive)
{
	post_recv(&slot[0], local, TAG);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	near("near");
	expect_recv(&slot[0], "near", local);
	expect_arbitrations(1, 0);
}

/* The order of messages and receives holds over both paths. */
UNIT_TEST(many_in_order)
{
	struct slot many[64];
	char text[2] = "0";
	size_t i;

	for (i = 0; i < ARRAY_SIZE(many); i++)
		post_recv(&many[i], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	for (i = 0; i < ARRAY_SIZE(many); i++) {
		text[0] = 'A' + i;
		if (i % 3 == 1)
			far(text);
		else
			near(text);
		expect_recv(&many[i], text, i % 3 == 1 ? remote : local);
	}
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_CASE("cancel", pair_setup, fixture_close);

UNIT_TEST(cancel_waiting)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	ck_assert_int_eq(fake.core.cancels, 0);
	expect_error(&slot[0], FI_ECANCELED);
	expect_arbitrations(0, 0);
	ck_assert_int_eq(fake.core.posts, 0);
}

UNIT_TEST(cancel_on_core)
{
	post_on_core(1);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	expect_error(&slot[0], FI_ECANCELED);
	ck_assert_uint_eq(fake_core_posted(), 0);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_TEST(cancel_after_the_core_matched)
{
	post_on_core(1);
	far("far");
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	expect_recv(&slot[0], "far", remote);
	expect_nothing();
}

UNIT_TEST(cancel_while_the_core_is_receiving)
{
	post_on_core(1);
	fake.core.hold = true;
	far("far");
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	expect_nothing();
	fake_core_release();
	expect_recv(&slot[0], "far", remote);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_TEST(cancel_while_shm_is_receiving)
{
	fake.shm.slow = true;
	near("near");
	poll_cq(1);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), -FI_ENOENT);
	expect_recv(&slot[0], "near", local);
	expect_nothing();
}

UNIT_TEST(cancel_completed)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("near");
	expect_recv(&slot[0], "near", local);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), -FI_ENOENT);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, NULL), -FI_ENOENT);
	expect_nothing();
}

/* Only the one that is named; an untagged one likewise. */
UNIT_TEST(cancel_one_of_several)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fi_recv(fx.ep, slot[1].buf, sizeof(slot[1].buf), NULL,
				 FI_ADDR_UNSPEC, &slot[1]), 0);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[1]), 0);
	ck_assert_uint_eq(expect_error(&slot[1], FI_ECANCELED).flags &
			  (FI_RECV | FI_MSG), FI_RECV | FI_MSG);
	near("1");
	near("2");
	expect_recv(&slot[0], "1", local);
	expect_recv(&slot[2], "2", local);
	expect_nothing();
}
