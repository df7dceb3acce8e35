/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Large messages that wait for space in the ring of a peer that does not poll
 * must not delay messages to other peers.
 */

#include "unit.h"

#define LARGE (2 * NEAR_STEP + 777)
#define COUNT 40	/* number of large messages of each peer */

static struct rig *a, *b, *c;	/* b does not poll */
static struct near_peer *to_b, *to_c, *b_to_a, *c_to_a;
static uint8_t *from_b, *others, *got_b, *got;

static void setup(void)
{
	a = rig_open(false);
	b = rig_open(false);
	c = rig_open(false);
	to_b = rig_peer(a, b);
	to_c = rig_peer(a, c);
	b_to_a = rig_peer(b, a);
	c_to_a = rig_peer(c, a);
	from_b = malloc(LARGE);
	others = malloc(LARGE);
	got_b = calloc(COUNT, LARGE);
	got = calloc(1, LARGE);
	rig_fill(from_b, LARGE, 3);
	rig_fill(others, LARGE, 4);
}

/* Sends a small and a large message; "at" receives them. */
static void other(struct rig *from, struct near_peer *to, struct rig *at)
{
	uint32_t sent = from->count, came = at->count;

	memset(got, 0, LARGE);
	ck_assert_int_eq(rig_send(from, to, 1, others, 8), 0);
	ck_assert_int_eq(rig_send_large(from, to, 2, others, LARGE, others), 0);
	rig_until(at, from, came + 2);
	ck_assert_int_eq(at->event[came].kind, RIG_MSG);
	rig_take(at, came + 1, got, LARGE);
	rig_until(at, from, came + 3);
	rig_until(from, at, sent + 1);
	ck_assert_int_eq(at->event[came + 2].err, 0);
	ck_assert_int_eq(from->event[sent].kind, RIG_SENT);
	ck_assert_mem_eq(got, others, LARGE);
}

static uint32_t fill(void)
{
	uint32_t n = 0;

	while (!rig_send(a, to_b, 9, others, 8))
		n++;
	return n;
}

static void others_go_on(void)
{
	int i;

	for (i = 0; i < COUNT; i++) {
		other(a, to_c, c);
		other(c, c_to_a, a);
	}
}

UNIT_CASE("full", setup, rig_close_all);

/* The ring from a to b is full: a's ACKs (_i is 0) or CTS (1) to b wait. */
UNIT_LOOP(waiting_replies_delay_no_other_peer, 0, 2)
{
	uint32_t i, n, at;

	ck_assert_int_eq(rig_send(a, to_b, 8, others, 8), 0);
	to_b->reads = !_i;
	to_b->coop = false;
	n = 1 + fill();
	for (i = 0; i < COUNT; i++)
		ck_assert_int_eq(rig_send_large(b, b_to_a, i, from_b, LARGE,
						from_b), 0);
	rig_until(a, NULL, COUNT);
	for (i = 0; i < COUNT; i++)
		rig_take(a, i, got_b + i * LARGE, LARGE);
	rig_poll(a, 1000);
	ck_assert_uint_eq(a->count, COUNT);
	ck_assert_uint_eq(b->count, 0);
	others_go_on();
	at = a->count;
	rig_until(b, a, n + COUNT);
	for (i = 0; i < COUNT; i++) {
		rig_ended(a, at + i, RIG_RECEIVED, 0);
		ck_assert_mem_eq(got_b + i * LARGE, from_b, LARGE);
	}
}

UNIT_TEST(waiting_fragments_delay_no_other_peer)
{
	uint32_t i, n, sent;

	b_to_a->reads = false;
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(rig_send_large(a, to_b, i, from_b, LARGE,
						from_b), 0);
	rig_until(b, NULL, 4);
	for (i = 0; i < 4; i++)
		rig_take(b, i, got_b + i * LARGE, LARGE);
	rig_poll(b, 10);
	rig_poll(a, 1000);
	ck_assert_uint_eq(a->count, 0);
	n = fill();
	others_go_on();
	sent = a->count;
	rig_until(b, a, 8 + n);
	rig_until(a, b, sent + 4);
	for (i = 0; i < 4; i++)
		ck_assert_mem_eq(got_b + i * LARGE, from_b, LARGE);
}
