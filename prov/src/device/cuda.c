/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/cuda.h"

/* Constants of NVIDIA's header cuda.h, which is not needed to build ofi_duo. */
#define DUO_CUDA_SUCCESS 0
#define DUO_CUDA_POINTER_CONTEXT 1	/* CU_POINTER_ATTRIBUTE_CONTEXT */
#define DUO_CUDA_POINTER_SYNC_MEMOPS 6	/* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
#define DUO_CUDA_NON_BLOCKING 1		/* CU_STREAM_NON_BLOCKING */
#define DUO_CUDA_DISABLE_TIMING 2	/* CU_EVENT_DISABLE_TIMING */
#define DUO_CUDA_PORTABLE 1		/* CU_MEMHOSTREGISTER_PORTABLE */
#define DUO_CUDA_NOT_READY 600		/* CUDA_ERROR_NOT_READY */

/* The CUDA driver's functions that ofi_duo calls. Each returns a CUresult. */
static struct duo_cuda {
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
} cuda;

static const struct {
	const char *name;
	void *call;	/* address of the member of cuda for the function */
} duo_cuda_symbols[] = {
	{ "cuInit", &cuda.init },
	{ "cuPointerGetAttribute", &cuda.pointer },
	{ "cuPointerSetAttribute", &cuda.pointer_set },
	{ "cuDevicePrimaryCtxRetain", &cuda.retain },
	{ "cuDevicePrimaryCtxRelease_v2", &cuda.release },
	{ "cuCtxPushCurrent_v2", &cuda.push },
	{ "cuCtxPopCurrent_v2", &cuda.pop },
	{ "cuStreamCreate", &cuda.stream_open },
	{ "cuStreamDestroy_v2", &cuda.stream_close },
	{ "cuMemcpyAsync", &cuda.copy },
	{ "cuStreamSynchronize", &cuda.wait },
	{ "cuEventCreate", &cuda.event_open },
	{ "cuEventDestroy_v2", &cuda.event_close },
	{ "cuEventRecord", &cuda.record },
	{ "cuEventQuery", &cuda.query },
	{ "cuMemHostRegister_v2", &cuda.pin },
	{ "cuMemHostUnregister", &cuda.unpin },
};

#define DUO_CUDA_SYMBOLS (sizeof(duo_cuda_symbols) / sizeof(*duo_cuda_symbols))

/* A CUDA context, and ofi_duo's stream for all regions of the context. */
struct duo_cuda_stream {
	LIST_ENTRY(duo_cuda_stream) link;
	void *context;
	void *stream;
	int device;		/* device of which the primary context is
				 * retained; -1: none */
	unsigned int refs; /* number of regions, copies and pinned blocks that
			    * use the stream */
	unsigned int copies;	/* number of copies that have not ended */
	struct duo_cuda_copy *spare;
};

/* A copy. After its end, the stream keeps the struct for a later copy. */
struct duo_cuda_copy {
	struct duo_device_held held;
	struct duo_cuda_stream *stream;
	struct duo_cuda_copy *next;
	void *event;
};

struct duo_cuda_pin {
	struct duo_device_held held;
	struct duo_cuda_stream *stream;
	void *memory;
};

const char *duo_cuda_library = DUO_CUDA_LIBRARY;
static pthread_once_t duo_cuda_once = PTHREAD_ONCE_INIT;
static bool duo_cuda_there;
static pthread_mutex_t duo_cuda_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_cuda_stream) duo_cuda_streams;	/* protected by
							 * duo_cuda_lock */

/* Loads the library for good, because the application uses it as well. */
static void duo_cuda_load(void)
{
	void *library = dlopen(duo_cuda_library, RTLD_NOW | RTLD_LOCAL);
	const char *missing = library ? NULL : "the library";
	void *call;
	size_t i;

	for (i = 0; library && i < DUO_CUDA_SYMBOLS; i++) {
		call = dlsym(library, duo_cuda_symbols[i].name);
		if (!call)
			missing = duo_cuda_symbols[i].name;
		*(void **) duo_cuda_symbols[i].call = call;
	}
	duo_cuda_there = !missing && cuda.init(0) == DUO_CUDA_SUCCESS;
	if (!duo_cuda_there)
		DUO_WARN(MR, "%s: %s%s: messages from and to CUDA memory will "
			 "fail. Install the driver's library, or set "
			 "FI_OFI_DUO_LOCAL=off\n", DUO_CUDA_LIBRARY,
			 missing ? "no " : "", missing ? missing : "no device");
}

/*
 * Finds the context that the memory belongs to. Memory of a pool belongs to no
 * context. For such memory, uses the primary context of the device. Returns 0
 * or -FI_EIO.
 */
static int duo_cuda_context(const struct fi_mr_attr *attr, const void *addr,
			    struct duo_cuda_stream *found)
{
	found->device = -1;
	if (cuda.pointer(&found->context, DUO_CUDA_POINTER_CONTEXT,
			 (uintptr_t) addr) == DUO_CUDA_SUCCESS &&
	    found->context)
		return 0;
	if (cuda.retain(&found->context, attr->device.cuda) !=
	    DUO_CUDA_SUCCESS)
		return -FI_EIO;
	found->device = attr->device.cuda;
	return 0;
}

static void duo_cuda_forget(const struct duo_cuda_stream *found)
{
	if (found->device >= 0)
		cuda.release(found->device);
}

static int duo_cuda_stream_open(struct duo_cuda_stream *stream)
{
	void *context;
	int ret;

	if (cuda.push(stream->context) != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	ret = cuda.stream_open(&stream->stream, DUO_CUDA_NON_BLOCKING);
	cuda.pop(&context);
	return ret == DUO_CUDA_SUCCESS ? 0 : -FI_EIO;
}

/*
 * Creates the stream of a context and adds it to the list. The caller must hold
 * duo_cuda_lock. Returns 0 or a negative error.
 */
static int duo_cuda_add(const struct duo_cuda_stream *found,
			struct duo_cuda_stream **stream)
{
	struct duo_cuda_stream *added = malloc(sizeof(*added));
	int ret;

	if (!added)
		return -FI_ENOMEM;
	*added = *found;
	added->refs = added->copies = 0;
	added->spare = NULL;
	ret = duo_cuda_stream_open(added);
	if (ret) {
		free(added);
		return ret;
	}
	LIST_INSERT_HEAD(&duo_cuda_streams, added, link);
	*stream = added;
	return 0;
}

/*
 * Sets SYNC_MEMOPS for the memory. ofi_duo's stream does not wait for the
 * application's streams. With this attribute, a call such as cuMemcpyHtoD() has
 * changed the memory when it returns. Without the attribute, a send right after
 * that call could copy the old contents. Memory of a pool cannot have the
 * attribute.
 */
static void duo_cuda_sync_calls(const void *addr)
{
	const unsigned int on = 1;
	int ret = cuda.pointer_set(&on, DUO_CUDA_POINTER_SYNC_MEMOPS,
				   (uintptr_t) addr);

	if (ret != DUO_CUDA_SUCCESS)
		DUO_INFO(MR, "CUDA memory at %p: cannot set SYNC_MEMOPS (%d): "
			 "the application must wait for its copies to and "
			 "from this memory before it sends and receives\n",
			 addr, ret);
}

int duo_cuda_open(const struct fi_mr_attr *attr, const void *addr, void **state)
{
	struct duo_cuda_stream found, *stream;
	int ret;

	pthread_once(&duo_cuda_once, duo_cuda_load);
	if (!duo_cuda_there)
		return -FI_ENOSYS;
	ret = duo_cuda_context(attr, addr, &found);
	if (ret)
		return ret;
	duo_cuda_sync_calls(addr);
	pthread_mutex_lock(&duo_cuda_lock);
	LIST_FOREACH(stream, &duo_cuda_streams, link) {
		if (stream->context == found.context)
			break;
	}
	if (stream)
		duo_cuda_forget(&found);
	else
		ret = duo_cuda_add(&found, &stream);
	if (!ret) {
		stream->refs++;
		*state = stream;
	}
	pthread_mutex_unlock(&duo_cuda_lock);
	if (ret)
		duo_cuda_forget(&found);
	return ret;
}

/*
 * Closes a stream that nothing uses. The caller must hold duo_cuda_lock. If the
 * application has destroyed the context, the driver's calls fail without harm.
 */
static void duo_cuda_stream_close(struct duo_cuda_stream *stream)
{
	struct duo_cuda_copy *copy;
	void *context;
	bool there = cuda.push(stream->context) == DUO_CUDA_SUCCESS;

	while ((copy = stream->spare)) {
		stream->spare = copy->next;
		if (there)
			cuda.event_close(copy->event);
		free(copy);
	}
	if (there) {
		cuda.stream_close(stream->stream);
		cuda.pop(&context);
	}
	LIST_REMOVE(stream, link);
	duo_cuda_forget(stream);
	free(stream);
}

static void duo_cuda_put(struct duo_cuda_stream *stream)
{
	if (!--stream->refs)
		duo_cuda_stream_close(stream);
}

void duo_cuda_close(void *state)
{
	struct duo_cuda_stream *stream = state;
	void *context;

	pthread_mutex_lock(&duo_cuda_lock);
	/* after this function the application may free the memory */
	if (stream->copies && cuda.push(stream->context) == DUO_CUDA_SUCCESS) {
		cuda.wait(stream->stream);
		cuda.pop(&context);
	}
	duo_cuda_put(stream);
	pthread_mutex_unlock(&duo_cuda_lock);
}

/*
 * Returns a copy with an event, or NULL after a failure. The stream's context
 * must be the current one.
 */
static struct duo_cuda_copy *duo_cuda_copy_get(struct duo_cuda_stream *stream)
{
	struct duo_cuda_copy *copy;

	pthread_mutex_lock(&duo_cuda_lock);
	copy = stream->spare;
	if (copy)
		stream->spare = copy->next;
	pthread_mutex_unlock(&duo_cuda_lock);
	if (copy)
		return copy;
	copy = malloc(sizeof(*copy));
	if (copy && cuda.event_open(&copy->event, DUO_CUDA_DISABLE_TIMING) !=
		    DUO_CUDA_SUCCESS) {
		free(copy);
		return NULL;
	}
	if (copy)
		copy->stream = stream;
	return copy;
}

/* Counts the start of a copy (step 1), or its end (step -1). */
static void duo_cuda_copy_count(struct duo_cuda_copy *copy, int step)
{
	struct duo_cuda_stream *stream = copy->stream;

	pthread_mutex_lock(&duo_cuda_lock);
	stream->copies += (unsigned int) step;
	if (step > 0) {
		stream->refs++;
	} else {
		copy->next = stream->spare;
		stream->spare = copy;
		duo_cuda_put(stream);
	}
	pthread_mutex_unlock(&duo_cuda_lock);
}

int duo_cuda_start(void *state, void *to, const void *from, size_t len,
		   struct duo_device_held **held)
{
	struct duo_cuda_stream *stream = state;
	struct duo_cuda_copy *copy;
	void *context;
	int ret = -1;

	if (cuda.push(stream->context) != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	copy = duo_cuda_copy_get(stream);
	if (copy) {
		duo_cuda_copy_count(copy, 1);
		ret = cuda.copy((uintptr_t) to, (uintptr_t) from, len,
				stream->stream);
		if (ret == DUO_CUDA_SUCCESS)
			ret = cuda.record(copy->event, stream->stream);
		if (ret != DUO_CUDA_SUCCESS) {
			cuda.wait(stream->stream);
			duo_cuda_copy_count(copy, -1);
		}
	}
	cuda.pop(&context);
	if (ret != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	*held = &copy->held;
	return 0;
}

int duo_cuda_done(struct duo_device_held *held)
{
	struct duo_cuda_copy *copy =
		duo_container_of(held, struct duo_cuda_copy, held);
	int ret = cuda.push(copy->stream->context);
	void *context;

	if (ret == DUO_CUDA_SUCCESS) {
		ret = cuda.query(copy->event);
		/*
		 * after this function the caller may use the buffers of the
		 * failed copy
		 */
		if (ret != DUO_CUDA_SUCCESS && ret != DUO_CUDA_NOT_READY)
			cuda.wait(copy->stream->stream);
		cuda.pop(&context);
	}
	if (ret == DUO_CUDA_NOT_READY)
		return -FI_EAGAIN;
	duo_cuda_copy_count(copy, -1);
	return ret == DUO_CUDA_SUCCESS ? 0 : -FI_EIO;
}

/*
 * Pins host memory. Returns NULL if that fails. Copies are then slower, because
 * they go through memory of the driver.
 */
struct duo_device_held *duo_cuda_pin(void *state, void *memory, size_t len)
{
	struct duo_cuda_stream *stream = state;
	struct duo_cuda_pin *pin = malloc(sizeof(*pin));
	void *context;
	int ret = -1;

	if (!pin)
		return NULL;
	if (cuda.push(stream->context) == DUO_CUDA_SUCCESS) {
		ret = cuda.pin(memory, len, DUO_CUDA_PORTABLE);
		cuda.pop(&context);
	}
	if (ret != DUO_CUDA_SUCCESS) {
		DUO_INFO(MR, "cannot register %zu bytes of shared memory with "
			 "CUDA (%d): copies through them are slow\n", len,
			 ret);
		free(pin);
		return NULL;
	}
	*pin = (struct duo_cuda_pin) { .stream = stream, .memory = memory };
	pthread_mutex_lock(&duo_cuda_lock);
	stream->refs++;
	pthread_mutex_unlock(&duo_cuda_lock);
	return &pin->held;
}

void duo_cuda_unpin(struct duo_device_held *held)
{
	struct duo_cuda_pin *pin =
		duo_container_of(held, struct duo_cuda_pin, held);
	void *context;

	pthread_mutex_lock(&duo_cuda_lock);
	if (cuda.push(pin->stream->context) == DUO_CUDA_SUCCESS) {
		cuda.unpin(pin->memory);
		cuda.pop(&context);
	}
	duo_cuda_put(pin->stream);
	pthread_mutex_unlock(&duo_cuda_lock);
	free(pin);
}
