/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Exports allocations of this process, and maps allocations of other processes.
 * For most memory this file uses CUDA's IPC. For physical memory (cuMemCreate)
 * it uses a file descriptor instead, if the application has created the memory
 * with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR. The driver cannot map memory
 * of memory pools, managed memory, or memory of a GPU to which this process's
 * GPU has no peer access.
 */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/cuda_driver.h"

struct duo_cuda_mapping {
	struct duo_device_handle handle;
	struct duo_stream *stream;
	uint64_t addr;
	/* mapped by a file descriptor: length in bytes; by CUDA's IPC: 0 */
	size_t len;
};

/*
 * Stores in *export a description of physical memory (cuMemCreate). Returns a
 * CUresult; -1: the driver cannot export the memory as a file descriptor, so
 * peers cannot map it.
 */
static int duo_cuda_describe_physical(uint64_t base, size_t len,
				      struct near_export *export)
{
	struct duo_cuda_prop prop;
	uint64_t handle;
	int ret = duo_cuda.handle_of(&handle, (void *) (uintptr_t) base);

	if (ret)
		return ret;
	ret = duo_cuda.prop_of(&prop, handle);
	duo_cuda.handle_close(handle);
	if (ret)
		return ret;
	if (!(prop.handle_types & DUO_CUDA_DESCRIPTOR))
		return -1;
	memcpy(export->handle, &len, sizeof(len));
	export->needs_fd = 1;
	return 0;
}

/*
 * Stores in *export a description of the allocation that contains the len bytes
 * at addr. Returns a CUresult; -1: peers cannot map the memory.
 */
static int duo_cuda_describe(const void *addr, size_t len,
			     struct near_export *export)
{
	uint64_t base = 0, at = (uintptr_t) addr;
	struct duo_cuda_ipc handle;
	size_t size = 0;
	int ret = duo_cuda.range(&base, &size, at);

	if (ret)
		return ret;
	if (at - base > size || len > size - (at - base))
		return -1;	/* the bytes are in several allocations */
	ret = duo_cuda.ipc_get(&handle, base);
	if (!ret)
		memcpy(export->handle, handle.bytes, sizeof(export->handle));
	else
		ret = duo_cuda_describe_physical(base, size, export);
	if (ret)
		return ret;
	export->base = base;
	return duo_cuda.pointer(&export->id, DUO_CUDA_POINTER_BUFFER_ID, base);
}

int duo_cuda_export(const struct duo_stream *stream, const void *addr,
		    size_t len, struct near_export *export)
{
	struct near_export found = { .id = 0 };
	int ret = duo_cuda_enter(stream);

	if (!ret) {
		ret = duo_cuda_describe(addr, len, &found);
		duo_cuda_leave();
	}
	if (ret || !found.id) {
		DUO_INFO(MR, "CUDA memory at %p: cannot be exported by CUDA "
			 "IPC or file descriptor (%d): local peers access it "
			 "through host memory\n", addr, ret);
		return -FI_EIO;
	}
	*export = found;
	return 0;
}

int duo_cuda_share(const void *addr)
{
	uint64_t handle;
	int fd = -1, ret;

	if (duo_cuda.handle_of(&handle, (void *) addr))
		return -FI_EIO;
	ret = duo_cuda.handle_export(&fd, handle, DUO_CUDA_DESCRIPTOR, 0);
	duo_cuda.handle_close(handle);
	return ret ? -FI_EIO : fd;
}

/*
 * Maps an allocation by CUDA's IPC. Stores in *map the range that the driver of
 * this process reports, because the export of a faulty peer might have any
 * range. Returns a CUresult; -1: the reported range is invalid.
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
	if (ret)
		return ret;
	ret = duo_cuda.range(&base, &size, addr);
	if (!ret && addr - base > size)
		ret = -1;
	if (ret) {
		duo_cuda.ipc_close(addr);
		return ret;
	}
	map->at = (uint8_t *) (uintptr_t) addr;
	map->len = size - (addr - base);
	return 0;
}

/*
 * Maps physical memory at the reserved address addr, with access by the device
 * of the current context. Returns a CUresult.
 */
static int duo_cuda_map_at(uint64_t addr, size_t len, uint64_t handle)
{
	struct duo_cuda_access access = {
		.location.type = DUO_CUDA_ON_DEVICE,
		.flags = DUO_CUDA_READ_WRITE,
	};
	int ret = duo_cuda.device(&access.location.id);

	if (!ret)
		ret = duo_cuda.map(addr, len, 0, handle, 0);
	if (ret)
		return ret;
	ret = duo_cuda.access(addr, len, &access, 1);
	if (ret)
		duo_cuda.unmap(addr, len);
	return ret;
}

/*
 * Maps physical memory of a peer at a new address. fd: the peer's file
 * descriptor for the memory. Returns a CUresult: an error of the driver if the
 * length in a faulty peer's export is too large.
 */
static int duo_cuda_map_physical(const struct near_export *export, int fd,
				 struct near_map *map)
{
	uint64_t addr = 0, handle;
	size_t len;
	int ret;

	memcpy(&len, export->handle, sizeof(len));
	ret = duo_cuda.handle_import(&handle, (void *) (intptr_t) fd,
				     DUO_CUDA_DESCRIPTOR);
	if (ret)
		return ret;
	ret = duo_cuda.reserve(&addr, len, 0, 0, 0);
	if (!ret) {
		ret = duo_cuda_map_at(addr, len, handle);
		if (ret)
			duo_cuda.unreserve(addr, len);
	}
	/* the mapping itself keeps the memory allocated */
	duo_cuda.handle_close(handle);
	if (ret)
		return ret;
	map->at = (uint8_t *) (uintptr_t) addr;
	map->len = len;
	return 0;
}

/*
 * Unmaps and frees a mapping. If the application has destroyed the context, the
 * driver has unmapped the memory already.
 */
static void duo_cuda_unmap(struct duo_device_handle *handle)
{
	struct duo_cuda_mapping *mapping =
		duo_container_of(handle, struct duo_cuda_mapping, handle);

	if (!duo_cuda_enter(mapping->stream)) {
		if (mapping->len) {
			duo_cuda.unmap(mapping->addr, mapping->len);
			duo_cuda.unreserve(mapping->addr, mapping->len);
		} else {
			duo_cuda.ipc_close(mapping->addr);
		}
		duo_cuda_leave();
	}
	duo_stream_unhold(mapping->stream);
	free(mapping);
}

int duo_cuda_map(struct duo_stream *stream, const struct near_export *export,
		 int fd, struct near_map *map)
{
	struct duo_cuda_mapping *mapping = malloc(sizeof(*mapping));
	int ret;

	if (!mapping)
		return -FI_ENOMEM;
	ret = duo_cuda_enter(stream);
	if (!ret) {
		ret = export->needs_fd ?
		      duo_cuda_map_physical(export, fd, map) :
		      duo_cuda_ipc_open(export, map);
		duo_cuda_leave();
	}
	if (ret) {
		DUO_INFO(MR, "cannot map CUDA memory of a local peer (%d): "
			 "RMA goes through host memory\n", ret);
		free(mapping);
		return ret == DUO_CUDA_OUT_OF_MEMORY ? -FI_ENOMEM : -FI_EIO;
	}
	*mapping = (struct duo_cuda_mapping) {
		.handle = { duo_cuda_unmap },
		.stream = duo_stream_hold(stream->driver, stream),
		.addr = (uintptr_t) map->at,
		.len = export->needs_fd ? map->len : 0,
	};
	map->mapping = &mapping->handle;
	return 0;
}
