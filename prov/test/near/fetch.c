/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Fetches: a receives a message of b by an RMA read. Either the message is in
 * b's device memory (NEAR_DEVICE), or a large message in b's host memory is
 * received into a's device memory.
 */

#include "gpu_side.h"

#define MESSAGES_KEY 78u	/* region that permits only fetches */

static void setup(void)
{
	gpu_setup_direct();
	gpu_region_add(MESSAGES_KEY, NEAR_MAY_MESSAGE);
}

static void setup_asked(void)
{
	gpu_setup_asked();
	gpu_region_add(MESSAGES_KEY, NEAR_MAY_MESSAGE);
}

/* Reads from a region of b into a's device memory. */
static int get(uint64_t key, size_t len, uint32_t flags)
{
	return side_rma(.verb = NEAR_READ, .flags = flags, .key = key,
			.local = GPU_BUF(GPU_LEN, len), .cookie = gpu.base);
}

static int fetch(size_t len)
{
	return get(MESSAGES_KEY, len, NEAR_RMA_MESSAGE);
}

static void expect_fetched(size_t len)
{
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, gpu.shadow, len);
}

UNIT_CASE("single copies", setup, gpu_teardown);
UNIT_CASE("no single copies", setup_asked, gpu_teardown);

UNIT_ROUNDS(message_is_fetched, 0, 2)
{
	const size_t len = _i ? GPU_LEN : 1;

	near_rma_events(b.rig->port, true, true);
	ck_assert_int_eq(fetch(len), 0);
	side_until(1, true);
	expect_fetched(len);
	ck_assert_uint_eq(b.events, 0);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
}

/* A right to fetch permits no other reads. A right to read permits no fetch. */
UNIT_TEST(rights_are_separate)
{
	ck_assert_int_eq(get(MESSAGES_KEY, 8, 0), -EACCES);
	ck_assert_int_eq(get(GPU_KEY, 8, NEAR_RMA_MESSAGE), -EACCES);
	ck_assert_int_eq(get(SIDE_KEY, 8, NEAR_RMA_MESSAGE), -EACCES);
	ck_assert_int_eq(get(5, 8, NEAR_RMA_MESSAGE), -EKEYREJECTED);
	ck_assert_int_eq(fetch(GPU_LEN + 1), -EACCES);
	ck_assert(!near_rma_busy(to_b));
}

/*
 * A hostile initiator sends requests that its rights do not permit. b must
 * reject them by its private table. Only the last request of ask[] is
 * permitted.
 */
UNIT_ROUNDS(target_checks_rights, 0, 5)
{
	static const struct {
		uint64_t key;
		uint8_t flags;
	} ask[] = {
		{ MESSAGES_KEY, 0 }, { GPU_KEY, NEAR_RMA_MESSAGE },
		{ SIDE_KEY, NEAR_RMA_MESSAGE }, { 5, NEAR_RMA_MESSAGE },
		{ MESSAGES_KEY, NEAR_RMA_MESSAGE },
	};
	uint8_t *chunk;

	/* opens the stage */
	ck_assert_int_eq(fetch(NEAR_STAGE_CHUNK), 0);
	side_until(1, true);
	chunk = to_b->rma->staging->ours.memory + 7 * NEAR_STAGE_CHUNK;
	side_request((struct near_rma_slot) {
		.key = ask[_i].key, .total = 8, .len = 8, .verb = NEAR_READ,
		.op = 7, .flags = NEAR_RMA_STAGED | ask[_i].flags,
		.type = (uint8_t)to_b->rma->staging->ours.index,
	});
	rig_poll(b.rig, 20);
	ck_assert_int_eq(b.rig->warnings, 0);
	/* only a permitted request copies b's bytes, which are not 0 */
	ck_assert_int_eq(memcmp(chunk, "\0\0\0\0\0\0\0", 8) != 0, _i == 4);
}

/* b must disconnect an initiator that sends a write with NEAR_RMA_MESSAGE. */
UNIT_TEST(fetching_write_disconnects)
{
	ck_assert_int_eq(fetch(8), 0);
	side_until(1, true);
	side_request((struct near_rma_slot) {
		.key = MESSAGES_KEY, .total = 8, .len = 8, .verb = NEAR_WRITE,
		.flags = NEAR_RMA_STAGED | NEAR_RMA_MESSAGE,
	});
	while (!b.rig->warnings)
		side_poll(1);
}

/*
 * A message to b may overtake a's pending fetch (_i is 1), but not a pending
 * read of the embedder (0).
 */
UNIT_ROUNDS(messages_overtake_fetch, 0, 2)
{
	gpu.polls = 1000;
	ck_assert_int_eq(_i ? fetch(GPU_LEN) : get(GPU_KEY, GPU_LEN, 0), 0);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), _i ? 0 : -EAGAIN);
	side_poll(1);
	ck_assert_uint_eq(b.rig->count, _i);
	ck_assert_uint_eq(a.done, 0);
	gpu.polls = 0;
	side_until(1, true);
	expect_fetched(GPU_LEN);
	ck_assert_int_eq(rig_send(a.rig, to_b, 2, local, 8), 0);
}

/*
 * a's fenced write waits until b has received a's large message. a's fetch must
 * overtake the write: if both ports had such writes, and their fetches waited,
 * a and b would block each other.
 */
UNIT_TEST(fetch_overtakes_fenced_write)
{
	ck_assert_int_eq(rig_send_large(a.rig, to_b, 1, local, 100000, local),
			 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, 0, 0, 100000, NEAR_RMA_FENCE), 0);
	ck_assert_int_eq(fetch(GPU_LEN), 0);
	ck_assert_int_eq(fetch(4096), 0);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), -EAGAIN);
	side_until(2, true);
	expect_fetched(GPU_LEN);
	ck_assert_ptr_eq(a.cookie, gpu.base);
	ck_assert_uint_eq(b.rig->count, 1);
	rig_take(b.rig, 0, memory, 100000);
	side_until(3, true);
}

/*
 * b fails _i polls after the start of a's fetch. Device copies to a's buffer
 * may still be pending: a's receive must end only after these copies.
 */
UNIT_ROUNDS(failure_ends_fetch, 0, 12)
{
	struct near_rndv rndv = { .id = 1 };
	struct near_rx_op *op;
	uint8_t *there = gpu.shadow + GPU_LEN;

	gpu.polls = 4;
	ck_assert_int_eq(rig_send(b.rig, rig_peer(b.rig, a.rig), 1, local, 8),
			 0);
	side_poll(1);
	op = near_recv_begin(a.rig->port, to_b, &rndv, local);
	ck_assert_ptr_nonnull(op);
	ck_assert_int_eq(fetch(GPU_LEN), 0);
	side_poll(_i);
	rig_stop(b.rig);
	side_lost(1);
	ck_assert_int_eq(gpu.under_way, 0);
	memset(there, 77, GPU_LEN);
	near_recv_end(a.rig->port, op, a.err);
	rig_ended(a.rig, a.rig->count - 1, RIG_RECEIVED, ECONNRESET);
	rig_poll(a.rig, 100);
	ck_assert_uint_eq(there[0], 77);
	ck_assert_mem_eq(there, there + 1, GPU_LEN - 1);
}

/* b sends len bytes of host memory. Returns the RTS that a has received. */
static const struct near_rndv *send_host(uint8_t *from, size_t len)
{
	rig_fill(from, len, 8);
	ck_assert_int_eq(rig_send_large(b.rig, rig_peer(b.rig, a.rig), 1, from,
					len, from), 0);
	rig_until_event(a.rig, b.rig, 1, RIG_RNDV, 0);
	return &a.rig->event[0].msg.rndv;
}

static int fetch_by_id(uint64_t id, size_t len)
{
	return side_rma(.verb = NEAR_READ, .addr = id - SIDE_START,
			.flags = NEAR_RMA_MESSAGE | NEAR_RMA_BY_ID,
			.local = GPU_BUF(GPU_LEN, len));
}

/*
 * A message in b's host memory is fetched to a's device memory: only its first
 * 20000 bytes (_i is 0), or all bytes (1).
 */
UNIT_ROUNDS(host_message_is_fetched, 0, 2)
{
	const size_t len = _i ? GPU_LEN : 20000;
	const struct near_rndv *rndv = send_host(local, GPU_LEN);
	struct near_rx_op *op = near_recv_begin(a.rig->port, to_b, rndv, &a);

	ck_assert_int_eq(fetch_by_id(rndv->id, len), 0);
	gpu_last_path(NEAR_DEVICE_HOST);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, local, len);
	near_recv_end(a.rig->port, op, 0);
	rig_until_event(b.rig, a.rig, 1, RIG_SENT, 0);
	rig_ended(a.rig, 1, RIG_RECEIVED, 0);
}

/*
 * A fetch by id must fail, and copy nothing to a's memory, if
 * - no message of b has this id, as if the message had ended (_i is 0)
 * - the message is shorter than the fetch (1)
 * - the message is in device memory (2)
 */
UNIT_ROUNDS(unknown_message_is_not_fetched, 0, 3)
{
	const struct near_rndv *rndv = send_host(local, 20000);
	uint8_t *there = gpu.shadow + GPU_LEN;
	struct near_tx_op *op = near_pool_find(&b.rig->port->tx_ops, rndv->id);

	memset(there, 77, 20001);
	op->device = _i == 2;
	ck_assert_int_eq(fetch_by_id(rndv->id + !_i, 20000 + (_i == 1)), 0);
	side_fails(EKEYREJECTED);
	ck_assert_uint_eq(there[0], 77);
	ck_assert_mem_eq(there, there + 1, 20000);
	op->device = false;
	rig_take(a.rig, 0, memory, 20000);
	rig_until(b.rig, a.rig, 1);
}

/* a cannot fetch a message that b has sent to another peer. */
UNIT_TEST(message_of_other_peer_is_not_fetched)
{
	struct rig *other = rig_open(false);
	struct near_peer *to_other = rig_peer(b.rig, other);
	const struct near_rndv *rndv;

	ck_assert_int_eq(rig_send_large(b.rig, to_other, 1, local, 20000,
					local), 0);
	rig_until(other, b.rig, 1);
	rndv = &other->event[0].msg.rndv;
	ck_assert_int_eq(fetch_by_id(rndv->id, 20000), 0);
	side_fails(EKEYREJECTED);
	rig_take(other, 0, memory, 20000);
	rig_until(b.rig, other, 1);
	rig_close(other);
}
