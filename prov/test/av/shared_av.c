/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Endpoints that share an AV, and so the AV of the core. */

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

/* Opens endpoint i without shm: all its messages use the core. */
static int try_open(int i)
{
	struct fi_info *info = fixture_info(&plain);
	const bool permitted = false;
	int ret = fi_endpoint(fx.domain, info, &ep[i], NULL);

	fi_freeinfo(info);
	if (ret)
		return ret;
	ck_assert_int_eq(ep_set(ep[i], FI_OPT_SHARED_MEMORY_PERMITTED,
				permitted), 0);
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

static struct fake_table *table(void)
{
	return fake_core_table(duo_av_of(fx.av)->core);
}

static void expect_send(int i, fi_addr_t addr, uint64_t peer)
{
	fi_addr_t to;
	char context;

	ck_assert_int_eq(send_x(ep[i], addr, &context), 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	to = fake.tx[FI_DUO_CORE].dest;
	ck_assert_uint_lt(to, FAKE_PEERS);
	ck_assert_uint_eq(table()->addr[to], peer);
}

static void expect_receive(int i, fi_addr_t addr)
{
	ck_assert_int_eq(fi_trecv(ep[i], slot.buf, sizeof(slot.buf), NULL,
				  addr, TAG, 0, &slot), 0);
	memset(slot.buf, 0, sizeof(slot.buf));
	poll_cq(1);
	ck_assert_uint_eq(fake_core_posted(), 1);
	fake_core_arrive(DUO_TAGGED, addr, TAG, "text");
	expect_recv(&slot, "text", addr);
}

static void expect_works(int i, fi_addr_t addr, uint64_t peer)
{
	uint64_t bytes;
	size_t len = sizeof(bytes);

	ck_assert_int_eq(fi_av_lookup(fx.av, addr, &bytes, &len), 0);
	ck_assert_uint_eq(bytes, peer);
	expect_send(i, addr, peer);
	expect_receive(i, addr);
}

UNIT_CASE("addresses", setup, teardown);

/*
 * One peer is inserted before the second endpoint is opened, and again
 * afterwards. Another peer is inserted afterwards only.
 */
UNIT_TEST(peers_have_same_fi_addr_in_endpoints)
{
	fi_addr_t early = peer_insert(5), late;

	open_ep(1);
	late = peer_insert(6);
	ck_assert_uint_eq(peer_insert(5), early);
	expect_works(0, early, 5);
	expect_works(1, early, 5);
	expect_works(0, late, 6);
	expect_works(1, late, 6);
}

/* The core assigns a fi_addr to an unknown sender, as efa does. */
UNIT_TEST(unknown_sender_has_no_fi_addr)
{
	fi_addr_t at;

	open_ep(1);
	at = fake_core_learn(duo_av_of(fx.av)->core, 70);
	ck_assert_int_eq(fi_trecv(ep[1], slot.buf, sizeof(slot.buf), NULL,
				  FI_ADDR_UNSPEC, TAG, 0, &slot), 0);
	fake_core_arrive(DUO_TAGGED, at, TAG, "who");
	expect_recv(&slot, "who", FI_ADDR_NOTAVAIL);
	ck_assert_uint_eq(peer_insert(70), at);
	expect_works(0, at, 70);
	expect_works(1, at, 70);
}

UNIT_TEST(removed_fi_addr_is_invalid_everywhere)
{
	fi_addr_t gone, stays;
	int i;

	open_ep(1);
	gone = peer_insert(5);
	stays = peer_insert(6);
	ck_assert_int_eq(fi_av_remove(fx.av, &gone, 1, 0), 0);
	for (i = 0; i < 2; i++)
		ck_assert_int_eq(send_x(ep[i], gone, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_av_remove(fx.av, &gone, 1, 0), -FI_EINVAL);
	expect_works(1, stays, 6);
	ck_assert_uint_eq(peer_insert(8), gone);
	expect_works(0, gone, 8);
	expect_works(1, gone, 8);
}

UNIT_TEST(rejected_address_is_in_no_endpoint)
{
	const uint64_t peers[] = { 5, 6 };
	fi_addr_t addr[ARRAY_SIZE(peers)];

	open_ep(1);
	table()->rejected = 6;
	ck_assert_int_eq(fi_av_insert(fx.av, peers, 2, addr, 0, NULL), 1);
	ck_assert_uint_eq(addr[1], FI_ADDR_NOTAVAIL);
	expect_works(0, addr[0], 5);
	expect_works(1, addr[0], 5);
	ck_assert_int_eq(send_x(ep[1], addr[0] + 1, NULL), -FI_EINVAL);
}

UNIT_TEST(insert_without_results_succeeds)
{
	const uint64_t peer = 5;

	open_ep(1);
	ck_assert_int_eq(fi_av_insert(fx.av, &peer, 1, NULL, 0, NULL), 1);
	expect_works(1, 0, 5);
}

UNIT_CASE("endpoints", setup, teardown);

UNIT_TEST(closed_endpoints_leave_addresses)
{
	fi_addr_t a = peer_insert(5), b = peer_insert(6);

	open_ep(1);
	close_ep(0);
	ck_assert_int_eq(fi_av_remove(fx.av, &a, 1, 0), 0);
	expect_works(1, b, 6);
	close_ep(1);
	open_ep(2);
	expect_works(2, b, 6);
	expect_works(2, peer_insert(7), 7);
}

/*
 * The core rejects the bind of a further endpoint to its AV, as efa of
 * libfabric 2.1 does.
 */
UNIT_TEST(rejected_bind_fails)
{
	peer_insert(5);
	open_ep(1);
	close_ep(1);
	fake.path[FI_DUO_CORE].fail_at = fake.path[FI_DUO_CORE].calls + 2;
	ck_assert_int_ne(try_open(1), 0);
	close_ep(1);
	expect_works(0, 0, 5);
}

/*
 * Opens the second endpoint once for each call into the core, and makes this
 * call fail.
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
	ck_assert_int_ge(failed, 4);
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
