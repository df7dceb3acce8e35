/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Which message goes into which multi-receive buffer, and where: on either
 * path, on both, and among other receives.
 */

#include "multi_fixture.h"

static struct slot slot[2];

FIXTURE_SETUP(setup_no_shm, multi_open, .no_shm = true);
FIXTURE_SETUP(setup_efa, multi_open, .core = "efa");

UNIT_CASE("multi", multi_setup, fixture_close);

/* Released as soon as less than the minimum is left, with the last one. */
UNIT_LOOP(one_after_the_other, 0, 2)
{
	fi_addr_t src = source(_i);

	multi_post_for(_i, &multi[0], 20);
	multi_arrive(_i, "aaaa");
	multi_expect(&multi[0], "aaaa", src, false);
	multi_arrive(_i, "bb");
	multi_arrive(_i, "");
	multi_arrive(_i, "cccccc");
	multi_arrive(_i, "d");
	multi_expect(&multi[0], "bb", src, false);
	multi_expect(&multi[0], "", src, false);
	multi_expect(&multi[0], "cccccc", src, false);
	multi_expect(&multi[0], "d", src, true);
	multi_expect_idle();
}

UNIT_LOOP(exactly_full, 0, 2)
{
	multi_post_for(_i, &multi[0], 16);
	multi_arrive(_i, "01234567");
	multi_arrive(_i, "89abcdef");
	multi_expect(&multi[0], "01234567", source(_i), false);
	multi_expect(&multi[0], "89abcdef", source(_i), true);
	multi_expect_idle();
}

/* It takes a message, whatever the minimum says. */
UNIT_LOOP(smaller_than_the_minimum, 0, 2)
{
	multi_post_for(_i, &multi[0], MIN_LEFT / 2);
	multi_post_for(_i, &multi[1], 0);
	multi_arrive(_i, "ab");
	multi_arrive(_i, "");
	multi_expect(&multi[0], "ab", source(_i), true);
	multi_expect(&multi[1], "", source(_i), true);
	multi_expect_idle();
}

/* The core gives the buffer back for each message of shm. */
UNIT_TEST(both_paths_in_turn)
{
	multi_post(&multi[0], 32);
	poll_cq(2 * LAZY_POLLS);
	multi_far("1");
	multi_expect(&multi[0], "1", remote, false);
	multi_near("22");
	multi_expect(&multi[0], "22", local, false);
	multi_near("333");
	multi_expect(&multi[0], "333", local, false);
	ck_assert_uint_eq(fake_core_posted(), 0);
	ck_assert_uint_eq(stats_now().arb_won, 1);
	poll_cq(4 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("4444");
	multi_expect(&multi[0], "4444", remote, false);
	multi_near("fifteen letters");
	multi_expect(&multi[0], "fifteen letters", local, true);
	ck_assert_uint_eq(stats_now().arb_won, 2);
	multi_expect_idle();
}

/* Recalled for shm, but the core has just used it: shm gets the rest. */
UNIT_TEST(core_wins_the_recall)
{
	multi_post(&multi[0], 32);
	poll_cq(2 * LAZY_POLLS);
	multi_far("far");
	multi_near("near");
	multi_expect(&multi[0], "far", remote, false);
	multi_expect(&multi[0], "near", local, false);
	ck_assert_uint_eq(stats_now().arb_lost, 1);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &multi[0]), 0);
	multi_expect_canceled(&multi[0]);
	multi_expect_idle();
}

UNIT_TEST(core_wins_all_of_it)
{
	multi_post(&multi[0], 10);
	multi_post(&multi[1], 10);
	poll_cq(2 * LAZY_POLLS);
	multi_far("far");
	multi_near("near");
	multi_expect(&multi[0], "far", remote, true);
	multi_expect(&multi[1], "near", local, true);
	multi_expect_idle();
}

/*
 * A large message of the core is on its way into the buffer, so its end is
 * not known: what shm brings waits, and is not overtaken.
 */
UNIT_TEST(core_is_receiving)
{
	multi_post_receiving(&multi[0], 32);
	multi_near("1");
	expect_nothing();
	fake_core_release();
	multi_near("2");
	multi_expect(&multi[0], "far", remote, false);
	multi_near("3");
	multi_expect(&multi[0], "1", local, false);
	multi_expect(&multi[0], "2", local, false);
	multi_expect(&multi[0], "3", local, false);
	multi_near("nineteen characters");
	multi_expect(&multi[0], "nineteen characters", local, true);
	multi_expect_idle();
}

/* What waits may fill it; the rest stays for the next. */
UNIT_TEST(core_was_receiving_and_more_waits_than_fits)
{
	multi_post_receiving(&multi[0], 16);
	multi_near("12345");
	expect_nothing();
	multi_near("2");
	expect_nothing();
	fake_core_release();
	multi_expect(&multi[0], "far", remote, false);
	multi_expect(&multi[0], "12345", local, false);
	multi_expect(&multi[0], "2", local, true);
	multi_near("3");
	expect_nothing();
	multi_post(&multi[1], 8);
	multi_expect(&multi[1], "3", local, true);
	multi_expect_idle();
}

/* A receive that is posted while messages wait for the buffer gets none. */
UNIT_TEST(later_receive_does_not_take_what_waits)
{
	multi_post_receiving(&multi[0], 32);
	multi_near("1");
	expect_nothing();
	fake_core_release();
	multi_expect(&multi[0], "far", remote, false);
	multi_post_single(&slot[0]);
	multi_expect(&multi[0], "1", local, false);
	multi_near("twenty-one characters");
	multi_expect(&multi[0], "twenty-one characters", local, true);
	multi_near("single");
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 6);
	multi_expect_idle();
}

/* While the core is at the first buffer, shm has the second. */
UNIT_TEST(second_buffer_meanwhile)
{
	multi_post(&multi[0], 32);
	multi_post(&multi[1], 32);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	multi_far("far");
	multi_near("1");
	multi_expect(&multi[1], "1", local, false);
	fake_core_release();
	multi_expect(&multi[0], "far", remote, false);
	multi_near("2");
	multi_expect(&multi[0], "2", local, false);
}

/* They are filled in the order of their posting; on the core is one. */
UNIT_LOOP(buffers_in_order, 0, 2)
{
	int i, k;

	for (i = 0; i < 3; i++)
		multi_post(&multi[i], 24);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	for (i = 0; i < 12; i++)
		multi_arrive(_i, "12345");
	for (i = 0; i < 3; i++) {
		for (k = 0; k < 4; k++)
			multi_expect(&multi[i], "12345", source(_i),
				     k == 3);
	}
	multi_expect_idle();
}

/* The same for a receive of one message behind, and one before. */
UNIT_LOOP(single_receives_in_order, 0, 2)
{
	multi_post_single(&slot[0]);
	multi_post(&multi[0], 10);
	multi_post_single(&slot[1]);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 2);
	multi_arrive(_i, "before");
	multi_arrive(_i, "1");
	multi_arrive(_i, "22");
	multi_arrive(_i, "behind");
	ck_assert_uint_eq(expect_entry(&slot[0], source(_i)).len, 6);
	multi_expect(&multi[0], "1", source(_i), false);
	multi_expect(&multi[0], "22", source(_i), true);
	ck_assert_uint_eq(expect_entry(&slot[1], source(_i)).len, 6);
	ck_assert_str_eq(slot[1].buf, "behind");
	multi_expect_idle();
}

/*
 * The single receive has the entry that was a piece of an earlier buffer,
 * the buffer the entry of that one: it is none of its pieces.
 */
UNIT_TEST(entries_are_used_again)
{
	struct slot tagged[2];

	post_recv(&tagged[0], local, TAG);
	multi_post(&multi[0], 16);
	multi_near("1");
	multi_expect(&multi[0], "1", local, false);
	fake_shm_arrive(DUO_TAGGED, local_name, TAG, "tagged");
	expect_recv(&tagged[0], "tagged", local);
	multi_near("12345678");
	multi_expect(&multi[0], "12345678", local, true);
	post_recv(&tagged[1], local, TAG);

	multi_post_for(FI_DUO_CORE, &multi[1], 8);
	multi_post_single(&slot[0]);
	ck_assert_ptr_eq(TAILQ_LAST(&fixture_ep()->match[DUO_MSG].posted,
				    duo_rx_list)->owner,
			 TAILQ_FIRST(&fixture_ep()->multi.buffers));
	ck_assert_int_eq(duo_lazy_flush(fixture_ep()), 0);
	ck_assert_uint_eq(fake_core_posted(), 1);
}

UNIT_LOOP(unexpected, 0, 2)
{
	multi_arrive(_i, "11111");
	multi_arrive(_i, "2222");
	multi_arrive(_i, "3");
	multi_arrive(_i, "4");
	poll_cq(1);
	multi_post_for(_i, &multi[0], 17);
	multi_expect(&multi[0], "11111", source(_i), false);
	multi_expect(&multi[0], "2222", source(_i), false);
	multi_expect(&multi[0], "3", source(_i), true);
	expect_nothing();
	multi_post_for(_i, &multi[1], 8);
	multi_expect(&multi[1], "4", source(_i), true);
	multi_expect_idle();
}

/* Its source was not known when it came. */
UNIT_TEST(held_message)
{
	fi_addr_t late = peer_insert(3);
	const char *name;

	multi_post(&multi[0], 16);
	name = peer_publish(3);
	fake_shm_arrive(DUO_MSG, name, 0, "held");
	multi_expect(&multi[0], "held", late, false);
	fake_shm_arrive(DUO_MSG, name, 0, "known");
	multi_expect(&multi[0], "known", late, true);
	multi_expect_idle();
}

/* Messages of shm without an end do not keep the buffer from the core. */
UNIT_TEST(busy_shm_does_not_keep_it)
{
	int i;

	duo_params.defer_us = 0;
	multi_post(&multi[0], 64);
	for (i = 0; i < 17 * LAZY_POLLS && !fake.core.posts; i++) {
		multi_near("");
		multi_expect(&multi[0], "", local, false);
	}
	ck_assert_int_eq(fake.core.posts, 1);
}

/* Two buffers, each posted again when it is released: nothing is stuck. */
UNIT_LOOP(one_path_for_long, 0, 2)
{
	int i, at = 0;

	multi_post(&multi[0], 30);
	multi_post(&multi[1], 30);
	for (i = 0; i < 3000; i++) {
		bool released = i % 4 == 3;

		if (i % 100 == 0)
			poll_cq(2 * LAZY_POLLS);
		multi_arrive(_i, "six by");
		multi_expect(&multi[at], "six by", source(_i), released);
		if (released) {
			multi_post(&multi[at], 30);
			at = !at;
		}
	}
}

UNIT_CASE("no shm", setup_no_shm, fixture_close);

UNIT_TEST(without_shm)
{
	multi_post(&multi[0], 10);
	multi_post(&multi[1], 10);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("1");
	multi_expect(&multi[0], "1", remote, false);
	multi_far("22");
	/* the next buffer is refused at first */
	fake.core.eagain = 1;
	multi_expect(&multi[0], "22", remote, true);
	ck_assert_uint_eq(fake_core_posted(), 0);
	fixture_ep()->lazy.limit = 1;
	poll_cq(32);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("333");
	multi_expect(&multi[1], "333", remote, true);
	multi_expect_idle();
}

UNIT_CASE("efa", setup_efa, fixture_close);

/* Of these the core gives nothing back; shm never has any of them. */
UNIT_TEST(directed_on_efa)
{
	ck_assert_int_eq(multi_try(&multi[0], 10, remote, 0), 0);
	ck_assert_int_eq(multi_try(&multi[1], 10, remote, 0), 0);
	ck_assert_int_eq(multi_try(&multi[2], 16, local, 0), 0);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("1");
	multi_near("near");
	multi_far("22");
	multi_far("333");
	multi_expect(&multi[2], "near", local, false);
	multi_expect(&multi[0], "1", remote, false);
	multi_expect(&multi[0], "22", remote, true);
	multi_expect(&multi[1], "333", remote, true);
	multi_near("near again");
	multi_expect(&multi[2], "near again", local, true);
	ck_assert_int_eq(fake.core.cancels, 0);
	multi_expect_idle();
}
