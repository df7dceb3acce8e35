/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Fan-out: consecutive sends of one buffer to several peers. The first peer
 * reads the message from the sender's memory. Each other peer gets it through
 * its ring, if the ring has space.
 */

#include "unit.h"

#define PEERS 3
#define LEN NEAR_FANOUT_MAX

static struct rig *a, *to[PEERS];
static struct near_peer *peer[PEERS];
static uint32_t seen[PEERS];	/* number of checked events */
static uint8_t *big;
static uint32_t sum;

static void setup_with(size_t memory)
{
	int i;

	a = rig_open(false);
	for (i = 0; i < PEERS; i++) {
		to[i] = rig_open_with(false, memory);
		peer[i] = rig_peer(a, to[i]);
		seen[i] = 0;
	}
	big = malloc(LEN + 1);
	rig_fill(big, LEN + 1, 7);
	sum = rig_sum(big, LEN);
}

UNIT_SETUP(setup, setup_with(NEAR_MEMORY));

/* Makes rings that are smaller than the message. */
UNIT_SETUP(setup_poor, setup_with(100 * near_page_size()));

/* Sends to peer i; returns true if the message is in the ring. */
static bool sends(int i, const uint8_t *buf, size_t len)
{
	int ret, tries;

	for (tries = 0; tries < 10; tries++) {
		ret = rig_send(a, peer[i], 9, buf, len);
		if (ret != -EAGAIN)
			break;
		rig_poll(to[i], 1);	/* a resize is pending */
	}
	ck_assert(!ret || ret == NEAR_LARGE);
	if (ret)
		ck_assert_int_eq(rig_send_large(a, peer[i], 9, (void *)buf, len,
						a), 0);
	return !ret;
}

static void arrives(int i, enum rig_kind kind)
{
	struct rig_event *event = &to[i]->event[seen[i]++];
	uint32_t sent = a->count;
	uint8_t *got;

	rig_until(to[i], NULL, seen[i]);
	ck_assert_int_eq(event->kind, kind);
	if (kind == RIG_MSG) {
		ck_assert_uint_eq(event->sum, sum);
		return;
	}
	got = calloc(1, event->msg.len);
	rig_take(to[i], seen[i] - 1, got, event->msg.len);
	rig_until(to[i], a, ++seen[i]);
	ck_assert_mem_eq(got, big, event->msg.len);
	rig_until(a, to[i], sent + 1);
	free(got);
}

UNIT_CASE("spread", setup, rig_close_all);

UNIT_TEST(first_peer_reads_others_get_ring)
{
	int i;

	for (i = 0; i < PEERS; i++)
		ck_assert_int_eq(sends(i, big, LEN), i > 0);
	for (i = 0; i < PEERS; i++)
		arrives(i, i ? RIG_MSG : RIG_RNDV);
}

/* A poll ends the fan-out, because the first peer may have read the message. */
UNIT_TEST(poll_ends_fanout)
{
	ck_assert(!sends(0, big, LEN));
	rig_poll(a, 1);
	ck_assert(!sends(1, big, LEN));
	ck_assert(sends(2, big, LEN));
}

/* Different buffers, or several messages to one peer, are no fan-out. */
UNIT_TEST(other_buffer_ends_fanout)
{
	ck_assert(!sends(0, big, LEN));
	ck_assert(!sends(0, big, LEN));
	ck_assert(!sends(1, big + 1, LEN));
	ck_assert(!sends(2, big, LEN));
	ck_assert(sends(1, big, LEN));
	ck_assert(!sends(1, big, LEN));
}

UNIT_TEST(longer_message_is_no_fanout)
{
	ck_assert(!sends(0, big, LEN + 1));
	ck_assert(!sends(1, big, LEN + 1));
}

/* With a full ring, the message uses rendezvous; the order is kept. */
UNIT_TEST(full_ring_uses_rendezvous)
{
	uint32_t n = 0, i;

	do {
		sends(0, big, LEN);
		ck_assert_uint_lt(++n, 100);
	} while (sends(1, big, LEN));
	ck_assert_uint_gt(n, 2);
	ck_assert_uint_eq(peer[1]->resize.full, 0);
	for (i = 1; i < n; i++)
		arrives(1, RIG_MSG);
	arrives(1, RIG_RNDV);
}

UNIT_CASE("poor", setup_poor, rig_close_all);

/* A ring that is too small for the message grows for the next fan-out. */
UNIT_TEST(small_ring_grows_for_fanout)
{
	uint32_t tier;

	if (near_tier_least() > 3)
		return;		/* large pages: the message fits */
	ck_assert(!sends(0, big, LEN));
	ck_assert(!sends(1, big, LEN));
	tier = peer[1]->resize.tier;
	arrives(0, RIG_RNDV);
	arrives(1, RIG_RNDV);
	ck_assert(!sends(0, big, LEN));
	ck_assert(sends(1, big, LEN));
	ck_assert_uint_gt(peer[1]->resize.tier, tier);
	ck_assert_uint_eq(peer[0]->resize.tier, tier);
	arrives(0, RIG_RNDV);
	arrives(1, RIG_MSG);
}
