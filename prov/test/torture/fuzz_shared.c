/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Random changes of shared memory, while our port exchanges messages and RMA
 * with two peers, a good one and a bad one. Before each step, the test changes
 * memory to which the bad peer has access, or stores an invalid slot in the bad
 * peer's ring. When our port disconnects the bad peer, a new bad peer replaces
 * it.
 *
 * The good peer's messages must arrive complete and in order. No byte outside
 * our memory region may change, and no access may be outside a mapping.
 *
 * A second test also changes the good peer's part of our segment. Then no port
 * may crash, hang, or use more than its memory.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "guard.h"
#include "near/rma/ops.h"
#include "near/rma/table.h"
#include "unit.h"

/* largest message, bytes; a cooperative copy has several steps */
#define SHARED_BUF 300000
#define SHARED_KEY 7u
#define SHARED_START 0x4000u
#define SHARED_WINDOW 20000	/* size of our memory region, bytes */
#define SHARED_EDGE 4096
#define SHARED_AHEAD 8 /* limit of under_way */

struct shared_side {
	struct rig *rig;
	struct near_table *table;
};

static struct shared_side us, good, bad;
static struct near_peer *good_to_us, *bad_to_us, *us_to_bad;
static uint8_t pattern[SHARED_BUF], arena[4][SHARED_BUF];
static uint8_t window[SHARED_EDGE + SHARED_WINDOW + SHARED_EDGE];
static uint8_t taken[SHARED_AHEAD][SHARED_BUF];
/* messages sent by the good peer, and received from it */
static uint32_t sent, heard;
static int under_way;		/* pending operations of all ports */
static bool all;		/* change the good peer's memory, too */

static void shared_done(void *ctx, struct near_peer *peer, void *cookie,
			uint32_t about, int err)
{
	under_way--;
}

static void shared_event(void *ctx, const struct near_rma_event *event)
{
}

static const struct near_device shared_device;
static const struct near_rma_sink shared_sink = {
	.device = &shared_device, .done = shared_done, .event = shared_event,
};

static void shared_open(struct shared_side *side, bool no_cma, uint8_t *memory,
			size_t len)
{
	const struct near_region_entry entry = {
		.key = SHARED_KEY, .start = SHARED_START,
		.memory = (uintptr_t)memory, .len = len,
		.access = NEAR_MAY_READ | NEAR_MAY_WRITE,
	};

	side->rig = rig_open(no_cma);
	ck_assert_int_eq(near_table_open(&side->table, false), 0);
	ck_assert_int_eq(near_rma_open(side->rig->port, &shared_sink,
				       side->table, false), 0);
	near_address(side->rig->port, &side->rig->addr);
	ck_assert_int_eq(near_table_add(side->table, &entry), 0);
}

static void shared_close(struct shared_side *side)
{
	rig_close(side->rig);
	near_table_close(side->table);
}

static void shared_drop(struct near_peer **peer, struct shared_side *side)
{
	if (*peer)
		near_peer_put(side->rig->port, *peer);
	*peer = NULL;
}

static void shared_bad(void)
{
	if (bad.rig) {
		shared_drop(&us_to_bad, &us);
		shared_drop(&bad_to_us, &bad);
		shared_close(&bad);
	}
	shared_open(&bad, fuzz_once_in(2), arena[0], SHARED_BUF);
	bad_to_us = rig_peer(bad.rig, us.rig);
	us_to_bad = rig_peer(us.rig, bad.rig);
}

static void shared_heard(const struct near_msg *msg, uint32_t sum)
{
	if (all)
		return;
	ck_assert_uint_eq(msg->tag, heard);
	ck_assert_uint_eq(sum, rig_sum(pattern, msg->len));
	heard++;
}

static size_t shared_fits(const struct near_msg *msg)
{
	return msg->len < SHARED_BUF ? msg->len : SHARED_BUF;
}

static void shared_events(struct shared_side *side)
{
	struct rig *rig = side->rig;
	struct rig_event *event;
	struct iovec iov;
	uint32_t i;

	for (i = 0; i < rig->count; i++) {
		event = &rig->event[i];
		if (event->kind == RIG_MSG && side == &us && good_to_us &&
		    !memcmp(&event->peer->addr, &good.rig->addr,
			    sizeof(good.rig->addr)))
			shared_heard(&event->msg, event->sum);
		if (event->kind == RIG_RNDV) {
			iov.iov_base = side == &us ?
				taken[fuzz_below(SHARED_AHEAD)] : arena[1];
			iov.iov_len = SHARED_BUF;
			/* near_recv() may fail: the peer may have failed */
			if (fuzz_once_in(2) ||
			    !near_recv_now(rig->port, event->peer,
					   &event->msg.rndv, iov.iov_base,
					   shared_fits(&event->msg)))
				near_recv(rig->port, event->peer,
					  &event->msg.rndv, &iov, 1,
					  event->msg.len, NULL);
		}
		if (event->kind == RIG_SENT)
			under_way--;
		if (event->kind != RIG_RECEIVED && event->kind != RIG_SENT)
			near_peer_put(rig->port, event->peer);
	}
	rig->count = 0;
}

static void shared_onesided(struct shared_side *side, struct near_peer *to,
			    uint8_t *buf)
{
	static const uint32_t most[] = { 8, 24, 300, 9000, SHARED_WINDOW };
	static uint64_t one = 1, was;
	struct iovec iov = { buf, 1 + fuzz_below(most[fuzz_below(5)]) };
	const struct iovec add = { &one, 8 }, result = { &was, 8 };
	struct near_rma_args args = {
		.verb = fuzz_below(NEAR_VERBS), .key = SHARED_KEY,
		.flags = NEAR_RMA_TRY | fuzz_below(NEAR_RMA_COPY << 1),
		.addr = SHARED_START + fuzz_below(SHARED_WINDOW),
		.op = NEAR_SUM, .type = NEAR_UINT64, .about = 1, .cookie = &was,
	};

	if (args.verb >= NEAR_ATOMIC) {
		args.addr &= ~7ull;
		args.local = (struct near_rma_bufs) { .iov = &add, .count = 1 };
		args.len = 8;
		if (args.verb >= NEAR_FETCH)
			args.result = (struct near_rma_bufs) {
				.iov = &result, .count = 1,
			};
		if (args.verb == NEAR_COMPARE) {
			args.compare = args.local;
			args.op = NEAR_CSWAP;
		}
	} else {
		args.local = (struct near_rma_bufs) { .iov = &iov, .count = 1 };
		args.len = iov.iov_len;
	}
	if (!near_rma(side->rig->port, to, &args))
		under_way++;
}

/* Posts a random message or operation to the peer; ignores errors. */
static void shared_post(struct shared_side *side, struct near_peer *to,
			uint8_t *buf)
{
	static const uint32_t most[] = { 49, 500, 8000, 70000, SHARED_BUF };
	uint32_t len = fuzz_below(most[fuzz_below(5)]);

	if (under_way > SHARED_AHEAD)
		return;
	if (fuzz_once_in(3))
		shared_onesided(side, to, buf);
	else if (rig_send(side->rig, to, 1, buf, len) == NEAR_LARGE)
		under_way += !rig_send_large(side->rig, to, 1, buf, len, buf);
}

static void shared_good(void)
{
	uint32_t len = fuzz_below(200);
	int ret;

	if (all && fuzz_once_in(2))
		return;
	ret = rig_send(good.rig, good_to_us, sent, pattern, len);
	ck_assert_msg(all || !ret || ret == -EAGAIN, "the good one: %d", ret);
	sent += !ret;
}

/* Returns a valid length for an operation, or any number. */
static uint64_t shared_size(void)
{
	return fuzz_once_in(3) ? fuzz_value() : fuzz_below(40) * 8;
}

/* Stores an almost valid slot with random contents in the bad peer's ring. */
static void shared_publish(struct near_peer *to)
{
	static uint64_t ids[] = { 1, 1ull << 32, 1ull << 32 | 1, 2ull << 32,
				  3ull << 32 | 2 };
	struct near_slot *slot = near_tx_slot_past(&to->tx);
	uint32_t i;

	if (!slot)
		return;
	for (i = fuzz_below(4); i--;)
		fuzz_change(slot->bytes, sizeof(slot->bytes));
	if (fuzz_once_in(2))
		slot->ack.id = ids[fuzz_below(5)];
	if (fuzz_once_in(2))
		slot->rma = (struct near_rma_slot) {
			.key = SHARED_KEY, .id = 1 + fuzz_below(3),
			.total = shared_size(), .offset = shared_size(),
			.len = (uint32_t)shared_size(),
			.verb = (uint8_t)fuzz_below(6),
			.op = (uint8_t)fuzz_below(20),
			.type = (uint8_t)fuzz_below(12),
			.flags = (uint8_t)fuzz_below(256) };
	slot->tag = fuzz_once_in(2) ? SHARED_START + fuzz_below(SHARED_WINDOW) :
		    fuzz_value();
	near_tx_publish(&to->tx, slot,
			near_word(fuzz_below(11), fuzz_below(16),
				  fuzz_once_in(4) ? fuzz_below(256) :
				  fuzz_below(NEAR_INLINE + 1),
				  (uint32_t)fuzz_value()));
}

static size_t shared_ring_size(const struct near_peer *peer)
{
	return (size_t)(peer->tx.data + peer->tx.dsize -
			(uint8_t *)peer->tx.ctl);
}

/* Changes memory to which the bad peer can write. */
static void shared_change(void)
{
	struct near_segment *ours = us.rig->port->segment;
	struct near_segment *its = bad.rig->port->segment;
	struct near_peer *rings[] = { bad_to_us, us_to_bad };
	struct near_peer *ring = rings[fuzz_below(2)];

	switch (fuzz_below(8)) {
	case 0:
	case 1:
		shared_publish(bad_to_us);
		break;
	case 2:		/* heads, flags and replies of a ring */
		if (ring->segment)
			fuzz_change(ring->tx.ctl, sizeof(struct near_ctl));
		break;
	case 3:
		if (ring->segment)
			fuzz_change(ring->tx.ctl, shared_ring_size(ring));
		break;
	case 4:
		/* the bad peer's claim at our port, or our claim at its port */
		if (ring->segment)
			fuzz_change(&ring->segment->claim[ring->index],
				    sizeof(struct near_claim));
		break;
	case 5:
		fuzz_change(its, offsetof(struct near_segment, claim[1]));
		break;
	case 6:
		fuzz_change(bad.table->shared, 4096);
		break;
	case 7:
		if (all)
			fuzz_change(ours, offsetof(struct near_segment, claim) +
				    NEAR_PAGE);
		else
			fuzz_change(ours->doorbell, sizeof(ours->doorbell));
		break;
	}
}

static void shared_step(void)
{
	shared_good();
	shared_post(&bad, bad_to_us, arena[2]);
	shared_post(&us, us_to_bad, arena[3]);
	if (fuzz_once_in(8)) {
		near_woken(us.rig->port);
		near_arm(us.rig->port);
	}
	rig_poll(us.rig, 1 + fuzz_below(3));
	rig_poll(bad.rig, fuzz_below(3));
	rig_poll(good.rig, 1);
	shared_events(&us);
	shared_events(&bad);
	shared_events(&good);
	if (!near_peer_usable(us_to_bad) || !near_peer_usable(bad_to_us)) {
		/* receive what the good peer can still deliver */
		rig_poll(us.rig, 20);
		shared_events(&us);
		shared_bad();
	}
	under_way = under_way < 0 || fuzz_once_in(50) ? 0 : under_way;
}

static void shared_begin(void)
{
	memset(window, 0x5a, sizeof(window));
	rig_fill(pattern, sizeof(pattern), 9);
	guard_permit(arena, sizeof(arena));
	guard_permit(taken, sizeof(taken));
	guard_permit(window + SHARED_EDGE, SHARED_WINDOW);
	shared_open(&us, false, window + SHARED_EDGE, SHARED_WINDOW);
	shared_open(&good, true, arena[0], SHARED_BUF);
	good_to_us = rig_peer(good.rig, us.rig);
	shared_bad();
}

static void shared_end(void)
{
	const struct near_budget *budget = &us.rig->port->budget;
	uint32_t i;

	for (i = 0; !all && i < 100000 && heard < sent; i++) {
		rig_poll(us.rig, 1);
		shared_events(&us);
	}
	ck_assert_msg(all || heard == sent, "%u of %u messages of the good one",
		      heard, sent);
	for (i = 0; i < SHARED_EDGE; i++)
		ck_assert(window[i] == 0x5a && window[SHARED_EDGE +
			  SHARED_WINDOW + i] == 0x5a);
	ck_assert_uint_le(budget->extra, budget->pages_max);
	shared_drop(&good_to_us, &good);
	shared_drop(&bad_to_us, &bad);
	shared_drop(&us_to_bad, &us);
	rig_close_all();
	near_table_close(us.table);
	near_table_close(good.table);
	near_table_close(bad.table);
}

static void shared_round(void)
{
	int i;

	shared_begin();
	for (i = 0; i < FUZZ_ROUND; i++) {
		if (i > 10)
			shared_change();
		shared_step();
	}
	shared_end();
}

UNIT_LONG_CASE("fuzz", NULL, rig_close_all, 3600 * 12);

UNIT_TEST(changes_of_bad_peer_leave_good_peer_working)
{
	fuzz_rounds("shared memory of one peer", shared_round);
}

UNIT_TEST(changes_of_all_memory_do_not_crash)
{
	all = true;
	fuzz_rounds("shared memory, all of it", shared_round);
}
