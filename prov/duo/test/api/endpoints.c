/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Several endpoints on one AV, at the same time and one after the other. shm
 * has 256 places for peers in each of its AVs and writes over one in use
 * when there are more; fixture_close() asserts that it never has.
 */

#include <stdio.h>
#include <rdma/fi_errno.h>

#include "fixture.h"
#include "local/guests.h"
#include "record.h"

static const struct fixture_attr plain;
static struct fid_ep *second;
static const char *name;
static fi_addr_t peer;
static struct slot slot[2];

static void setup(void)
{
	fixture_setup();
}

/* Another one, with shm. */
static struct fid_ep *open_ep(void)
{
	struct fi_info *info = fixture_info(&plain);
	struct fid_ep *ep;

	fake.core.own_addr++;
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(ep, &fx.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(ep, &fx.cq->fid, FI_TRANSMIT | FI_RECV), 0);
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

static const char *own_name(struct fid_ep *ep)
{
	return duo_ep_of(ep)->publication.peer_name;
}

/* A peer reaches an endpoint: shm takes it in, if there is a place. */
static bool reach(struct fid_ep *ep, const char *from)
{
	if (!duo_registry_take(&duo_ep_of(ep)->publication, from))
		return false;
	fake_shm_connect(fake_shm_of(ep), from);
	return true;
}

/* That many more, whom we do not know; how many find a place. */
static int reach_many(struct fid_ep *ep, int count)
{
	static int number;
	char from[DUO_PEER_NAME_MAX];
	int i, found = 0;

	for (i = 0; i < count; i++) {
		snprintf(from, sizeof(from), "unit-peer-%d", number++);
		found += reach(ep, from);
	}
	return found;
}

/* The process that shm would give the message to. */
static void expect_shm_send(struct fid_ep *ep, fi_addr_t addr,
			    const char *to)
{
	int before = fake.tx[FI_DUO_LOCAL].count;
	char context;

	ck_assert_int_eq(fi_tsend(ep, "x", 1, NULL, addr, TAG, &context), 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, before + 1);
	ck_assert_str_eq(fake.tx[FI_DUO_LOCAL].name, to);
}

static void expect_core_send(struct fid_ep *ep, fi_addr_t addr)
{
	int before = fake.tx[FI_DUO_CORE].count;
	char context;

	ck_assert_int_eq(fi_tsend(ep, "x", 1, NULL, addr, TAG, &context), 0);
	expect_entry(&context, FI_ADDR_NOTAVAIL);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, before + 1);
}

START_TEST(av_outlives_its_endpoint)
{
	name = peer_publish(1);
	peer = peer_insert(1);
	ck_assert_int_eq(reach_many(fx.ep, 200), 200);
	close_ep(fx.ep);
	second = open_ep();
	expect_path(second, peer, FI_DUO_LOCAL, FI_DUO_REGISTERED);
	ck_assert_int_eq(reach_many(second, 200), 200);
	expect_shm_send(second, peer, name);
}
END_TEST

START_TEST(each_has_its_places)
{
	name = peer_publish(1);
	peer = peer_insert(1);
	second = open_ep();
	ck_assert_int_eq(reach_many(fx.ep, 200), 200);
	ck_assert_int_eq(reach_many(second, 200), 200);
	expect_shm_send(fx.ep, peer, name);
	expect_shm_send(second, peer, name);
}
END_TEST

/* One that is full takes nothing from the other. */
START_TEST(one_is_full)
{
	second = open_ep();
	ck_assert_int_eq(reach_many(second, 300), RECORD_GUESTS);
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_REGISTERED);
	expect_shm_send(fx.ep, peer, name);
	expect_core_send(second, peer);
	expect_path(second, peer, FI_DUO_CORE, FI_DUO_PEER_FULL);
	post_recv(&slot[0], peer, TAG);
	fake_shm_arrive_at(fake_shm_of(fx.ep), DUO_TAGGED, name, TAG, "near");
	expect_recv(&slot[0], "near", peer);
}
END_TEST

/* What one has settled does not bind the other. */
START_TEST(each_decides)
{
	peer = peer_insert(1);
	second = open_ep();
	expect_core_send(fx.ep, peer);
	name = peer_publish(1);
	expect_shm_send(second, peer, name);
	expect_core_send(fx.ep, peer);
}
END_TEST

/* The same peer has other numbers in their shm. */
START_TEST(sources)
{
	fi_addr_t other;
	const char *other_name;

	name = peer_publish(1);
	peer = peer_insert(1);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
	second = open_ep();
	other_name = peer_publish(2);
	other = peer_insert(2);
	peer = peer_insert(1);
	ck_assert_int_eq(fi_trecv(second, slot[1].buf, sizeof(slot[1].buf),
				  NULL, peer, TAG, 0, &slot[1]), 0);
	post_recv(&slot[0], other, TAG);
	fake_shm_arrive_at(fake_shm_of(second), DUO_TAGGED, other_name, TAG,
			   "not this");
	fake_shm_arrive_at(fake_shm_of(second), DUO_TAGGED, name, TAG, "b");
	fake_shm_arrive_at(fake_shm_of(fx.ep), DUO_TAGGED, name, TAG,
			   "not this either");
	fake_shm_arrive_at(fake_shm_of(fx.ep), DUO_TAGGED, other_name, TAG,
			   "a");
	memset(slot[1].buf, 0, sizeof(slot[1].buf));
	poll_cq(0);
	expect_recv(&slot[1], "b", peer);
	expect_recv(&slot[0], "a", other);
	expect_shm_send(second, peer, name);
	expect_shm_send(fx.ep, other, other_name);
}
END_TEST

/* Both know each other, and one goes: nobody looks into its region. */
START_TEST(neighbour_leaves)
{
	fi_addr_t addr;

	second = open_ep();
	addr = peer_insert(fake.core.own_addr);
	expect_shm_send(fx.ep, addr, own_name(second));
	close_ep(second);
	ck_assert_int_eq(fake.shm.removed, 2);	/* its own AV had it too */
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_shm_send(fx.ep, peer, name);
}
END_TEST

/* It was never inserted here, but it has sent something. */
START_TEST(strange_neighbour_leaves)
{
	second = open_ep();
	ck_assert(reach(fx.ep, own_name(second)));
	close_ep(second);
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_shm_send(fx.ep, peer, name);
}
END_TEST

/* Each takes two places of ours: one more is needed when it has gone. */
START_TEST(many_neighbours)
{
	fi_addr_t addr;
	int i;

	ck_assert_int_eq(reach_many(fx.ep, RECORD_GUESTS - 10),
			 RECORD_GUESTS - 10);
	for (i = 0; i < 20; i++) {
		second = open_ep();
		addr = peer_insert(fake.core.own_addr);
		if (i < 10 / 2)
			expect_shm_send(fx.ep, addr, own_name(second));
		else
			expect_core_send(fx.ep, addr);
		close_ep(second);
		ck_assert_int_eq(fi_av_remove(fx.av, &addr, 1, 0), 0);
	}
}
END_TEST

/* The last place is taken by one that goes: it can have no second one. */
START_TEST(neighbour_in_the_last_place)
{
	fi_addr_t addr;

	second = open_ep();
	ck_assert_int_eq(reach_many(fx.ep, RECORD_GUESTS - 1),
			 RECORD_GUESTS - 1);
	addr = peer_insert(fake.core.own_addr);
	expect_shm_send(fx.ep, addr, own_name(second));
	close_ep(second);
	expect_core_send(fx.ep, addr);
}
END_TEST

/* One that only sends, or only receives, has one CQ and shm. */
START_TEST(one_way)
{
	bool sends = _i;
	const struct fixture_attr attr = {
		.no_caps = sends ? FI_RECV : FI_SEND,
	};
	struct fi_info *info = fixture_info(&attr);

	fake.core.own_addr++;
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &second, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(second, &fx.av->fid, 0), 0);
	ck_assert_int_eq(fi_ep_bind(second, &fx.cq->fid,
				    sends ? FI_TRANSMIT : FI_RECV), 0);
	ck_assert_int_eq(fi_enable(second), 0);
	name = peer_publish(1);
	peer = peer_insert(1);
	expect_path(second, peer, FI_DUO_LOCAL, FI_DUO_REGISTERED);
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
END_TEST

/* One endpoint short of receive entries keeps its own CQ from shm, for so
 * long; then polls are as cheap again as before. */
START_TEST(crowded)
{
	struct duo_domain *domain = duo_domain_of(fx.domain);
	struct duo_ep *ep;
	uint32_t live, ranges;
	int polls;

	second = open_ep();
	ep = duo_ep_of(second);
	live = ep->pool.live;
	ranges = ep->pool.ranges;
	ep->pool.live = ep->pool.capacity;
	ep->pool.ranges = DUO_RX_RANGES;
	domain->crowded = true;
	polls = fake.shm.polls;
	poll_cq(4);
	ck_assert(domain->crowded);
	ck_assert_int_eq(fake.shm.polls, polls);
	ep->pool.live = live;
	ep->pool.ranges = ranges;
	poll_cq(1);
	ck_assert(!domain->crowded);
	ck_assert_int_eq(fake.shm.polls, polls + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("endpoints");
	TCase *tcase = unit_case(suite, "endpoints", setup, teardown);

	tcase_add_test(tcase, av_outlives_its_endpoint);
	tcase_add_test(tcase, each_has_its_places);
	tcase_add_test(tcase, one_is_full);
	tcase_add_test(tcase, each_decides);
	tcase_add_test(tcase, sources);
	tcase_add_test(tcase, neighbour_leaves);
	tcase_add_test(tcase, strange_neighbour_leaves);
	tcase_add_test(tcase, many_neighbours);
	tcase_add_test(tcase, neighbour_in_the_last_place);
	tcase_add_loop_test(tcase, one_way, 0, 2);
	tcase_add_test(tcase, crowded);
	return unit_run(suite);
}
