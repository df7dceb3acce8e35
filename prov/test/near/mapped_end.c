/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Mappings of device memory that end or change: removed regions, failed calls
 * of the device, faulty and failed peers, limits
 */

#include <sys/syscall.h>
#include <unistd.h>

#include "gpu_side.h"

UNIT_CASE("single copies", gpu_setup_mapped, gpu_teardown);
UNIT_CASE("no single copies", gpu_setup_mapped_asked, gpu_teardown);

/*
 * Operations on a removed region fail, and near_table_unmapped() returns its
 * mapping. A new region with the same key is mapped anew.
 */
UNIT_TEST(removed_region_is_unmapped)
{
	gpu_run(NEAR_WRITE, BOTH, 8, 1, false);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), -EKEYREJECTED);
	gpu_unmap();
	ck_assert_ptr_null(near_table_unmapped(a.table));
	gpu_region();
	gpu_export(GPU_ID + 1);
	gpu_run(NEAR_WRITE, BOTH, 8, 2, false);
	ck_assert_int_eq(gpu.map_calls, 2);
	gpu_paths(2, 2);
}

/*
 * For each write, b registers a region of the same allocation, and removes it
 * afterwards. From the second removal on, near keeps the mapping for
 * NEAR_MAPPING_KEEP_MS, so that the next write need not map again.
 */
UNIT_TEST(repeated_mapping_is_kept)
{
	struct near_mapping *mapping;
	uint32_t i;

	for (i = 1; i < 6; i++) {
		gpu_run(NEAR_WRITE, BOTH, 8, i, false);
		near_table_remove(b.table, GPU_KEY);
		if (i == 1)
			gpu_unmap();
		else
			ck_assert_ptr_null(near_table_unmapped(a.table));
		gpu_region();
		gpu_export(GPU_ID);
	}
	ck_assert_int_eq(gpu.map_calls, 2);
	/* b has registered a region of the allocation again */
	ck_assert_ptr_null(near_table_unmapped(a.table));
	near_table_remove(b.table, GPU_KEY);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	mapping = near_container(to_b->rma->staging->mapped.mappings.next,
				 struct near_mapping, link);
	ck_assert_uint_gt(mapping->gone_ms, 0);
	mapping->gone_ms -= NEAR_MAPPING_KEEP_MS;
	gpu_unmap();
}

/* A mapping is released only after its operations have ended. */
UNIT_TEST(mapping_in_use_is_kept)
{
	gpu.polls = 3;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	side_until(1, false);
	gpu_unmap();
}

/*
 * a has mapped b's region for a write, which waits behind a staged write. b
 * removes the region (_i is 0), or registers it again without an export (1), or
 * with another allocation (2). near must not use the mapping: the writes fail
 * (0), or are staged (1, 2).
 */
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
		gpu_export(GPU_ID + 1);
	side_poll(100);
	ck_assert_uint_eq(a.done, 2);
	ck_assert_int_eq(a.err, _i ? 0 : EKEYREJECTED);
	if (_i)
		ck_assert_mem_eq(gpu.shadow + 8, gpu.shadow + GPU_LEN + 8, 8);
	ck_assert_uint_eq(b.events, _i ? 1 : 0);
	ck_assert_int_eq(gpu.map_calls, 1);
	/* a rejected operation is counted with the path it would have taken */
	gpu_paths(2, !_i);
}

/*
 * A call of the device fails during a write (_i is odd) or read. If the call
 * starts the copy (call 1), near stages this operation and all later ones. If
 * it ends the copy (call 2), the operation fails. There is no call 3.
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
	gpu_paths(1, call > 1);
	gpu_last_path(call > 1 ? NEAR_DEVICE_MAPPED : NEAR_DEVICE_FAILED);
	gpu.fail_at = 0;
	gpu_run(NEAR_WRITE, BOTH, GPU_LEN, 2, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	gpu_paths(2, call > 1 ? 2 : 0);
}

/*
 * The device cannot start a copy, and there is no memory for a stage: mmap()
 * fails with EAGAIN until the process unlocks memory. The operation must not
 * wait for this, but fail with ENOMEM.
 */
UNIT_TEST(operation_without_stage_fails)
{
	gpu_run(NEAR_WRITE, BOTH, 8, 1, false);
	/* mmap() of this file only: sanitizers map memory, too */
	unit_reject_if(SYS_mmap, 4, (uint32_t)a.table->fd,
		       SECCOMP_RET_ERRNO | EAGAIN);
	gpu.fail_at = gpu.calls + 1;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	side_poll(100);
	ck_assert_uint_eq(a.done, 2);
	ck_assert_int_eq(a.err, ENOMEM);
	ck_assert(!near_rma_busy(to_b));
	gpu_paths(2, 1);
}

/*
 * b is faulty. Its region is longer than the mapping (_i is 0), or begins
 * outside the allocation (1, 2). Or the region's export has an invalid index
 * (3), is unused (4), or has a handle that the device rejects (5). near must
 * copy nothing outside the mapping: it stages the operation.
 */
UNIT_ROUNDS(faulty_export_is_staged, 0, 6)
{
	struct near_region_entry *entry = NULL;
	struct near_table *table = b.table;
	struct near_export export = { .id = GPU_ID };
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
		/* an export without a handle */
		ck_assert_int_eq(pwrite(table->fd, &export, sizeof(export),
					near_table_export_at(0)),
				 sizeof(export));
		break;
	}
	gpu_run(NEAR_WRITE, BOTH, GPU_LEN, 1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
	gpu_paths(1, 0);
}

/*
 * For each write, b has a new allocation. At the limit of NEAR_MAPPINGS, near
 * drops the mappings of removed regions. If NEAR_UNMAPPED dropped mappings
 * still wait for their release by the embedder, near drops no others, and
 * stages further writes.
 */
UNIT_TEST(mappings_are_bounded)
{
	uint32_t i;

	for (i = 0; i < NEAR_MAPPINGS + 2; i++) {
		gpu_region_again(GPU_ID + i);
		gpu_run(NEAR_WRITE, BOTH, 8, i + 1, true);
	}
	/* at the limit, near has dropped the mappings of removed regions */
	gpu_paths(i, i);
	ck_assert_int_eq(gpu.map_calls, (int)i);
	ck_assert_uint_eq(a.table->unmapped_count, NEAR_UNMAPPED);
	/* the embedder releases none of these, so near drops no others */
	for (; i < 2 * NEAR_MAPPINGS + 2; i++) {
		gpu_region_again(GPU_ID + i);
		gpu_run(NEAR_WRITE, BOTH, 8, i + 1, true);
	}
	gpu_paths(i, i - 2);
	gpu_last_path(NEAR_DEVICE_LIMIT);
}

/*
 * After _i / 2 polls, a closes while copies of writes (_i is odd) or reads are
 * pending. The close must end all of them: later, the memory might be freed.
 */
UNIT_ROUNDS(close_ends_pending_copies, 0, 2 * 6)
{
	int i;

	gpu.polls = 3;
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(gpu_rma(_i % 2 ? NEAR_WRITE : NEAR_READ, BOTH,
					 i * 100, 100, 0), 0);
	side_poll(_i / 2);
	rig_stop(a.rig);
	ck_assert_int_eq(gpu.under_way, 0);
}

/*
 * b closes while a has pending operations on b's memory: mapped ones, or (_i is
 * 2 or 3) also staged ones. _i is odd: copies end only after a has found the
 * failure. All operations must end, and near_table_unmapped(), not a poll, must
 * return the mapping.
 */
UNIT_ROUNDS(failed_peer_is_unmapped, 0, 4)
{
	int i;

	gpu.polls = 3;
	gpu_run(NEAR_WRITE, BOTH, 100, 1, false);
	for (i = 0; i < 20; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, _i / 2 ? AT_B : BOTH,
					 i * 100, 100, 0), 0);
	gpu.until_failure = _i % 2;
	for (; i < 40; i++)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, i * 100, 100, 0),
				 0);
	rig_stop(b.rig);
	for (i = 0; i < 3000 && near_peer_exists(to_b); i++)
		rig_poll_ms(a.rig, 1);
	ck_assert_uint_eq(a.done, 41);
	/* if _i is 0, all may succeed before a finds the failure */
	if (_i)
		ck_assert_int_eq(a.err, ECONNRESET);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert(!near_rma_busy(to_b));
	gpu_unmap();
}

static void b_has_no_notice(void)
{
	ck_assert_ptr_nonnull(to_b->segment);
}

/*
 * a disconnects from b, which is still open, during a copy. a must keep its
 * claim at b open until the copy ends, so that b does not notice the disconnect
 * earlier.
 */
UNIT_TEST(claim_is_open_until_copy_ends)
{
	gpu.polls = 10000;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	gpu.on_pending = b_has_no_notice;
	near_peer_fail(a.rig->port, to_b);
	while (to_b->segment)
		rig_poll(a.rig, 1);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_uint_eq(a.done, 1);
}

/*
 * For a mapped operation, a sends no request. A reply to it can only be from a
 * faulty peer, so a disconnects.
 */
UNIT_TEST(reply_to_mapped_operation_disconnects)
{
	struct near_peer *to_a = rig_peer(b.rig, a.rig);
	struct near_slot *slot;
	struct near_pooled *op;

	ck_assert_int_eq(rig_send(b.rig, to_a, 1, local, 8), 0);
	rig_until(a.rig, b.rig, 1);
	gpu.polls = 3;
	gpu.until_failure = true;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 100, 0), 0);
	op = near_pool_at(&a.rig->port->rma->ops, 0);
	slot = near_tx_slot_past(&to_a->tx);
	slot->rma_answer = (struct near_answer_slot) {
		.id = near_pool_id(op),
	};
	near_tx_publish(&to_a->tx, slot, near_word(NEAR_KIND_ANSWER, 0, 0, 0));
	rig_until_event(a.rig, NULL, 2, RIG_GONE, 0);
	ck_assert_int_eq(a.rig->warnings, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert(!near_rma_busy(to_b));
}

/*
 * While a copies a message from b's device memory, b closes its port, and may
 * change the memory. a must detect the close when the copy ends, not at its
 * next poll, and report an error instead of the message.
 */
UNIT_TEST(message_of_closed_sender_is_not_completed)
{
	near_table_remove(b.table, GPU_KEY);
	gpu_region_add(GPU_KEY, NEAR_MAY_MESSAGE);
	gpu_export(GPU_ID);
	ck_assert_int_eq(rig_send(b.rig, rig_peer(b.rig, a.rig), 1, local, 8),
			 0);
	side_poll(1);
	gpu.polls = 0;
	ck_assert_int_eq(gpu_rma(NEAR_READ, BOTH, 0, 8, NEAR_RMA_MESSAGE), 0);
	ck_assert_int_eq(gpu.under_way, 1);
	rig_stop(b.rig);
	near_mapped_step(a.rig->port, to_b->rma);
	ck_assert_uint_eq(a.done, 1);
	side_lost(1);
	gpu_paths(1, 1);
}
