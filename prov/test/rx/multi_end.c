/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Multi-receive buffers whose use fails, and invalid calls */

#include "multi_fixture.h"

static struct slot slot[1];

FIXTURE_SETUP(setup_no_caps, multi_open, .no_caps = FI_MULTI_RECV);
FIXTURE_SETUP(setup_efa, multi_open, .core = "efa");

UNIT_CASE("end", multi_setup, fixture_close);

#define TOO_LARGE ((size_t) 1 << 62)	/* bytes, more than any memory */

/*
 * The message does not fit in the multi-receive buffer, and no memory is left
 * for a buffer of the message's size. The multi-receive buffer is released. The
 * message stays, and matches a receive that is long enough. If _i is 1, the
 * message is already unexpected when the multi-receive buffer is posted.
 */
UNIT_LOOP(failed_start_releases_buffer, 0, 2)
{
	struct fake_msg *msg;

	multi_near("1");
	poll_cq(1);
	msg = fake_shm_arrive(DUO_MSG, local_name, 0, "hello");
	msg->reported_len = TOO_LARGE;
	if (_i)
		poll_cq(1);
	multi_post(&multi[0], 20);
	multi_expect(&multi[0], "1", local, false);
	expect_error(&multi[0], FI_ENOMEM);
	multi_expect_released(&multi[0]);
	multi_post(&multi[1], 20);
	expect_error(&multi[1], FI_ENOMEM);
	multi_expect_released(&multi[1]);
	ck_assert_int_eq(fi_recv(fx.ep, slot[0].buf, TOO_LARGE, NULL,
				 local, &slot[0]), 0);
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 5);
	multi_expect_idle();
}

UNIT_TEST(shm_error_keeps_buffer)
{
	multi_post(&multi[0], 20);
	fake.shm.rx_err = FI_EIO;
	multi_near("12345");
	expect_error(&multi[0], FI_EIO);
	multi[0].at = 5;
	multi_near("67890ab");
	multi_expect(&multi[0], "67890ab", local, false);
	fake.shm.rx_err = FI_EIO;
	multi_near("last one");
	expect_error(&multi[0], FI_EIO);
	multi_expect_released(&multi[0]);
	multi_expect_idle();
}

/*
 * After an error of the core, the number of bytes in the buffer is undefined.
 * So the buffer is released.
 */
UNIT_TEST(core_error_releases_buffer)
{
	struct fi_cq_err_entry err = {
		.flags = FI_RECV, .err = FI_EIO, .prov_errno = FI_EIO,
	};
	struct fake_msg *recv;

	multi_post(&multi[0], 20);
	multi_post(&multi[1], 20);
	poll_cq(2 * LAZY_POLLS);
	recv = TAILQ_FIRST(&fake.core.posted);
	TAILQ_REMOVE(&fake.core.posted, recv, link);
	err.op_context = recv->context;
	free(recv);
	fake_core_event(NULL, &err, FI_ADDR_NOTAVAIL);
	expect_error(&multi[0], FI_EIO);
	multi_expect_released(&multi[0]);
	multi_far("seventeen letters");
	multi_expect(&multi[1], "seventeen letters", remote, true);
	multi_expect_idle();
}

UNIT_TEST(post_rejected_by_core_fails)
{
	fake.core.eagain = 1;
	ck_assert_int_eq(multi_try(&multi[0], 20, remote, 0),
			 -FI_EAGAIN);
	fake.core.post_err = FI_EINVAL;
	ck_assert_int_eq(multi_try(&multi[0], 20, remote, 0),
			 -FI_EINVAL);
	multi_expect_idle();
}

/*
 * The core rejects the remainder of the buffer. So the completion of the
 * message releases the buffer.
 */
UNIT_TEST(rejected_remainder_releases_buffer)
{
	ck_assert_int_eq(multi_try(&multi[0], 20, remote, 0), 0);
	fake.core.eagain = 1;
	multi_far("1");
	multi_expect(&multi[0], "1", remote, true);
	multi_expect_idle();
}

/*
 * At fi_cancel(), the core's message has completed; shm's message has not
 * started. fi_cancel() cancels the buffer, and shm's message matches the next
 * receive.
 */
UNIT_TEST(cancel_before_start_cancels_buffer)
{
	multi_post(&multi[0], 20);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	multi_far("1");
	multi_near("2");
	expect_nothing();
	fake_core_release();
	multi_expect(&multi[0], "1", remote, false);
	ck_assert(!TAILQ_EMPTY(&fixture_ep()->multi.ready));
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &multi[0]), 0);
	multi_expect_canceled(&multi[0]);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->group->pending, 0);
	post_untagged(&slot[0], FI_ADDR_UNSPEC);
	ck_assert_uint_eq(expect_entry(&slot[0], local).len, 1);
	multi_expect_idle();
}

/*
 * Brings multi-receive buffers into a state that _i selects. The teardown then
 * closes the endpoint, and asserts that no object and no entry is left.
 */
UNIT_LOOP(close_in_any_state_leaves_nothing, 0, 8)
{
	if (_i == 1)
		multi_near("unexpected");
	if (_i == 2)
		fake.shm.slow = true, multi_near("slow"), poll_cq(1);
	multi_post(&multi[0], 32);
	multi_post(&multi[1], 32);
	if (_i >= 3)
		poll_cq(2 * LAZY_POLLS);
	if (_i >= 4) {
		fake.core.hold = true;
		multi_far("1");
	}
	if (_i >= 5) {
		ck_assert_int_eq(fi_cancel(&fx.ep->fid, &multi[1]), 0);
		multi_expect_canceled(&multi[1]);
		multi_near("2");
		expect_nothing();
	}
	if (_i >= 6)
		fake_core_release();
	if (_i >= 7)
		multi_expect(&multi[0], "1", remote, false);
}

UNIT_CASE("efa", setup_efa, fixture_close);

UNIT_TEST(cancel_of_directed_on_efa_fails)
{
	ck_assert_int_eq(multi_try(&multi[0], 8, remote, 0), 0);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &multi[0]), -FI_ENOENT);
	multi_far("1");
	multi_expect(&multi[0], "1", remote, true);
	multi_expect_idle();
}

UNIT_CASE("end", multi_setup, fixture_close);

UNIT_TEST(minimum_releases_buffer)
{
	size_t min = 0, len = sizeof(min), short_len = 4;

	ck_assert_int_eq(fi_getopt(&fx.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	ck_assert_uint_eq(min, MIN_LEFT);
	ck_assert_int_eq(fi_getopt(&fx.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, &short_len),
			 -FI_ETOOSMALL);
	ck_assert_int_eq(fi_setopt(&fx.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, 4),
			 -FI_EINVAL);
	/* minimum 0: the buffer is filled to its last byte */
	min = 0;
	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_MIN_MULTI_RECV, min), 0);
	multi_post(&multi[0], 4);
	multi_near("123");
	multi_near("4");
	multi_expect(&multi[0], "123", local, false);
	multi_expect(&multi[0], "4", local, true);
	multi_expect_idle();
}

UNIT_CASE("default", NULL, fixture_close);

UNIT_LOOP(default_minimum_is_that_of_core, 0, 3)
{
	size_t min = 0, len = sizeof(min);

	fixture_open(&(struct fixture_attr) { 0 });
	fake.core.min_multi_recv = _i;
	ck_assert_int_eq(fixture_try(&(struct fixture_attr) { 0 }), 0);
	ck_assert_int_eq(fi_getopt(&fx.ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, &len), 0);
	ck_assert_uint_eq(min, _i ? _i : 64);
}

UNIT_CASE("end", multi_setup, fixture_close);

UNIT_TEST(invalid_call_is_rejected)
{
	const struct iovec iov[2] = { { multi[0].buf, 8 },
				      { multi[1].buf, 8 } };
	struct fi_msg msg = { .msg_iov = iov, .iov_count = 2 };
	struct fi_msg_tagged tagged = { .msg_iov = iov, .iov_count = 1 };

	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	msg.iov_count = 0;
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), -FI_EINVAL);
	ck_assert_int_eq(fi_trecvmsg(fx.ep, &tagged, FI_MULTI_RECV),
			 -FI_EBADFLAGS);
	ck_assert_int_eq(fi_trecvmsg(fx.ep, &tagged, FI_MULTI_RECV | FI_PEEK),
			 -FI_EBADFLAGS);
	multi_expect_idle();
}

UNIT_CASE("caps", setup_no_caps, fixture_close);

UNIT_TEST(missing_capability_is_rejected)
{
	ck_assert_int_eq(multi_try(&multi[0], 8, FI_ADDR_UNSPEC, 0),
			 -FI_EBADFLAGS);
	multi_expect_idle();
}
