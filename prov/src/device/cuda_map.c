/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Mappings of other processes' allocations, by CUDA's IPC. The driver rejects
 * memory of pools, managed memory, and mapped physical memory. It also rejects
 * GPUs without peer access, and GPUs that this process cannot use.
 */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/cuda.h"
#include "device/cuda_driver.h"

struct duo_cuda_mapping {
	struct duo_device_held held;
	struct duo_cuda_stream *stream;
	uint64_t addr;
};

/* Stores the export of the allocation with this address. Returns a CUresult. */
static int duo_cuda_describe(const void *addr, size_t len,
			     struct near_export *export)
{
	uint64_t base = 0, at = (uintptr_t) addr;
	struct duo_cuda_ipc handle;
	size_t size = 0;
	int ret = duo_cuda.range(&base, &size, at);

	if (ret == DUO_CUDA_SUCCESS && (at - base > size ||
					len > size - (at - base)))
		ret = -1;	/* several allocations */
	if (ret == DUO_CUDA_SUCCESS)
		ret = duo_cuda.ipc_get(&handle, base);
	if (ret == DUO_CUDA_SUCCESS)
		ret = duo_cuda.pointer(&export->id, DUO_CUDA_POINTER_BUFFER_ID,
				       base);
	if (ret != DUO_CUDA_SUCCESS)
		return ret;
	memcpy(export->handle, handle.bytes, sizeof(export->handle));
	export->base = base;
	return 0;
}

int duo_cuda_export(const void *state, const void *addr, size_t len,
		    struct near_export *export)
{
	const struct duo_cuda_stream *stream = state;
	struct near_export found = { .id = 0 };
	void *context;
	int ret;

	if (!duo_cuda.range)
		return -FI_ENOSYS;
	ret = duo_cuda.push(stream->context);
	if (ret == DUO_CUDA_SUCCESS) {
		ret = duo_cuda_describe(addr, len, &found);
		duo_cuda.pop(&context);
	}
	if (ret != DUO_CUDA_SUCCESS || !found.id) {
		DUO_INFO(MR, "CUDA memory at %p: no CUDA IPC (%d): local peers "
			 "access it through host memory\n", addr, ret);
		return -FI_EIO;
	}
	*export = found;
	return 0;
}

/*
 * Opens a handle. Gets the range of the mapping from the driver, because the
 * process that made the handle may be faulty. Returns a CUresult.
 */
static int duo_cuda_ipc_open(const struct near_export *export,
			     struct near_map *map)
{
	struct duo_cuda_ipc handle;
	uint64_t addr = 0, base = 0;
	size_t size = 0;
	int ret;

	memcpy(handle.bytes, export->handle, sizeof(handle.bytes));
	ret = duo_cuda.ipc_open(&addr, handle, DUO_CUDA_IPC_PEER);
	if (ret != DUO_CUDA_SUCCESS)
		return ret;
	ret = duo_cuda.range(&base, &size, addr);
	if (ret == DUO_CUDA_SUCCESS && addr - base > size)
		ret = -1;
	if (ret != DUO_CUDA_SUCCESS) {
		duo_cuda.ipc_close(addr);
		return ret;
	}
	map->at = (uint8_t *) (uintptr_t) addr;
	map->len = size - (addr - base);
	return 0;
}

int duo_cuda_map(void *state, const struct near_export *export,
		 struct near_map *map)
{
	struct duo_cuda_stream *stream = state;
	struct duo_cuda_mapping *mapping;
	void *context;
	int ret;

	if (!duo_cuda.range)
		return -FI_ENOSYS;
	mapping = malloc(sizeof(*mapping));
	if (!mapping)
		return -FI_ENOMEM;
	ret = duo_cuda.push(stream->context);
	if (ret == DUO_CUDA_SUCCESS) {
		ret = duo_cuda_ipc_open(export, map);
		duo_cuda.pop(&context);
	}
	if (ret != DUO_CUDA_SUCCESS) {
		DUO_INFO(MR, "cannot map CUDA memory of a local peer (%d): "
			 "RMA goes through host memory\n", ret);
		free(mapping);
		return -FI_EIO;
	}
	*mapping = (struct duo_cuda_mapping) {
		.stream = stream, .addr = (uintptr_t) map->at,
	};
	map->mapping = &mapping->held;
	duo_cuda_hold(stream);
	return 0;
}

/* A context that the application has destroyed is unmapped already. */
void duo_cuda_unmap(struct duo_device_held *held)
{
	struct duo_cuda_mapping *mapping =
		duo_container_of(held, struct duo_cuda_mapping, held);
	struct duo_cuda_stream *stream = mapping->stream;
	void *context;

	if (duo_cuda.push(stream->context) == DUO_CUDA_SUCCESS) {
		duo_cuda.ipc_close(mapping->addr);
		duo_cuda.pop(&context);
	}
	duo_cuda_unhold(stream);
	free(mapping);
}
