/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The poll word, which shows that a small operation has completed */

#include <poll.h>

#include "rma_small_side.h"

UNIT_CASE("ends", setup, side_teardown);

/* Without other work, a poll checks only active rings and the poll word. */
UNIT_TEST(poll_checks_rings_and_poll_word)
{
	struct near_port *port = a.rig->port;

	port->tick_at = port->polls + NEAR_TICK_POLLS;
	ck_assert(go(call(NEAR_WRITE)));
	ck_assert_ptr_eq(port->poll_word, &to_b->tx.ctl->done);
	ck_assert(near_rings_only(port));
	rig_poll(b.rig, 1);
	ck_assert(!near_rings_only(port));
	rig_poll(a.rig, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_ptr_eq(port->poll_word, &port->poll_value);
	port->tick_at = port->polls + NEAR_TICK_POLLS;
	ck_assert(near_rings_only(port));
}

/*
 * A sleeping thread wakes when another thread starts an operation that needs
 * polls: one that is delegated on the fast path (_i is 0) or on the slow path
 * (1), or queued (2).
 */
UNIT_LOOP(wakes_sleeper, 0, 3)
{
	struct near_port *port = a.rig->port;
	struct pollfd fd = { .fd = near_wait_fd(port), .events = POLLIN };

	ck_assert_int_eq(near_arm(port), 0);
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
	if (_i)
		ck_assert_int_eq(side_start(NEAR_WRITE, SIDE_KEY, 0, _i == 2 ?
					    SIDE_LARGE : 8, 0), 0);
	else
		ck_assert(go(call(NEAR_WRITE)));
	ck_assert_int_eq(poll(&fd, 1, 0), 1);
	ck_assert_int_eq(near_arm(port), -EAGAIN);
	ck_assert(near_woken(port));
	while (!a.done)
		both_poll();
	ck_assert_int_eq(poll(&fd, 1, 0), 0);
}

/* Advances the counts of delegated operations by "count". */
static void pass_delegs(uint64_t count)
{
	to_b->rma->delegated_last += count;
	rig_rx_ring(b.rig, a.rig)->delegs += count;
	to_b->tx.ctl->done += count;
	to_b->tx.ctl->doing += count;
}

/*
 * b rejects the second operation, and stores its number in near_ctl.rejected.
 * After that, b must send a reply to each write, so that a can tell completed
 * writes from rejected ones. This must hold even if the operations' numbers
 * exceed 2^31 or 2^32: near must compare all 64 bits of near_ctl.rejected.
 */
UNIT_LOOP(reply_matches_after_number_wrap, 0, 3)
{
	/* number of the last operation; the lower 32 bits may be 0 or 1 */
	static const uint64_t last[] = {
		(1ull << 31) + 5, 1ull << 32, (1ull << 32) + 1,
	};

	ck_assert(go(call(NEAR_WRITE)));
	both_poll();
	ck_assert(go(call(NEAR_WRITE)));
	near_table_remove(b.table, SIDE_KEY);
	both_poll();
	ck_assert_int_eq(a.err, EKEYREJECTED);
	side_region(SIDE_KEY, 3, SIDE_LARGE);
	usual(NEAR_WRITE, SIDE_KEY);	/* the third operation */
	both_poll();
	pass_delegs(last[_i] - 5);
	ck_assert(go(call(NEAR_WRITE)));
	ck_assert(go(call(NEAR_WRITE)));
	ck_assert_uint_eq(to_b->rma->delegated_last, last[_i]);
	a.done = 0;
	both_poll();
	ck_assert_uint_eq(a.done, 2);
	ck_assert_int_eq(a.err, 0);
	ck_assert_int_eq(a.rig->warnings, 0);
	ck_assert(!near_rma_busy(to_b));
}

static void answer(uint64_t id, uint32_t len)
{
	struct near_slot *slot = near_tx_slot_past(&to_a()->tx);

	slot->rma_answer = (struct near_answer_slot) { .id = id, .len = len };
	near_tx_publish(&to_a()->tx, slot,
			near_word(NEAR_KIND_ANSWER, 0, 0, 0));
}

/*
 * A faulty target replies to an atomic with half of the result, then with all
 * of it. The initiator disconnects.
 */
UNIT_TEST(second_reply_disconnects)
{
	struct near_rma_op *op;
	uint32_t i = 0;

	ck_assert(go(adding()));
	op = near_pool_next(&rma_of(&a)->ops, &i);
	answer(near_pool_id(op), 4);
	answer(near_pool_id(op), 8);
	rig_poll(a.rig, 1);
	ck_assert_uint_eq(to_b->rma->expect, 0);
	rig_poll_ms(a.rig, 10);
	ck_assert_int_eq(a.rig->warnings, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, ECONNRESET);
	ck_assert(!near_rma_busy(to_b));
}

/*
 * The poll word can be in the memory of one target only. Operations on two
 * targets must still complete.
 */
UNIT_TEST(operations_on_two_targets_complete)
{
	struct near_peer *to_c, *put_to = to_b;
	struct rig *third = rig_open(false);
	struct near_table *table;
	static uint64_t theirs[8];
	const struct near_region_entry entry = {
		.key = SIDE_KEY, .start = SIDE_START, .access = 3,
		.memory = (uintptr_t)theirs, .len = sizeof(theirs),
	};

	ck_assert_int_eq(near_table_open(&table, true), 0);
	ck_assert_int_eq(near_rma_open(third->port, rma_of(&b)->sink, table,
				       false), 0);
	ck_assert_int_eq(near_table_add(table, &entry), 0);
	near_address(third->port, &third->addr);
	to_c = rig_peer(a.rig, third);
	to_b = to_c;
	near_rma_peer(to_b)->skip = 1;
	usual(NEAR_READ, SIDE_KEY);
	ck_assert(go(call(NEAR_WRITE)));
	to_b = put_to;
	ck_assert(go(call(NEAR_WRITE)));
	rig_poll(b.rig, 1);
	rig_poll(a.rig, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert(go(call(NEAR_WRITE)));
	rig_poll(third, 1);
	rig_poll(b.rig, 1);
	rig_poll(a.rig, 1);
	ck_assert_uint_eq(a.done, 3);
	ck_assert_mem_eq(theirs, local, 8);
	ck_assert(near_list_empty(&a.rig->port->onesided_work));
	rig_close(third);
	near_table_close(table);
}

UNIT_TEST(failed_peer_resets_poll_word)
{
	struct near_port *port = a.rig->port;

	ck_assert(go(call(NEAR_WRITE)));
	ck_assert_ptr_ne(port->poll_word, &port->poll_value);
	b.rig->port->segment->closed = 1;
	to_b->tx.ctl->doing = 1; /* so that a does not revoke the operation */
	side_lost(1);
	ck_assert_ptr_eq(port->poll_word, &port->poll_value);
	rig_poll(a.rig, 100);
}
