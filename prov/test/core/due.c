/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Due receives: the next poll posts them to the core. Receives are due only
 * with a core that matches messages in polls only, such as tcp. They must reach
 * the core in the order of posting.
 */

#include "fixture.h"

static struct slot slot[3];

static void expect_posts(int count)
{
	ck_assert_int_eq(fake.core.posts, count);
}

/* Asserts that the core has slot[0] and then slot[1]. */
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

UNIT_TEST(receive_is_posted_in_next_poll)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], remote, TAG);
	expect_posts(0);
	poll_cq(1);
	ck_assert_uint_eq(stats_now().deferred_posted, 0);
	expect_in_order();
}

UNIT_TEST(receive_is_posted_before_sleep)
{
	post_recv(&slot[0], remote, TAG);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	duo_lock(&fixture_ep()->group->lock);
	duo_cq_before_sleep(fixture_ep()->rx_cq);
	duo_unlock(&fixture_ep()->group->lock);
	expect_in_order();
}

UNIT_TEST(closed_endpoint_posts_nothing)
{
	post_recv(&slot[0], remote, TAG);
	fixture_close_ep();
	expect_nothing();
	expect_posts(0);
}

/*
 * While the core rejects the first receive, ofi_duo must not post later ones.
 */
UNIT_TEST(later_receives_wait_for_rejected_one)
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

/*
 * The core "fake", unlike tcp, also matches messages outside of polls. So
 * fi_trecv() itself posts the receive to this core, and returns the core's
 * error if the core rejects the receive.
 */
UNIT_TEST(other_cores_get_receive_in_call)
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
