/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The functions of the CUDA driver that ofi_duo calls. Any thread may call
 * them. Driver 450 (CUDA 11.0) is the oldest driver with all of them.
 */
#ifndef DUO_DEVICE_CUDA_DRIVER_H
#define DUO_DEVICE_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "device/library.h"
#include "device/stream.h"
#include "near/near.h"

/* Constants of NVIDIA's header cuda.h, which is not needed to build ofi_duo. */
#define DUO_CUDA_POINTER_CONTEXT 1	/* CU_POINTER_ATTRIBUTE_CONTEXT */
#define DUO_CUDA_POINTER_TYPE 2		/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
#define DUO_CUDA_TYPE_HOST 1		/* CU_MEMORYTYPE_HOST */
#define DUO_CUDA_POINTER_SYNC_MEMOPS 6	/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
#define DUO_CUDA_POINTER_BUFFER_ID 7	/* CU_POINTER_ATTRIBUTE_BUFFER_ID */
#define DUO_CUDA_NON_BLOCKING 1		/* CU_STREAM_NON_BLOCKING */
#define DUO_CUDA_DISABLE_TIMING 2	/* CU_EVENT_DISABLE_TIMING */
#define DUO_CUDA_PORTABLE 1		/* CU_MEMHOSTREGISTER_PORTABLE */
#define DUO_CUDA_IPC_PEER 1	/* CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS */
#define DUO_CUDA_OUT_OF_MEMORY 2	/* CUDA_ERROR_OUT_OF_MEMORY */
#define DUO_CUDA_NOT_READY 600		/* CUDA_ERROR_NOT_READY */
#define DUO_CUDA_DESCRIPTOR 1	/* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */
#define DUO_CUDA_ON_DEVICE 1		/* CU_MEM_LOCATION_TYPE_DEVICE */
#define DUO_CUDA_READ_WRITE 3		/* CU_MEM_ACCESS_FLAGS_PROT_READWRITE */

/* CUipcMemHandle, an argument that the driver's functions take by value. */
struct duo_cuda_ipc {
	uint8_t bytes[NEAR_EXPORT_HANDLE];
};

/* CUmemLocation */
struct duo_cuda_location {
	int type, id;
};

/* CUmemAllocationProp */
struct duo_cuda_prop {
	int type, handle_types;
	struct duo_cuda_location location;
	void *win32;
	uint8_t flags[8];
};

/* CUmemAccessDesc */
struct duo_cuda_access {
	struct duo_cuda_location location;
	int flags;
};

/* The functions that ofi_duo calls. Each returns a CUresult; 0: success. */
extern struct duo_cuda {
	int (*init)(unsigned int flags);
	int (*pointer)(void *data, int attribute, uint64_t addr);
	int (*pointer_set)(const void *data, int attribute, uint64_t addr);
	int (*retain)(void **context, int device);
	int (*release)(int device);
	int (*push)(void *context);
	int (*pop)(void **context);
	int (*stream_open)(void **stream, unsigned int flags);
	int (*stream_close)(void *stream);
	int (*copy)(uint64_t to, uint64_t from, size_t len, void *stream);
	int (*wait)(void *stream);
	int (*event_open)(void **event, unsigned int flags);
	int (*event_close)(void *event);
	int (*record)(void *event, void *stream);
	int (*query)(void *event);
	int (*pin)(void *memory, size_t len, unsigned int flags);
	int (*unpin)(void *memory);
	int (*range)(uint64_t *base, size_t *len, uint64_t addr);
	int (*ipc_get)(struct duo_cuda_ipc *handle, uint64_t addr);
	int (*ipc_open)(uint64_t *addr, struct duo_cuda_ipc handle,
			unsigned int flags);
	int (*ipc_close)(uint64_t addr);
	int (*handle_of)(uint64_t *handle, void *addr);
	int (*prop_of)(struct duo_cuda_prop *prop, uint64_t handle);
	int (*handle_close)(uint64_t handle);
	int (*handle_export)(void *fd, uint64_t handle, int type,
			     uint64_t flags);
	int (*handle_import)(uint64_t *handle, void *fd, int type);
	int (*reserve)(uint64_t *addr, size_t len, size_t align, uint64_t at,
		       uint64_t flags);
	int (*unreserve)(uint64_t addr, size_t len);
	int (*map)(uint64_t addr, size_t len, size_t offset, uint64_t handle,
		   uint64_t flags);
	int (*unmap)(uint64_t addr, size_t len);
	int (*access)(uint64_t addr, size_t len,
		      const struct duo_cuda_access *access, size_t count);
	int (*device)(int *device);	/* device of the current context */
} duo_cuda;

extern struct duo_library duo_cuda_library;

/*
 * Makes the stream's context current in this thread until duo_cuda_leave().
 * Returns a CUresult. If the application has destroyed the context, this is an
 * error, and the caller must not call duo_cuda_leave().
 */
static inline int duo_cuda_enter(const struct duo_stream *stream)
{
	return duo_cuda.push(stream->context);
}

static inline void duo_cuda_leave(void)
{
	void *context;

	duo_cuda.pop(&context);
}

/* cuda_map.c: functions of duo_cuda_iface */
int duo_cuda_export(const struct duo_stream *stream, const void *addr,
		    size_t len, struct near_export *export);
int duo_cuda_share(const void *addr);
int duo_cuda_map(struct duo_stream *stream, const struct near_export *export,
		 int fd, struct near_map *map);

#endif /* DUO_DEVICE_CUDA_DRIVER_H */
