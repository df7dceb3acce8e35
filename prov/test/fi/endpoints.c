/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Several endpoints on one AV, at the same time or in succession. Each endpoint
 * must have its own AV of shm, because an AV of shm has space for only 256
 * peers. If another peer is added, shm overwrites one of the 256.
 * fixture_close() asserts that shm has overwritten no peer.
 */

#include <stdio.h>

#include "fixture.h"

static const struct fixture_attr plain;
static struct fid_ep *second;
static const char *name;
static fi_addr_t peer;
static struct slot slot[2];

/* Opens another endpoint, with shm as the local transport. */
static struct fid_ep *open_ep(void)
{
	struct fid_ep *ep = fixture_another(&plain, FI_TRANSMIT | FI_RECV);

	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_nonnull(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	return ep;
}

static void close_ep(struct fid_ep *ep)
{
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	if (ep == second)
		second = NULL;
	if (ep == fx.ep)
		fx.ep = NULL;
}

static void teardown(void)
{
	if (second)
		close_ep(second);
	fixture_close();
}

static void reach_many(struct fid_ep *ep, int count)
{
	static int number;
	char from[DUO_TRANSPORT_NAME_MAX];

	while (count--) {
		snprintf(from, sizeof(from), "unit-peer-%d", number++);
		fake_shm_connect(fake_shm_of(ep), from);
	}
}

static void expect_send(struct fid_ep *ep, fi_addr_t addr,
			enum fi_duo_path path)
{
	int before = fake.tx[path].count;
	char context;

	ck_assert_int_eq(send_x(ep, addr, &context), 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fake.tx[path].count, before + 1);
}

static void expect_shm_send(struct fid_ep *ep, fi_addr_t addr,
			    const char *to)
{
	expect_send(ep, addr, FI_DUO_LOCAL);
	ck_assert_str_eq(fake.tx[FI_DUO_LOCAL].name, to);
}

UNIT_CASE("endpoints", fixture_setup, teardown);

UNIT_TEST(av_works_with_next_endpoint)
{
	name = peer_publish(1);
	peer = peer_insert(1);
	reach_many(fx.ep, 200);
	close_ep(fx.ep);
	second = open_ep();
	expect_path(second, peer, FI_DUO_LOCAL, FI_DUO_OK);
	reach_many(second, 200);
	expect_shm_send(second, peer, name);
}

/*
 * fi_enable() binds the core's endpoint to the core's CQs and counters. Before
 * this call none of them may refer to the endpoint, because another thread may
 * already read them.
 */
UNIT_TEST(enable_binds_cqs_and_counters_to_core)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr, *other;

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL), 0);
	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &other, NULL), 0);
	second = fixture_another(&plain, FI_TRANSMIT | FI_RECV);
	ck_assert_int_eq(fi_ep_bind(second, &cntr->fid, FI_SEND), 0);
	ck_assert_int_eq(fi_ep_bind(second, &other->fid, FI_SEND), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(second, &other->fid, FI_COMPLETION),
			 -FI_EBADFLAGS);
	ck_assert_ptr_null(fake_core_of(second)->tx_cq);
	ck_assert_ptr_null(fake_core_of(second)->rx_cq);
	ck_assert_ptr_null(fake_core_of(second)->tx_cntr);
	ck_assert_int_eq(fi_enable(second), 0);
	ck_assert_ptr_nonnull(fake_core_of(second)->tx_cq);
	ck_assert_ptr_eq(fake_core_of(second)->rx_cq,
			 fake_core_of(second)->tx_cq);
	ck_assert_ptr_nonnull(fake_core_of(second)->tx_cntr);
	close_ep(second);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	ck_assert_int_eq(fi_close(&other->fid), 0);
}

UNIT_TEST(each_endpoint_has_own_shm_indexes)
{
	name = peer_publish(1);
	peer = peer_insert(1);
	second = open_ep();
	reach_many(fx.ep, 200);
	reach_many(second, 200);
	expect_shm_send(fx.ep, peer, name);
	expect_shm_send(second, peer, name);
}

UNIT_TEST(endpoints_of_process_use_core)
{
	fi_addr_t addr;

	second = open_ep();
	addr = peer_insert(fake.core.own_addr);
	expect_send(fx.ep, addr, FI_DUO_CORE);
	expect_send(second, addr, FI_DUO_CORE);
	expect_path(fx.ep, addr, FI_DUO_CORE, FI_DUO_NAMESPACE);
	ck_assert_int_eq(fake.shm.inserted, 0);
	close_ep(second);
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_shm_send(fx.ep, peer, name);
}

/*
 * The first endpoint has sent, and so chosen the core, before the peer was
 * published. The second endpoint sends later and chooses shm.
 */
UNIT_TEST(endpoints_choose_paths_independently)
{
	peer = peer_insert(1);
	second = open_ep();
	expect_send(fx.ep, peer, FI_DUO_CORE);
	name = peer_publish(1);
	expect_shm_send(second, peer, name);
	expect_send(fx.ep, peer, FI_DUO_CORE);
}

/* An endpoint that only sends or only receives has one CQ, and uses shm. */
UNIT_LOOP(one_way_endpoint_uses_shm, 0, 2)
{
	bool sends = _i;
	const struct fixture_attr attr = {
		.no_caps = sends ? FI_RECV : FI_SEND,
	};

	second = fixture_another(&attr, sends ? FI_TRANSMIT : FI_RECV);
	ck_assert_int_eq(fi_enable(second), 0);
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_path(second, peer, FI_DUO_LOCAL, FI_DUO_OK);
	if (sends) {
		expect_shm_send(second, peer, name);
		ck_assert_int_eq(fi_recv(second, slot, 1, NULL, peer, slot),
				 -FI_ENOCQ);
		return;
	}
	memset(slot, 0, sizeof(slot));
	ck_assert_int_eq(fi_trecv(second, slot[0].buf, sizeof(slot[0].buf),
				  NULL, peer, TAG, 0, &slot[0]), 0);
	fake_shm_arrive_at(fake_shm_of(second), DUO_TAGGED, name, TAG, "in");
	expect_recv(&slot[0], "in", peer);
}

UNIT_TEST(full_receive_pool_does_not_poll_shm)
{
	struct duo_ep *ep;
	uint32_t live, ranges;
	int polls;

	second = open_ep();
	ep = duo_ep_of(second);
	poll_cq(1);
	live = ep->pool.live;
	ranges = ep->pool.ranges;
	ep->pool.live = ep->pool.capacity;
	ep->pool.ranges = DUO_RX_RANGES;
	polls = fake.shm.polls;
	poll_cq(4);
	ck_assert_int_eq(fake.shm.polls, polls);
	ep->pool.live = live;
	ep->pool.ranges = ranges;
	poll_cq(1);
	ck_assert_int_eq(fake.shm.polls, polls + 1);
}
