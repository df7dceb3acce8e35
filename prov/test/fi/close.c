/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_close() of an endpoint, and later reads of the endpoint's CQ. The programs
 * of prov/test/model close endpoints with receives and messages in every state.
 */

#include "av/route.h"
#include "fixture.h"

static struct slot slot[4];

UNIT_CASE("close", pair_setup, fixture_close);

UNIT_TEST(idle_endpoint_closes)
{
	fixture_close_ep();
	ck_assert_int_eq(unit_dir_count(), 1);	/* the peer's record */
}

UNIT_TEST(matched_deferred_receive_closes)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	near("late");
	fixture_close_ep();
}

UNIT_TEST(completions_survive_close)
{
	post_recv(&slot[0], local, TAG);
	near("near");
	poll_cq(1);
	post_recv(&slot[1], remote, TAG);
	poll_cq(1);
	far("far");
	fixture_close_ep();
	expect_recv(&slot[0], "near", local);
	expect_recv(&slot[1], "far", remote);
}

/*
 * Messages that arrive during the failed fi_close() must match, in order, the
 * receives that are posted before and after this call.
 */
UNIT_TEST(failed_close_keeps_endpoint_working)
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
