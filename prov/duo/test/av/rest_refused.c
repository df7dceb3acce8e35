/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Addresses that a core refuses which has rested: in the call that ends that,
 * or long after the application has been told that they are there.
 */

#include "av/map.h"
#include "av/route.h"
#include "rest_fixture.h"

#define OTHER 816	/* and those behind it lead nowhere */
#define BROKEN 8	/* such */

static struct slot slot[2];

static void publish_broken(uint64_t addr, struct duo_publication *pub)
{
	*pub = rig.pub;
	pub->peer_name[0] ^= 0x55;
	ck_assert_int_eq(duo_registry_reserve(duo_params.registry_dir, &addr,
					      sizeof(addr), false, pub), 0);
	ck_assert_int_eq(duo_registry_ready(pub), 0);
}

static void refuse(uint64_t addr)
{
	fake_core_table(duo_av_core(duo_av_of(fx.av)))->refused = addr;
}

static void expect_no_way(fi_addr_t addr)
{
	int context, sent = fake.tx[FI_DUO_CORE].count;

	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, addr, TAG, &context),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_trecv(fx.ep, large, 1, NULL, addr, TAG, 0,
				  &context), -FI_EINVAL);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, sent);
}

/* A call with one that the core refuses ends as it does without a rest. */
START_TEST(refused_among_others)
{
	const uint64_t addr[] = { 999, STRANGER, STRANGER + 1, OWN };
	fi_addr_t number[4];
	int i, context;

	refuse(addr[_i]);
	ck_assert_int_eq(fi_av_insert(fx.av, addr, 4, number, 0, NULL), _i);
	ck_assert(!rests());
	for (i = _i; i < 4; i++)
		ck_assert_uint_eq(number[i], FI_ADDR_NOTAVAIL);
	for (i = 0; i < 6; i++) {
		if (i > (int) peer + _i)
			expect_no_way(i);
	}
	for (i = 0; i < _i; i++) {
		ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, number[i], TAG,
					  &context), 0);
		ck_assert(core_has(fake.tx[FI_DUO_CORE].dest, addr[i]));
	}
}
END_TEST

/*
 * Registered, but not to be reached: the core is asked in the call as well. The
 * first that is noted ends the rest, the others come after it.
 */
START_TEST(refused_and_not_reached)
{
	struct duo_publication pub[BROKEN];
	fi_addr_t number[BROKEN];
	uint64_t addr[BROKEN];
	int i;

	for (i = 0; i < BROKEN; i++) {
		addr[i] = OTHER + i;
		publish_broken(addr[i], &pub[i]);
	}
	refuse(addr[_i]);
	ck_assert_int_eq(fi_av_insert(fx.av, addr, BROKEN, number, 0, NULL),
			 BROKEN - 1);
	ck_assert(!rests());
	for (i = 0; i < BROKEN; i++)
		ck_assert_uint_eq(number[i], i == _i ? FI_ADDR_NOTAVAIL :
						       peer + 1 + i);
	expect_no_way(peer + 1 + _i);
	for (i = 0; i < BROKEN; i++)
		duo_registry_withdraw(&pub[i]);
}
END_TEST

/* The successor of one that has gone, in the receive that needs the core. */
START_TEST(refused_successor)
{
	struct duo_ep *ep = fixture_ep();
	const struct fi_msg_tagged msg = {
		.addr = peer, .tag = TAG, .context = &slot[0],
	};

	duo_map_gone(ep, duo_route_number(duo_route_load(ep->route, peer)));
	refuse(PEER);
	if (_i)
		ck_assert_int_eq(fi_trecvmsg(fx.ep, &msg, FI_PEEK),
				 -FI_EINVAL);
	else
		ck_assert_int_eq(fi_trecv(fx.ep, large, 1, NULL, peer, TAG, 0,
					  &slot[0]), -FI_EINVAL);
	ck_assert(!rests());
	expect_no_way(peer);
	ck_assert_int_eq(fake.core.posts + fake.core.peeks, 0);
}
END_TEST

/* The last one: the core gives its number to the next. */
START_TEST(refused_the_last)
{
	fi_addr_t own = peer_insert(OWN), stranger;
	int context;

	refuse(OWN);
	stranger = peer_insert(STRANGER);
	ck_assert(!rests());
	ck_assert(core_has(own, STRANGER));
	ck_assert_uint_eq(stranger, own + 1);
	expect_path(fx.ep, own, FI_DUO_LOCAL, FI_DUO_REGISTERED);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, stranger, TAG,
				  &context), 0);
	ck_assert_uint_eq(fake.tx[FI_DUO_CORE].dest, own);
}
END_TEST

/* fi_av_insert has said that it is there, and near needs no core. */
START_TEST(refused_when_it_ends)
{
	fi_addr_t own = peer_insert(OWN), stranger;
	uint64_t bytes[4];
	size_t len = sizeof(bytes);
	int context;

	refuse(PEER);
	post_recv(&slot[1], peer, TAG);
	unit_pass(10 * REST_US);
	poll_cq(300);
	expect_awake();
	ck_assert(core_has(0, OWN));
	ck_assert(core_has(1, FAKE_FREE));
	stranger = peer_insert(STRANGER);
	ck_assert_uint_eq(stranger, 2);
	ck_assert(core_has(1, STRANGER));
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, peer, TAG, &context),
			 0);
	both_entry(&context);
	poll_cq(LAZY_POLLS + 1);
	ck_assert_int_eq(fake.core.posts, 0);
	rig_send("local");
	both_entry(&slot[1]);
	post_recv(&slot[0], own, TAG);
	poll_cq(LAZY_POLLS + 1);
	fake_core_arrive(DUO_TAGGED, 0, TAG, "own");
	expect_recv(&slot[0], "own", own);
	ck_assert_int_eq(fi_av_lookup(fx.av, peer, bytes, &len), -FI_EINVAL);
	rig_end();
	poll_cq(1000);
	if (_i) {
		ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
		ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), -FI_EINVAL);
		ck_assert(core_has(0, OWN));
		post_recv(&slot[0], own, TAG);
		poll_cq(LAZY_POLLS + 1);
		fake_core_arrive(DUO_TAGGED, 0, TAG, "own");
		expect_recv(&slot[0], "own", own);
	}
	expect_no_way(peer);
	post_recv(&slot[0], stranger, TAG);
	poll_cq(LAZY_POLLS + 1);
	fake_core_arrive(DUO_TAGGED, 1, TAG, "stranger");
	expect_recv(&slot[0], "stranger", stranger);
	ck_assert_int_eq(fi_tsend(fx.ep, "x", 1, NULL, stranger, TAG,
				  &context), 0);
	ck_assert_uint_eq(fake.tx[FI_DUO_CORE].dest, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rest_refused");
	TCase *tcase = unit_case(suite, "refused", setup, near_teardown);

	tcase_add_loop_test(tcase, refused_among_others, 0, 4);
	tcase_add_loop_test(tcase, refused_and_not_reached, 0, BROKEN);
	tcase_add_loop_test(tcase, refused_successor, 0, 2);
	tcase_add_test(tcase, refused_the_last);
	tcase_add_loop_test(tcase, refused_when_it_ends, 0, 2);
	return unit_run(suite);
}
