/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sizes of rings: resizes, and the division of the ring budget */

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* pages in b's ring budget: a new ring has one page, and can grow */
#define GROWING 63

static struct rig *a, *b;
static struct near_peer *to_b;
static uint8_t buf[20000];

UNIT_SETUP(setup_buf, rig_fill(buf, sizeof(buf), 5));

static void setup_with(size_t pages)
{
	setup_buf();
	a = rig_open(false);
	b = rig_open_with(false, pages * near_page_size());
	to_b = rig_peer(a, b);
	ck_assert_int_eq(rig_send(a, to_b, 0, buf, 8), 0);
	rig_until(b, NULL, 1);
}

UNIT_SETUP(setup_poor, setup_with(1));
UNIT_SETUP(setup, setup_with(GROWING));

/* Asserts that all messages with smaller tags have arrived, in order. */
static void tags_until(uint64_t tag)
{
	uint64_t i, wrong = 0;

	rig_until(b, NULL, (uint32_t)tag);
	rig_poll(b, 1);		/* consumes RESIZE, if sent */
	ck_assert_uint_eq(b->count, tag);
	for (i = 0; i < tag; i++)
		wrong += b->event[i].msg.tag != i;
	ck_assert_uint_eq(wrong, 0);
}

UNIT_CASE("move", setup, rig_close_all);

UNIT_TEST(full_ring_grows_to_maximum)
{
	uint8_t tier = to_b->resize.tier;
	uint32_t most = near_tier_fit(GROWING);
	uint64_t tag = 1;

	ck_assert_uint_eq(tier, near_tier_least());
	ck_assert_uint_eq(rig_pages(b), 1);
	while (tag < RIG_EVENTS - 500 && tier < most) {
		tag = rig_overfill(a, to_b, tag);
		tags_until(tag);
		ck_assert_uint_ge(to_b->resize.tier, tier);
		tier = to_b->resize.tier;
		ck_assert_uint_eq(rig_pages(b),
				  near_tier_pages(rig_rx_ring(b, a)->tier));
	}
	ck_assert_uint_eq(tier, most);
	/* the ring does not grow further */
	tag = rig_overfill(a, to_b, tag);
	tags_until(tag);
	ck_assert_uint_eq(to_b->resize.count, 1);
}

/*
 * A message is longer than the ring permits, and causes a resize. Small
 * messages are not delayed, and the next message of this length fits.
 */
UNIT_TEST(message_longer_than_ring_resizes)
{
	static uint8_t got[4000];

	if (to_b->tx.eager_max == NEAR_EAGER_MAX)
		return;		/* large pages: 4000 bytes fit */
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 4000), NEAR_LARGE);
	ck_assert_int_eq(rig_send_large(a, to_b, 1, buf, 4000, buf), 0);
	ck_assert_int_eq(rig_send(a, to_b, 2, buf, 8), 0);
	rig_until(b, NULL, 3);
	rig_take(b, 1, got, sizeof(got));
	rig_until(b, a, 4);
	rig_until(a, b, 1);
	ck_assert_mem_eq(got, buf, sizeof(got));
	ck_assert_int_eq(rig_send(a, to_b, 2, buf, 8), -EAGAIN);
	rig_poll(b, 1);
	ck_assert_int_eq(rig_send(a, to_b, 2, buf, 8), -EAGAIN);
	ck_assert_int_eq(rig_send(a, to_b, 2, buf, 4000), 0);
	rig_until(b, NULL, 5);
	ck_assert_uint_eq(b->event[4].sum, rig_sum(buf, 4000));
	/* a message too long for any ring causes no resize */
	rig_send_large(a, to_b, 3, buf, 10000, NULL);
	ck_assert(!to_b->tx.gated);
}

/* Makes 29 further senders known to b, so that the even share is small. */
static void know_others(void)
{
	struct near_addr addr = a->addr;
	uint32_t i;

	for (i = 0; i < 29; i++) {
		addr.nonce++;
		rig_peer_at(b, &addr);
	}
}

UNIT_TEST(ring_grows_size_by_size)
{
	uint8_t tier = to_b->resize.tier;
	uint64_t tag = 1;

	know_others();
	while (tag < RIG_EVENTS - 500) {
		tag = rig_overfill(a, to_b, tag);
		tags_until(tag);
		ck_assert_uint_ge(to_b->resize.tier, tier);
		ck_assert_uint_le(to_b->resize.tier, tier + 1);
		tier = to_b->resize.tier;
	}
	/* one page for each other sender stays free */
	ck_assert_uint_eq(tier, near_tier_fit(GROWING - 29));
}

UNIT_CASE("poor", setup_poor, rig_close_all);

UNIT_TEST(missing_budget_makes_requests_rarer)
{
	uint64_t tag = 1;

	while (tag < RIG_EVENTS - 500) {
		tag = rig_overfill(a, to_b, tag);
		tags_until(tag);
	}
	ck_assert_uint_eq(to_b->resize.tier, near_tier_least());
	ck_assert_uint_ge(to_b->resize.count, 2);
	ck_assert_uint_le(to_b->resize.count, 7);
	ck_assert_uint_eq(rig_pages(b), 1);
}

UNIT_CASE("move", setup, rig_close_all);

UNIT_TEST(replies_wait_during_resize)
{
	struct near_slot *slot;
	uint64_t tag;

	near_tx_gate(&to_b->tx, NEAR_GATE_QUEUE);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	for (tag = 1; (slot = near_control_slot(a->port, to_b)); tag++) {
		slot->tag = tag;
		near_control_send(a->port, to_b, slot, NEAR_KIND_INLINE, 0);
	}
	ck_assert_uint_ge(tag, 15);
	near_too_small(a->port, to_b, 1);
	ck_assert(!to_b->resize.posted);		/* no slot is free */
	tags_until(tag);
	/*
	 * near uses the free slot for RESIZE, so near_control_slot() returns
	 * none
	 */
	ck_assert_ptr_null(near_control_slot(a->port, to_b));
	ck_assert(to_b->resize.posted);
	ck_assert_ptr_null(near_tx_slot_past(&to_b->tx));
	rig_poll(b, 1);
	/*
	 * this call ends the resize; the next near_control_slot() returns a
	 * slot
	 */
	ck_assert_ptr_null(near_control_slot(a->port, to_b));
	ck_assert_uint_eq(to_b->tx.gated, NEAR_GATE_QUEUE);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_ptr_nonnull(near_control_slot(a->port, to_b));
	near_tx_open_gate(&to_b->tx, NEAR_GATE_QUEUE);
	ck_assert_int_eq(rig_send(a, to_b, tag, buf, 8), 0);
	tags_until(tag + 1);
	ck_assert_uint_gt(to_b->resize.tier, near_tier_least());
}

UNIT_TEST(idle_ring_is_resized)
{
	struct near_rx_ring *ring = rig_rx_ring(b, a);
	uint64_t tag;

	ring->rx.ctl->need_doorbell = 1;
	b->port->active_count = 0;
	ring->active_at = NEAR_NOT_ACTIVE;
	near_too_small(a->port, to_b, 2000);
	ck_assert(to_b->resize.posted);
	rig_poll(b, 1);
	ck_assert_uint_eq(ring->resizes, 1);
	tag = rig_overfill(a, to_b, 1);
	tags_until(tag);
}

/*
 * The sender cannot map the larger ring at first, as if the kernel had no
 * memory for that. The resize waits, and the peer stays connected.
 */
UNIT_TEST(resize_waits_for_memory)
{
	struct near_place place;
	uint8_t *rest;
	size_t len;

	near_place(b->port->budget.growing, to_b->index, to_b->resize.tier,
		   &place);
	rest = (uint8_t *)to_b->tx.ctl + place.size;
	len = place.span - place.size;
	ck_assert_int_eq(munmap(rest, len), 0);
	near_too_small(a->port, to_b, 2000);
	rig_poll(b, 1);
	ck_assert_uint_eq(rig_rx_ring(b, a)->resizes, 1);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_uint_eq(to_b->resize.count, 0);
	ck_assert_int_eq(a->warnings, 1);
	ck_assert_ptr_eq(mmap(rest, len, PROT_NONE, MAP_SHARED | MAP_FIXED,
			      b->port->fd, place.offset + place.size), rest);
	ck_assert_int_eq(rig_send(a, to_b, 1, buf, 8), -EAGAIN);
	ck_assert_uint_eq(to_b->resize.count, 1);
	tags_until(rig_overfill(a, to_b, 1));
}

/* Child: fills a ring to b, then requests a larger one. */
static void act_resize(int out)
{
	struct rig *rig = rig_open(false);
	struct near_peer *peer = rig_peer(rig, b);
	uint64_t sent = rig_overfill(rig, peer, 0);

	if (write(out, &sent, sizeof(sent)) < 0)
		_exit(1);
	/* near sends RESIZE when the ring has space, and gets a reply */
	near_too_small(rig->port, peer, 2000);
	while (peer->resize.count < 1)
		near_full(rig->port, peer);
	if (write(out, &sent, sizeof(sent)) < 0)
		_exit(1);
	for (;;)
		pause();
}

/*
 * The sender is killed while its ring is full (_i is 0), after its messages
 * have arrived, whether or not RESIZE was sent (1), or after the resize (2).
 */
UNIT_LOOP(killed_sender_during_resize_loses_nothing, 0, 3)
{
	uint64_t sent, again;
	int fd[2], in;
	uint32_t i;
	pid_t pid;

	ck_assert_int_eq(pipe(fd), 0);
	in = fd[0];
	pid = fork();
	if (!pid)
		act_resize(fd[1]);
	ck_assert_int_eq(read(in, &sent, sizeof(sent)), sizeof(sent));
	if (_i == 0)
		unit_kill(pid);
	rig_until(b, NULL, 1 + (uint32_t)sent);
	if (_i == 1)
		unit_kill(pid);
	if (_i == 2) {
		while (!b->port->ring[1]->resizes)
			rig_poll(b, 1);
		ck_assert_int_eq(read(in, &again, sizeof(again)),
				 sizeof(again));
		ck_assert_uint_gt(rig_pages(b), 2);
		unit_kill(pid);
	}
	rig_until(b, NULL, 2 + (uint32_t)sent);
	for (i = 0; i < sent; i++)
		ck_assert_uint_eq(b->event[1 + i].msg.tag, i);
	ck_assert_int_eq(b->event[1 + sent].kind, RIG_GONE);
	ck_assert_uint_eq(rig_pages(b), 1);
	close(in);
}

UNIT_TEST(killed_receiver_during_resize_is_reported)
{
	struct near_addr theirs;
	pid_t pid = rig_child(NULL, false, &theirs);
	struct near_peer *peer = rig_peer_at(a, &theirs);

	ck_assert_int_eq(rig_send(a, peer, 1, buf, 8), 0);
	near_too_small(a->port, peer, NEAR_EAGER_MAX);
	ck_assert(peer->resize.posted);
	ck_assert_int_eq(rig_send(a, peer, 1, buf, 8), -EAGAIN);
	unit_kill(pid);
	rig_until_event(a, NULL, 1, RIG_GONE, 0);
	ck_assert_int_eq(rig_send(a, peer, 1, buf, 8), -ECONNRESET);
}

/* NEAR_GATE_QUEUE is closed, and the ring has free slots. */
UNIT_TEST(gated_ring_is_not_full)
{
	uint64_t tag;

	for (tag = 1; tag < 4 * NEAR_RESIZE_FULL; tag++) {
		ck_assert_int_eq(rig_send(a, to_b, tag, buf, 8), 0);
		near_tx_gate(&to_b->tx, NEAR_GATE_QUEUE);
		ck_assert_int_eq(rig_send(a, to_b, tag, buf, 8), -EAGAIN);
		ck_assert_int_eq(near_full(a->port, to_b), -EAGAIN);
		near_tx_open_gate(&to_b->tx, NEAR_GATE_QUEUE);
		tags_until(tag + 1);
	}
	ck_assert_uint_eq(to_b->resize.full, 0);
	ck_assert_uint_eq(to_b->resize.count, 0);
	/* if the gate is closed and no slot is free, the ring counts as full */
	near_tx_gate(&to_b->tx, NEAR_GATE_QUEUE);
	while (near_tx_slot_past(&to_b->tx))
		near_control_send(a->port, to_b, near_tx_slot_past(&to_b->tx),
				  NEAR_KIND_INLINE, 0);
	ck_assert_int_eq(near_full(a->port, to_b), -EAGAIN);
	ck_assert_uint_eq(to_b->resize.full, 1);
}

/* Division of a port's ring budget among many senders */
#define MANY 63
#define SHARE near_tier_fit(4)	/* size class of an even share */
#define PAGES (MANY * near_tier_pages(SHARE))	/* in the ring budget */

static struct rig *talker[MANY];
static struct near_peer *to_us[MANY];

static struct rig *open_us(void)
{
	return rig_open_with(false, PAGES * near_page_size());
}

UNIT_CASE("budget", setup_buf, rig_close_all);

UNIT_TEST(known_senders_get_equal_rings)
{
	struct rig *us = open_us();
	uint32_t i;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		rig_peer(us, talker[i]);
	}
	/* the port itself is not one of its senders */
	rig_peer(us, us);
	for (i = 0; i < MANY; i++) {
		to_us[i] = rig_peer(talker[i], us);
		ck_assert_int_eq(rig_send(talker[i], to_us[i], i, buf, 4096),
				 0);
	}
	rig_until(us, NULL, MANY);
	for (i = 0; i < MANY; i++) {
		ck_assert_uint_eq(us->event[i].sum, rig_sum(buf, 4096));
		ck_assert_uint_eq(to_us[i]->resize.tier, SHARE);
	}
	ck_assert_uint_eq(rig_pages(us), PAGES);
	ck_assert_uint_le(rig_taken(us),
			  near_memory(PAGES * near_page_size(), MANY));
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, 2 * MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

static void receive_all(struct rig *us)
{
	static uint8_t got[3000];
	struct rig_event *event;

	while (us->count) {
		event = &us->event[--us->count];
		if (event->kind == RIG_RNDV)
			rig_take(us, us->count, got, sizeof(got));
		if (event->kind == RIG_RNDV || event->kind == RIG_MSG)
			near_peer_put(us->port, event->peer);
	}
}

/* Sends 3000 bytes; "us" receives them, and a RESIZE after them. */
static void send_long(struct rig *rig, struct near_peer *peer, struct rig *us)
{
	int i;

	if (rig_send(rig, peer, 1, buf, 3000) == NEAR_LARGE)
		rig_send_large(rig, peer, 1, buf, 3000, NULL);
	for (i = 0; i < 3; i++) {
		rig_poll(us, 1);
		receive_all(us);
		rig_poll(rig, 1);
	}
	rig->count = 0;
}

/* Later senders get one page at least, even if the budget is used up. */
UNIT_TEST(first_senders_get_large_rings)
{
	struct rig *us = open_us();
	uint32_t i, round, pages;

	for (i = 0; i < MANY; i++) {
		talker[i] = rig_open(false);
		to_us[i] = rig_peer(talker[i], us);
		send_long(talker[i], to_us[i], us);
	}
	for (round = 0; round < 20; round++)
		for (i = 0; i < MANY; i++)
			send_long(talker[i], to_us[i], us);
	ck_assert_uint_gt(to_us[0]->resize.tier, SHARE);
	pages = rig_pages(us);
	ck_assert_uint_le(pages, PAGES + MANY);
	ck_assert_uint_ge(pages, PAGES - MANY);
	for (i = 0; i < MANY; i++)
		rig_close(talker[i]);
	rig_until(us, NULL, MANY);
	ck_assert_uint_eq(rig_pages(us), 0);
}

/* Rings of more senders have the same sizes, once they have grown. */
UNIT_TEST(rings_of_more_senders_grow)
{
	static struct rig *other[2 * MANY];
	static struct near_peer *to[2 * MANY];
	struct rig *us = open_us();
	uint32_t i;

	if (near_page_size() > NEAR_PAGE)
		return;		/* large pages: 3000 bytes fit */
	for (i = 0; i < 2 * MANY; i++) {
		other[i] = rig_open(false);
		rig_peer(us, other[i]);
	}
	for (i = 0; i < 2 * MANY; i++) {
		to[i] = rig_peer(other[i], us);
		send_long(other[i], to[i], us);
		send_long(other[i], to[i], us);
		ck_assert_uint_eq(to[i]->resize.tier, SHARE);
	}
	ck_assert_uint_eq(us->port->budget.extra + us->port->budget.rings,
			  2 * PAGES);
}
