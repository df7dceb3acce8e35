/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* When a multi-receive buffer is posted to the core and recalled */

#include "multi_fixture.h"

static struct slot slot[2];

FIXTURE_SETUP(setup_no_shm, multi_open, .no_shm = true);
FIXTURE_SETUP(setup_efa, multi_open, .core = "efa");

UNIT_CASE("multi", multi_setup, fixture_close);

UNIT_LOOP(buffer_below_minimum_gets_one_message, 0, 2)
{
	multi_post_for(_i, &multi[0], MIN_LEFT / 2);
	multi_post_for(_i, &multi[1], 0);
	multi_arrive(_i, "ab");
	multi_arrive(_i, "");
	multi_expect(&multi[0], "ab", source(_i), true);
	multi_expect(&multi[1], "", source(_i), true);
	multi_expect_idle();
}

/* ofi_duo recalls the buffer from the core for each message of shm. */
UNIT_TEST(buffer_is_recalled_for_local_messages)
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
	ck_assert_uint_eq(stats_now().recall_ok, 1);
	poll_cq(4 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("4444");
	multi_expect(&multi[0], "4444", remote, false);
	multi_near("fifteen letters");
	multi_expect(&multi[0], "fifteen letters", local, true);
	ck_assert_uint_eq(stats_now().recall_ok, 2);
	multi_expect_idle();
}

/*
 * The second buffer reuses the owner entry of the first. The single receive
 * reuses the entry of a sub-receive of the first buffer. The owner field of
 * this entry has its old value, which now refers to the second buffer. ofi_duo
 * must not treat the single receive as a sub-receive of the second buffer.
 */
UNIT_TEST(reused_entry_is_no_sub_receive)
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
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	ck_assert_ptr_eq(TAILQ_LAST(&fixture_ep()->match[DUO_MSG].posted,
				    duo_rx_list)->owner,
			 TAILQ_FIRST(&fixture_ep()->multi.buffers));
	ck_assert_int_eq(duo_lazy_flush(fixture_ep()), 0);
	ck_assert_uint_eq(fake_core_posted(), 1);
}

UNIT_TEST(busy_shm_does_not_delay_core_post)
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

/*
 * Aging posts the oldest deferred receive. The multi-receive buffer was posted
 * before the tagged receive. So the buffer must stay first in the list of
 * deferred receives, even after local messages have filled parts of it.
 */
UNIT_TEST(buffer_stays_oldest_deferred_receive)
{
	struct slot tagged;

	multi_post(&multi[0], 64);
	post_recv(&tagged, FI_ADDR_UNSPEC, TAG);
	multi_near("1");
	multi_expect(&multi[0], "1", local, false);
	multi_near("22");
	multi_expect(&multi[0], "22", local, false);
	ck_assert_uint_eq(fixture_ep()->lazy.count, 2);
	ck_assert(TAILQ_FIRST(&fixture_ep()->lazy.list)->multi);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &tagged), 0);
}

UNIT_TEST(later_receive_gets_no_waiting_message)
{
	multi_post_receiving(&multi[0], 32);
	multi_near("1");
	expect_nothing();
	fake_core_release();
	multi_expect(&multi[0], "far", remote, false);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	multi_expect(&multi[0], "1", local, false);
	multi_near("twenty-one characters");
	multi_expect(&multi[0], "twenty-one characters", local, true);
	multi_near("single");
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 6);
	multi_expect_idle();
}

UNIT_CASE("no shm", setup_no_shm, fixture_close);

UNIT_TEST(core_alone_fills_buffers)
{
	multi_post(&multi[0], 10);
	multi_post(&multi[1], 10);
	ck_assert_uint_eq(fake_core_posted(), 1);
	multi_far("1");
	multi_expect(&multi[0], "1", remote, false);
	multi_far("22");
	/* the core rejects the next buffer at first */
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

/*
 * efa cannot cancel directed multi-receive buffers, so ofi_duo cannot recall
 * them. A buffer for a remote source stays at the core. A buffer for a
 * local source is not posted to the core.
 */
UNIT_TEST(directed_buffer_on_efa_stays_on_path)
{
	ck_assert_int_eq(multi_try(&multi[0], 10, remote, 0), 0);
	ck_assert_int_eq(multi_try(&multi[1], 10, remote, 0), 0);
	ck_assert_int_eq(multi_try(&multi[2], 16, local, 0), 0);
	expect_posted(1);
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
