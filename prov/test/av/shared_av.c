/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Endpoints that share an AV of ofi_duo. Each endpoint has its own AV of the
 * core, so one peer may have a different fi_addr in each of these.
 */

#include "fixture.h"

static const struct fixture_attr plain = { .core = "efa" };
static struct fid_ep *ep[3];
static struct slot slot;

static void setup(void)
{
	fixture_start(&plain);
	ep[0] = fx.ep;
}

static void close_ep(int i)
{
	ck_assert_int_eq(fi_close(&ep[i]->fid), 0);
	if (ep[i] == fx.ep)
		fx.ep = NULL;
	ep[i] = NULL;
}

static void teardown(void)
{
	int i;

	for (i = 1; i < (int) ARRAY_SIZE(ep); i++) {
		if (ep[i])
			close_ep(i);
	}
	fixture_close();
}

/* Opens endpoint i without shm, so that all its messages go over the core. */
static int try_open(int i)
{
	struct fi_info *info = fixture_info(&plain);
	const bool permitted = false;
	int ret = fi_endpoint(fx.domain, info, &ep[i], NULL);

	fi_freeinfo(info);
	if (ret)
		return ret;
	ck_assert_int_eq(fi_setopt(&ep[i]->fid, FI_OPT_ENDPOINT,
				   FI_OPT_SHARED_MEMORY_PERMITTED, &permitted,
				   sizeof(permitted)), 0);
	ret = fi_ep_bind(ep[i], &fx.av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(ep[i], &fx.cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(ep[i]);
	return ret;
}

static void open_ep(int i)
{
	ck_assert_int_eq(try_open(i), 0);
}

static struct fid_av *core_av(int i)
{
	return duo_ep_of(ep[i])->core_av->av_fid;
}

static struct fake_table *table(int i)
{
	return fake_core_table(core_av(i));
}

/*
 * Asserts that the last send went to this peer: the fi_addr that the core got
 * is the peer's in the core's AV.
 */
static void expect_send(int i, fi_addr_t addr, uint64_t peer)
{
	fi_addr_t to;
	char context;

	ck_assert_int_eq(fi_tsend(ep[i], "x", 1, NULL, addr, TAG, &context),
			 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	to = fake.tx[FI_DUO_CORE].dest;
	ck_assert_uint_lt(to, FAKE_PEERS);
	ck_assert_uint_eq(table(i)->addr[to], peer);
}

/*
 * Returns a peer's fi_addr in the core's AV of endpoint i; FAKE_PEERS: not in
 * that AV.
 */
static fi_addr_t number(int i, uint64_t peer)
{
	fi_addr_t at;

	for (at = 0; at < FAKE_PEERS && table(i)->addr[at] != peer; at++)
		;
	return at;
}

static void expect_receive(int i, fi_addr_t addr, uint64_t peer)
{
	ck_assert_int_eq(fi_trecv(ep[i], slot.buf, sizeof(slot.buf), NULL,
				  addr, TAG, 0, &slot), 0);
	memset(slot.buf, 0, sizeof(slot.buf));
	poll_cq(1);
	ck_assert_uint_eq(fake_core_posted(), 1);
	fake_core_arrive(DUO_TAGGED, number(i, peer), TAG, "text");
	expect_recv(&slot, "text", addr);
}

static void expect_works(int i, fi_addr_t addr, uint64_t peer)
{
	uint64_t bytes;
	size_t len = sizeof(bytes);

	ck_assert_int_eq(fi_av_lookup(fx.av, addr, &bytes, &len), 0);
	ck_assert_uint_eq(bytes, peer);
	expect_send(i, addr, peer);
	expect_receive(i, addr, peer);
}

UNIT_CASE("addresses", setup, teardown);

/*
 * Peers inserted before the second endpoint is opened, afterwards, and twice:
 * both endpoints reach them by the same fi_addr.
 */
UNIT_TEST(peers_have_same_fi_addr_in_endpoints)
{
	fi_addr_t early = peer_insert(5), late;

	open_ep(1);
	ck_assert_ptr_ne(core_av(1), core_av(0));
	late = peer_insert(6);
	ck_assert_uint_eq(peer_insert(5), early);
	expect_works(0, early, 5);
	expect_works(1, early, 5);
	expect_works(0, late, 6);
	expect_works(1, late, 6);
}

UNIT_TEST(freed_fi_addr_is_reused_in_endpoints)
{
	fi_addr_t first = peer_insert(5), second = peer_insert(6), third;

	ck_assert_int_eq(fi_av_remove(fx.av, &first, 1, 0), 0);
	open_ep(1);
	ck_assert_uint_ne(number(1, 6), second);
	third = peer_insert(7);
	ck_assert_uint_eq(third, first);	/* the freed fi_addr */
	expect_works(0, second, 6);
	expect_works(1, second, 6);
	expect_works(0, third, 7);
	expect_works(1, third, 7);
}

/*
 * A core assigns a fi_addr to a sender that was not inserted. A later insert
 * returns a fi_addr that is valid for both endpoints.
 */
UNIT_TEST(unknown_sender_gets_valid_fi_addr)
{
	fi_addr_t addr, unknown;

	open_ep(1);
	fake_core_learn(core_av(0), 70);
	fake_core_learn(core_av(1), 71);
	fake_core_learn(core_av(1), 70);
	ck_assert_int_eq(fi_trecv(ep[1], slot.buf, sizeof(slot.buf), NULL,
				  FI_ADDR_UNSPEC, TAG, 0, &slot), 0);
	fake_core_arrive(DUO_TAGGED, number(1, 70), TAG, "who");
	expect_recv(&slot, "who", FI_ADDR_NOTAVAIL);
	addr = peer_insert(5);
	unknown = peer_insert(70);
	ck_assert_uint_ne(number(0, 70), number(1, 70));
	expect_works(0, addr, 5);
	expect_works(1, addr, 5);
	expect_works(0, unknown, 70);
	expect_works(1, unknown, 70);
	addr = peer_insert(71);
	expect_works(0, addr, 71);
	expect_works(1, addr, 71);
}

UNIT_TEST(removed_fi_addr_is_invalid_everywhere)
{
	fi_addr_t gone, stays;

	open_ep(1);
	fake_core_learn(core_av(1), 70);
	gone = peer_insert(5);
	stays = peer_insert(6);
	ck_assert_int_eq(fi_av_remove(fx.av, &gone, 1, 0), 0);
	ck_assert_uint_eq(number(0, 5), FAKE_PEERS);
	ck_assert_uint_eq(number(1, 5), FAKE_PEERS);
	ck_assert_int_eq(fi_tsend(ep[1], "x", 1, NULL, gone, TAG, NULL),
			 -FI_EINVAL);
	ck_assert_int_ne(fi_av_remove(fx.av, &gone, 1, 0), 0);
	expect_works(1, stays, 6);
	ck_assert_uint_eq(peer_insert(8), gone);
	expect_works(0, gone, 8);
	expect_works(1, gone, 8);
}

/*
 * The second AV of the core rejects one of three addresses: the insert fails
 * for this address, and no AV of the core has it.
 */
UNIT_TEST(address_rejected_once_is_in_no_av)
{
	const uint64_t peers[] = { 5, 6, 7 };
	int err[ARRAY_SIZE(peers)] = { 0 };
	fi_addr_t addr[ARRAY_SIZE(peers)];

	open_ep(1);
	table(1)->rejected = 6;
	ck_assert_int_eq(fi_av_insert(fx.av, peers, ARRAY_SIZE(peers), addr,
				      FI_SYNC_ERR, err), 2);
	ck_assert_uint_eq(addr[1], FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(err[0], 0);
	ck_assert_int_eq(err[1], FI_EADDRNOTAVAIL);
	ck_assert_uint_eq(number(0, 6), FAKE_PEERS);
	ck_assert_uint_eq(number(1, 6), FAKE_PEERS);
	expect_works(0, addr[0], 5);
	expect_works(1, addr[0], 5);
	expect_works(0, addr[2], 7);
	expect_works(1, addr[2], 7);
	table(1)->rejected = FAKE_FREE;
	expect_works(1, peer_insert(6), 6);
}

/* fi_av_insert without an array for the results succeeds. */
UNIT_TEST(insert_without_results_succeeds)
{
	const uint64_t peer = 5;

	open_ep(1);
	ck_assert_int_eq(fi_av_insert(fx.av, &peer, 1, NULL, 0, NULL), 1);
	ck_assert_uint_lt(number(1, 5), FAKE_PEERS);
}

UNIT_CASE("endpoints", setup, teardown);

/*
 * The first endpoint, whose AV of the core is the lead, is closed. The second
 * endpoint keeps its addresses, and inserts and removals work.
 */
UNIT_TEST(close_of_first_endpoint_keeps_addresses)
{
	fi_addr_t a, b, c;
	int live;

	open_ep(1);
	fake_core_learn(core_av(1), 70);
	a = peer_insert(5);
	b = peer_insert(6);
	live = fake.path[FI_DUO_CORE].live;
	close_ep(0);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, live - 2);
	expect_works(1, a, 5);
	c = peer_insert(7);
	ck_assert_uint_ne(c, a);
	ck_assert_uint_ne(c, b);
	ck_assert_uint_eq(peer_insert(6), b);
	expect_works(1, c, 7);
	ck_assert_int_eq(fi_av_remove(fx.av, &a, 1, 0), 0);
	ck_assert_int_eq(fi_av_remove(fx.av, &a, 1, 0), -FI_EINVAL);
	ck_assert_uint_eq(number(1, 5), FAKE_PEERS);
	open_ep(2);
	expect_works(2, b, 6);
	expect_works(2, c, 7);
	expect_works(2, peer_insert(8), 8);
}

/* The second endpoint is closed. The first endpoint still has all addresses. */
UNIT_TEST(close_of_second_endpoint_keeps_addresses)
{
	fi_addr_t a;

	open_ep(1);
	a = peer_insert(5);
	close_ep(1);
	expect_works(0, a, 5);
	expect_works(0, peer_insert(6), 6);
	open_ep(1);
	expect_works(1, a, 5);
}

/*
 * Addresses are inserted before an endpoint is bound. They must reach the AV of
 * the core that the endpoint gets, since efa inserts per endpoint.
 */
UNIT_TEST(addresses_before_bind_reach_endpoint)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct fid_av *early;
	fi_addr_t a;
	int live;

	close_ep(0);
	ck_assert_int_eq(fi_close(&fx.av->fid), 0);
	ck_assert_int_eq(fi_av_open(fx.domain, &attr, &fx.av, NULL), 0);
	a = peer_insert(5);
	early = duo_av_core(duo_av_of(fx.av));
	live = fake.path[FI_DUO_CORE].live;
	open_ep(1);
	ck_assert_int_eq(fake.path[FI_DUO_CORE].live, live + 1);
	ck_assert_ptr_ne(core_av(1), early);
	ck_assert_ptr_eq(core_av(1), duo_av_core(duo_av_of(fx.av)));
	expect_works(1, a, 5);
	expect_works(1, peer_insert(6), 6);
}

UNIT_TEST(new_endpoint_gets_addresses_of_closed_one)
{
	fi_addr_t a = peer_insert(5), b = peer_insert(6);

	ck_assert_int_eq(fi_av_remove(fx.av, &a, 1, 0), 0);
	close_ep(0);
	open_ep(1);
	expect_works(1, b, 6);
	close_ep(1);
	open_ep(2);
	expect_works(2, b, 6);
	expect_works(2, peer_insert(7), 7);
}

/*
 * If the core rejects an earlier address for the second endpoint, fi_enable of
 * this endpoint fails.
 */
UNIT_TEST(rejected_earlier_address_fails_enable)
{
	fi_addr_t a = peer_insert(5), b = peer_insert(6);

	fake.core.rejected = 6;
	ck_assert_int_eq(try_open(1), -FI_EADDRNOTAVAIL);
	ck_assert_int_eq(fi_ep_bind(ep[1], &fx.av->fid, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_enable(ep[1]), -FI_EADDRNOTAVAIL);
	expect_works(0, a, 5);
	fake.core.rejected = table(1)->rejected = FAKE_FREE;
	ck_assert_int_eq(fi_enable(ep[1]), 0);
	expect_works(1, b, 6);
	close_ep(1);
	open_ep(1);
	expect_works(1, a, 5);
}

/*
 * Each call into the core fails once while the second endpoint is opened: the
 * open fails, and the first endpoint works on.
 */
UNIT_TEST(failed_call_leaves_first_endpoint_usable)
{
	int n, first, last, failed = 0;

	first = fake.path[FI_DUO_CORE].calls;
	open_ep(1);
	last = fake.path[FI_DUO_CORE].calls;
	close_ep(1);
	for (n = 1; n <= last - first; n++) {
		fake.path[FI_DUO_CORE].fail_at =
			fake.path[FI_DUO_CORE].calls + n;
		if (try_open(1)) {
			failed++;
			if (ep[1])
				close_ep(1);
			ep[1] = NULL;
			continue;
		}
		expect_works(1, peer_insert(5), 5);
		close_ep(1);
	}
	ck_assert_int_ge(failed, 5);
}

UNIT_TEST(close_of_av_in_use_fails)
{
	open_ep(1);
	close_ep(0);
	ck_assert_int_eq(fi_close(&fx.av->fid), -FI_EBUSY);
	close_ep(1);
	ck_assert_int_eq(fi_close(&fx.av->fid), 0);
	fx.av = NULL;
}
