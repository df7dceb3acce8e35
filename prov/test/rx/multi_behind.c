/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Blocked receives, which the core does not get before a multi-receive buffer
 * is used up, and receives that are not blocked
 */

#include "multi_fixture.h"

static struct slot slot[1];

FIXTURE_SETUP(setup_efa, multi_open, .core = "efa");

/*
 * Receives a message that `local` has sent over shm. This makes `local` a
 * confirmed source: ofi_duo expects all later messages of `local` over shm. The
 * core then gets no receives that name `local`.
 */
static void confirm(void)
{
	post_recv(&slot[0], local, TAG);
	near("first");
	expect_recv(&slot[0], "first", local);
}

/* Another process gets the address of `local`. */
static void restart_local(void)
{
	peer_end(local_name);
	ck_assert_uint_eq(peer_insert(1), local);
}

/* This process sends over the core: multi[0] must get both messages. */
static void expect_two(void)
{
	fake.core.hold = true;
	fake_core_arrive(DUO_MSG, local, 0, "one");
	fake_core_arrive(DUO_MSG, local, 0, "two");
	fake_core_release();
	multi_expect(&multi[0], "one", local, false);
	multi_expect(&multi[0], "two", local, false);
}

UNIT_CASE("behind", multi_setup, fixture_close);

UNIT_TEST(receive_without_overlap_is_not_blocked)
{
	fi_addr_t other = peer_insert(3);

	ck_assert_int_eq(multi_try(&multi[0], 32, remote, 0), 0);
	ck_assert_int_eq(multi_try(&multi[1], 32, other, 0), 0);
	post_recv(&slot[0], remote, TAG);
	ck_assert_uint_eq(fake_core_posted(), 3);
	fake_core_arrive(DUO_MSG, other, 0, "other");
	multi_expect(&multi[1], "other", other, false);
	multi_far("far");
	multi_expect(&multi[0], "far", remote, false);
}

UNIT_TEST(receive_behind_blocked_one_is_blocked)
{
	fi_addr_t other = peer_insert(3);

	ck_assert_int_eq(multi_try(&multi[0], 8, remote, 0), 0);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	ck_assert_int_eq(multi_try(&multi[1], 32, other, 0), 0);
	expect_posted(1);
	fake_core_arrive(DUO_MSG, other, 0, "single");
	expect_nothing();
	multi_far("far");
	multi_expect(&multi[0], "far", remote, true);
	ck_assert_uint_eq(expect_entry(&slot[0], other).len, 6);
	fake_core_arrive(DUO_MSG, other, 0, "other");
	multi_expect(&multi[1], "other", other, false);
}

/*
 * The receive of slot[0] is blocked by multi[0]. multi[1] is blocked only by
 * the blocked receive of slot[0]. If _i is 0, a local message ends the receive
 * of slot[0], otherwise fi_cancel() does. After this end, the core must get
 * multi[1], although multi[0] is not used up.
 */
UNIT_LOOP(end_of_blocked_receive_unblocks, 0, 2)
{
	fi_addr_t other = peer_insert(3);

	/*
	 * Confirm `local` now. If its first message arrived later, it would
	 * unblock all receives.
	 */
	confirm();
	ck_assert_int_eq(multi_try(&multi[0], 32, other, 0), 0);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	ck_assert_int_eq(multi_try(&multi[1], 32, remote, 0), 0);
	expect_posted(1);
	if (_i) {
		ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
		expect_error(&slot[0], FI_ECANCELED);
	} else {
		multi_near("near");
		ck_assert_uint_eq(expect_entry(&slot[0], local).len, 4);
	}
	multi_far("far");
	poll_cq(2 * LAZY_POLLS);
	multi_expect(&multi[1], "far", remote, false);
}

/*
 * The receive of slot[0] names a confirmed source, so it is not on the core.
 * While the core fills a part of multi[0], another process gets the source's
 * address. This new process may send over the core. So the core must get the
 * receive of slot[0] before the next remainder of multi[0].
 */
UNIT_TEST(remainder_stays_behind_readmitted_receive)
{
	confirm();
	post_untagged(&slot[0], local);
	multi_post_receiving(&multi[0], 64);
	peer_end(local_name);
	/*
	 * Act as if the local transport were never idle. Otherwise a poll would
	 * post all deferred receives to the core.
	 */
	fixture_ep()->lazy.limit = 1 << 30;
	ck_assert_uint_eq(peer_insert(1), local);
	fake_core_release();
	multi_expect(&multi[0], "far", remote, false);
	expect_posted(2);
	fake_core_arrive(DUO_MSG, local, 0, "new");
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 3);
}

/*
 * The receive of slot[0] names a confirmed source, so it is not on the core.
 * multi[0] is on the core and blocks the later receive `blocked`. The core
 * fills multi[0] completely. Then another process gets the source's address.
 * The message "new" of this process waits at the core. Because of the new
 * process, ofi_duo recalls receives from the core. During the recall of
 * multi[0] (_i is 0), or during an earlier recall of a tagged receive
 * (_i is 1), ofi_duo finds that multi[0] is used up. ofi_duo must not post
 * `blocked` to the core before the receive of slot[0], which must get "new".
 */
UNIT_LOOP(blocked_receive_stays_behind_readmitted_receive, 0, 2)
{
	static struct slot blocked, tagged[2];

	confirm();
	post_untagged(&slot[0], local);
	if (_i) {
		post_recv(&tagged[0], local, TAG);
		post_recv(&tagged[1], FI_ADDR_UNSPEC, TAG);
	}
	multi_post(&multi[0], 4);
	post_untagged(&blocked, FI_ADDR_UNSPEC);
	expect_posted(1 + _i);
	multi_far("full");
	fake_core_arrive(DUO_MSG, local, 0, "new");
	restart_local();
	multi_expect(&multi[0], "full", remote, true);
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 3);
}

/*
 * The first buffer names a confirmed source, so it is not on the core. While
 * the core fills a part of a second buffer, another process gets the source's
 * address. The first buffer is then on the core, and the next remainder of the
 * second buffer must wait until the first buffer is used up.
 */
UNIT_TEST(remainder_stays_behind_readmitted_buffer)
{
	confirm();
	ck_assert_int_eq(multi_try(&multi[0], 64, local, FI_COMPLETION), 0);
	multi_post_receiving(&multi[1], 64);
	restart_local();
	poll_cq(2 * LAZY_POLLS);
	fake_core_release();
	multi_expect(&multi[1], "far", remote, false);
	expect_two();
}

/*
 * multi[0] names the source `local` and is on the core. Then the source is
 * confirmed. From then on multi[0] blocks no receive, and the core also gets
 * the receive `later`. Then another process gets the source's address. This new
 * process may send over the core, where its messages must match multi[0], which
 * was posted first. So multi[0] must block `later` again. If _i is 1, the core
 * is filling a part of multi[0] when the new process gets the address.
 */
UNIT_LOOP(readmitted_buffer_on_core_blocks_receive, 0, 2)
{
	static struct slot later;

	ck_assert_int_eq(multi_try(&multi[0], 64, local, FI_COMPLETION), 0);
	expect_posted(1);
	confirm();
	post_untagged(&later, FI_ADDR_UNSPEC);
	expect_posted(2);
	fake.core.hold = _i;
	if (_i)
		fake_core_arrive(DUO_MSG, local, 0, "part");
	restart_local();
	poll_cq(2 * LAZY_POLLS);
	fake_core_release();
	if (_i)
		multi_expect(&multi[0], "part", local, false);
	expect_two();
}

/*
 * Asserts that the core gets a receive that was posted after the buffer. Only
 * shm can fill the buffer, so no message of the core could match the buffer.
 */
static void expect_not_blocked(void)
{
	expect_posted(1);
	multi_far("far");
	ck_assert_uint_eq(expect_entry(&slot[0], remote).len, 3);
	multi_near("near");
	multi_expect(&multi[0], "near", local, false);
}

UNIT_LOOP(local_buffer_does_not_block, 0, 2)
{
	if (_i == 1) /* the source is confirmed before the buffer is posted */
		multi_near("1"), poll_cq(1);
	ck_assert_int_eq(multi_try(&multi[0], 32, local, FI_COMPLETION),
			 0);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	if (_i == 0) {
		poll_cq(2 * LAZY_POLLS);
		ck_assert(!TAILQ_EMPTY(&fixture_ep()->lazy.blocked));
		multi_near("1");
	}
	multi_expect(&multi[0], "1", local, false);
	expect_not_blocked();
}

UNIT_CASE("efa", setup_efa, fixture_close);

UNIT_TEST(local_buffer_on_efa_does_not_block)
{
	ck_assert_int_eq(multi_try(&multi[0], 32, local, FI_COMPLETION),
			 0);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	expect_not_blocked();
}
