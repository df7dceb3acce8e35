/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Reads and writes of device memory through the stage */

#include <unistd.h>

#include "gpu_side.h"

static const size_t lengths[] = {
	1, 8, 4096, NEAR_STAGE_CHUNK, NEAR_STAGE_CHUNK + 1, GPU_LEN,
};
#define LENGTHS (int)(ARRAY_SIZE(lengths))

UNIT_CASE("single copies", gpu_setup_direct, gpu_teardown);
UNIT_CASE("no single copies", gpu_setup_asked, gpu_teardown);

UNIT_ROUNDS(writes_and_reads, 0, 2 * 3 * LENGTHS)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	int where = 1 + _i / 2 % 3;
	size_t len = lengths[_i / 6];

	gpu_run(verb, where, len, 1, true);
	ck_assert_mem_eq(gpu_at_a(where), gpu_at_b(where), len);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
	ck_assert_int_eq(near_port_has_work(b.rig->port), 0);
}

/* One operation has buffers in device memory and in host memory. */
UNIT_TEST(mixed_buffers_are_copied)
{
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, 300000 }, { local, 5 },
		{ gpu.base + GPU_LEN + 300000, 500000 },
	};

	ck_assert_int_eq(side_rma(.verb = NEAR_WRITE, .key = GPU_KEY,
				  .local = { iov, 3, on_gpu }), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, 300000);
	ck_assert_mem_eq(gpu.shadow + 300000, local, 5);
	ck_assert_mem_eq(gpu.shadow + 300005, gpu.shadow + GPU_LEN + 300000,
			 500000);
}

UNIT_TEST(pending_operations_keep_order)
{
	int i;

	for (i = 0; i < 20; i++) {
		rig_fill(gpu.shadow + GPU_LEN + i * 1000, 1000, i);
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, i * 1000,
					 i % 5 ? 1000 : GPU_LEN - i * 1000, 0),
				 0);
	}
	ck_assert_int_eq(gpu_rma(NEAR_READ, AT_B, 0, GPU_LEN, 0), 0);
	gpu_run(NEAR_WRITE, 0, GPU_LEN, 22, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	ck_assert_mem_eq(memory, gpu.shadow, GPU_LEN);
}

/* Starts an operation between a's host memory and the start of b's region. */
static void start_at(enum near_verb verb, uint8_t *at, size_t len)
{
	ck_assert_int_eq(side_rma(.verb = verb, .key = GPU_KEY,
				  .local = SIDE_BUF(at, len)), 0);
}

/*
 * b's device has no queues. Two operations on the same bytes must nevertheless
 * take effect in order. _i is 0: write, write; 1: write, read; 2: read, write.
 */
UNIT_ROUNDS(unordered_device_keeps_order, 0, 3)
{
	enum near_verb first = _i == 2 ? NEAR_READ : NEAR_WRITE;
	enum near_verb second = _i == 1 ? NEAR_READ : NEAR_WRITE;
	uint8_t *other = local + 4096;
	uint8_t before[4096], written[4096];

	memcpy(before, gpu.shadow, sizeof(before));
	memcpy(written, _i ? local : other, sizeof(written));
	gpu.unordered = true;
	start_at(first, local, sizeof(before));
	start_at(second, other, sizeof(before));
	side_until(2, true);
	if (_i == 2) {
		ck_assert_mem_eq(local, before, sizeof(before));
		ck_assert_mem_eq(gpu.shadow, other, sizeof(before));
		return;
	}
	ck_assert_mem_eq(gpu.shadow, written, sizeof(written));
	ck_assert_mem_eq(other, written, sizeof(written));
}

UNIT_TEST(event_follows_all_bytes)
{
	gpu_event_follows();
}

/*
 * A write beyond the region or to a removed one fails. An atomic fails with
 * -EOPNOTSUPP: the embedder executes atomics on device memory.
 */
UNIT_TEST(missing_right_is_rejected)
{
	uint64_t one = 1;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, GPU_LEN - 7, 8, 0),
			 -EACCES);
	ck_assert_int_eq(side_rma(.verb = NEAR_ATOMIC, .key = GPU_KEY,
				  .local = SIDE_BUF(&one, 8), .op = NEAR_SUM,
				  .type = NEAR_UINT64), -EOPNOTSUPP);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, 0, 8, 0),
			 -EKEYREJECTED);
	ck_assert(!near_rma_busy(to_b));
}

/* The region is closed during a write: the remaining parts are rejected. */
UNIT_TEST(region_closed_during_write_is_rejected)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, 0, GPU_LEN,
				 NEAR_RMA_DATA), 0);
	side_poll(4);
	near_table_remove(b.table, GPU_KEY);
	side_poll(200);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, EKEYREJECTED);
	ck_assert_uint_eq(b.events, 0);
	gpu_run(NEAR_WRITE, AT_A, 8, 2, true);
}

/*
 * Call 1 + _i / 2 of the device fails, during a write (_i is odd) or read. Only
 * this operation fails. The operation makes at most 40 calls.
 */
UNIT_ROUNDS(failed_driver_call_fails_operation, 0, 2 * 42)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;

	gpu.fail_at = 1 + _i / 2;
	ck_assert_int_eq(gpu_rma(verb, AT_A | AT_B, 0, GPU_LEN, NEAR_RMA_DATA),
			 0);
	side_poll(300);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, gpu.calls < gpu.fail_at ? 0 : EIO);
	if (verb == NEAR_WRITE)
		ck_assert_uint_eq(b.events, !a.err);
	if (gpu.fail_at > 40)
		ck_assert_int_eq(a.err, 0);
	gpu.fail_at = 0;
	gpu_run(NEAR_WRITE, BOTH, GPU_LEN, 2, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
}

/*
 * Call _i + 1 of the device fails, during one of two writes. This write has no
 * event; the other one has.
 */
UNIT_ROUNDS(failed_write_has_no_event, 0, 44)
{
	gpu.fail_at = _i + 1;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, 0, GPU_LEN,
				 NEAR_RMA_DATA), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, 0, 8, NEAR_RMA_DATA),
			 0);
	side_poll(400);
	ck_assert_uint_eq(a.done, 2);
	ck_assert_uint_eq(b.events, gpu.calls < gpu.fail_at ? 2 : 1);
}

/*
 * An empty write with data completes, causes an event, and delays no later
 * message. The flags AT_B and AT_A in 1 + _i select the ends with device
 * memory.
 */
UNIT_ROUNDS(empty_write_completes, 0, 3)
{
	int ended = gpu_rma(NEAR_WRITE, 1 + _i, 0, 0, NEAR_RMA_DATA);

	ck_assert_int_ge(ended, 0);
	side_poll(20);
	ck_assert_uint_eq(a.done + ended, 1);
	ck_assert_uint_eq(b.events, 1);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
}

/*
 * After _i / 4 polls, a (_i / 2 is even) or b closes while copies of a write
 * (_i is odd) or read are pending. After the close, no copy may be pending.
 */
UNIT_ROUNDS(close_ends_pending_copies, 0, 2 * 2 * 12)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	bool target = _i / 2 % 2;
	int i;

	gpu.polls = 3;
	ck_assert_int_eq(gpu_rma(verb, AT_A | AT_B, 0, GPU_LEN, 0), 0);
	side_poll(_i / 4);
	rig_stop((target ? b : a).rig);
	if (target) {
		side_lost(1);
	} else {
		for (i = 0; i < 3000 && gpu.pinned; i++)
			rig_poll_ms(b.rig, 1);
		ck_assert_int_eq(gpu.pinned, 0);
	}
	ck_assert_int_eq(gpu.under_way, 0);
}

static void a_keeps_stage(void)
{
	gpu.on_pending = NULL;
	rig_poll(a.rig, 20);
	ck_assert_uint_eq(a.table->stages[0], 1);
}

/*
 * b closes while its device copies to the stage. a must not free the stage
 * before the copy has ended.
 */
UNIT_TEST(stage_is_kept_until_copy_ends)
{
	gpu.polls = 5;
	ck_assert_int_eq(gpu_rma(NEAR_READ, AT_B, 0, NEAR_STAGE_CHUNK, 0), 0);
	rig_poll(b.rig, 2);
	ck_assert_int_eq(gpu.under_way, 1);
	gpu.on_pending = a_keeps_stage;
	rig_stop(b.rig);
	ck_assert_ptr_null(gpu.on_pending);
	while (!a.done)
		rig_poll_ms(a.rig, 1);
	ck_assert_int_eq(a.err, ECONNRESET);
	ck_assert_uint_eq(a.table->stages[0], 0);
}

/*
 * The target has no free file descriptor to open the initiator's region table,
 * and rejects an operation. When a file descriptor is free again, the next
 * operation succeeds.
 */
UNIT_TEST(target_without_descriptors)
{
	const int ended = gpu_rma(NEAR_WRITE, 0, 0, 8, 0);
	const uint32_t first = ended ? 0 : 1;
	rlim_t limit;

	ck_assert_int_ge(ended, 0);
	side_until(first, true);
	/*
	 * to send a message, b attaches to a ring of a, which b's replies then
	 * use
	 */
	ck_assert_int_eq(rig_send(b.rig, rig_peer(b.rig, a.rig), 1, local, 8),
			 0);
	limit = unit_limit(RLIMIT_NOFILE, 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_B, 0, 8, 0), 0);
	side_poll(20);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert_uint_eq(a.done, first + 1);
	ck_assert_int_eq(a.err, EMFILE);
	gpu_run(NEAR_WRITE, AT_B, 8, first + 2, true);
	ck_assert_mem_eq(gpu.shadow, local, 8);
}

/* The target's process is exiting: the kernel has closed its descriptors. */
UNIT_TEST(table_of_exiting_target_cannot_be_read)
{
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	close(b.table->fd);
	b.table->fd = -1;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, 8, 0), -ECONNRESET);
	ck_assert(near_peer_exited(to_b));
}

UNIT_TEST(missing_stage_returns_enospc)
{
	memset(a.table->stages, 0xff, sizeof(a.table->stages));
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, 8, 0), -ENOSPC);
	memset(a.table->stages, 0, sizeof(a.table->stages));
	gpu_run(NEAR_WRITE, AT_A, 8, 1, true);
}

UNIT_ROUNDS(invalid_request_disconnects, 0, 6)
{
	struct near_rma_slot slot = {
		.key = GPU_KEY, .total = 8, .len = 8, .verb = NEAR_WRITE,
		.flags = NEAR_RMA_STAGED,
	};

	gpu_run(NEAR_WRITE, BOTH, 8, 1, true);
	switch (_i) {
	case 0: slot.op = NEAR_STAGE_CHUNKS; break;
	case 1: slot.len = NEAR_STAGE_CHUNK + 1; break;
	case 2: slot.len = 9; break;
	case 3: slot.offset = UINT64_MAX; break;
	case 4: slot.verb = NEAR_FETCH; break;
	case 5: slot.len = 0; break;
	}
	side_request(slot);
	side_poll(10);
	ck_assert_int_gt(b.rig->warnings, 0);
}

/* Between two polls, a process copies at most NEAR_STEP bytes by its CPU. */
UNIT_TEST(polls_copy_limited_bytes)
{
	const struct near_staging *staging;
	const uint8_t *from = gpu_at_a(AT_A);
	size_t was, now = 0;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_B, 0, GPU_LEN, 0), 0);
	staging = to_b->rma->staging;
	do {
		was = now;
		now = staging->filled * NEAR_STAGE_CHUNK;
		ck_assert_uint_le(now - was, NEAR_STEP);
		rig_poll(a.rig, 1);
	} while (now < NEAR_STAGE);
	side_until(1, true);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, GPU_LEN, 0), 0);
	rig_poll(a.rig, 10);
	ck_assert_uint_eq(staging->filled - staging->freed, NEAR_STAGE_CHUNKS);
	for (now = 0; now < NEAR_STAGE;) {
		was = now;
		rig_poll(b.rig, 1);
		while (now < NEAR_STAGE &&
		       !memcmp(memory + now, from + now, NEAR_STAGE_CHUNK))
			now += NEAR_STAGE_CHUNK;
		ck_assert_uint_le(now - was, NEAR_STEP);
	}
	side_until(2, true);
	ck_assert_mem_eq(memory, from, GPU_LEN);
}
