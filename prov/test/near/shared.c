/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Mappings of device memory that need a file descriptor ("descriptor" in this
 * file). a requests the descriptor from b by the fd exchange, and stages
 * operations until the reply.
 */

#include <unistd.h>

#include "gpu_side.h"
#include "near/link/fdx.h"

static unsigned int files;	/* open files before the first request */

static void setup(void)
{
	gpu_setup_direct();
	gpu_export_fd(GPU_ID);
	ck_assert_int_eq(near_listen(a.rig->port, -1), 0);
	ck_assert_int_eq(near_listen(b.rig->port, -1), 0);
	/* opens the stages */
	gpu_run(NEAR_WRITE, AT_B, 8, 1, true);
	files = rig_files();
}

UNIT_CASE("descriptors", setup, gpu_teardown);

/* Waits for earlier operations, then writes from device to device memory. */
static void write_one(void)
{
	uint32_t done;

	while (near_rma_busy(to_b))
		side_poll(1);
	done = a.done;
	rig_fill(gpu.shadow + GPU_LEN, GPU_LEN, done);
	gpu_run(NEAR_WRITE, BOTH, GPU_LEN, done + 1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + GPU_LEN, GPU_LEN);
}

static struct near_mapping *first(void)
{
	return near_container(to_b->rma->staging->mapped.mappings.next,
			      struct near_mapping, link);
}

static void poll_ms(void)
{
	rig_poll_ms(b.rig, 1);
	rig_poll_ms(a.rig, 1);
}

/* Polls until b has handled a request, and a has handled the reply. */
static void until_reply(void)
{
	int i;

	for (i = 0; i < 5000 && first()->fd < 0 && !first()->failed; i++)
		poll_ms();
	ck_assert(first()->fd >= 0 || first()->failed);
}

/* Operations are staged until the descriptor has arrived, then mapped. */
UNIT_TEST(descriptor_is_requested)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	gpu_last_path(NEAR_DEVICE_WAITS);
	side_until(2, true);
	gpu_paths(2, 0);
	until_reply();
	ck_assert_uint_eq(rig_files(), files + 1);
	write_one();
	gpu_last_path(NEAR_DEVICE_SHARED);
	write_one();
	ck_assert_int_eq(gpu.share_calls, 1);
	ck_assert_int_eq(gpu.map_calls, 1);
	ck_assert_uint_eq(rig_files(), files);
	gpu_paths(4, 2);
}

/* near needs a mapping, and so a descriptor, for each queue. */
UNIT_TEST(each_queue_gets_descriptor)
{
	static void *const second[] = { &gpu.second };
	const struct iovec iov = { gpu.base + GPU_LEN, 8 };
	int i;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	ck_assert_int_eq(side_rma(.verb = NEAR_WRITE, .key = GPU_KEY,
				  .local = { &iov, 1, second }), 0);
	for (i = 0; i < 5000 && rig_files() < files + 2; i++)
		poll_ms();
	ck_assert_int_eq(gpu.share_calls, 2);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	ck_assert_int_eq(side_rma(.verb = NEAR_WRITE, .key = GPU_KEY,
				  .local = { &iov, 1, second }), 0);
	side_until(5, true);
	gpu_paths(5, 2);
	ck_assert_uint_eq(rig_files(), files);
}

/* Discards b's next request. False: there is none. */
static bool lose_request(void)
{
	struct near_fdx_msg msg;

	if (!near_fdx_next(b.rig->port, &msg))
		return false;
	ck_assert_int_eq(msg.fdx.kind, NEAR_FDX_GPU_REQUEST);
	near_fdx_msg_drop(&msg);
	return true;
}

/*
 * If a request is lost, near repeats it after NEAR_MAPPING_REQUEST_MS, not with
 * each operation.
 */
UNIT_TEST(lost_request_is_repeated)
{
	uint64_t start;
	bool repeated;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	ck_assert(lose_request());
	/* repeats this if the thread did not run for NEAR_MAPPING_REQUEST_MS */
	do {
		start = first()->requested_ms = duo_now_ms();
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
		repeated = lose_request();
	} while (repeated && duo_now_ms() - start >= NEAR_MAPPING_REQUEST_MS);
	ck_assert(!repeated);
	first()->requested_ms -= NEAR_MAPPING_REQUEST_MS;
	write_one();
	until_reply();
	write_one();
	ck_assert_int_eq(gpu.share_calls, 1);
	gpu_last_path(NEAR_DEVICE_SHARED);
}

/* A reply counts as lost if this process has no free descriptor. */
UNIT_TEST(reply_without_free_descriptor_is_lost)
{
	rlim_t limit;
	int i;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	for (i = 0; i < 5000 && !gpu.share_calls; i++)
		rig_poll_ms(b.rig, 1);
	limit = unit_limit(RLIMIT_NOFILE, 0);
	for (i = 0; i < 5000 && !a.rig->port->denied_fdx && !first()->failed;
	     i++)
		rig_poll_ms(a.rig, 1);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert(a.rig->port->denied_fdx && !first()->failed);
	first()->requested_ms -= NEAR_MAPPING_REQUEST_MS;
	write_one();
	until_reply();
	write_one();
	ck_assert_int_eq(gpu.share_calls, 2);
	gpu_last_path(NEAR_DEVICE_SHARED);
}

/*
 * a can get no descriptor: b's device has none (_i is 0), or b's port (1) or
 * a's port (2) has no socket. near tries once, and stages all operations.
 */
UNIT_ROUNDS(missing_descriptor_is_staged, 0, 3)
{
	uint32_t i;

	gpu.share_fails = _i == 0;
	if (_i)
		near_fdx_close((_i == 1 ? b : a).rig->port);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
		until_reply();
		side_until(2 + i, true);
	}
	gpu_last_path(NEAR_DEVICE_FAILED);
	ck_assert_int_eq(gpu.share_calls, !_i);
	ck_assert_int_eq(gpu.map_calls, 0);
	gpu_paths(4, 0);
}

/* near closes a descriptor that the device cannot map, and does not retry. */
UNIT_TEST(descriptor_of_failed_mapping_is_closed)
{
	gpu.map_err = -EIO;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	until_reply();
	write_one();
	write_one();
	gpu_last_path(NEAR_DEVICE_FAILED);
	ck_assert_int_eq(gpu.map_calls, 1);
	ck_assert_uint_eq(rig_files(), files);
}

/*
 * After a's request, b removes the region before its reply (_i is 0) or after
 * it (1), or registers the region with a new allocation before its reply (2).
 * No descriptor of the old allocation may be left.
 */
UNIT_ROUNDS(descriptor_of_removed_region_is_closed, 0, 3)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	if (_i == 1)
		until_reply();
	near_table_remove(b.table, GPU_KEY);
	if (_i == 2) {
		gpu_region();
		gpu_export_fd(GPU_ID + 1);
	}
	if (_i != 1)
		until_reply();
	ck_assert_int_eq(gpu.share_calls, _i == 1);
	ck_assert_ptr_null(near_table_unmapped(a.table));
	ck_assert_uint_eq(rig_files(), files);
	ck_assert_uint_eq(to_b->rma->staging->mapped.count, 0);
	if (_i != 2)
		return;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	until_reply();
	write_one();
	gpu_last_path(NEAR_DEVICE_SHARED);
}

/* b closes before its reply (_i is 0) or after it (1). */
UNIT_ROUNDS(descriptor_of_failed_peer_is_closed, 0, 2)
{
	int i;

	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	if (_i)
		until_reply();
	rig_stop(b.rig);
	for (i = 0; i < 3000 && near_peer_exists(to_b); i++)
		rig_poll_ms(a.rig, 1);
	ck_assert(!near_peer_exists(to_b));
	ck_assert_ptr_null(to_b->rma->staging);
	ck_assert_uint_le(rig_files(), files);
}

/* a closes before b has replied. b's reply to a closed port is no error. */
UNIT_TEST(closed_port_gets_no_reply)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	rig_stop(a.rig);
	rig_poll_ms(b.rig, 20);
	ck_assert_int_eq(b.rig->warnings, 0);
}

static void send_fdx(struct rig *from, struct near_fdx fdx)
{
	fdx.from = from->port->addr;
	fdx.to = (from == a.rig ? b : a).rig->port->addr.nonce;
	ck_assert_int_eq(near_fdx_post(from->port, &fdx, &gpu.fd), 0);
}

/*
 * b sends a descriptor that a has not requested (_i is 0), one of another
 * allocation (1), or a second one (2). a must close it.
 */
UNIT_ROUNDS(unexpected_descriptor_is_closed, 0, 3)
{
	struct near_fdx fdx = {
		.kind = NEAR_FDX_GPU_REPLY, .count = 1,
		.id = GPU_ID + (_i == 1),
	};

	if (_i)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	if (_i == 2)
		until_reply();
	send_fdx(b.rig, fdx);
	rig_poll_ms(a.rig, 20);
	ck_assert_uint_eq(rig_files(), files + (_i == 2));
	ck_assert_int_eq(gpu.map_calls, 0);
}

/*
 * A request has an unknown key (_i is 0), or the id of another allocation (1);
 * or the region has no export, and the requested id is not 0 (2) or is 0 (3). b
 * must reply without a descriptor.
 */
UNIT_ROUNDS(faulty_request_gets_no_descriptor, 0, 4)
{
	struct near_fdx fdx = {
		.kind = NEAR_FDX_GPU_REQUEST, .key = GPU_KEY, .id = GPU_ID,
	};
	struct near_fdx_msg msg;
	int i;

	fdx.key += _i == 0;
	fdx.id += _i == 1;
	if (_i > 1) {
		gpu_region_again(0);
		fdx.id = _i == 2 ? GPU_ID : 0;
	}
	send_fdx(a.rig, fdx);
	for (i = 0; i < 5000 && !near_fdx_next(a.rig->port, &msg); i++)
		rig_poll_ms(b.rig, 1);
	ck_assert_int_lt(i, 5000);
	ck_assert_int_eq(msg.fdx.kind, NEAR_FDX_GPU_REPLY);
	ck_assert_uint_eq(msg.fds, 0);
	near_fdx_msg_drop(&msg);
	ck_assert_int_eq(gpu.share_calls, 0);
}

UNIT_CASE("memory", setup, gpu_teardown);

/* Adds a second region of b, in an allocation with this id. */
static void add_region(uint64_t id)
{
	struct near_region_entry entry = *near_table_find(b.table, GPU_KEY);
	const struct near_export export = {
		.handle = "handle", .id = id, .base = (uintptr_t)gpu.base,
	};

	entry.key++;
	ck_assert_int_eq(near_table_add(b.table, &entry), 0);
	ck_assert_int_eq(near_table_export(b.table, entry.key, &export), 0);
}

static int begin_second(void)
{
	return side_rma(.verb = NEAR_WRITE, .key = GPU_KEY + 1,
			.local = GPU_BUF(GPU_LEN, 8));
}

/*
 * One of two allocations is mapped, and the device has no memory to map the
 * other one. near drops the mapping of the first allocation if it is unused (_i
 * is 0), but not if it is in use (1). near keeps the descriptor of the second
 * allocation, and maps this allocation after the embedder has released a
 * mapping.
 */
UNIT_ROUNDS(scarce_memory_drops_unused_mappings, 0, 2)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	until_reply();
	add_region(GPU_ID + 1);
	ck_assert_int_eq(begin_second(), 0);
	side_until(3, true);
	gpu_last_path(NEAR_DEVICE_MAPPED);
	ck_assert_int_eq(gpu.maps, 1);
	gpu.map_err = -ENOMEM;
	if (_i)
		ck_assert_int_eq(begin_second(), 0);
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, BOTH, 0, 8, 0), 0);
	gpu_last_path(NEAR_DEVICE_MEMORY);
	ck_assert_uint_eq(a.table->unmapped_count, !_i);
	side_until(4 + (uint32_t)_i, true);
	/* near does not try again until a mapping is released */
	gpu.map_err = 0;
	write_one();
	gpu_last_path(NEAR_DEVICE_MEMORY);
	ck_assert_int_eq(gpu.map_calls, 2);
	ck_assert_uint_eq(rig_files(), files + 1);
	if (_i)
		near_table_remove(b.table, GPU_KEY + 1);
	gpu_unmap();
	write_one();
	gpu_last_path(NEAR_DEVICE_SHARED);
	ck_assert_int_eq(gpu.map_calls, 3);
	ck_assert_uint_eq(rig_files(), files);
}
