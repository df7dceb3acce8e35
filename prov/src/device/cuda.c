/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copying from and to memory of NVIDIA GPUs by the CUDA driver. ofi_duo has one
 * CUDA stream per context. This stream does not wait for the application's
 * streams, because a kernel in these may wait for a message.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/cuda_driver.h"

struct duo_cuda duo_cuda;

static const struct duo_symbol duo_cuda_symbols[] = {
	{ "cuInit", &duo_cuda.init },
	{ "cuPointerGetAttribute", &duo_cuda.pointer },
	{ "cuPointerSetAttribute", &duo_cuda.pointer_set },
	{ "cuDevicePrimaryCtxRetain", &duo_cuda.retain },
	{ "cuDevicePrimaryCtxRelease_v2", &duo_cuda.release },
	{ "cuCtxPushCurrent_v2", &duo_cuda.push },
	{ "cuCtxPopCurrent_v2", &duo_cuda.pop },
	{ "cuStreamCreate", &duo_cuda.stream_open },
	{ "cuStreamDestroy_v2", &duo_cuda.stream_close },
	{ "cuMemcpyAsync", &duo_cuda.copy },
	{ "cuStreamSynchronize", &duo_cuda.wait },
	{ "cuEventCreate", &duo_cuda.event_open },
	{ "cuEventDestroy_v2", &duo_cuda.event_close },
	{ "cuEventRecord", &duo_cuda.record },
	{ "cuEventQuery", &duo_cuda.query },
	{ "cuMemHostRegister_v2", &duo_cuda.pin },
	{ "cuMemHostUnregister", &duo_cuda.unpin },
	{ "cuMemGetAddressRange_v2", &duo_cuda.range },
	{ "cuIpcGetMemHandle", &duo_cuda.ipc_get },
	{ "cuIpcOpenMemHandle_v2", &duo_cuda.ipc_open },
	{ "cuIpcCloseMemHandle", &duo_cuda.ipc_close },
	{ "cuMemRetainAllocationHandle", &duo_cuda.handle_of },
	{ "cuMemGetAllocationPropertiesFromHandle", &duo_cuda.prop_of },
	{ "cuMemRelease", &duo_cuda.handle_close },
	{ "cuMemExportToShareableHandle", &duo_cuda.handle_export },
	{ "cuMemImportFromShareableHandle", &duo_cuda.handle_import },
	{ "cuMemAddressReserve", &duo_cuda.reserve },
	{ "cuMemAddressFree", &duo_cuda.unreserve },
	{ "cuMemMap", &duo_cuda.map },
	{ "cuMemUnmap", &duo_cuda.unmap },
	{ "cuMemSetAccess", &duo_cuda.access },
	{ "cuCtxGetDevice", &duo_cuda.device },
	{ NULL },
};

static bool duo_cuda_init(void)
{
	return !duo_cuda.init(0);
}

struct duo_library duo_cuda_library = {
	.name = "libcuda.so.1", .iface = "CUDA",
	.symbols = duo_cuda_symbols, .init = duo_cuda_init,
};

struct duo_cuda_stream {
	struct duo_stream base;
	void *stream;
	int device;	/* device of the retained primary context; -1: none */
};

struct duo_cuda_copy {
	struct duo_stream_copy base;
	void *event;
};

struct duo_cuda_pin {
	struct duo_device_handle handle;
	struct duo_stream *stream;
	void *memory;
};

static struct duo_cuda_stream *duo_cuda_stream_of(struct duo_stream *base)
{
	return duo_container_of(base, struct duo_cuda_stream, base);
}

static struct duo_cuda_copy *duo_cuda_copy_of(struct duo_stream_copy *base)
{
	return duo_container_of(base, struct duo_cuda_copy, base);
}

static int duo_cuda_stream_open(struct duo_stream *base)
{
	struct duo_cuda_stream *stream = duo_cuda_stream_of(base);
	int ret = duo_cuda_enter(base);

	stream->device = -1;
	if (ret)
		return -FI_EIO;
	ret = duo_cuda.stream_open(&stream->stream, DUO_CUDA_NON_BLOCKING);
	duo_cuda_leave();
	return ret ? -FI_EIO : 0;
}

static void duo_cuda_stream_close(struct duo_stream *base)
{
	const struct duo_cuda_stream *stream = duo_cuda_stream_of(base);

	if (!duo_cuda_enter(base)) {
		duo_cuda.stream_close(stream->stream);
		duo_cuda_leave();
	}
	if (stream->device >= 0)
		duo_cuda.release(stream->device);
}

static int duo_cuda_copy_open(struct duo_stream_copy *base)
{
	int ret = duo_cuda_enter(base->stream);

	if (ret)
		return -FI_EIO;
	ret = duo_cuda.event_open(&duo_cuda_copy_of(base)->event,
				  DUO_CUDA_DISABLE_TIMING);
	duo_cuda_leave();
	return ret ? -FI_EIO : 0;
}

static void duo_cuda_copy_close(struct duo_stream_copy *base)
{
	if (duo_cuda_enter(base->stream))
		return;
	duo_cuda.event_close(duo_cuda_copy_of(base)->event);
	duo_cuda_leave();
}

/* After an error, waits for the stream, so the caller may reuse the buffers. */
static int duo_cuda_start(struct duo_stream_copy *base, void *to,
			  const void *from, size_t len)
{
	void *stream = duo_cuda_stream_of(base->stream)->stream;
	int ret = duo_cuda_enter(base->stream);

	if (ret)
		return -FI_EIO;
	ret = duo_cuda.copy((uintptr_t) to, (uintptr_t) from, len, stream);
	if (!ret)
		ret = duo_cuda.record(duo_cuda_copy_of(base)->event, stream);
	if (ret)
		duo_cuda.wait(stream);
	duo_cuda_leave();
	return ret ? -FI_EIO : 0;
}

/* After an error, waits for the stream, so the caller may reuse the buffers. */
static int duo_cuda_done(struct duo_stream_copy *base)
{
	int ret = duo_cuda_enter(base->stream);

	if (ret)
		return -FI_EIO;
	ret = duo_cuda.query(duo_cuda_copy_of(base)->event);
	if (ret && ret != DUO_CUDA_NOT_READY)
		duo_cuda.wait(duo_cuda_stream_of(base->stream)->stream);
	duo_cuda_leave();
	return ret == DUO_CUDA_NOT_READY ? -FI_EAGAIN : ret ? -FI_EIO : 0;
}

static void duo_cuda_wait(struct duo_stream_copy *base)
{
	if (duo_cuda_enter(base->stream))
		return;
	duo_cuda.wait(duo_cuda_stream_of(base->stream)->stream);
	duo_cuda_leave();
}

static const struct duo_stream_driver duo_cuda_driver = {
	.size = sizeof(struct duo_cuda_stream),
	.copy_size = sizeof(struct duo_cuda_copy),
	.open = duo_cuda_stream_open,
	.close = duo_cuda_stream_close,
	.copy_open = duo_cuda_copy_open,
	.copy_close = duo_cuda_copy_close,
	.start = duo_cuda_start,
	.done = duo_cuda_done,
	.wait = duo_cuda_wait,
};

/*
 * Sets the attribute SYNC_MEMOPS of the memory. With this attribute, calls of
 * the application like cuMemcpyHtoD() wait for the end of their copies. Without
 * it, a send after such a call might send the old contents of the memory.
 * Memory of a memory pool cannot have this attribute.
 */
static void duo_cuda_sync_calls(const void *addr)
{
	const unsigned int on = 1;
	int ret = duo_cuda.pointer_set(&on, DUO_CUDA_POINTER_SYNC_MEMOPS,
				       (uintptr_t) addr);

	if (ret)
		DUO_INFO(MR, "CUDA memory at %p: cannot set SYNC_MEMOPS (%d): "
			 "the application must wait for its copies to and "
			 "from this memory before it sends and receives\n",
			 addr, ret);
}

/*
 * The stream uses the context of the memory. Memory of a memory pool
 * (cuMemAllocAsync) has no context. In this case the stream uses and retains
 * the primary context of the device.
 */
static int duo_cuda_open(const struct fi_mr_attr *attr, const void *addr,
			 struct duo_stream **stream)
{
	void *context = NULL;
	int retained = -1, ret;

	if (!duo_library_load(&duo_cuda_library))
		return -FI_ENOSYS;
	if (duo_cuda.pointer(&context, DUO_CUDA_POINTER_CONTEXT,
			     (uintptr_t) addr) || !context) {
		if (duo_cuda.retain(&context, attr->device.cuda))
			return -FI_EIO;
		retained = attr->device.cuda;
	}
	duo_cuda_sync_calls(addr);
	ret = duo_stream_open(&duo_cuda_driver, (uintptr_t) context, context,
			      stream);
	/*
	 * the stream keeps one reference to the primary context; if it had one
	 * already, that one is released
	 */
	if (!ret && retained >= 0)
		retained = __atomic_exchange_n(
			&duo_cuda_stream_of(*stream)->device, retained,
			__ATOMIC_RELAXED);
	if (retained >= 0)
		duo_cuda.release(retained);
	return ret;
}

/* Registers host memory with the driver. Returns a CUresult. */
static int duo_cuda_register(const struct duo_stream *stream, void *memory,
			     size_t len)
{
	int ret = duo_cuda_enter(stream);

	if (!ret) {
		ret = duo_cuda.pin(memory, len, DUO_CUDA_PORTABLE);
		duo_cuda_leave();
	}
	if (ret)
		DUO_INFO(MR, "cannot register %zu bytes of host memory with "
			 "CUDA (%d): copies through them are slow\n", len,
			 ret);
	return ret;
}

/*
 * Waits for pending copies first. One of them may use the memory: local buffers
 * need no region, so the application may close the region of the memory while
 * an operation from or to the memory is pending. Does not hold the lock of the
 * streams for the call of the driver, which might wait for the application's
 * kernels.
 */
static void duo_cuda_unpin(struct duo_device_handle *handle)
{
	struct duo_cuda_pin *pin =
		duo_container_of(handle, struct duo_cuda_pin, handle);

	duo_stream_settle(&duo_cuda_driver);
	if (!duo_cuda_enter(pin->stream)) {
		duo_cuda.unpin(pin->memory);
		duo_cuda_leave();
	}
	duo_stream_unhold(pin->stream);
	free(pin);
}

/*
 * Pins host memory for all contexts. Calls the driver in the context of the
 * stream `in` or, if `in` is NULL, of any open stream.
 */
static struct duo_device_handle *duo_cuda_pin(struct duo_stream *in,
					      void *memory, size_t len)
{
	struct duo_stream *stream = duo_stream_hold(&duo_cuda_driver, in);
	struct duo_cuda_pin *pin;

	if (!stream)
		return NULL;
	pin = malloc(sizeof(*pin));
	if (!pin || duo_cuda_register(stream, memory, len)) {
		free(pin);
		duo_stream_unhold(stream);
		return NULL;
	}
	*pin = (struct duo_cuda_pin) {
		.handle = { duo_cuda_unpin }, .stream = stream,
		.memory = memory,
	};
	return &pin->handle;
}

static bool duo_cuda_is_host(const char *memory)
{
	unsigned int type = 0;

	return !duo_cuda.pointer(&type, DUO_CUDA_POINTER_TYPE,
				 (uintptr_t) memory) &&
	       type == DUO_CUDA_TYPE_HOST;
}

static bool duo_cuda_pinned(const struct duo_stream *stream,
			    const void *memory, size_t len)
{
	const char *first = memory;
	bool pinned;

	if (duo_cuda_enter(stream))
		return false;
	pinned = duo_cuda_is_host(first) && duo_cuda_is_host(first + len - 1);
	duo_cuda_leave();
	return pinned;
}

const struct duo_device_iface duo_cuda_iface = {
	.id = FI_HMEM_CUDA,
	.open = duo_cuda_open,
	.pin = duo_cuda_pin,
	.pinned = duo_cuda_pinned,
	.export = duo_cuda_export,
	.share = duo_cuda_share,
	.map = duo_cuda_map,
};
