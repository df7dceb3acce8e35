/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Reads and writes of device memory that the initiator has mapped. */

#include <unistd.h>

#include "gpu_side.h"

#define BOTH (AT_A | AT_B)
#define ID 5u

static void setup_mapped_direct(void)
{
	gpu_setup_direct();
	gpu_export(ID);
}

static void setup_mapped_asked(void)
{
	gpu_setup_asked();
	gpu_export(ID);
}

/* Asserts the number of operations with device memory, and of the mapped. */
static void paths(uint64_t all, uint64_t mapped)
{
	ck_assert_uint_eq(near_rma_staged(a.rig->port), all);
	ck_assert_uint_eq(near_rma_mapped(a.rig->port), mapped);
}

static void last_path(enum near_device_path path)
{
	ck_assert_int_eq(near_rma_device_path(to_b), path);
}

static const size_t lengths[] = { 1, 4096, GPU_LEN };

UNIT_CASE("single copies", setup_mapped_direct, gpu_teardown);
UNIT_CASE("no single copies", setup_mapped_asked, gpu_teardown);

/* The target takes no part: it is not polled. */
UNIT_ROUNDS(mapped_memory_needs_no_target, 0, 2 * (int)ARRAY_SIZE(lengths))
{
	size_t len = lengths[_i / 2];

	last_path(NEAR_DEVICE_NONE);
	ck_assert_int_eq(gpu_rma(_i % 2 ? NEAR_WRITE : NEAR_READ, BOTH, 0, len,
				 0), 0);
	side_until(1, false);
	ck_assert_mem_eq(gpu_at_a(BOTH), gpu_at_b(BOTH), len);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
	paths(1, 1);
	last_path(NEAR_DEVICE_MAPPED);
}

/* The allocation is mapped once, for all operations and regions in it. */
UNIT_TEST(allocation_is_mapped_once)
{
	int i;

	for (i = 0; i < 40; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, i, 100, 0), 0);
	ck_assert_int_eq(gpu.under_way, NEAR_MAPPED_OPS);
	side_until(40, false);
	ck_assert_int_eq(gpu.map_calls, 1);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	paths(40, 40);
}

/* One operation with several buffers. */
UNIT_TEST(several_buffers_are_copied)
{
	static void *const all[] = { &gpu, NULL, &gpu };
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, 300000 }, { local, 0 },
		{ gpu.base + GPU_LEN + 300000, 500000 },
	};
	const struct near_rma_args args = {
		.verb = NEAR_READ, .addr = SIDE_START + 3, .key = GPU_KEY,
		.local = { iov, 3, all }, .len = 800000, .about = 1,
	};

	ck_assert_int_eq(near_rma(a.rig->port, to_b, &args), 0);
	side_until(1, false);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, gpu.shadow + 3, 800000);
	paths(1, 1);
}

/* With a buffer in host memory at one end, the operation is staged. */
UNIT_ROUNDS(host_memory_is_staged, 0, 2 * 2)
{
	int where = _i / 2 ? AT_A : AT_B;

	ck_assert_int_eq(gpu_rma(_i % 2 ? NEAR_WRITE : NEAR_READ, where, 0,
				 GPU_LEN, 0), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu_at_a(where), gpu_at_b(where), GPU_LEN);
	ck_assert_int_eq(gpu.map_calls, 0);
	paths(1, 0);
	last_path(NEAR_DEVICE_HOST);
}

/* Mapped, staged and other operations take effect in the order of the calls. */
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
	ck_assert_uint_gt(near_rma_mapped(a.rig->port), 10);
}

/* A read starts after the write before it, which another queue copies. */
UNIT_TEST(operations_of_two_queues_keep_order)
{
	static void *const second[] = { &gpu.second };
	const struct iovec iov = { gpu.base + GPU_LEN + 5000, 4096 };
	const struct near_rma_args args = {
		.verb = NEAR_READ, .addr = SIDE_START, .key = GPU_KEY,
		.local = { &iov, 1, second }, .len = 4096, .about = 1,
	};

	gpu.polls = 20;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 4096, 0), 0);
	ck_assert_int_eq(near_rma(a.rig->port, to_b, &args), 0);
	ck_assert_int_eq(gpu.under_way, 1);
	side_until(2, false);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN + 5000, gpu.shadow, 4096);
	ck_assert_mem_eq(gpu.shadow + GPU_LEN, gpu.shadow, 4096);
	ck_assert_int_eq(gpu.map_calls, 2);
	paths(2, 2);
}

/* Buffers of two queues in one operation: it is staged. */
UNIT_TEST(buffers_of_two_queues_are_staged)
{
	static void *const both[] = { &gpu, &gpu.second };
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, 50 }, { gpu.base + GPU_LEN + 50, 50 },
	};
	const struct near_rma_args args = {
		.verb = NEAR_WRITE, .addr = SIDE_START, .key = GPU_KEY,
		.local = { iov, 2, both }, .len = 100, .about = 1,
	};

	ck_assert_int_eq(near_rma(a.rig->port, to_b, &args), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, 100);
	last_path(NEAR_DEVICE_QUEUES);
	paths(1, 0);
}

/* A remote event, and a message, arrive after the bytes before them. */
UNIT_TEST(event_follows_all_bytes)
{
	int i, ret;

	gpu.polls = 50;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, NEAR_RMA_DATA),
			 0);
	while ((ret = rig_send(a.rig, to_b, 1, local, 8)) == -EAGAIN) {
		side_poll(1);
		if (b.events)
			ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN,
					 GPU_LEN);
	}
	ck_assert_int_eq(ret, 0);
	for (i = 0; i < 1000 && !b.rig->count; i++)
		side_poll(1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert_uint_eq(b.events, 1);
	ck_assert_uint_eq(b.events_at, 0);
	ck_assert(b.event.has_data && b.event.write);
	ck_assert_uint_eq(b.event.data, 4242);
	ck_assert_uint_eq(b.event.len, GPU_LEN);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	paths(1, 1);
}

/* The target requires events of reads: it gets one for each. */
UNIT_TEST(target_counts_reads)
{
	near_rma_events(b.rig->port, true, false);
	ck_assert_int_eq(gpu_rma(NEAR_READ, BOTH, 0, 100, 0), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 100, 0), 0);
	side_until(2, false);
	side_poll(3);
	ck_assert_uint_eq(b.events, 1);
	ck_assert(!b.event.write);
	paths(2, 2);
}

/*
 * An operation that must follow a message which the target has not consumed is
 * staged; later ones are mapped.
 */
UNIT_TEST(operation_follows_message)
{
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_BEHIND), 0);
	side_until(1, true);
	ck_assert_uint_eq(b.rig->count, 1);
	paths(1, 0);
	last_path(NEAR_DEVICE_BEHIND);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_BEHIND), 0);
	side_until(2, false);
	paths(2, 1);
}

/* A fenced operation starts after the end of those before it. */
UNIT_TEST(fenced_operation_waits)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, NEAR_RMA_FENCE), 0);
	ck_assert_int_eq(gpu.under_way, 1);
	side_until(2, false);
	paths(2, 2);
}

/* The same immediate errors as with the stage. */
UNIT_TEST(missing_right_is_rejected)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, GPU_LEN - 7, 8, 0),
			 -EACCES);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), -EKEYREJECTED);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(gpu.map_calls, 0);
}

/* The allocation cannot be mapped: near tries once, then uses the stage. */
UNIT_TEST(failed_mapping_is_remembered)
{
	uint32_t i;

	gpu.map_fails = true;
	for (i = 1; i < 4; i++) {
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, 0), 0);
		side_until(i, true);
		ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	}
	ck_assert_int_eq(gpu.map_calls, 1);
	paths(3, 0);
	last_path(NEAR_DEVICE_REFUSED);
	/* a new allocation is tried anew */
	gpu.map_fails = false;
	near_table_remove(b.table, GPU_KEY);
	gpu_region();
	gpu_export(ID + 1);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, 0), 0);
	side_until(4, false);
	ck_assert_int_eq(gpu.map_calls, 2);
	paths(4, 1);
}

/* Without near_device.queue(), or an id, near does not map. */
UNIT_ROUNDS(unsupported_mapping_is_staged, 0, 3)
{
	if (_i == 0)
		side_device.queue = NULL;
	if (_i > 0) {
		near_table_remove(b.table, GPU_KEY);
		gpu_region();
	}
	if (_i == 2)
		ck_assert_int_eq(near_table_export(b.table, GPU_KEY,
				 &(struct near_export) { .id = 0 }), -ENOENT);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	side_until(1, true);
	ck_assert_int_eq(gpu.map_calls, 0);
	paths(1, 0);
	last_path(_i ? NEAR_DEVICE_NO_EXPORT : NEAR_DEVICE_OFF);
}

/*
 * The peer removes its region: its operations fail, and near passes the mapping
 * on. A new region with the same key is mapped anew.
 */
UNIT_TEST(removed_region_is_unmapped)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	side_until(1, false);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), -EKEYREJECTED);
	ck_assert_ptr_eq(near_table_unmapped(a.table), &gpu.maps);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	gpu.maps--;
	gpu_region();
	gpu_export(ID + 1);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	side_until(2, false);
	ck_assert_int_eq(gpu.map_calls, 2);
	paths(2, 2);
}

/*
 * The peer registers a region of one allocation for each transfer: from the
 * second time on, the mapping stays for a while.
 */
UNIT_TEST(repeated_mapping_is_kept)
{
	struct near_mapping *mapping;
	uint32_t i;

	for (i = 1; i < 6; i++) {
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
		side_until(i, false);
		near_table_remove(b.table, GPU_KEY);
		if (i == 1)
			ck_assert_ptr_eq(near_table_unmapped(a.table),
					 &gpu.maps);
		else
			ck_assert_ptr_null(near_table_unmapped(a.table));
		gpu_region();
		gpu_export(ID);
	}
	gpu.maps--;
	ck_assert_int_eq(gpu.map_calls, 2);
	/* the region in use is another one of the allocation */
	ck_assert_ptr_null(near_table_unmapped(a.table));
	near_table_remove(b.table, GPU_KEY);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	mapping = near_container(to_b->rma->mapped->mappings.next,
				 struct near_mapping, link);
	ck_assert_uint_gt(mapping->gone_ms, 0);
	mapping->gone_ms -= NEAR_MAPPING_KEEP_MS;
	ck_assert_ptr_eq(near_table_unmapped(a.table), &gpu.maps);
	gpu.maps--;
}

/* A mapping with pending operations is passed on after their end. */
UNIT_TEST(mapping_in_use_is_kept)
{
	gpu.polls = 3;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	side_until(1, false);
	ck_assert_ptr_eq(near_table_unmapped(a.table), &gpu.maps);
	gpu.maps--;
}

/* The peer changes its region while operations wait in the queue. */
UNIT_ROUNDS(region_changed_before_copy, 0, 3)
{
	gpu.polls = 10;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_B, 0, 8, 0), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 8, 8, NEAR_RMA_DATA), 0);
	ck_assert_int_eq(gpu.map_calls, 1);
	near_table_remove(b.table, GPU_KEY);
	if (_i > 0)
		gpu_region();
	if (_i > 1)
		gpu_export(ID + 1);
	side_poll(100);
	ck_assert_uint_eq(a.done, 2);
	ck_assert_int_eq(a.err, _i ? 0 : EKEYREJECTED);
	if (_i)
		ck_assert_mem_eq(gpu.shadow + 8, gpu.shadow + GPU_LEN + 8, 8);
	ck_assert_uint_eq(b.events, _i ? 1 : 0);
	ck_assert_int_eq(gpu.map_calls, 1);
	paths(2, 0);
}

/*
 * Call _i of the device library fails. At the start of a copy, near uses the
 * stage from then on; later, the operation fails.
 */
UNIT_ROUNDS(failed_driver_call, 0, 2 * 3)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	int call = 1 + _i / 2;

	gpu.fail_at = call;
	ck_assert_int_eq(gpu_rma(verb, BOTH, 0, GPU_LEN, NEAR_RMA_DATA), 0);
	side_poll(100);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, call == 2 ? EIO : 0);
	ck_assert_uint_eq(b.events, call == 2 || verb == NEAR_READ ?
			  verb == NEAR_READ && call != 2 : 1);
	paths(1, call > 1);
	last_path(call > 1 ? NEAR_DEVICE_MAPPED : NEAR_DEVICE_REFUSED);
	gpu.fail_at = 0;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, 0), 0);
	side_until(2, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	paths(2, call > 1 ? 2 : 0);
}

/*
 * A faulty peer: its export does not belong to its region, or the region is
 * longer than what the device has mapped. near copies within the mapping only.
 */
UNIT_ROUNDS(faulty_export_is_staged, 0, 6)
{
	struct near_region_entry *entry = NULL;
	struct near_table *table = b.table;
	struct near_export export = { .id = ID };
	uint32_t i;

	for (i = 0; i < 1u << table->bits; i++) {
		entry = (struct near_region_entry *)(table->shared + 1) + i;
		if (entry->used && entry->key == GPU_KEY)
			break;
	}
	ck_assert_uint_lt(i, 1u << table->bits);
	switch (_i) {
	case 0: gpu.map_len = GPU_LEN - 1; break;
	case 1: entry->memory -= 1; break;
	case 2: entry->memory = UINT64_MAX - 10; break;
	case 3: entry->export_index = NEAR_EXPORTS; break;
	case 4: entry->export_index = 1; break;
	case 5:
		/* the handle is not one of the device */
		ck_assert_int_eq(pwrite(table->fd, &export, sizeof(export),
					near_table_export_at(0)),
				 sizeof(export));
		break;
	}
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, GPU_LEN, 0), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	paths(1, 0);
}

/* More allocations than near_mapped has space for: the others are staged. */
UNIT_TEST(mappings_are_bounded)
{
	uint32_t i;

	for (i = 0; i < NEAR_MAPPINGS + 2; i++) {
		near_table_remove(b.table, GPU_KEY);
		gpu_region();
		gpu_export(ID + i);
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
		side_until(i + 1, true);
	}
	/* at the limit, near has looked for regions that were removed */
	paths(i, i);
	ck_assert_int_eq(gpu.map_calls, (int)i);
	ck_assert_uint_eq(a.table->unmapped_count, NEAR_UNMAPPED);
	/* until the embedder releases these, old mappings stay */
	for (; i < 2 * NEAR_MAPPINGS + 2; i++) {
		near_table_remove(b.table, GPU_KEY);
		gpu_region();
		gpu_export(ID + i);
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
		side_until(i + 1, true);
	}
	paths(i, i - 2);
	last_path(NEAR_DEVICE_LIMIT);
}

/* a closes while copies are pending: nothing is copied afterwards. */
UNIT_ROUNDS(close_ends_pending_copies, 0, 2 * 6)
{
	int i;

	gpu.polls = 3;
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(gpu_rma(_i % 2 ? NEAR_WRITE : NEAR_READ, BOTH,
					 i * 100, 100, 0), 0);
	side_poll(_i / 2);
	near_close(a.rig->port);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_int_eq(near_open(&a.rig->port, &(struct near_attr) {
		.sink = b.rig->port->sink, .ctx = a.rig,
		.memory = NEAR_MEMORY }), 0);
}

/*
 * The peer closes: operations fail, and near passes on the mapping, which it
 * does not release in a poll.
 */
UNIT_ROUNDS(failed_peer_is_unmapped, 0, 4)
{
	int i;

	gpu.polls = 3;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 100, 0), 0);
	side_until(1, false);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, _i / 2 ? AT_B : BOTH,
					 i * 100, 100, 0), 0);
	gpu.until_failure = _i % 2;
	for (; i < 40; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, i * 100, 100, 0),
				 0);
	near_close(b.rig->port);
	b.rig->port = NULL;
	for (i = 0; i < 3000 && near_peer_lives(to_b); i++)
		rig_poll_ms(a.rig, 1);
	ck_assert_uint_eq(a.done, 41);
	/* without staged operations all may end before the failure is found */
	if (_i)
		ck_assert_int_eq(a.err, ECONNRESET);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_ptr_eq(near_table_unmapped(a.table), &gpu.maps);
	gpu.maps--;
	side_reopen();
}
