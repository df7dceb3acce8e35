/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * After a request or reply that no correct peer sends, the port must disconnect
 * the peer with one warning, and must write no byte.
 */

#include "rma_side.h"

static const struct bad_request {
	const char *name;
	struct near_rma_slot slot;
} bad_requests[] = {
	{ "verb", { .verb = 200, .key = SIDE_KEY, .id = 1, .total = 8,
		    .len = 8 } },
	{ "offset beyond", { .verb = NEAR_WRITE, .key = SIDE_KEY, .id = 1,
			     .total = 8, .offset = 9 } },
	{ "part beyond", { .verb = NEAR_WRITE, .key = SIDE_KEY, .id = 1,
			   .total = 8, .offset = 4, .len = 5 } },
	{ "long part", { .verb = NEAR_WRITE, .key = SIDE_KEY, .id = 1,
			 .total = 1u << 31, .len = 1u << 31 } },
	{ "longer than it can be", { .verb = NEAR_COMPARE, .key = SIDE_KEY,
				     .id = 1, .op = NEAR_CSWAP,
				     .type = NEAR_UINT8, .total = UINT32_MAX,
				     .len = UINT32_MAX } },
	{ "more than a slot has", { .verb = NEAR_WRITE, .key = SIDE_KEY,
				    .id = 1, .flags = NEAR_RMA_INLINE,
				    .len = NEAR_RMA_BYTES + 1 } },
	{ "write that reads", { .verb = NEAR_WRITE, .key = SIDE_KEY,
				.id = 1, .op = NEAR_ATOMIC_READ,
				.total = SIDE_LARGE, .len = SIDE_LARGE } },
	{ "write that reads a slot", { .verb = NEAR_WRITE, .key = SIDE_KEY,
				       .id = 1, .op = NEAR_ATOMIC_READ,
				       .flags = NEAR_RMA_INLINE,
				       .len = NEAR_RMA_BYTES + 1 } },
	{ "operation", { .verb = NEAR_ATOMIC, .key = SIDE_KEY, .id = 1,
			 .op = 99, .type = NEAR_UINT64, .total = 8,
			 .len = 8 } },
	{ "type", { .verb = NEAR_ATOMIC, .key = SIDE_KEY, .id = 1,
		    .op = NEAR_SUM, .type = 99, .total = 8, .len = 8 } },
	{ "half a number", { .verb = NEAR_ATOMIC, .key = SIDE_KEY, .id = 1,
			     .op = NEAR_SUM, .type = NEAR_UINT64, .total = 12,
			     .len = 12 } },
	{ "no number", { .verb = NEAR_FETCH, .key = SIDE_KEY, .id = 1,
			 .op = NEAR_SUM, .type = NEAR_UINT64 } },
	{ "compares nothing", { .verb = NEAR_FETCH, .key = SIDE_KEY, .id = 1,
				.op = NEAR_CSWAP, .type = NEAR_UINT64,
				.total = 8, .len = 8 } },
	{ "reads, without a result", { .verb = NEAR_ATOMIC, .key = SIDE_KEY,
				       .id = 1, .op = NEAR_ATOMIC_READ,
				       .type = NEAR_UINT64, .total = 8,
				       .len = 8 } },
};

#define BAD_REQUESTS (ARRAY_SIZE(bad_requests))

static void publish(enum near_kind kind, const struct near_slot *what)
{
	struct near_tx *tx = &to_b->tx;
	struct near_slot *slot = near_tx_slot_past(tx);

	slot->tag = SIDE_START;
	memcpy(slot->bytes, what->bytes, sizeof(slot->bytes));
	near_tx_publish(tx, slot, near_word(kind, 0, 0, 0));
}

/* Asserts that b has disconnected a. */
static void expect_disconnected(const char *name)
{
	rig_poll_ms(b.rig, 10);
	rig_until(b.rig, NULL, 2);
	ck_assert_msg(b.rig->event[1].kind == RIG_GONE, "%s", name);
	ck_assert_int_eq(b.rig->warnings, 1);
	side_untouched();
}

UNIT_CASE("peer", side_setup_asked, side_teardown);

UNIT_ROUNDS(hostile_request, 0, BAD_REQUESTS)
{
	struct near_slot slot = { .rma = bad_requests[_i].slot };

	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, NULL, 1);
	publish(NEAR_KIND_RMA, &slot);
	expect_disconnected(bad_requests[_i].name);
}

/* a replies to operations that b has not started. */
UNIT_ROUNDS(invalid_reply_disconnects, 0, 4)
{
	static const struct near_answer_slot bad[] = {
		{ .id = 1ull << 32 }, { .id = 7, .len = 8 },
		{ .id = 1ull << 32, .len = UINT32_MAX },
		{ .id = 3ull << 32, .err = 5 },
	};
	struct near_slot slot = { .rma_answer = bad[_i] };

	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, NULL, 1);
	publish(NEAR_KIND_ANSWER, &slot);
	expect_disconnected("answer");
}

/*
 * a's reply to b's read has more bytes than requested (_i is 0), or is not for
 * the next part (1). b must store no byte of the reply.
 */
UNIT_LOOP(invalid_result_disconnects, 0, 2)
{
	static uint8_t beyond[64];
	struct near_rma_args args = {
		.verb = NEAR_READ, .addr = SIDE_START, .key = SIDE_KEY,
		.local = { &(struct iovec){ beyond, 8 }, 1 }, .len = 8,
	};
	struct near_answer_slot answer = { .len = _i ? 4 : 9, .offset = _i };
	struct near_peer *to_a = rig_peer(b.rig, a.rig);
	const struct near_region_entry entry = {
		.key = SIDE_KEY, .start = SIDE_START,
		.memory = (uintptr_t)memory, .len = 64, .access = 3 };
	uint64_t data_end;

	memset(beyond, 0x5a, sizeof(beyond));
	ck_assert_int_eq(near_table_add(a.table, &entry), 0);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, NULL, 1);
	ck_assert_int_eq(near_rma(b.rig->port, to_a, &args), 0);
	answer.id = (uint64_t)((struct near_pooled *)near_pool_at(
		&b.rig->port->rma->ops, 0))->use << 32;
	memset(near_tx_data(&to_b->tx, answer.len, &data_end), 1, answer.len);
	to_b->tx.dtail = data_end;
	publish(NEAR_KIND_ANSWER, &(struct near_slot) { .rma_answer = answer });
	expect_disconnected("result");
	/* b gets no completion, because the operation had no cookie */
	ck_assert_uint_eq(b.done, 0);
	ck_assert_uint_eq(beyond[0], 0x5a);
	ck_assert_uint_eq(beyond[8], 0x5a);
}

/*
 * a sends requests without end, and consumes no reply. b must disconnect a
 * after about NEAR_RMA_REPLIES_MAX requests, not store replies without limit.
 */
UNIT_TEST(endless_requests_disconnect)
{
	struct near_slot slot = { .rma = { .verb = NEAR_READ, .key = SIDE_KEY,
					   .total = SIDE_LARGE } };
	uint32_t i;

	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, NULL, 1);
	for (i = 0; i < 2 * NEAR_RMA_REPLIES_MAX && b.rig->count < 2; i++) {
		slot.rma.id = i + 1;
		while (!near_tx_slot(&to_b->tx) && b.rig->count < 2)
			rig_poll(b.rig, 1);
		if (b.rig->count < 2)
			publish(NEAR_KIND_RMA, &slot);
		rig_poll(b.rig, 1);
	}
	expect_disconnected("appetite");
	ck_assert_uint_le(i, NEAR_RMA_REPLIES_MAX + 256 + 64);
}
