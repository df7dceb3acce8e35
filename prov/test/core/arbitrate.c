/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message of shm matches a receive that the core has. ofi_duo recalls the
 * receive by fi_cancel. The result decides whether the core or shm completes
 * the receive.
 */

#include "fixture.h"

static struct slot slot[4];

/* Posts wildcard receives and polls until the core has them. */
static void post_on_core(int count)
{
	int i;

	for (i = 0; i < count; i++)
		post_recv(&slot[i], FI_ADDR_UNSPEC, TAG);
	expect_posted(count);
}

static void expect_arbitrations(uint64_t won, uint64_t lost)
{
	struct fi_duo_stats stats = stats_now();

	ck_assert_uint_eq(stats.recall_ok, won);
	ck_assert_uint_eq(stats.recall_lost, lost);
	expect_nothing();
	ck_assert_uint_eq(fixture_ep()->pool.live,
			  fixture_ep()->lazy.retired_count +
				  fixture_ep()->match[DUO_TAGGED].posted_count +
				  fixture_ep()->match[DUO_TAGGED].unexp_count);
}

UNIT_CASE("arbitrate", pair_setup, fixture_close);

UNIT_TEST(canceled_receive_gets_local_message)
{
	post_on_core(1);
	near("near");
	expect_recv(&slot[0], "near", local);
	ck_assert_uint_eq(fake_core_posted(), 0);
	expect_arbitrations(1, 0);
}

/*
 * The recall fails, because the receive's completion is already in the core's
 * CQ.
 */
UNIT_TEST(failed_recall_keeps_core_message)
{
	post_on_core(1);
	far("far");
	near("near");
	expect_recv(&slot[0], "far", remote);
	expect_arbitrations(0, 1);
	post_recv(&slot[1], FI_ADDR_UNSPEC, TAG);
	expect_recv(&slot[1], "near", local);
}

/*
 * In the core's CQ, the entry of the canceled receive is behind an error and
 * more completions than ofi_duo reads at once. ofi_duo must find this entry.
 */
UNIT_TEST(canceled_entry_behind_others_is_found)
{
	char contexts[40];
	size_t i;

	post_on_core(1);
	for (i = 0; i < ARRAY_SIZE(contexts); i++)
		ck_assert_int_eq(send_x(fx.ep, remote, &contexts[i]), 0);
	fake_core_error(&slot[3], FI_EIO);
	ck_assert_int_eq(send_x(fx.ep, remote, &slot[2]), 0);
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

UNIT_TEST(cancel_of_deferred_receive_skips_core)
{
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[0]), 0);
	ck_assert_int_eq(fake.core.cancels, 0);
	expect_error(&slot[0], FI_ECANCELED);
	expect_arbitrations(0, 0);
	ck_assert_int_eq(fake.core.posts, 0);
}

/*
 * efa without RDMA write reports a remote write with the context of a receive.
 * The receive must remain posted.
 */
UNIT_TEST(remote_write_does_not_complete_receive)
{
	struct fi_cq_err_entry written = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = 8, .data = 77,
	};
	struct fi_cq_tagged_entry entry;

	post_recv(&slot[0], remote, TAG);
	poll_cq(1);
	ck_assert_uint_eq(fake_core_posted(), 1);
	written.op_context = TAILQ_FIRST(&fake.core.posted)->context;
	fake_core_event(NULL, &written, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	ck_assert_uint_eq(entry.flags, written.flags);
	ck_assert_uint_eq(entry.data, 77);
	expect_nothing();
	far("message");
	expect_recv(&slot[0], "message", remote);
}

/*
 * A remote write has an entry in the core's CQ. If _i is odd, the source of the
 * write is in the AV, and the read of ofi_duo's CQ must return this source. If
 * _i / 2 is 1, an earlier poll has moved the entry to the ring of ofi_duo's CQ.
 */
UNIT_LOOP(remote_write_has_source, 0, 4)
{
	static const struct fi_cq_err_entry written = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = 8, .data = 77,
	};

	fake_core_event(NULL, &written, _i % 2 ? remote : remote + 10);
	if (_i / 2)
		poll_cq(1);
	ck_assert_uint_eq(expect_entry(NULL, _i % 2 ? remote :
				       FI_ADDR_NOTAVAIL).data, 77);
}
