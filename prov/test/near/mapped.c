/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Mapped operations: RMA of b's device memory, which a has mapped. Operations
 * that cannot use the mapping must be staged. gpu_side.h has the fake device.
 */

#include "gpu_side.h"

static const size_t lengths[] = { 1, 4096, GPU_LEN };

UNIT_CASE("single copies", gpu_setup_mapped, gpu_teardown);
UNIT_CASE("no single copies", gpu_setup_mapped_asked, gpu_teardown);

/*
 * A mapped write (_i is odd) or read, of each length, ends although the test
 * does not poll the target.
 */
UNIT_ROUNDS(mapped_memory_needs_no_target, 0, 2 * (int)ARRAY_SIZE(lengths))
{
	size_t len = lengths[_i / 2];

	gpu_last_path(NEAR_DEVICE_NONE);
	gpu_run(_i % 2 ? NEAR_WRITE : NEAR_READ, BOTH, len, 1, false);
	ck_assert_mem_eq(gpu_at_a(BOTH), gpu_at_b(BOTH), len);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
	gpu_paths(1, 1);
	gpu_last_path(NEAR_DEVICE_MAPPED);
}

/* 40 writes to one allocation use one mapping, NEAR_MAPPED_OPS at a time. */
UNIT_TEST(allocation_is_mapped_once)
{
	int i;

	for (i = 0; i < 40; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, i, 100, 0), 0);
	ck_assert_int_eq(gpu.under_way, NEAR_MAPPED_OPS);
	side_until(40, false);
	ck_assert_int_eq(gpu.map_calls, 1);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	gpu_paths(40, 40);
}

UNIT_TEST(several_buffers_are_copied)
{
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, 300000 }, { local, 0 },
		{ gpu.base + GPU_LEN + 300000, 500000 },
	};

	ck_assert_int_eq(side_rma(.verb = NEAR_READ, .addr = 3, .key = GPU_KEY,
				  .local = { iov, 3, on_gpu }), 0);
	side_until(1, false);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, gpu.shadow + 3, 800000);
	gpu_paths(1, 1);
}

/*
 * If a's buffer is pinned host memory, the device copies between the buffer and
 * the mapping, and the target is not polled. _i is odd: a write; _i is 2 or 3:
 * a long operation.
 */
UNIT_ROUNDS(pinned_memory_needs_no_target, 0, 2 * 2)
{
	size_t len = _i / 2 ? GPU_LEN : 8;

	gpu.host = &gpu;
	gpu_run(_i % 2 ? NEAR_WRITE : NEAR_READ, AT_B, len, 1, false);
	ck_assert_mem_eq(local, gpu_at_b(AT_B), len);
	gpu_paths(1, 1);
	gpu_last_path(NEAR_DEVICE_MAPPED);
}

/*
 * With NEAR_RMA_COPY, a may change its buffer after the call. near must copy
 * the buffer to the stage, although it is pinned.
 */
UNIT_TEST(copied_buffer_is_staged)
{
	uint8_t was[100];

	gpu.host = &gpu;
	memcpy(was, local, sizeof(was));
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_B, 0, sizeof(was),
				 NEAR_RMA_COPY), 0);
	memset(local, 0, sizeof(was));
	side_until(1, true);
	ck_assert_mem_eq(gpu_at_b(AT_B), was, sizeof(was));
	gpu_last_path(NEAR_DEVICE_HOST);
}

/*
 * The last write waits until fewer than NEAR_MAPPED_OPS copies are pending.
 * Meanwhile a's buffer is unpinned (_i is 0), or pinned for another queue (1).
 * This write must be staged. When the buffer is pinned again, a later read uses
 * the mapping.
 */
UNIT_ROUNDS(unpinned_memory_is_staged, 0, 2)
{
	int i;

	gpu.host = &gpu;
	for (i = 0; i <= NEAR_MAPPED_OPS; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_B, 0, 4096, 0), 0);
	gpu.host = _i ? &gpu.second : NULL;
	side_until(NEAR_MAPPED_OPS + 1, true);
	ck_assert_mem_eq(gpu_at_b(AT_B), local, 4096);
	gpu_paths(NEAR_MAPPED_OPS + 1, NEAR_MAPPED_OPS);
	gpu.host = &gpu;
	gpu_run(NEAR_READ, AT_B, 4096, NEAR_MAPPED_OPS + 2, false);
	gpu_last_path(NEAR_DEVICE_MAPPED);
}

/*
 * The device fails to start the copy of pinned host memory. near stages this
 * write only; the next one uses the mapping.
 */
UNIT_TEST(failed_copy_of_host_memory_is_staged)
{
	gpu.host = &gpu;
	gpu.fail_at = 1;
	gpu_run(NEAR_WRITE, AT_B, 8, 1, true);
	gpu_last_path(NEAR_DEVICE_FAILED);
	gpu_run(NEAR_WRITE, AT_B, 8, 2, false);
	ck_assert_mem_eq(local, gpu_at_b(AT_B), 8);
	gpu_paths(2, 1);
}

/*
 * One end of the operation is host memory that is not pinned: at b (_i is 2 or
 * 3) or at a (0 or 1). near maps nothing, and stages the operation. _i is odd:
 * a write.
 */
UNIT_ROUNDS(host_memory_is_staged, 0, 2 * 2)
{
	int where = _i / 2 ? AT_A : AT_B;

	gpu_run(_i % 2 ? NEAR_WRITE : NEAR_READ, where, GPU_LEN, 1, true);
	ck_assert_mem_eq(gpu_at_a(where), gpu_at_b(where), GPU_LEN);
	ck_assert_int_eq(gpu.map_calls, 0);
	gpu_paths(1, 0);
	gpu_last_path(NEAR_DEVICE_HOST);
}

/* Writes of all kinds, mapped or not, take effect in the order of the calls. */
UNIT_TEST(operations_keep_order)
{
	static const int where[] = { BOTH, AT_B, BOTH, BOTH, AT_B, AT_B };
	int i, n = (int)ARRAY_SIZE(where);
	const uint8_t *last;

	for (i = 0; i < 30; i++) {
		rig_fill(gpu.shadow + GPU_LEN, 100 * i, i);
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, where[i % n], 0,
					 i % 4 ? 100 : GPU_LEN, 0), 0);
		ck_assert_int_ge(gpu_rma(NEAR_WRITE, 0, 0, 100, 0), 0);
	}
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 50, 0), 0);
	while (near_rma_busy(to_b))
		side_poll(1);
	last = gpu_at_a(BOTH);
	ck_assert_mem_eq(gpu.shadow, last, 50);
	ck_assert_mem_eq(gpu.shadow + 50, local + 50, 50);
	ck_assert_int_eq(a.err, 0);
	ck_assert_uint_gt(gpu_mapped_ops(), 10);
}

/*
 * A read by the device's second queue starts only after the end of an earlier
 * write by the first queue: only copies in one queue are made in order.
 */
UNIT_TEST(operations_of_two_queues_keep_order)
{
	static void *const second[] = { &gpu.second };
	const struct iovec iov = { gpu.base + GPU_LEN + 5000, 4096 };

	gpu.polls = 20;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 4096, 0), 0);
	ck_assert_int_eq(side_rma(.verb = NEAR_READ, .key = GPU_KEY,
				  .local = { &iov, 1, second }), 0);
	ck_assert_int_eq(gpu.under_way, 1);
	side_until(2, false);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN + 5000, gpu.shadow, 4096);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, gpu.shadow, 4096);
	ck_assert_int_eq(gpu.map_calls, 2);
	gpu_paths(2, 2);
}

UNIT_TEST(buffers_of_two_queues_are_staged)
{
	static void *const both[] = { &gpu, &gpu.second };
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, 50 }, { gpu.base + GPU_LEN + 50, 50 },
	};

	ck_assert_int_eq(side_rma(.verb = NEAR_WRITE, .key = GPU_KEY,
				  .local = { iov, 2, both }), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, 100);
	gpu_last_path(NEAR_DEVICE_QUEUES);
	gpu_paths(1, 0);
}

UNIT_TEST(event_follows_all_bytes)
{
	gpu_event_follows();
	gpu_paths(1, 1);
}

/* b requires events of reads, not of writes: only the read causes an event. */
UNIT_TEST(target_counts_reads)
{
	near_rma_events(b.rig->port, true, false);
	ck_assert_int_eq(gpu_rma(NEAR_READ, BOTH, 0, 100, 0), 0);
	gpu_run(NEAR_WRITE, BOTH, 100, 2, false);
	side_poll(3);
	ck_assert_uint_eq(b.events, 1);
	ck_assert(!b.event.write);
	gpu_paths(2, 2);
}

/*
 * b has not consumed a's message, so an operation with NEAR_RMA_BEHIND must
 * wait for it, and is staged. After the message, such an operation is mapped.
 */
UNIT_TEST(operation_follows_message)
{
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_BEHIND), 0);
	side_until(1, true);
	ck_assert_uint_eq(b.rig->count, 1);
	gpu_paths(1, 0);
	gpu_last_path(NEAR_DEVICE_BEHIND);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_BEHIND), 0);
	side_until(2, false);
	gpu_paths(2, 1);
}

/* A fenced operation starts after the end of earlier ones. */
UNIT_TEST(fenced_operation_waits)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_FENCE), 0);
	ck_assert_int_eq(gpu.under_way, 1);
	side_until(2, false);
	gpu_paths(2, 2);
}

/*
 * A write beyond the end of the region, and one to a removed region, fail with
 * the same errors as staged operations.
 */
UNIT_TEST(missing_right_is_rejected)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, GPU_LEN - 7, 8, 0),
			 -EACCES);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), -EKEYREJECTED);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(gpu.map_calls, 0);
}

/*
 * The device cannot map an allocation. near tries this once, and stages all
 * operations on the allocation.
 */
UNIT_TEST(failed_mapping_is_remembered)
{
	uint32_t i;

	gpu.map_err = -EIO;
	for (i = 1; i < 4; i++) {
		gpu_run(NEAR_WRITE, BOTH, GPU_LEN, i, true);
		ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	}
	ck_assert_int_eq(gpu.map_calls, 1);
	gpu_paths(3, 0);
	gpu_last_path(NEAR_DEVICE_FAILED);
	/* near tries to map a new allocation */
	gpu.map_err = 0;
	gpu_region_again(GPU_ID + 1);
	gpu_run(NEAR_WRITE, BOTH, GPU_LEN, 4, false);
	ck_assert_int_eq(gpu.map_calls, 2);
	gpu_paths(4, 1);
}

/*
 * near maps nothing if near_device.queue is NULL (_i is 0), or if the region
 * has no export (1). The target's table accepts no export with id 0 (2).
 */
UNIT_ROUNDS(unsupported_mapping_is_staged, 0, 3)
{
	if (_i == 0)
		side_device.queue = NULL;
	if (_i > 0)
		gpu_region_again(0);
	if (_i == 2)
		ck_assert_int_eq(near_table_export(b.table, GPU_KEY,
				 &(struct near_export) { .id = 0 }), -ENOENT);
	gpu_run(NEAR_WRITE, BOTH, 8, 1, true);
	ck_assert_int_eq(gpu.map_calls, 0);
	gpu_paths(1, 0);
	gpu_last_path(_i ? NEAR_DEVICE_NO_EXPORT : NEAR_DEVICE_OFF);
}
