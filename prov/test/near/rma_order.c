/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The order of messages and of operations with NEAR_RMA_BEHIND, step by step. b
 * consumes messages only when the test permits it.
 */

#include "near/rma/ops.h"
#include "rma_side.h"

#define LONG (2 * NEAR_STEP)	/* bytes: more than one call or poll copies */
#define NEVER 1000000 /* value of `reject`: b's sink rejects all messages */

static int start(enum near_verb verb, size_t len, uint32_t flags)
{
	return side_start(verb, SIDE_KEY, 0, len, flags);
}

static void message(void)
{
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
}

/* Sends a message that b leaves in its ring. */
static void message_left_in_ring(void)
{
	b.rig->reject = NEVER;
	message();
	side_poll(5);
	ck_assert_uint_eq(b.rig->count, 0);
}

static const size_t lengths[] = { 8, 4096, 100000, LONG };
#define LENGTHS (int)(ARRAY_SIZE(lengths))

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);
UNIT_CASE("by the target", side_setup_asked, side_teardown);

UNIT_ROUNDS(write_after_send, 0, LENGTHS)
{
	size_t len = lengths[_i];

	message_left_in_ring();
	ck_assert_int_eq(start(NEAR_WRITE, len, NEAR_RMA_BEHIND), 0);
	side_poll(50);
	side_untouched();
	ck_assert_uint_eq(a.done, 0);
	b.rig->reject = 0;
	side_until(1, true);
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert_mem_eq(memory, local, len);
}

UNIT_ROUNDS(read_after_send, 0, LENGTHS)
{
	size_t len = lengths[_i];

	message_left_in_ring();
	ck_assert_int_eq(start(NEAR_READ, len, NEAR_RMA_BEHIND), 0);
	side_poll(50);
	ck_assert_uint_eq(a.done, 0);
	/* write to the memory, as the receiver of the message might */
	memset(memory, 55, len);
	b.rig->reject = 0;
	side_until(1, true);
	ck_assert_mem_eq(memory, local, len);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);

/* An operation without NEAR_RMA_BEHIND does not wait for the message. */
UNIT_TEST(unordered_operation_does_not_wait)
{
	message_left_in_ring();
	ck_assert_int_eq(start(NEAR_WRITE, 8, 0), NEAR_RMA_DONE);
	ck_assert_mem_eq(memory, local, 8);
	b.rig->reject = 0;
}

/* After b's reply, operations start at once until the next message is sent. */
UNIT_TEST(reply_lets_operations_start_at_once)
{
	uint64_t tail;

	ck_assert_int_eq(start(NEAR_WRITE, 1999, NEAR_RMA_BEHIND),
			 NEAR_RMA_DONE);
	message();
	ck_assert_int_eq(start(NEAR_WRITE, LONG, NEAR_RMA_BEHIND), 0);
	side_until(1, true);
	tail = to_b->tx.tail;
	ck_assert_int_eq(start(NEAR_WRITE, 1999, NEAR_RMA_BEHIND),
			 NEAR_RMA_DONE);
	ck_assert_int_eq(start(NEAR_READ, 999, NEAR_RMA_BEHIND), NEAR_RMA_DONE);
	ck_assert_uint_eq(to_b->tx.tail, tail);
	message();
	ck_assert_int_eq(start(NEAR_READ, 8, NEAR_RMA_BEHIND), 0);
	side_until(2, true);
}

/*
 * Two operations wait for a message. The reply to the first one shows that b
 * has consumed the message, so that the second one need not wait longer.
 */
UNIT_TEST(reply_covers_pending_operations)
{
	const struct near_rma_args args = { .flags = NEAR_RMA_BEHIND };
	uint64_t mark;

	message();
	ck_assert_int_eq(start(NEAR_WRITE, 1999, NEAR_RMA_BEHIND), 0);
	mark = near_rma_mark(to_b->rma);
	ck_assert_int_eq(start(NEAR_WRITE, 1999, NEAR_RMA_BEHIND), 0);
	ck_assert(near_rma_behind(to_b->rma, &args));
	near_rma_answered_at(to_b->rma, mark);
	ck_assert(!near_rma_behind(to_b->rma, &args));
	message();
	near_rma_answered_at(to_b->rma, mark);
	ck_assert(near_rma_behind(to_b->rma, &args));
	side_until(2, true);
}

/*
 * The last fragments of a large message are in the ring, not yet consumed. An
 * operation with NEAR_RMA_BEHIND must wait until b has consumed them.
 */
UNIT_TEST(operation_waits_for_fragments)
{
	static uint8_t large[LONG], got[LONG];
	const struct iovec iov[2] = { { large, LONG / 2 },
				      { large + LONG / 2, LONG - LONG / 2 } };
	struct near_msg msg = { .len = LONG, .flags = NEAR_TAGGED, .tag = 9 };
	struct near_large how = { .iov = iov, .count = 2, .cookie = large };
	const struct near_tx_op *op;

	memset(large, 4, LONG);
	ck_assert_int_eq(near_send_large(a.rig->port, to_b, &msg, &how), 0);
	side_poll(5);
	ck_assert_uint_eq(b.rig->count, 1);
	rig_take(b.rig, 0, got, LONG);
	op = near_pool_at(&a.rig->port->tx_ops, 0);
	while (op->state != NEAR_TX_SENT) {
		rig_poll(b.rig, 1);
		rig_poll(a.rig, 1);
	}
	ck_assert_int_ne(got[LONG - 1], 4);
	ck_assert_int_eq(near_rma_quiet(a.rig->port, to_b), -EAGAIN);
	ck_assert_int_eq(start(NEAR_WRITE, 8, NEAR_RMA_BEHIND), 0);
	side_until(1, true);
	ck_assert_int_eq(got[LONG - 1], 4);
}

UNIT_TEST(operation_does_not_wait_for_ack)
{
	static uint8_t large[LONG], got[LONG];
	struct near_peer *to_a = rig_peer(b.rig, a.rig);
	uint64_t tail;

	ck_assert_int_eq(rig_send_large(b.rig, to_a, 9, large, LONG, large), 0);
	side_poll(5);
	ck_assert_uint_eq(a.rig->count, 1);
	rig_take(a.rig, 0, got, LONG);
	while (a.rig->count < 2)
		rig_poll(a.rig, 1);	/* b has not consumed the ACK */
	tail = to_b->tx.tail;
	ck_assert_int_eq(start(NEAR_WRITE, 1999, NEAR_RMA_BEHIND),
			 NEAR_RMA_DONE);
	ck_assert_uint_eq(to_b->tx.tail, tail);
	side_poll(50);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);
UNIT_CASE("by the target", side_setup_asked, side_teardown);

/* Messages and operations in turn take effect in the order of the calls. */
UNIT_TEST(messages_and_operations_keep_order)
{
	uint32_t i, done = 0, sent = 0;
	int ret;

	b.rig->reject = NEVER;
	for (i = 0; i < 2000; i++) {
		ret = i % 3 ? rig_send(a.rig, to_b, i, local, 8) :
			      start(NEAR_WRITE, i % 2 ? 64 : 20000,
				    NEAR_RMA_BEHIND);
		if (ret == -EAGAIN) {
			b.rig->reject = 0;
			side_poll(1);
			b.rig->reject = NEVER;
			i--;
			continue;
		}
		sent += !!(i % 3);
		done += !(i % 3) && !ret;
	}
	b.rig->reject = 0;
	side_until(done, true);
	rig_until(b.rig, a.rig, sent);
	for (i = 1; i < sent; i++)
		ck_assert_uint_gt(b.rig->event[i].msg.tag,
				  b.rig->event[i - 1].msg.tag);
}

/*
 * The message after a read with NEAR_RMA_HOLD must wait until the read has
 * ended: the receiver of the message may change the memory.
 */
UNIT_TEST(read_before_send_returns_old_data)
{
	int i, ret;

	memset(memory, 1, LONG);
	ret = start(NEAR_READ, LONG, NEAR_RMA_HOLD);
	ck_assert_int_eq(ret, 0);
	for (i = 0; i < 100000 && !b.rig->count; i++) {
		ret = ret ? ret : rig_send(a.rig, to_b, 1, local, 8);
		if (ret == -EAGAIN)
			ret = 0;
		else
			ret = 1;	/* send once */
		rig_poll(b.rig, 1);
		if (b.rig->count)
			memset(memory, 2, LONG);
		rig_poll(a.rig, 1);
	}
	side_until(1, true);
	for (i = 0; i < (int)LONG && local[i] == 1; i++)
		;
	ck_assert_int_eq(i, LONG);
}

/*
 * A fenced operation of 8 bytes (_i is 0) or more (1) waits until b has
 * received an earlier large message.
 */
UNIT_ROUNDS(fenced_operation_waits_for_all, 0, 2)
{
	static uint8_t large[LONG], got[LONG];

	memset(large, 3, LONG);
	ck_assert_int_eq(rig_send_large(a.rig, to_b, 9, large, LONG, large), 0);
	ck_assert(near_rma_fenced(to_b));
	ck_assert_int_eq(start(NEAR_WRITE, _i ? LONG : 8, NEAR_RMA_FENCE |
			       NEAR_RMA_BEHIND), 0);
	ck_assert_int_eq(start(NEAR_WRITE, 0, NEAR_RMA_FENCE), -EAGAIN);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), -EAGAIN);
	side_poll(100);
	side_untouched();
	ck_assert_uint_eq(a.done, 0);
	ck_assert_uint_eq(b.rig->count, 1);
	rig_take(b.rig, 0, got, LONG);
	side_until(1, true);
	ck_assert_mem_eq(got, large, LONG);
	ck_assert_mem_eq(memory, local, _i ? LONG : 8);
	ck_assert(!near_rma_fenced(to_b));
	ck_assert_int_eq(start(NEAR_WRITE, 0, NEAR_RMA_FENCE), NEAR_RMA_DONE);
}

UNIT_TEST(quiet_ends_when_all_is_complete)
{
	int i;

	ck_assert_int_eq(near_rma_quiet(a.rig->port, to_b), 0);
	message_left_in_ring();
	for (i = 0; i < 50; i++) {
		ck_assert_int_eq(near_rma_quiet(a.rig->port, to_b), -EAGAIN);
		side_poll(1);
	}
	b.rig->reject = 0;
	for (i = 0; i < 1000 && near_rma_quiet(a.rig->port, to_b); i++)
		side_poll(1);
	ck_assert_int_lt(i, 1000);
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert_uint_eq(b.events, 0);
}

/*
 * With NEAR_RMA_BEHIND, near sends an empty write behind the message, to get a
 * reply. b must not report this write as an event. When b closes, the operation
 * that waits for the reply must end.
 */
UNIT_TEST(closed_target_ends_operations)
{
	near_rma_events(b.rig->port, true, true);
	message_left_in_ring();
	ck_assert_int_eq(start(NEAR_WRITE, LONG, NEAR_RMA_BEHIND), 0);
	side_poll(5);
	rig_stop(b.rig);
	side_lost(1);
	ck_assert_uint_eq(b.events, 0);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);

/*
 * b consumes a delegated operation between two messages. b must report the
 * operation's event before the second message. _i is 0: a write with data; 1: a
 * write with data that fails, and has no event; 2: a write, or 3: a read,
 * without data, for which b requires events.
 */
UNIT_LOOP(reports_precede_later_messages, 0, 4)
{
	bool data = _i < 2, fails = _i == 1;

	ck_assert_int_eq(start(NEAR_READ, 1, 0), NEAR_RMA_DONE);
	to_b->rma->skip = 0;
	message();
	near_rma_events(b.rig->port, !data, !data);
	ck_assert_int_eq(start(_i == 3 ? NEAR_READ : NEAR_WRITE, 8,
			       data ? NEAR_RMA_DATA : 0), 0);
	ck_assert_uint_eq(to_b->rma->delegs, 1);
	message();
	if (fails)
		near_table_remove(b.table, SIDE_KEY);
	while (!a.done)
		rig_poll(a.rig, 1);
	ck_assert_int_eq(a.err, fails ? EKEYREJECTED : 0);
	ck_assert_uint_eq(b.events, 0);
	rig_until(b.rig, a.rig, 2);
	ck_assert_uint_eq(b.events, !fails);
	if (fails)
		return;
	ck_assert_uint_eq(b.events_at, 1);
	ck_assert_uint_eq(b.event.len, 8);
	ck_assert(b.event.write == (_i != 3) && b.event.has_data == data);
	rig_poll(b.rig, 10);
	ck_assert_uint_eq(b.events, 1);
}
