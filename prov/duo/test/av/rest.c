/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A core that rests: what it is not asked for while all is local, and what
 * ends that. The local addresses are the peer's and the endpoint's own.
 */

#include "av/route.h"
#include "rest_fixture.h"

static struct slot slot[2];

START_TEST(it_is_left_alone)
{
	char bytes[16];
	size_t len = sizeof(bytes);
	int context;

	ck_assert_uint_eq(peer, 0);
	ck_assert_uint_eq(peer_insert(PEER), peer);
	ck_assert_int_eq(fi_av_lookup(fx.av, peer, bytes, &len), 0);
	ck_assert_uint_eq(len, 8);
	ck_assert_uint_eq(*(uint64_t *) bytes, PEER);
	post_recv(&slot[0], peer, TAG);
	poll_cq(1000);
	rig_send("local");
	both_entry(&slot[0]);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	both_entry(&context);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 1);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 1);
	ck_assert(rests());
	ck_assert(core_has(0, FAKE_FREE));
	ck_assert_int_eq(fake.core.polls, 0);
	ck_assert_int_eq(fake.core.posts, 0);
}
END_TEST

/* And what it then delivers is the peer's. */
START_TEST(time_ends_it)
{
	post_recv(&slot[0], peer, TAG);
	unit_pass(REST_US - 5000);
	poll_cq(IDLE);
	ck_assert(rests());
	unit_pass(10000);
	poll_cq(1);
	expect_awake();
	ck_assert(core_has(peer, PEER));
	ck_assert_int_eq(fake.core.posts, 1);
	fake_core_arrive(DUO_TAGGED, peer, TAG, "core");
	expect_recv(&slot[0], "core", peer);
}
END_TEST

/* Local messages come: it waits for a pause, but not for ever. */
START_TEST(a_pause_ends_it)
{
	unit_pass(2 * REST_US - REST_US / 4);
	poll_cq(IDLE - 10);
	ck_assert(rests());
	post_recv(&slot[0], peer, TAG);
	rig_send("local");
	both_entry(&slot[0]);
	poll_cq(_i ? 1 : IDLE - 10);
	ck_assert(rests());
	if (_i)
		unit_pass(REST_US / 2);
	else
		poll_cq(20);
	expect_awake();
	ck_assert(core_has(peer, PEER));
}
END_TEST

START_TEST(a_stranger_ends_it)
{
	fi_addr_t stranger = peer_insert(STRANGER);

	expect_awake();
	ck_assert_uint_eq(stranger, peer + 1);
	ck_assert(core_has(peer, PEER));
	ck_assert(core_has(stranger, STRANGER));
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_REGISTERED);
}
END_TEST

/* In one call with a local one, which comes behind it. */
START_TEST(a_stranger_among_others_ends_it)
{
	const uint64_t addr[] = { STRANGER, PEER, OWN };
	fi_addr_t number[3];

	ck_assert_int_eq(fi_av_insert(fx.av, addr, 3, number, 0, NULL), 3);
	expect_awake();
	ck_assert_uint_eq(number[0], peer + 1);
	ck_assert_uint_eq(number[1], peer);
	ck_assert_uint_eq(number[2], peer + 2);
	ck_assert(core_has(number[0], STRANGER));
	ck_assert(core_has(number[1], PEER));
	ck_assert(core_has(number[2], OWN));
}
END_TEST

/* Any source may be a remote one, also behind a receive that names a peer. */
START_TEST(any_source_ends_it)
{
	if (_i)
		post_recv(&slot[1], peer, TAG + 1);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert(!rests());
	ck_assert_int_eq(fake.core.posts, 0);
	poll_cq(LAZY_POLLS + 1);
	ck_assert_int_eq(fake.core.posts, 1 + _i);
	fake_core_arrive(DUO_TAGGED, peer, TAG, "core");
	expect_recv(&slot[0], "core", peer);
}
END_TEST

/* So may who comes after one that has gone. */
START_TEST(a_successor_behind_a_named_one_ends_it)
{
	struct duo_ep *ep = fixture_ep();
	fi_addr_t own = peer_insert(OWN);

	duo_map_gone(ep, duo_route_number(duo_route_load(ep->route, peer)));
	post_recv(&slot[0], own, TAG);
	ck_assert(rests());
	post_recv(&slot[1], peer, TAG);
	ck_assert(!rests());
	ck_assert_int_ge(fake.core.posts, 1);
	fake_core_arrive(DUO_TAGGED, peer, TAG, "core");
	expect_recv(&slot[1], "core", peer);
}
END_TEST

START_TEST(a_peek_ends_it)
{
	recv_flags(&slot[0], NULL, 0, peer, FI_PEEK);
	ck_assert(!rests());
	ck_assert(core_has(peer, PEER));
	ck_assert_int_eq(fake.core.peeks, 1);
}
END_TEST

/* A send that goes to the core finds the address there. */
START_TEST(a_dead_peer_ends_it)
{
	int context;

	rig_end();
	peer = peer_insert(PEER);
	ck_assert(!rests());
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
	ck_assert(core_has(fake.tx[FI_DUO_CORE].dest, PEER));
}
END_TEST

/* Known as local when it was inserted, it has no ring left for us. */
START_TEST(a_peer_without_room_ends_it)
{
	struct near_region *region = rig.port->region;
	int i, context;

	for (i = 0; i < NEAR_SENDERS; i++)
		region->claim[i].state = NEAR_CLAIM_TAKEN;
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 -FI_EAGAIN);
	ck_assert(!rests());
	ck_assert(core_has(peer, PEER));
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
}
END_TEST

/* Its successor may be anywhere: receives from it are the core's as well. */
START_TEST(a_peer_that_goes_ends_it)
{
	struct duo_ep *ep = fixture_ep();
	uint64_t word = duo_route_load(ep->route, peer);

	duo_map_gone(ep, duo_route_number(word));
	ck_assert(rests());
	ck_assert_int_eq(recv_flags(&slot[0], slot[0].buf, 64, peer, 0), 0);
	ck_assert(!rests());
	ck_assert(core_has(peer, PEER));
	ck_assert_int_eq(fake.core.posts, 1);
}
END_TEST

START_TEST(a_buffer_for_many_ends_it)
{
	const struct iovec iov = { large, sizeof(large) };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC,
		.context = &slot[0],
	};

	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), 0);
	ck_assert(!rests());
}
END_TEST

START_TEST(a_counter_ends_it)
{
	struct fi_cntr_attr attr = { 0 };

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &fx.cntr, NULL), 0);
	fi_ep_bind(fx.ep, &fx.cntr->fid, FI_RECV);
	ck_assert(!rests());
	ck_assert(core_has(peer, PEER));
}
END_TEST

/* The core's numbers are others then, and both sides are told ours. */
START_TEST(removed_before_it_ends)
{
	fi_addr_t own, stranger;
	int context;

	own = peer;
	ck_assert_int_eq(fi_av_remove(fx.av, &own, 1, 0), 0);
	ck_assert_int_eq(fi_av_remove(fx.av, &own, 1, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, own, TAG, &context),
			 -FI_EINVAL);
	peer = peer_insert(PEER);
	ck_assert_uint_eq(peer, own + 1);
	ck_assert(rests());
	stranger = peer_insert(STRANGER);
	expect_awake();
	ck_assert(core_has(0, PEER));
	ck_assert(core_has(1, STRANGER));
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_REGISTERED);
	post_recv(&slot[0], peer, TAG);
	post_recv(&slot[1], stranger, TAG);
	poll_cq(LAZY_POLLS + 1);
	fake_core_arrive(DUO_TAGGED, 1, TAG, "stranger");
	expect_recv(&slot[1], "stranger", stranger);
	fake_core_arrive(DUO_TAGGED, 0, TAG, "peer");
	expect_recv(&slot[0], "peer", peer);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, stranger, TAG,
				  &context), 0);
	ck_assert_uint_eq(fake.tx[FI_DUO_CORE].dest, 1);
	rig_end();
	peer = peer_insert(PEER);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	ck_assert_uint_eq(fake.tx[FI_DUO_CORE].dest, 0);
}
END_TEST

static struct fid_ep *open_second(void)
{
	static const struct fixture_attr attr = { .near = true };
	struct fi_info *info = fixture_info(&attr);
	struct fid_ep *ep;

	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(ep, &fx.av->fid, 0), 0);
	return ep;
}

/* On the same AV, where the core's takes several, and where it takes one. */
START_TEST(a_second_endpoint_ends_it)
{
	struct fid_ep *ep;

	fake.core.single = _i;
	ep = open_second();
	ck_assert(!rests());
	ck_assert(core_has(peer, PEER));
	ck_assert_int_eq(fi_close(&ep->fid), 0);
}
END_TEST

/* The addresses outlive the endpoint. */
START_TEST(the_endpoint_closes)
{
	char bytes[8];
	size_t len = sizeof(bytes);

	fake.core.single = _i;
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	unit_pass(10 * REST_US);
	poll_cq(300);
	ck_assert(rests());
	ck_assert_int_eq(fake.core.polls, 0);
	fake.core.own_addr++;
	fx.ep = open_second();
	ck_assert(!rests());
	ck_assert(core_has(0, PEER));
	ck_assert_int_eq(fi_av_lookup(fx.av, peer, bytes, &len), 0);
	ck_assert_uint_eq(*(uint64_t *) bytes, PEER);
}
END_TEST

/* Nothing that the others do brings addresses into an AV without endpoint. */
START_TEST(another_av_goes_on)
{
	static const struct fixture_attr attr = { .near = true };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	const uint64_t more = STRANGER;
	fi_addr_t addr = FI_ADDR_NOTAVAIL, number[600];
	uint64_t many[600] = { 0 };
	struct fi_info *info;
	struct fid_av *av;
	int polls;

	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	ck_assert_int_eq(fi_av_insert(fx.av, many, 600, number, 0, NULL),
			 -FI_EOPBADSTATE);
	fake.core.own_addr++;
	info = fixture_info(&attr);
	ck_assert_int_eq(fi_av_open(fx.domain, &av_attr, &av, NULL), 0);
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &fx.ep, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.cq->fid, FI_TRANSMIT | FI_RECV),
			 0);
	ck_assert_int_eq(fi_enable(fx.ep), 0);
	ck_assert_int_eq(fi_av_insert(av, &more, 1, &addr, 0, NULL), 1);
	polls = fake.core.polls;
	poll_cq(300);
	ck_assert_int_gt(fake.core.polls, polls);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	poll_cq(LAZY_POLLS + 1);
	ck_assert_int_eq(fake.core.posts, 1);
	fake_core_arrive(DUO_TAGGED, addr, TAG, "core");
	expect_recv(&slot[0], "core", addr);
	ck_assert(core_has(peer, FAKE_FREE));
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = NULL;
	ck_assert_int_eq(fi_close(&av->fid), 0);
	ck_assert(rests());
}
END_TEST

/* And what waits for the core with it. */
START_TEST(the_av_closes)
{
	ck_assert_int_eq(fi_close(&fx.ep->fid), 0);
	fx.ep = NULL;
	ck_assert_int_eq(fi_close(&fx.av->fid), 0);
	fx.av = NULL;
	ck_assert(!rests());
}
END_TEST

/* More than it keeps. */
START_TEST(many_addresses)
{
	uint64_t addr[600];
	fi_addr_t number[600];
	int i;

	for (i = 0; i < 600; i++)
		addr[i] = i % 2 ? PEER : OWN;
	ck_assert_int_eq(fi_av_insert(fx.av, addr, 600, number, 0, NULL), 600);
	expect_awake();
	ck_assert_uint_eq(number[599], peer);
	ck_assert(core_has(peer, PEER));
	ck_assert(core_has(number[0], OWN));
}
END_TEST

START_TEST(a_sleeper_ends_it)
{
	static const struct fixture_attr attr = {
		.near = true, .core = "efa", .wait_obj = FI_WAIT_FD,
	};
	struct fid *fid;

	fixture_open(&attr);
	duo_params.core_rest = 500;
	ck_assert_int_eq(fixture_try(&attr), 0);
	ck_assert(rests());
	fid = &fx.cq->fid;
	duo_trywait(&fx.fabric.fabric_fid, &fid, 1);
	ck_assert(!rests());
	fixture_close();
}
END_TEST

/* It would have to be asked for RMA, and counts what a counter counts. */
START_TEST(not_for_these)
{
	static const struct fixture_attr attr[] = {
		{ .near = true, .core = "efa", .onesided = true },
		{ .near = true, .core = "efa", .cntr_flags = FI_SEND },
		{ .near = true, .core = "tcp" },
		{ .core = "efa", .no_shm = true },
	};

	fixture_open(&attr[_i]);
	duo_params.core_rest = 500;
	ck_assert_int_eq(fixture_try(&attr[_i]), 0);
	ck_assert(!rests());
	fixture_close();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rest");
	TCase *tcase = unit_case(suite, "rest", setup, near_teardown);

	tcase_add_test(tcase, it_is_left_alone);
	tcase_add_test(tcase, time_ends_it);
	tcase_add_loop_test(tcase, a_pause_ends_it, 0, 2);
	tcase_add_test(tcase, a_stranger_ends_it);
	tcase_add_test(tcase, a_stranger_among_others_ends_it);
	tcase_add_loop_test(tcase, any_source_ends_it, 0, 2);
	tcase_add_test(tcase, a_successor_behind_a_named_one_ends_it);
	tcase_add_test(tcase, a_peek_ends_it);
	tcase_add_test(tcase, a_dead_peer_ends_it);
	tcase_add_test(tcase, a_peer_without_room_ends_it);
	tcase_add_test(tcase, a_peer_that_goes_ends_it);
	tcase_add_test(tcase, a_buffer_for_many_ends_it);
	tcase_add_test(tcase, a_counter_ends_it);
	tcase_add_test(tcase, removed_before_it_ends);
	tcase_add_loop_test(tcase, a_second_endpoint_ends_it, 0, 2);
	tcase_add_loop_test(tcase, the_endpoint_closes, 0, 2);
	tcase_add_test(tcase, another_av_goes_on);
	tcase_add_test(tcase, the_av_closes);
	tcase_add_test(tcase, many_addresses);
	tcase = unit_case(suite, "not", NULL, NULL);
	tcase_add_test(tcase, a_sleeper_ends_it);
	tcase_add_loop_test(tcase, not_for_these, 0, 4);
	return unit_run(suite);
}
