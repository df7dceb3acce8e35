/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/util.h"
#include "device/cuda.h"
#include "device/cuda_driver.h"

/* A copy. After it has ended, the stream keeps the struct for a later copy. */
struct duo_cuda_copy {
	struct duo_device_handle handle;
	struct duo_cuda_stream *stream;
	struct duo_cuda_copy *next;
	void *event;
};

struct duo_cuda_pin {
	struct duo_device_handle handle;
	struct duo_cuda_stream *stream;
	void *memory;
};

static pthread_mutex_t duo_cuda_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_cuda_stream) duo_cuda_streams;

/*
 * Stores in *found the context of the memory at addr. Memory of a memory pool
 * (cuMemAllocAsync) has no context. For such memory, retains the device's
 * primary context, and stores the device's number for duo_cuda_forget().
 */
static int duo_cuda_context(const struct fi_mr_attr *attr, const void *addr,
			    struct duo_cuda_stream *found)
{
	found->device = -1;
	if (duo_cuda.pointer(&found->context, DUO_CUDA_POINTER_CONTEXT,
			 (uintptr_t) addr) == DUO_CUDA_SUCCESS &&
	    found->context)
		return 0;
	if (duo_cuda.retain(&found->context, attr->device.cuda) !=
	    DUO_CUDA_SUCCESS)
		return -FI_EIO;
	found->device = attr->device.cuda;
	return 0;
}

static void duo_cuda_forget(const struct duo_cuda_stream *found)
{
	if (found->device >= 0)
		duo_cuda.release(found->device);
}

static int duo_cuda_stream_open(struct duo_cuda_stream *stream)
{
	void *context;
	int ret;

	if (duo_cuda.push(stream->context) != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	ret = duo_cuda.stream_open(&stream->stream, DUO_CUDA_NON_BLOCKING);
	duo_cuda.pop(&context);
	return ret == DUO_CUDA_SUCCESS ? 0 : -FI_EIO;
}

/* Creates a context's stream and adds it to the list. Needs duo_cuda_lock. */
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
 * Sets the attribute SYNC_MEMOPS: calls such as cuMemcpyHtoD() then return only
 * after their copy has ended. Otherwise a send after such a call might copy the
 * old contents. Memory of a memory pool cannot have this attribute.
 */
static void duo_cuda_sync_calls(const void *addr)
{
	const unsigned int on = 1;
	int ret = duo_cuda.pointer_set(&on, DUO_CUDA_POINTER_SYNC_MEMOPS,
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

	if (!duo_cuda_load())
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

/* Closes an unused stream. Needs duo_cuda_lock. */
static void duo_cuda_stream_close(struct duo_cuda_stream *stream)
{
	struct duo_cuda_copy *copy;
	void *context;
	/* push() fails if the application has destroyed the context */
	bool there = duo_cuda.push(stream->context) == DUO_CUDA_SUCCESS;

	while ((copy = stream->spare)) {
		stream->spare = copy->next;
		if (there)
			duo_cuda.event_close(copy->event);
		free(copy);
	}
	if (there) {
		duo_cuda.stream_close(stream->stream);
		duo_cuda.pop(&context);
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

void duo_cuda_hold(struct duo_cuda_stream *stream)
{
	pthread_mutex_lock(&duo_cuda_lock);
	stream->refs++;
	pthread_mutex_unlock(&duo_cuda_lock);
}

void duo_cuda_unhold(struct duo_cuda_stream *stream)
{
	pthread_mutex_lock(&duo_cuda_lock);
	duo_cuda_put(stream);
	pthread_mutex_unlock(&duo_cuda_lock);
}

void duo_cuda_close(void *state)
{
	struct duo_cuda_stream *stream = state;
	void *context;

	pthread_mutex_lock(&duo_cuda_lock);
	/* wait, because the application may free the memory afterwards */
	if (stream->copies &&
	    duo_cuda.push(stream->context) == DUO_CUDA_SUCCESS) {
		duo_cuda.wait(stream->stream);
		duo_cuda.pop(&context);
	}
	duo_cuda_put(stream);
	pthread_mutex_unlock(&duo_cuda_lock);
}

/*
 * Returns a struct for a copy: a spare one or a new one; NULL: failed. The
 * stream's context must be current.
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
	if (copy && duo_cuda.event_open(&copy->event,
					DUO_CUDA_DISABLE_TIMING) !=
		    DUO_CUDA_SUCCESS) {
		free(copy);
		return NULL;
	}
	if (copy)
		copy->stream = stream;
	return copy;
}

/*
 * Counts the start of a copy (step 1), or its end (step -1). At the end, keeps
 * the struct for a later copy (stream->spare).
 */
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
		   struct duo_device_handle **handle)
{
	struct duo_cuda_stream *stream = state;
	struct duo_cuda_copy *copy;
	void *context;
	int ret = -1;

	if (duo_cuda.push(stream->context) != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	copy = duo_cuda_copy_get(stream);
	if (copy) {
		duo_cuda_copy_count(copy, 1);
		ret = duo_cuda.copy((uintptr_t) to, (uintptr_t) from, len,
				stream->stream);
		if (ret == DUO_CUDA_SUCCESS)
			ret = duo_cuda.record(copy->event, stream->stream);
		if (ret != DUO_CUDA_SUCCESS) {
			duo_cuda.wait(stream->stream);
			duo_cuda_copy_count(copy, -1);
		}
	}
	duo_cuda.pop(&context);
	if (ret != DUO_CUDA_SUCCESS)
		return -FI_EIO;
	*handle = &copy->handle;
	return 0;
}

int duo_cuda_done(struct duo_device_handle *handle)
{
	struct duo_cuda_copy *copy =
		duo_container_of(handle, struct duo_cuda_copy, handle);
	int ret = duo_cuda.push(copy->stream->context);
	void *context;

	if (ret == DUO_CUDA_SUCCESS) {
		ret = duo_cuda.query(copy->event);
		/* wait: the caller may reuse the buffers after an error */
		if (ret != DUO_CUDA_SUCCESS && ret != DUO_CUDA_NOT_READY)
			duo_cuda.wait(copy->stream->stream);
		duo_cuda.pop(&context);
	}
	if (ret == DUO_CUDA_NOT_READY)
		return -FI_EAGAIN;
	duo_cuda_copy_count(copy, -1);
	return ret == DUO_CUDA_SUCCESS ? 0 : -FI_EIO;
}

/* Returns any stream, with a new reference; NULL: none is open. */
static struct duo_cuda_stream *duo_cuda_any(void)
{
	struct duo_cuda_stream *stream;

	pthread_mutex_lock(&duo_cuda_lock);
	stream = LIST_FIRST(&duo_cuda_streams);
	if (stream)
		stream->refs++;
	pthread_mutex_unlock(&duo_cuda_lock);
	return stream;
}

/* Registers host memory with the driver. Returns a CUresult. */
static int duo_cuda_register(struct duo_cuda_stream *stream, void *memory,
			     size_t len)
{
	int ret = duo_cuda.push(stream->context);
	void *context;

	if (ret == DUO_CUDA_SUCCESS) {
		ret = duo_cuda.pin(memory, len, DUO_CUDA_PORTABLE);
		duo_cuda.pop(&context);
	}
	if (ret != DUO_CUDA_SUCCESS)
		DUO_INFO(MR, "cannot register %zu bytes of host memory with "
			 "CUDA (%d): copies through them are slow\n", len,
			 ret);
	return ret;
}

/*
 * Pins host memory in the context of the stream `state`. If `state` is NULL,
 * uses any open stream. Returns NULL after a failure.
 */
struct duo_device_handle *duo_cuda_pin(void *state, void *memory, size_t len)
{
	struct duo_cuda_stream *stream = state;
	struct duo_cuda_pin *pin;

	if (stream)
		duo_cuda_hold(stream);
	else
		stream = duo_cuda_any();
	if (!stream)
		return NULL;
	pin = malloc(sizeof(*pin));
	if (!pin || duo_cuda_register(stream, memory, len)) {
		free(pin);
		duo_cuda_unhold(stream);
		return NULL;
	}
	*pin = (struct duo_cuda_pin) { .stream = stream, .memory = memory };
	return &pin->handle;
}

void duo_cuda_unpin(struct duo_device_handle *handle)
{
	struct duo_cuda_pin *pin =
		duo_container_of(handle, struct duo_cuda_pin, handle);
	void *context;

	if (duo_cuda.push(pin->stream->context) == DUO_CUDA_SUCCESS) {
		duo_cuda.unpin(pin->memory);
		duo_cuda.pop(&context);
	}
	duo_cuda_unhold(pin->stream);
	free(pin);
}

static bool duo_cuda_is_host(const char *memory)
{
	unsigned int type = 0;

	return duo_cuda.pointer(&type, DUO_CUDA_POINTER_TYPE,
				(uintptr_t) memory) == DUO_CUDA_SUCCESS &&
	       type == DUO_CUDA_TYPE_HOST;
}

bool duo_cuda_pinned(void *state, const void *memory, size_t len)
{
	struct duo_cuda_stream *stream = state;
	const char *first = memory;
	void *context;
	bool pinned;

	if (duo_cuda.push(stream->context) != DUO_CUDA_SUCCESS)
		return false;
	pinned = duo_cuda_is_host(first) && duo_cuda_is_host(first + len - 1);
	duo_cuda.pop(&context);
	return pinned;
}
