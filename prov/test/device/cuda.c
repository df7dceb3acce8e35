/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * device/cuda.c over a fake of CUDA's driver. Each copy must use the context
 * and the stream of its region, and must release both.
 */

#include <stdint.h>
#include <rdma/fi_errno.h>

#include "device/cuda_driver.h"
#include "cuda_fake.h"
#include "unit.h"

/* CUDA contexts; only their addresses are used */
static char context[2], primary;
static void *owner; /* context of the memory; NULL: the memory has none */
void *current;
int streams;
static int waits, retained, events;
static int unpinned_at;	/* `waits` when memory was unpinned */
static struct duo_stream *closes; /* to close during an unpin; or NULL */
static void *pinned;
static size_t pinned_len;
/* address of memory that has the attribute SYNC_MEMOPS */
static uint64_t in_sync;
static bool fails;
static int export_fails;	/* number of the call that fails; 0: none */
int mappings;
char allocation[256], mapped[256];
static size_t mapped_len = sizeof(mapped);
uint64_t buffer_id = 12;
bool physical;
static const struct fi_mr_attr attr = { .device.cuda = PRIMARY };

CALL(cuInit, unsigned int flags)
{
	return 0;
}

CALL(cuPointerGetAttribute, void *data, int attribute, uint64_t addr)
{
	if (attribute == 7) {
		*(uint64_t *) data = buffer_id;
		return export_fails == 3;
	}
	if (attribute == 2) {
		ck_assert_ptr_nonnull(current);
		*(unsigned int *) data = 1;	/* host memory */
		return addr - (uintptr_t) pinned >= pinned_len;
	}
	ck_assert_int_eq(attribute, 1);
	*(void **) data = owner;
	return 0;
}

/* Fails for memory of a pool, as CUDA's driver does. */
CALL(cuPointerSetAttribute, const void *data, int attribute, uint64_t addr)
{
	ck_assert_int_eq(attribute, 6);
	ck_assert_uint_eq(*(const unsigned int *) data, 1);
	if (!owner)
		return 1;
	in_sync = addr;
	return 0;
}

CALL(cuDevicePrimaryCtxRetain, void **ctx, int device)
{
	ck_assert_int_eq(device, PRIMARY);
	*ctx = &primary;
	retained++;
	return 0;
}

CALL(cuDevicePrimaryCtxRelease_v2, int device)
{
	ck_assert_int_eq(device, PRIMARY);
	retained--;
	return 0;
}

CALL(cuCtxPushCurrent_v2, void *ctx)
{
	ck_assert_ptr_null(current);
	current = ctx;
	return 0;
}

CALL(cuCtxPopCurrent_v2, void **ctx)
{
	*ctx = current;
	current = NULL;
	return 0;
}

/* Creates a stream; the current context is its handle. */
CALL(cuStreamCreate, void **stream, unsigned int flags)
{
	ck_assert_uint_eq(flags, 1);	/* non-blocking */
	if (fails)
		return 1;
	*stream = current;
	streams++;
	return 0;
}

CALL(cuStreamDestroy_v2, void *stream)
{
	ck_assert_ptr_eq(stream, current);
	streams--;
	return 0;
}

CALL(cuMemcpyAsync, uint64_t to, uint64_t from, size_t len, void *stream)
{
	ck_assert_ptr_eq(stream, current);
	memcpy((void *) (uintptr_t) to, (void *) (uintptr_t) from, len);
	return fails;
}

CALL(cuStreamSynchronize, void *stream)
{
	ck_assert_ptr_eq(stream, current);
	waits++;
	return 0;
}

/*
 * Creates an event. The event is an int: the number of further queries
 * (cuEventQuery()) that find the event not complete.
 */
CALL(cuEventCreate, void **event, unsigned int flags)
{
	ck_assert_uint_eq(flags, 2);	/* without timing */
	if (fails)
		return 1;
	*event = calloc(1, sizeof(int));
	events++;
	return 0;
}

CALL(cuEventDestroy_v2, void *event)
{
	free(event);
	events--;
	return 0;
}

CALL(cuEventRecord, void *event, void *stream)
{
	ck_assert_ptr_eq(stream, current);
	*(int *) event = 2;
	return 0;
}

CALL(cuEventQuery, void *event)
{
	ck_assert_ptr_nonnull(current);
	if (fails)
		return 1;
	return (*(int *) event)-- ? 600 : 0;
}

CALL(cuMemHostRegister_v2, void *memory, size_t len, unsigned int flags)
{
	ck_assert_uint_eq(flags, 1);	/* portable */
	ck_assert_ptr_nonnull(current);
	if (fails)
		return 1;
	pinned = memory;
	pinned_len = len;
	return 0;
}

CALL(cuMemHostUnregister, void *memory)
{
	ck_assert_ptr_nonnull(current);
	ck_assert_ptr_eq(pinned, memory);
	pinned = NULL;
	pinned_len = 0;
	unpinned_at = waits;
	if (closes)
		duo_stream_close(closes);
	return 0;
}

CALL(cuMemGetAddressRange_v2, uint64_t *base, size_t *len, uint64_t addr)
{
	ck_assert_ptr_nonnull(current);
	if (addr - (uintptr_t) allocation < sizeof(allocation)) {
		*base = (uintptr_t) allocation;
		*len = sizeof(allocation);
	} else {
		ck_assert_uint_eq(addr, (uintptr_t) mapped);
		*base = addr;
		*len = mapped_len;
	}
	return export_fails == 1;
}

CALL(cuIpcGetMemHandle, struct duo_cuda_ipc *handle, uint64_t addr)
{
	ck_assert_ptr_nonnull(current);
	ck_assert_uint_eq(addr, (uintptr_t) allocation);
	memset(handle, 42, sizeof(*handle));
	return physical || export_fails == 2;
}

CALL(cuIpcOpenMemHandle_v2, uint64_t *addr, struct duo_cuda_ipc handle,
     unsigned int flags)
{
	size_t i;

	ck_assert_ptr_nonnull(current);
	ck_assert_uint_eq(flags, 1);	/* peer access */
	for (i = 0; i < sizeof(handle); i++)
		ck_assert_int_eq(handle.bytes[i], 42);
	if (export_fails == 2)
		return 1;
	*addr = (uintptr_t) mapped;
	mappings++;
	return 0;
}

CALL(cuIpcCloseMemHandle, uint64_t addr)
{
	ck_assert_ptr_nonnull(current);
	ck_assert_uint_eq(addr, (uintptr_t) mapped);
	mappings--;
	return 0;
}

void cuda_setup(void)
{
	duo_cuda_library.name = NULL;
	owner = &context[0];
}

struct duo_stream *open_region(void)
{
	struct duo_stream *state = NULL;

	ck_assert_int_eq(cuda->open(&attr, context, &state), 0);
	ck_assert_ptr_nonnull(state);
	ck_assert_ptr_null(current);
	return state;
}

void cuda_teardown(void)
{
	ck_assert_int_eq(streams, 0);
	ck_assert_int_eq(retained, 0);
	ck_assert_int_eq(events, 0);
	ck_assert_int_eq(mappings, 0);
	ck_assert_ptr_null(current);
	ck_assert_ptr_null(pinned);
}

UNIT_CASE("cuda", cuda_setup, cuda_teardown);

static int until_done(void *copy)
{
	int ret, polls = 0;

	while ((ret = duo_stream_done(copy)) == -FI_EAGAIN)
		polls++;
	ck_assert_ptr_null(current);
	if (!ret)
		ck_assert_int_eq(polls, 2);
	return ret;
}

UNIT_TEST(copies_use_context_and_stream)
{
	struct duo_stream *state = open_region();
	void *copy, *second;
	char to[8] = "", too[8] = "";

	ck_assert_uint_eq(in_sync, (uintptr_t) context);
	ck_assert_int_eq(duo_stream_start(state, to, "copied", 7, &copy), 0);
	ck_assert_int_eq(duo_stream_start(state, too, "too", 4, &second), 0);
	ck_assert_int_eq(until_done(second), 0);
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_str_eq(to, "copied");
	ck_assert_str_eq(too, "too");
	ck_assert_int_eq(events, 2);
	ck_assert_int_eq(waits, 0);
	duo_stream_close(state);
}

/* A copy fails at its start, or while it is polled. Both return -FI_EIO. */
UNIT_TEST(failed_copy_returns_error)
{
	struct duo_stream *state = open_region();
	void *copy, *lost;
	char to[8];

	fails = true;
	ck_assert_int_eq(duo_stream_start(state, to, "lost", 5, &copy),
			 -FI_EIO);
	fails = false;
	ck_assert_int_eq(duo_stream_start(state, to, "begun", 6, &copy), 0);
	fails = true;
	ck_assert_int_eq(duo_stream_start(state, to, "lost", 5, &lost),
			 -FI_EIO);
	ck_assert_int_eq(until_done(copy), -FI_EIO);
	fails = false;
	duo_stream_close(state);
}

/*
 * duo_stream_close() of a region waits for its pending copy and releases the
 * region. Its stream stays open while pinned memory uses it.
 */
UNIT_TEST(region_closed_during_copy_is_released)
{
	struct duo_stream *state = open_region();
	struct duo_device_handle *pin;
	void *copy;
	char to[8], memory[64];

	pin = cuda->pin(state, memory, sizeof(memory));
	ck_assert_ptr_nonnull(pin);
	ck_assert_int_eq(duo_stream_start(state, to, "copied", 7, &copy), 0);
	duo_stream_close(state);
	ck_assert_int_eq(waits, 1);
	ck_assert_int_eq(streams, 1);
	ck_assert_int_eq(until_done(copy), 0);
	ck_assert_int_eq(streams, 1);
	ck_assert_ptr_eq(pinned, memory);
	duo_device_release(pin);
}

/*
 * cuda->pin() without a region uses the context of any open region.
 * cuda->pinned() is true for each part of the pinned memory.
 */
UNIT_TEST(host_memory_is_pinned)
{
	char memory[64];
	struct duo_stream *state;
	struct duo_device_handle *pin;

	ck_assert_ptr_null(cuda->pin(NULL, memory, sizeof(memory)));
	state = open_region();
	ck_assert(!cuda->pinned(state, memory, 1));
	pin = cuda->pin(NULL, memory, sizeof(memory));
	ck_assert_ptr_nonnull(pin);
	ck_assert(cuda->pinned(state, memory, sizeof(memory)));
	ck_assert(cuda->pinned(state, memory + 63, 1));
	ck_assert(!cuda->pinned(state, memory + 1, sizeof(memory)));
	duo_stream_close(state);
	ck_assert_int_eq(streams, 1);
	duo_device_release(pin);
}

/*
 * The release of pinned memory waits for copies of any context. Then it does
 * not hold the lock of the streams, which duo_stream_close() takes.
 */
UNIT_TEST(memory_is_unpinned_after_copies)
{
	struct duo_device_handle *pin;
	void *copy;
	struct duo_stream *state = open_region(), *other;
	char memory[64];

	owner = &context[1];
	other = open_region();
	pin = cuda->pin(state, memory, sizeof(memory));
	ck_assert_int_eq(duo_stream_start(other, memory, "copied", 7, &copy),
			 0);
	closes = state;
	duo_device_release(pin);
	ck_assert_int_eq(unpinned_at, 1);
	ck_assert_int_eq(until_done(copy), 0);
	duo_stream_close(other);
}

UNIT_TEST(unpinned_memory_is_copied)
{
	struct duo_stream *state = open_region();
	char memory[64];

	fails = true;
	ck_assert_ptr_null(cuda->pin(state, memory, sizeof(memory)));
	fails = false;
	duo_stream_close(state);
}

UNIT_TEST(regions_of_context_share_stream)
{
	struct duo_stream *first = open_region(), *again = open_region();
	struct duo_stream *other;

	ck_assert_ptr_eq(first, again);
	ck_assert_int_eq(streams, 1);
	owner = &context[1];
	other = open_region();
	ck_assert_int_eq(streams, 2);
	duo_stream_close(first);
	duo_stream_close(other);
	ck_assert_int_eq(streams, 1);
	duo_stream_close(again);
}

/*
 * Memory of a pool has no context. Its copies must use the primary context of
 * the device.
 */
UNIT_TEST(pool_memory_uses_primary_context)
{
	struct duo_stream *first, *again;

	owner = NULL;
	first = open_region();
	again = open_region();
	ck_assert_int_eq(retained, 1);
	duo_stream_close(first);
	duo_stream_close(again);
}

UNIT_LOOP(failed_stream_fails_open, 0, 2)
{
	struct duo_stream *state;

	owner = _i ? NULL : &context[0];
	fails = true;
	ck_assert_int_eq(cuda->open(&attr, context, &state), -FI_EIO);
	fails = false;
}

UNIT_TEST(missing_driver_fails_open)
{
	struct duo_stream *state;

	duo_cuda_library.name = "libduo-no-such.so";
	ck_assert_int_eq(cuda->open(&attr, context, &state), -FI_ENOSYS);
}

/*
 * duo_stream_close() of the region leaves the stream open, because the mapping
 * still uses it.
 */
UNIT_TEST(allocation_is_exported_and_mapped)
{
	struct duo_stream *state = open_region();
	struct near_export export = { .id = 0 };
	struct near_map map;

	ck_assert_int_eq(duo_cuda_export(state, allocation + 9, 247, &export),
			 0);
	ck_assert_uint_eq(export.id, buffer_id);
	ck_assert_uint_eq(export.base, (uintptr_t) allocation);
	ck_assert_uint_eq(export.needs_fd, 0);
	ck_assert_int_eq(duo_cuda_map(state, &export, -1, &map), 0);
	ck_assert_ptr_eq(map.at, mapped);
	ck_assert_uint_eq(map.len, sizeof(mapped));
	duo_stream_close(state);
	ck_assert_int_eq(streams, 1);
	duo_device_release(map.mapping);
}

/*
 * duo_cuda_export() fails and leaves the export as it is. _i is the reason:
 * - 0: the range exceeds the allocation
 * - 1 to 3: a call of the driver fails
 * - 4: the allocation has no id
 */
UNIT_LOOP(export_fails_without_change, 0, 5)
{
	struct duo_stream *state = open_region();
	struct near_export export = { .id = 0 };

	export_fails = _i;
	if (_i == 4)
		buffer_id = 0;
	ck_assert_int_ne(duo_cuda_export(state, allocation + 9, _i ? 1 : 248,
					 &export), 0);
	ck_assert_uint_eq(export.id, 0);
	duo_stream_close(state);
}

/*
 * In duo_cuda_map(), the driver's call number 1 + _i fails. No mapping stays
 * open.
 */
UNIT_LOOP(failed_mapping_is_closed, 0, 2)
{
	struct duo_stream *state = open_region();
	struct near_export export;
	struct near_map map;

	ck_assert_int_eq(duo_cuda_export(state, allocation, 1, &export), 0);
	export_fails = 1 + _i;
	ck_assert_int_ne(duo_cuda_map(state, &export, -1, &map), 0);
	duo_stream_close(state);
}
