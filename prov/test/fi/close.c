/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_close of an endpoint that has receives and messages in every state.
 * The fakes abort if a closed object is used; the teardown asserts that
 * nothing stays open, in the registry or published.
 */

#include "fixture.h"
#include "av/route.h"

static struct slot slot[4];

static void close_ep(void)
{
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = NULL;
}

UNIT_CASE("close", pair_setup, fixture_close);

UNIT_TEST(nothing_outstanding)
{
	close_ep();
	ck_assert_int_eq(unit_dir_count(), 1);	/* the peer's */
}

UNIT_TEST(lazy_receive)
{
	poll_cq(4 * LAZY_POLLS);	/* shm has been idle */
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	close_ep();
}

UNIT_TEST(receive_on_core)
{
	post_recv(&slot[0], remote, TAG);
	close_ep();
	ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAGAIN);
}

/* A message that comes during the close, for a receive on the core. */
UNIT_TEST(message_for_a_receive_on_core)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), 1);
	near("late");
	close_ep();
}

UNIT_TEST(message_for_a_lazy_receive)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("late");
	close_ep();
}

UNIT_TEST(unexpected)
{
	near("1");
	near("2");
	fake_shm_arrive(DUO_MSG, local_name, 0, "3");
	poll_cq(1);
	close_ep();
}

UNIT_TEST(started)
{
	fake.shm.slow = true;
	near("1");
	poll_cq(1);
	post_recv(&slot[0], local, TAG);
	close_ep();
}

UNIT_TEST(claimed)
{
	near("1");
	poll_cq(1);
	ck_assert_int_eq(recv_flags(&slot[0], NULL, 0, FI_ADDR_UNSPEC,
				    FI_PEEK | FI_CLAIM), 0);
	expect_entry(&slot[0], local);
	close_ep();
}

UNIT_TEST(claimed_on_core)
{
	far("1");
	ck_assert_int_eq(recv_flags(&slot[0], NULL, 0, remote,
				    FI_PEEK | FI_CLAIM), 0);
	expect_entry(&slot[0], remote);
	close_ep();
}

UNIT_TEST(peek_on_core)
{
	ck_assert_int_eq(recv_flags(&slot[0], NULL, 0, remote, FI_PEEK), 0);
	close_ep();
}

/* What has completed before is still read. */
UNIT_TEST(completed)
{
	post_recv(&slot[0], local, TAG);
	near("near");
	poll_cq(1);
	post_recv(&slot[1], remote, TAG);
	poll_cq(1);
	far("far");
	close_ep();
	expect_recv(&slot[0], "near", local);
	expect_recv(&slot[1], "far", remote);
}

/* LeakSanitizer sees if not. */
UNIT_TEST(unread_errors_are_freed)
{
	ck_assert_int_eq(recv_flags(&slot[0], NULL, 0, local, FI_PEEK), 0);
	poll_cq(0);
	close_ep();
}

/*
 * The endpoint lives on: what arrived during the attempt is matched then, in
 * order, for receives that were posted before and after.
 */
UNIT_TEST(core_is_busy)
{
	post_recv(&slot[0], local, TAG);
	near("1");
	near("2");
	near("3");
	fake.core.close_err = FI_EBUSY;
	ck_assert_int_eq(fi_close(&fx.ep->fid), -FI_EBUSY);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	near("4");
	expect_recv(&slot[0], "1", local);
	expect_recv(&slot[1], "2", local);
	post_recv(&slot[2], local, TAG);
	post_recv(&slot[3], local, TAG);
	expect_recv(&slot[2], "3", local);
	expect_recv(&slot[3], "4", local);
	expect_nothing();
	near("5");
}

UNIT_TEST(many_times)
{
	static const struct fixture_attr attr;
	int i;

	for (i = 0; i < 20; i++) {
		fixture_close();
		fixture_start(&attr);
		ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	}
}
