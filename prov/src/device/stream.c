/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <pthread.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "device/stream.h"

static pthread_mutex_t duo_stream_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, duo_stream) duo_streams;

/* Opens a stream, adds it to the list. The caller must hold duo_stream_lock. */
static int duo_stream_add(const struct duo_stream_driver *driver,
			  uint64_t device, void *context,
			  struct duo_stream **stream)
{
	struct duo_stream *added = calloc(1, driver->size);
	int ret;

	if (!added)
		return -FI_ENOMEM;
	added->driver = driver;
	added->device = device;
	added->context = context;
	ret = driver->open ? driver->open(added) : 0;
	if (ret) {
		free(added);
		return ret;
	}
	LIST_INSERT_HEAD(&duo_streams, added, link);
	*stream = added;
	return 0;
}

int duo_stream_open(const struct duo_stream_driver *driver, uint64_t device,
		    void *context, struct duo_stream **opened)
{
	struct duo_stream *stream;
	int ret = 0;

	pthread_mutex_lock(&duo_stream_lock);
	LIST_FOREACH(stream, &duo_streams, link) {
		if (stream->driver == driver && stream->device == device)
			break;
	}
	if (!stream)
		ret = duo_stream_add(driver, device, context, &stream);
	if (!ret) {
		stream->refs++;
		*opened = stream;
	}
	pthread_mutex_unlock(&duo_stream_lock);
	return ret;
}

/*
 * Drops a reference to a stream. If this was the last one, closes and frees the
 * stream. The caller must hold duo_stream_lock.
 */
static void duo_stream_put(struct duo_stream *stream)
{
	struct duo_stream_copy *copy;

	if (--stream->refs)
		return;
	while ((copy = LIST_FIRST(&stream->spare))) {
		LIST_REMOVE(copy, link);
		stream->driver->copy_close(copy);
		free(copy);
	}
	if (stream->driver->close)
		stream->driver->close(stream);
	LIST_REMOVE(stream, link);
	free(stream);
}

struct duo_stream *duo_stream_hold(const struct duo_stream_driver *driver,
				   struct duo_stream *stream)
{
	pthread_mutex_lock(&duo_stream_lock);
	if (!stream)
		LIST_FOREACH(stream, &duo_streams, link) {
			if (stream->driver == driver)
				break;
		}
	if (stream)
		stream->refs++;
	pthread_mutex_unlock(&duo_stream_lock);
	return stream;
}

void duo_stream_unhold(struct duo_stream *stream)
{
	pthread_mutex_lock(&duo_stream_lock);
	duo_stream_put(stream);
	pthread_mutex_unlock(&duo_stream_lock);
}

/* Waits for all pending copies. The caller must hold duo_stream_lock. */
static void duo_stream_wait(const struct duo_stream *stream)
{
	struct duo_stream_copy *copy;

	LIST_FOREACH(copy, &stream->copies, link)
		stream->driver->wait(copy);
}

void duo_stream_settle(const struct duo_stream_driver *driver)
{
	const struct duo_stream *stream;

	pthread_mutex_lock(&duo_stream_lock);
	LIST_FOREACH(stream, &duo_streams, link) {
		if (stream->driver == driver)
			duo_stream_wait(stream);
	}
	pthread_mutex_unlock(&duo_stream_lock);
}

void duo_stream_close(struct duo_stream *stream)
{
	pthread_mutex_lock(&duo_stream_lock);
	/* waits, because the application may free the memory afterwards */
	duo_stream_wait(stream);
	duo_stream_put(stream);
	pthread_mutex_unlock(&duo_stream_lock);
}

/* Adds a new copy to stream->spare. The caller must hold duo_stream_lock. */
static int duo_stream_add_copy(struct duo_stream *stream)
{
	struct duo_stream_copy *copy = calloc(1, stream->driver->copy_size);
	int ret;

	if (!copy)
		return -FI_ENOMEM;
	copy->stream = stream;
	ret = stream->driver->copy_open(copy);
	if (ret) {
		free(copy);
		return ret;
	}
	LIST_INSERT_HEAD(&stream->spare, copy, link);
	return 0;
}

int duo_stream_start(struct duo_stream *stream, void *to, const void *from,
		     size_t len, void **handle)
{
	struct duo_stream_copy *copy;
	int ret = 0;

	pthread_mutex_lock(&duo_stream_lock);
	if (LIST_EMPTY(&stream->spare))
		ret = duo_stream_add_copy(stream);
	copy = LIST_FIRST(&stream->spare);
	if (!ret)
		ret = stream->driver->start(copy, to, from, len);
	if (!ret) {
		LIST_REMOVE(copy, link);
		LIST_INSERT_HEAD(&stream->copies, copy, link);
		stream->refs++;
		*handle = copy;
	}
	pthread_mutex_unlock(&duo_stream_lock);
	return ret;
}

int duo_stream_done(void *handle)
{
	struct duo_stream_copy *copy = handle;
	struct duo_stream *stream = copy->stream;
	int ret = stream->driver->done(copy);

	if (ret == -FI_EAGAIN)
		return ret;
	pthread_mutex_lock(&duo_stream_lock);
	LIST_REMOVE(copy, link);
	LIST_INSERT_HEAD(&stream->spare, copy, link);
	duo_stream_put(stream);
	pthread_mutex_unlock(&duo_stream_lock);
	return ret;
}
