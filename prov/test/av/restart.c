/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer that has sent over shm ends. The next process with its core address
 * sends over the core. Receives that name this address go to the core in their
 * order.
 */

#include "fixture.h"

static struct slot slot[2];

/*
 * Receives a message that "local" has sent over shm. This makes "local" a
 * confirmed source: ofi_duo expects all later messages of "local" over shm. The
 * core then gets no receives that name "local".
 */
static void setup_peers(void)
{
	pair_insert();
	post_recv(&slot[0], local, TAG);
	near("first");
	expect_recv(&slot[0], "first", local);
}

static void setup(void)
{
	fixture_setup();
	setup_peers();
}

static void restart(void)
{
	peer_withdraw();
	ck_assert_uint_eq(peer_insert(1), local);
}

UNIT_CASE("restart", setup, fixture_close);

/*
 * efa cannot cancel directed untagged receives (util_srx). So ofi_duo must post
 * the wildcard receive to the core, but not the receive that names the address.
 */
UNIT_TEST(untagged_receives_on_efa_stay_local)
{
	static const struct fixture_attr attr = { .core = "efa" };

	fixture_close();
	fixture_start(&attr);
	setup_peers();
	post_untagged(&slot[0], local);
	post_untagged(&slot[1], FI_ADDR_UNSPEC);
	poll_cq(2 * LAZY_POLLS);
	restart();
	poll_cq(2 * LAZY_POLLS);
	ck_assert_int_eq(fake.core.posts, 1);
	ck_assert_int_eq(fake.core.cancels, 0);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[1]), 0);
	expect_error(&slot[1], FI_ECANCELED);
}

/*
 * When the application removes an address, the core does not free its fi_addr
 * at once. Later the core frees it, and assigns it to another peer. The new
 * peer must not inherit the path of the old one.
 */
UNIT_TEST(reused_fi_addr_gets_path_of_new_peer)
{
	fi_addr_t addr = remote;

	ck_assert_int_eq(fi_tinject(fx.ep, "far", 3, remote, TAG), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	fake.core.keeps = true;
	ck_assert_int_eq(fi_av_remove(fx.av, &addr, 1, 0), 0);
	fake_core_table(duo_av_of(fx.av)->core)->addr[remote] = FAKE_FREE;
	peer_publish(9);
	ck_assert_uint_eq(peer_insert(9), remote);
	ck_assert_int_eq(fi_tinject(fx.ep, "near", 4, remote, TAG), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}
