/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads and writes of device memory, which near must not access itself. The
 * fake device copies asynchronously: after a number of polls, one of them
 * copies the bytes and returns that the copy has ended.
 */

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "near/rma/ops.h"
#include "near/rma/stage.h"
#include "rma_side.h"

#define GPU_KEY 77u
/* needs more chunks than a stage has */
#define LEN (9 * NEAR_STAGE_CHUNK + 777)

static struct gpu {
	uint8_t *base, *shadow;	/* 2 * LEN bytes: b's region, then a's buffer */
	int polls;		/* number of polls before a copy has ended */
	int fail_at;		/* number of the call that fails, from 1 */
	int calls;
	int under_way, pinned;
} gpu;

struct copy {
	uint8_t *to;
	const uint8_t *from;
	size_t len;
	int polls;
};

static uint8_t *reach(const void *at)
{
	size_t offset = (size_t)((const uint8_t *)at - gpu.base);

	return offset < 2 * LEN ? gpu.shadow + offset : NULL;
}

static bool fails(void)
{
	return ++gpu.calls == gpu.fail_at;
}

static int gpu_start(void *device, void *to, const void *from, size_t len,
		     void **copy_out)
{
	uint8_t *in = reach(to), *out = reach(from);
	struct copy *copy = malloc(sizeof(*copy));

	ck_assert_ptr_eq(device, &gpu);
	ck_assert_int_ne(!in, !out);
	ck_assert_uint_gt(len, 0);
	if (fails()) {
		free(copy);
		return -EIO;
	}
	*copy = (struct copy) { in ? in : to, out ? out : from, len,
				gpu.polls };
	gpu.under_way++;
	*copy_out = copy;
	return 0;
}

static int gpu_done(void *opaque)
{
	struct copy *copy = opaque;
	bool lost;

	if (copy->polls-- > 0)
		return -EAGAIN;
	lost = fails();
	if (!lost)
		memcpy(copy->to, copy->from, copy->len);
	gpu.under_way--;
	free(copy);
	return lost ? -EIO : 0;
}

static void *gpu_pin(void *device, void *memory_, size_t len)
{
	ck_assert_uint_eq(len, NEAR_STAGE);
	gpu.pinned++;
	return &gpu;
}

static void gpu_unpin(void *pin)
{
	gpu.pinned--;
}

static void gpu_open(void)
{
	int fd = memfd_create("gpu", MFD_CLOEXEC);

	ck_assert_int_eq(ftruncate(fd, 2 * LEN), 0);
	gpu = (struct gpu) {
		.base = mmap(NULL, 2 * LEN, PROT_NONE, MAP_SHARED, fd, 0),
		.shadow = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE,
			       MAP_SHARED, fd, 0),
		.polls = 2,
	};
	close(fd);
	side_device = (struct near_device) {
		.start = gpu_start, .done = gpu_done, .pin = gpu_pin,
		.unpin = gpu_unpin,
	};
}

static void region(void)
{
	const struct near_region_entry entry = {
		.key = GPU_KEY, .start = SIDE_START,
		.memory = (uintptr_t)gpu.base, .len = LEN,
		.access = (NEAR_MAY_READ | NEAR_MAY_WRITE) << NEAR_MAY_DEVICE,
		.device = (uintptr_t)&gpu,
	};

	ck_assert_int_eq(near_table_add(b.table, &entry), 0);
	rig_fill(gpu.shadow, 2 * LEN, 3);
	rig_fill(local, SIDE_LARGE, 9);
}

static void setup(void)
{
	gpu_open();
	side_setup_direct();
	region();
}

static void setup_asked(void)
{
	gpu_open();
	side_setup_asked();
	region();
}

static void teardown(void)
{
	side_teardown();
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_int_eq(gpu.pinned, 0);
	munmap(gpu.base, 2 * LEN);
	munmap(gpu.shadow, 2 * LEN);
}

/* Flags: the ends that have device memory. */
#define AT_B 1
#define AT_A 2

static void *const on_gpu[] = { &gpu, NULL, &gpu };

static int start(enum near_verb verb, int where, size_t offset, size_t len,
		 uint32_t flags)
{
	const struct iovec iov = {
		where & AT_A ? gpu.base + LEN + offset : local + offset, len,
	};
	const struct near_rma_args args = {
		.verb = verb, .flags = flags, .addr = SIDE_START + offset,
		.key = where & AT_B ? GPU_KEY : SIDE_KEY,
		.local = { &iov, 1, where & AT_A ? on_gpu : NULL },
		.len = len, .data = 4242, .about = 1, .cookie = local,
	};

	return near_rma(a.rig->port, to_b, &args);
}

static const uint8_t *at_a(int where)
{
	return where & AT_A ? gpu.shadow + LEN : local;
}

static const uint8_t *at_b(int where)
{
	return where & AT_B ? gpu.shadow : memory;
}

static const size_t lengths[] = {
	1, 8, 4096, NEAR_STAGE_CHUNK, NEAR_STAGE_CHUNK + 1, LEN,
};
#define LENGTHS (int)(ARRAY_SIZE(lengths))

UNIT_CASE("single copies", setup, teardown);
UNIT_CASE("no single copies", setup_asked, teardown);

UNIT_ROUNDS(writes_and_reads, 0, 2 * 3 * LENGTHS)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	int where = 1 + _i / 2 % 3;
	size_t len = lengths[_i / 6];

	ck_assert_int_eq(start(verb, where, 0, len, 0), 0);
	side_until(1, true);
	ck_assert_mem_eq(at_a(where), at_b(where), len);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
	ck_assert_int_eq(near_port_has_work(b.rig->port), 0);
}

/* One operation with buffers in device memory and in host memory. */
UNIT_TEST(mixed_buffers_are_copied)
{
	const struct iovec iov[] = {
		{ gpu.base + LEN, 300000 }, { local, 5 },
		{ gpu.base + LEN + 300000, 500000 },
	};
	const struct near_rma_args args = {
		.verb = NEAR_WRITE, .addr = SIDE_START, .key = GPU_KEY,
		.local = { iov, 3, on_gpu }, .len = 800005, .about = 1,
	};

	ck_assert_int_eq(near_rma(a.rig->port, to_b, &args), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + LEN, 300000);
	ck_assert_mem_eq(gpu.shadow + 300000, local, 5);
	ck_assert_mem_eq(gpu.shadow + 300005, gpu.shadow + LEN + 300000,
			 500000);
}

/* Operations that are pending at the same time take effect in order. */
UNIT_TEST(pending_operations_keep_order)
{
	int i;

	for (i = 0; i < 20; i++) {
		rig_fill(gpu.shadow + LEN + i * 1000, 1000, i);
		ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, i * 1000,
				       i % 5 ? 1000 : LEN - i * 1000, 0), 0);
	}
	ck_assert_int_eq(start(NEAR_READ, AT_B, 0, LEN, 0), 0);
	ck_assert_int_eq(start(NEAR_WRITE, 0, 0, LEN, 0), 0);
	side_until(22, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + LEN, LEN);
	ck_assert_mem_eq(memory, gpu.shadow, LEN);
}

/*
 * A message and a remote event arrive after all bytes of the operation before
 * them.
 */
UNIT_TEST(event_follows_all_bytes)
{
	int i, ret;

	gpu.polls = 50;
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, LEN, NEAR_RMA_DATA),
			 0);
	while ((ret = rig_send(a.rig, to_b, 1, local, 8)) == -EAGAIN) {
		side_poll(1);
		if (b.events)
			ck_assert_mem_eq(gpu.shadow, gpu.shadow + LEN, LEN);
	}
	ck_assert_int_eq(ret, 0);
	ck_assert_uint_eq(b.events, 1);
	for (i = 0; i < 1000 && !b.rig->count; i++)
		side_poll(1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert(b.event.has_data && b.event.write);
	ck_assert_uint_eq(b.event.data, 4242);
	ck_assert_uint_eq(b.event.len, LEN);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + LEN, LEN);
}

/*
 * Operations without the right of access are rejected; some others are left to
 * the embedder.
 */
UNIT_TEST(missing_right_is_rejected)
{
	uint64_t one = 1;
	const struct iovec iov = { &one, 8 };
	const struct near_rma_args atomic = {
		.verb = NEAR_ATOMIC, .addr = SIDE_START, .key = GPU_KEY,
		.local = { &iov, 1, NULL }, .len = 8, .op = NEAR_SUM,
		.type = NEAR_UINT64,
	};

	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, LEN - 7, 8, 0),
			 -EACCES);
	ck_assert_int_eq(near_rma(a.rig->port, to_b, &atomic), -EOPNOTSUPP);
	near_table_remove(b.table, GPU_KEY);
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, 8, 0),
			 -EKEYREJECTED);
	ck_assert(!near_rma_busy(to_b));
}

/* The region is closed during a write: the remaining parts are rejected. */
UNIT_TEST(region_closed_during_write_is_rejected)
{
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, LEN, NEAR_RMA_DATA),
			 0);
	side_poll(4);
	near_table_remove(b.table, GPU_KEY);
	side_poll(200);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, EKEYREJECTED);
	ck_assert_uint_eq(b.events, 0);
	ck_assert_int_eq(start(NEAR_WRITE, AT_A, 0, 8, 0), 0);
	side_until(2, true);
}

/* Call _i of the device library fails: its operation fails, others succeed. */
UNIT_ROUNDS(failed_driver_call_fails_operation, 0, 2 * 42)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;

	gpu.fail_at = 1 + _i / 2;
	ck_assert_int_eq(start(verb, AT_A | AT_B, 0, LEN, NEAR_RMA_DATA), 0);
	side_poll(300);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, gpu.calls < gpu.fail_at ? 0 : EIO);
	if (verb == NEAR_WRITE)
		ck_assert_uint_eq(b.events, !a.err);
	if (gpu.fail_at > 40)
		ck_assert_int_eq(a.err, 0);
	gpu.fail_at = 0;
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, LEN, 0), 0);
	side_until(2, true);
	ck_assert_mem_eq(gpu.shadow, gpu.shadow + LEN, LEN);
}

/* Call _i + 1 of the device library fails: one of two writes has no event. */
UNIT_ROUNDS(failed_write_has_no_event, 0, 44)
{
	gpu.fail_at = _i + 1;
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, LEN, NEAR_RMA_DATA),
			 0);
	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, 8, NEAR_RMA_DATA),
			 0);
	side_poll(400);
	ck_assert_uint_eq(a.done, 2);
	ck_assert_uint_eq(b.events, gpu.calls < gpu.fail_at ? 2 : 1);
}

/*
 * A write of 0 bytes completes, has its event, and delays no other operation.
 */
UNIT_ROUNDS(empty_write_completes, 0, 3)
{
	int ended = start(NEAR_WRITE, 1 + _i, 0, 0, NEAR_RMA_DATA);

	ck_assert_int_ge(ended, 0);
	side_poll(20);
	ck_assert_uint_eq(a.done + ended, 1);
	ck_assert_uint_eq(b.events, 1);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
}

/* a or b closes while copies are pending: nothing is copied afterwards. */
UNIT_ROUNDS(close_ends_pending_copies, 0, 2 * 2 * 12)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	bool target = _i / 2 % 2;
	int i;

	gpu.polls = 3;
	ck_assert_int_eq(start(verb, AT_A | AT_B, 0, LEN, 0), 0);
	side_poll(_i / 4);
	near_close((target ? b : a).rig->port);
	if (target) {
		b.rig->port = NULL;
		for (i = 0; i < 3000 && !a.done; i++)
			rig_poll_ms(a.rig, 1);
		ck_assert_int_eq(a.err, ECONNRESET);
		ck_assert(!near_rma_busy(to_b));
		side_reopen();
	} else {
		a.rig->port = NULL;
		for (i = 0; i < 3000 && gpu.pinned; i++)
			rig_poll_ms(b.rig, 1);
		ck_assert_int_eq(gpu.pinned, 0);
		ck_assert_int_eq(near_open(&a.rig->port, &(struct near_attr) {
			.sink = b.rig->port->sink, .ctx = a.rig,
			.memory = NEAR_MEMORY }), 0);
	}
	ck_assert_int_eq(gpu.under_way, 0);
}

/*
 * The target has no file descriptor for the initiator's region table: the
 * operation fails. Later, with a descriptor, the next one succeeds.
 */
UNIT_TEST(target_without_descriptors)
{
	const int ended = start(NEAR_WRITE, 0, 0, 8, 0);
	const uint32_t first = ended ? 0 : 1;
	struct rlimit limit, few;

	ck_assert_int_ge(ended, 0);
	side_until(first, true);
	/* b can reply to a */
	ck_assert_int_eq(rig_send(b.rig, rig_peer(b.rig, a.rig), 1, local, 8),
			 0);
	getrlimit(RLIMIT_NOFILE, &limit);
	few = (struct rlimit) { 0, limit.rlim_max };
	setrlimit(RLIMIT_NOFILE, &few);
	ck_assert_int_eq(start(NEAR_WRITE, AT_B, 0, 8, 0), 0);
	side_poll(20);
	setrlimit(RLIMIT_NOFILE, &limit);
	ck_assert_uint_eq(a.done, first + 1);
	ck_assert_int_eq(a.err, EMFILE);
	ck_assert_int_eq(start(NEAR_WRITE, AT_B, 0, 8, 0), 0);
	side_until(first + 2, true);
	ck_assert_mem_eq(gpu.shadow, local, 8);
}

/* All stages are in use: an operation fails with -ENOSPC. */
UNIT_TEST(missing_stage_returns_enospc)
{
	memset(a.table->stages, 0xff, sizeof(a.table->stages));
	ck_assert_int_eq(start(NEAR_WRITE, AT_A, 0, 8, 0), -ENOSPC);
	memset(a.table->stages, 0, sizeof(a.table->stages));
	ck_assert_int_eq(start(NEAR_WRITE, AT_A, 0, 8, 0), 0);
	side_until(1, true);
}

/* Invalid requests of a peer: it is disconnected. */
UNIT_ROUNDS(invalid_request_disconnects, 0, 6)
{
	struct near_slot *slot;

	ck_assert_int_eq(start(NEAR_WRITE, AT_A | AT_B, 0, 8, 0), 0);
	side_until(1, true);
	slot = near_control_slot(a.rig->port, to_b);
	slot->tag = SIDE_START;
	slot->rma = (struct near_rma_slot) {
		.key = GPU_KEY, .total = 8, .len = 8, .verb = NEAR_WRITE,
		.flags = NEAR_RMA_STAGED,
	};
	switch (_i) {
	case 0: slot->rma.op = NEAR_STAGE_CHUNKS; break;
	case 1: slot->rma.len = NEAR_STAGE_CHUNK + 1; break;
	case 2: slot->rma.len = 9; break;
	case 3: slot->rma.offset = UINT64_MAX; break;
	case 4: slot->rma.verb = NEAR_FETCH; break;
	case 5: slot->rma.len = 0; break;
	}
	near_control_send(a.rig->port, to_b, slot, NEAR_KIND_RMA, 0);
	side_poll(10);
	ck_assert_int_gt(b.rig->warnings, 0);
}
