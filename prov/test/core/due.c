/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receives that go to the core with the next poll, because it looks for them
 * only while it is polled: in their order, before all that is later.
 */

#include "fixture.h"

static struct slot slot[3];

static void expect_posts(int count)
{
	ck_assert_int_eq(fake.core.posts, count);
}

/* slot[0] is due before slot[1], which has gone to the core as well. */
static void expect_in_order(void)
{
	expect_posts(2);
	far("first");
	far("second");
	expect_recv(&slot[0], "first", remote);
	expect_recv(&slot[1], "second", remote);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_CASE("due", pair_setup, fixture_close);

UNIT_TEST(goes_with_the_next_poll)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], remote, TAG);
	expect_posts(0);
	poll_cq(1);
	ck_assert_uint_eq(stats_now().lazy_posted, 0);
	expect_in_order();
}

/* A call with flags goes at once. */
UNIT_TEST(goes_before_a_later_one)
{
	post_recv(&slot[0], remote, TAG);
	ck_assert_int_eq(recv_flags(&slot[1], slot[1].buf,
				    sizeof(slot[1].buf), remote,
				    FI_COMPLETION), 0);
	expect_in_order();
}

UNIT_TEST(goes_before_a_later_wildcard)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	poll_cq(1);
	expect_posts(1);
	poll_cq(2 * LAZY_POLLS);
	expect_in_order();
}

UNIT_TEST(goes_before_the_caller_sleeps)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	duo_lock(&fixture_ep()->domain->lock);
	duo_cq_before_sleep(fixture_ep()->rx_cq);
	duo_unlock(&fixture_ep()->domain->lock);
	expect_in_order();
}

UNIT_TEST(goes_before_a_peek)
{
	int context;

	post_recv(&slot[0], remote, TAG);
	far("far");
	ck_assert_int_eq(recv_flags(&context, NULL, 0, remote, FI_PEEK), 0);
	expect_posts(1);
	expect_recv(&slot[0], "far", remote);
	expect_error(&context, FI_ENOMSG);
}

/* One that is older has become lazy; it goes as well, and first. */
UNIT_TEST(takes_along_what_is_before_it)
{
	post_recv(&slot[2], local, TAG);
	near("near");
	expect_recv(&slot[2], "near", local);
	post_recv(&slot[0], local, TAG);	/* shm's alone */
	post_recv(&slot[1], remote, TAG);
	peer_withdraw();			/* no longer */
	ck_assert_uint_eq(peer_insert(1), local);
	poll_cq(1);
	expect_posts(2);
	ck_assert_ptr_eq(TAILQ_FIRST(&fake.core.posted)->iov[0].iov_base,
			 slot[0].buf);
}

UNIT_TEST(a_buffer_comes_after_it)
{
	const struct iovec iov = { slot[1].buf, sizeof(slot[1].buf) };
	const struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = &slot[1],
	};

	ck_assert_int_eq(fi_recv(fx.ep, slot[0].buf, sizeof(slot[0].buf),
				 NULL, remote, &slot[0]), 0);
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV |
				    FI_COMPLETION), 0);
	poll_cq(2 * LAZY_POLLS);
	fake_core_arrive(DUO_MSG, remote, 0, "first");
	fake_core_arrive(DUO_MSG, remote, 0, "second");
	expect_entry(&slot[0], remote);
	expect_entry(&slot[1], remote);
}

/* It was remote when it was posted. */
UNIT_TEST(its_source_becomes_local)
{
	const char *name = peer_publish(2);

	post_recv(&slot[0], remote, TAG);
	fake_shm_arrive(DUO_TAGGED, name, TAG, "near");
	expect_recv(&slot[0], "near", remote);
	expect_posts(0);
	ck_assert_uint_eq(fixture_ep()->lazy.count, 0);
}

UNIT_TEST(is_canceled_before)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], remote, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	expect_error(&slot[0], FI_ECANCELED);
	ck_assert_int_eq(fake.core.cancels, 0);
	far("far");
	expect_recv(&slot[1], "far", remote);
	expect_posts(1);
}

UNIT_TEST(endpoint_closes_before)
{
	post_recv(&slot[0], remote, TAG);
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = NULL;
	expect_nothing();
	expect_posts(0);
}

/* Nothing overtakes it. */
UNIT_TEST(core_is_full)
{
	fake.core.eagain = 3;
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], remote, TAG);
	poll_cq(3);
	expect_posts(0);
	ck_assert_int_eq(recv_flags(&slot[2], slot[2].buf,
				    sizeof(slot[2].buf), remote,
				    FI_COMPLETION), 0);
	expect_posts(3);
	ck_assert_ptr_eq(TAILQ_FIRST(&fake.core.posted)->iov[0].iov_base,
			 slot[0].buf);
}

/* Its call has succeeded, so the failure is a completion. */
UNIT_TEST(core_refuses_it)
{
	fake.core.post_err = FI_EINVAL;
	post_recv(&slot[0], remote, TAG);
	expect_error(&slot[0], FI_EINVAL);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	expect_nothing();
}

/* A core that may match at any time has it at once, or the caller is told. */
UNIT_TEST(other_cores_have_it_at_once)
{
	static const struct fixture_attr attr = { .core = "fake" };

	fixture_close();
	fixture_start(&attr);
	remote = peer_insert(2);
	fake.core.eagain = 1;
	ck_assert_int_eq(try_recv(&slot[0], remote, TAG), -FI_EAGAIN);
	fake.core.post_err = FI_EINVAL;
	ck_assert_int_eq(try_recv(&slot[0], remote, TAG), -FI_EINVAL);
	ck_assert_uint_eq(fixture_ep()->match[DUO_TAGGED].posted_count, 0);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], remote, TAG);
	expect_in_order();
}
