/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Messages between ports of one process, which the test polls in turn */

#include <limits.h>

#include "unit.h"

#define LARGE (3 * NEAR_STEP + 777)

static struct rig *a, *b;
static struct near_peer *to_b;
static uint8_t *big, *got;

static void setup_as(bool no_cma)
{
	to_b = rig_pair(&a, &b, no_cma);
	big = malloc(LARGE);
	got = calloc(1, LARGE);
	rig_fill(big, LARGE, 5);
}

UNIT_SETUP(setup, setup_as(false));
UNIT_SETUP(setup_frags, setup_as(true));

UNIT_CASE("read", setup, rig_close_all);

UNIT_TEST(every_size_in_order)
{
	struct rig_event *event = b->event;
	size_t len, n = 0;

	for (len = 0; len <= 8192; len = len < 130 ? len + 1 : len * 2 - 3) {
		ck_assert_int_eq(rig_send(a, to_b, len, big, len), 0);
		rig_until(b, NULL, ++n);
		ck_assert_int_eq(event->kind, RIG_MSG);
		ck_assert_uint_eq(event->msg.tag, len);
		ck_assert_uint_eq(event->msg.data, len << 8);
		ck_assert_uint_eq(event->msg.flags, NEAR_TAGGED);
		ck_assert_uint_eq(event->msg.len, len);
		ck_assert_uint_eq(event->sum, rig_sum(big, len));
		event++;
	}
	ck_assert_int_eq(rig_send(a, to_b, 1, big, 8193), NEAR_LARGE);
}

UNIT_TEST(wide_data)
{
	struct near_msg msg = {
		.payload = big, .len = 3, .data = 0xfedcba9876543210u,
		.flags = NEAR_DATA,
	};

	ck_assert_int_eq(near_send(a->port, to_b, &msg), 0);
	rig_until(b, NULL, 1);
	ck_assert_uint_eq(b->event[0].msg.data, msg.data);
	ck_assert_uint_eq(b->event[0].msg.len, 3);
	ck_assert_uint_eq(b->event[0].msg.flags, NEAR_DATA);
}

UNIT_TEST(full_ring_loses_no_message)
{
	uint32_t sent = 0, i;

	while (!rig_send(a, to_b, sent, &sent, sizeof(sent)))
		sent++;
	ck_assert_uint_eq(sent, to_b->tx.mask + 1);
	b->reject = INT_MAX;
	rig_poll(b, 100);
	ck_assert_uint_eq(b->count, 0);
	b->reject = 3;
	rig_until(b, NULL, sent);
	rig_poll(b, 1);
	ck_assert_uint_eq(b->count, sent);
	for (i = 0; i < sent; i++)
		ck_assert_mem_eq(b->event[i].payload, &i, sizeof(i));
	ck_assert_int_eq(rig_send(a, to_b, 0, big, 1), 0);
}

static void receive(struct rig *rig, const struct rig_event *event,
		    size_t budget, void *cookie)
{
	struct iovec iov[2] = {{got, budget / 3},
			       {got + budget / 3, budget - budget / 3}};

	ck_assert_int_eq(near_recv(rig->port, event->peer, &event->msg.rndv,
				   iov, 2, event->msg.len, cookie), 0);
}

UNIT_CASE("read", setup, rig_close_all);
UNIT_CASE("pieces", setup_frags, rig_close_all);

UNIT_TEST(large_message_arrives)
{
	ck_assert_int_eq(rig_send_large(a, to_b, 9, big, LARGE, &big), 0);
	rig_until_event(b, NULL, 1, RIG_RNDV, 0);
	ck_assert_uint_eq(b->event[0].msg.len, LARGE);
	rig_poll(a, 100);
	ck_assert_uint_eq(a->count, 0);
	receive(b, &b->event[0], LARGE, &got);
	rig_until_event(b, a, 2, RIG_RECEIVED, 0);
	ck_assert_ptr_eq(b->event[1].cookie, &got);
	ck_assert_mem_eq(got, big, LARGE);
	rig_until_event(a, b, 1, RIG_SENT, 0);
	ck_assert_ptr_eq(a->event[0].cookie, &big);
}

UNIT_TEST(small_message_arrives_between_steps)
{
	uint32_t i;

	rig_send_large(a, to_b, 9, big, LARGE, &big);
	rig_until(b, NULL, 1);
	receive(b, &b->event[0], LARGE, &got);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(rig_send(a, to_b, i, big, 8), 0);
		rig_until_event(b, a, 2 + i, RIG_MSG, 0);
	}
	rig_until(b, a, 5);
	ck_assert_mem_eq(got, big, LARGE);
}

UNIT_TEST(large_truncated)
{
	rig_send_large(a, to_b, 9, big, LARGE, &big);
	rig_until(b, NULL, 1);
	receive(b, &b->event[0], 1000, &got);
	rig_until(b, a, 2);
	rig_until(a, b, 1);
	ck_assert_mem_eq(got, big, 1000);
	ck_assert_int_eq(got[1000], 0);
}

UNIT_TEST(large_discarded)
{
	rig_send_large(a, to_b, 9, big, LARGE, &big);
	rig_until(b, NULL, 1);
	ck_assert_int_eq(near_recv(b->port, b->event[0].peer,
				   &b->event[0].msg.rndv, NULL, 0, LARGE,
				   NULL), 0);
	rig_until(a, b, 1);
	ck_assert_int_eq(a->event[0].err, 0);
	ck_assert_uint_eq(b->count, 1);
}

/* The caller overwrites the buffer, and gets no report. */
UNIT_TEST(large_copied)
{
	struct near_msg msg = { .len = LARGE };
	struct iovec iov = { got, LARGE };
	struct near_large how = { .iov = &iov, .count = 1, .copy = true };

	memcpy(got, big, LARGE);
	ck_assert_int_eq(near_send_large(a->port, to_b, &msg, &how), 0);
	memset(got, 0, LARGE);
	rig_until(b, NULL, 1);
	receive(b, &b->event[0], LARGE, &got);
	rig_until(b, a, 2);
	ck_assert_mem_eq(got, big, LARGE);
	rig_poll(a, 10);
	ck_assert_uint_eq(a->count, 0);
}

UNIT_TEST(port_sends_to_itself)
{
	struct near_peer *self = rig_peer(a, a);

	ck_assert_int_eq(rig_send(a, self, 3, big, 40), 0);
	rig_until(a, NULL, 1);
	ck_assert_uint_eq(a->event[0].sum, rig_sum(big, 40));
	rig_send_large(a, self, 4, big, LARGE, &big);
	rig_until(a, NULL, 2);
	receive(a, &a->event[1], LARGE, &got);
	rig_until(a, NULL, 4);
	ck_assert_mem_eq(got, big, LARGE);
}

UNIT_CASE("read", setup, rig_close_all);

UNIT_TEST(idle_ring_delivers_next_message)
{
	enum { MANY = 3 * NEAR_ACTIVE_MIN };
	struct rig *other[MANY];
	struct near_peer *peer[MANY];
	int i;

	rig_connect_many(other, peer, MANY, b, 8);
	ck_assert_uint_eq(b->port->active_count, MANY);
	rig_poll(b, 4 * NEAR_SWEEP_POLLS);
	ck_assert_uint_eq(b->port->active_count, NEAR_ACTIVE_MIN);
	for (i = 0; i < MANY; i++) {
		ck_assert_int_eq(rig_send(other[i], peer[i], i, big, 8), 0);
		rig_poll(b, 1);
		ck_assert_uint_eq(b->count, MANY + i + 1);
		ck_assert_uint_eq(b->event[MANY + i].msg.tag, i);
	}
}

/* The sender has loaded need_doorbell before the receiver's sweep sets it. */
UNIT_TEST(check_after_barrier_finds_slot)
{
	struct rig *other[NEAR_ACTIVE_MIN + 1];
	struct near_peer *to[NEAR_ACTIVE_MIN + 1];
	struct near_rx_ring *ring;
	int i;

	rig_connect_many(other, to, NEAR_ACTIVE_MIN + 1, b, 8);
	ring = rig_rx_ring(b, other[0]);
	for (i = 1; i <= NEAR_ACTIVE_MIN; i++)
		rig_rx_ring(b, other[i])->mark = 0;
	ring->mark = ring->rx.head;
	ring->idle = 1;
	ck_assert_int_eq(rig_send(other[0], to[0], 7, big, 8), 0);
	near_port_sweep(b->port);
	ck_assert_uint_ne(ring->active_at, NEAR_NOT_ACTIVE);
	ck_assert_uint_eq(ring->rx.ctl->need_doorbell, 0);
	rig_until(b, NULL, NEAR_ACTIVE_MIN + 2);
}

/* The sender is killed before it rings the doorbell. */
UNIT_TEST(claim_on_next_page_is_found)
{
	struct rig *other[NEAR_CLAIMS_PER_PAGE], *last = rig_open(false);
	struct near_peer *to[NEAR_CLAIMS_PER_PAGE];
	struct near_segment *segment = last->port->segment;
	const uint32_t n = NEAR_CLAIMS_PER_PAGE;

	rig_connect_many(other, to, n, last, 8);
	ck_assert_uint_eq(last->port->ring_count, n);
	ck_assert_int_eq(rig_send(b, rig_peer(b, last), 7, big, 8), 0);
	segment->doorbell_words = segment->doorbell[1] = 0;
	near_rings_check(last->port);
	ck_assert_uint_eq(last->port->ring_count, n + 1);
	rig_until(last, NULL, n + 1);
}

UNIT_TEST(closed_port_delivers_and_frees)
{
	struct rig *c = rig_open(false);
	struct near_peer *to_c = rig_peer(a, c);

	ck_assert_int_eq(rig_send(c, rig_peer(c, a), 1, big, 100), 0);
	ck_assert_int_eq(rig_send_large(a, to_c, 2, big, LARGE, &big), 0);
	rig_close(c);
	rig_until(a, NULL, 3);
	ck_assert_int_eq(a->event[0].kind, RIG_MSG);
	ck_assert_uint_eq(a->event[0].sum, rig_sum(big, 100));
	rig_ended(a, 1, RIG_SENT, ECONNRESET);
	ck_assert_int_eq(a->event[2].kind, RIG_GONE);
	ck_assert_ptr_eq(a->event[2].peer, to_c);
	ck_assert_uint_eq(rig_rx_rings(a), 0);
	ck_assert_int_eq(rig_send(a, to_c, 3, big, 8), -ECONNRESET);
}

UNIT_TEST(closed_receiver_is_found)
{
	struct rig *c = rig_open(false);
	struct near_peer *to_c = rig_peer(a, c);

	ck_assert_int_eq(rig_send_large(a, to_c, 2, big, LARGE, &big), 0);
	rig_poll(c, 1);
	rig_close(c);
	rig_until(a, NULL, 2);
	ck_assert_int_eq(a->event[0].err, ECONNRESET);
	ck_assert_int_eq(a->event[1].kind, RIG_GONE);
}

static void unreachable(const struct near_addr *addr)
{
	ck_assert_int_eq(rig_send(a, rig_peer_at(a, addr), 1, big, 1),
			 -EHOSTUNREACH);
}

/* The process lives, but the descriptor in the address is of another file. */
UNIT_TEST(address_of_no_port_counts_as_closed)
{
	struct near_addr addr = b->addr;

	addr.nonce++;
	ck_assert_int_eq(rig_send(a, rig_peer_at(a, &addr), 1, big, 1),
			 -ECONNRESET);
	addr.fd = 1;
	ck_assert_int_eq(rig_send(a, rig_peer_at(a, &addr), 1, big, 1),
			 -ECONNRESET);
}

UNIT_TEST(wrong_address_is_unreachable)
{
	struct near_addr addr = b->addr;

	addr.host++;
	unreachable(&addr);
	addr.pid = -1;
	ck_assert_int_eq(near_addr_check(a->port, &addr), -EINVAL);
	/* a peer with another memory layout: one warning */
	addr = b->addr;
	addr.layout++;
	a->warnings = 0;
	unreachable(&addr);
	unreachable(&addr);
	ck_assert_int_eq(a->warnings, 1);
}

/* State of a's claim at b, and a's mark `closed`, while a closes */
static uint32_t claim_seen, mark_seen;

static void look_at_both(struct rig *rig, struct near_peer *peer)
{
	claim_seen = b->port->segment->claim[0].state;
	mark_seen = rig->port->segment->closed;
}

/* After `closed` is set, the receiver may give the claim to another sender. */
UNIT_TEST(claim_is_closed_before_mark)
{
	rig_send(a, rig_peer(a, b), 1, big, 8);
	rig_until(b, NULL, 1);
	a->on_forgotten = look_at_both;
	rig_close(a);
	a = rig_open(false);
	ck_assert_uint_eq(claim_seen, NEAR_CLAIM_CLOSED);
	ck_assert_uint_eq(mark_seen, 0);
}
