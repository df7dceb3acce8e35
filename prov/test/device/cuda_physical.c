/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * device/cuda.c for physical memory (cuMemCreate), shared by file descriptors
 */

#include <rdma/fi_errno.h>

#include "cuda_fake.h"
#include "device/cuda_driver.h"
#include "unit.h"

#define FD 33			/* file descriptor of `allocation` */
#define HANDLE 44

static int handle_types = 1, handles, reservations;
static int calls, fail_at;	/* number of the call that fails; 0: none */
static int err = 1;		/* result of the call that fails */

static int next_call(void)
{
	return ++calls == fail_at ? err : 0;
}

CALL(cuMemRetainAllocationHandle, uint64_t *handle, void *addr)
{
	int ret = physical ? next_call() : 1;

	if (ret)
		return ret;
	ck_assert_ptr_eq(addr, allocation);
	*handle = HANDLE;
	handles++;
	return 0;
}

CALL(cuMemGetAllocationPropertiesFromHandle, struct duo_cuda_prop *prop,
     uint64_t handle)
{
	ck_assert_uint_eq(handle, HANDLE);
	prop->handle_types = handle_types;
	return next_call();
}

CALL(cuMemRelease, uint64_t handle)
{
	ck_assert_uint_eq(handle, HANDLE);
	handles--;
	return 0;
}

CALL(cuMemExportToShareableHandle, void *fd, uint64_t handle, int type,
     uint64_t flags)
{
	ck_assert_uint_eq(handle, HANDLE);
	ck_assert_int_eq(type, 1);
	ck_assert_uint_eq(flags, 0);
	*(int *) fd = FD;
	return next_call();
}

CALL(cuMemImportFromShareableHandle, uint64_t *handle, void *fd, int type)
{
	int ret = next_call();

	ck_assert_int_eq((int) (intptr_t) fd, FD);
	ck_assert_int_eq(type, 1);
	if (ret)
		return ret;
	*handle = HANDLE;
	handles++;
	return 0;
}

CALL(cuMemAddressReserve, uint64_t *addr, size_t len, size_t align, uint64_t at,
     uint64_t flags)
{
	int ret = next_call();

	ck_assert_uint_eq(len, sizeof(allocation));
	if (ret)
		return ret;
	*addr = (uintptr_t) mapped;
	reservations++;
	return 0;
}

static void check_range(uint64_t addr, size_t len)
{
	ck_assert_uint_eq(addr, (uintptr_t) mapped);
	ck_assert_uint_eq(len, sizeof(allocation));
}

CALL(cuMemAddressFree, uint64_t addr, size_t len)
{
	check_range(addr, len);
	ck_assert_int_eq(mappings, 0);
	reservations--;
	return 0;
}

CALL(cuMemMap, uint64_t addr, size_t len, size_t offset, uint64_t handle,
     uint64_t flags)
{
	int ret = next_call();

	check_range(addr, len);
	ck_assert_uint_eq(offset, 0);
	ck_assert_uint_eq(handle, HANDLE);
	if (ret)
		return ret;
	mappings++;
	return 0;
}

CALL(cuMemUnmap, uint64_t addr, size_t len)
{
	check_range(addr, len);
	mappings--;
	return 0;
}

CALL(cuMemSetAccess, uint64_t addr, size_t len,
     const struct duo_cuda_access *access, size_t count)
{
	check_range(addr, len);
	ck_assert_int_eq(access->location.type, 1);
	ck_assert_int_eq(access->location.id, PRIMARY);
	ck_assert_int_eq(access->flags, 3);
	ck_assert_uint_eq(count, 1);
	return next_call();
}

CALL(cuCtxGetDevice, int *device)
{
	ck_assert_ptr_nonnull(current);
	*device = PRIMARY;
	return next_call();
}

static void setup(void)
{
	cuda_setup();
	physical = true;
}

static void teardown(void)
{
	cuda_teardown();
	ck_assert_int_eq(handles, 0);
	ck_assert_int_eq(reservations, 0);
}

UNIT_CASE("physical", setup, teardown);

UNIT_TEST(physical_memory_is_shared_by_descriptor)
{
	struct duo_stream *state = open_region();
	struct near_export export = { .id = 0 };
	struct near_map map;

	ck_assert_int_eq(duo_cuda_export(state, allocation + 9, 247, &export),
			 0);
	ck_assert_uint_eq(export.needs_fd, 1);
	ck_assert_uint_eq(export.id, buffer_id);
	ck_assert_uint_eq(export.base, (uintptr_t) allocation);
	ck_assert_int_eq(duo_cuda_share(allocation), FD);
	ck_assert_int_eq(handles, 0);
	ck_assert_int_eq(duo_cuda_map(state, &export, FD, &map), 0);
	ck_assert_ptr_eq(map.at, mapped);
	ck_assert_uint_eq(map.len, sizeof(allocation));
	ck_assert_int_eq(handles, 0);
	duo_stream_close(state);
	ck_assert_int_eq(streams, 1);
	duo_device_release(map.mapping);
}

/*
 * duo_cuda_export() fails and leaves the export as it is. _i is the reason:
 * - 1, 2: a call of the driver fails
 * - 3: the allocation cannot be shared by a file descriptor
 */
UNIT_LOOP(physical_export_fails_without_change, 1, 4)
{
	struct duo_stream *state = open_region();
	struct near_export export = { .id = 0 };

	fail_at = _i < 3 ? _i : 0;
	if (_i == 3)
		handle_types = 2;
	ck_assert_int_ne(duo_cuda_export(state, allocation, 1, &export), 0);
	ck_assert_uint_eq(export.id, 0);
	duo_stream_close(state);
}

/*
 * One call of the driver fails: if _i < 3, the call number _i in
 * duo_cuda_share(), otherwise the call number _i - 2 in duo_cuda_map(). If _i
 * is 4, the driver is out of memory. No handle or mapping must stay open.
 */
UNIT_LOOP(failed_descriptor_leaves_nothing, 1, 2 + 5 + 1)
{
	struct duo_stream *state = open_region();
	struct near_export export = { .id = 0 };
	struct near_map map;
	bool shares = _i < 3;

	ck_assert_int_eq(duo_cuda_export(state, allocation, 1, &export), 0);
	calls = 0;
	fail_at = shares ? _i : _i - 2;
	if (_i == 4)
		err = 2;	/* out of memory */
	if (shares)
		ck_assert_int_eq(duo_cuda_share(allocation), -FI_EIO);
	else
		ck_assert_int_eq(duo_cuda_map(state, &export, FD, &map),
				 _i == 4 ? -FI_ENOMEM : -FI_EIO);
	ck_assert_int_eq(calls, fail_at);
	duo_stream_close(state);
}
