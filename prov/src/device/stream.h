/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Copies in progress. A stream has the list of all copies by a device, or, with
 * CUDA, of all copies in a context. The device's library reports the end of a
 * copy by an object: an event of CUDA or Level Zero, or a signal of ROCr. When
 * the copy has ended, the stream keeps this object for a later copy.
 *
 * Cost: a mutex is locked twice per copy. Lock: duo_stream_lock, for all
 * streams. stream.c holds this lock when it calls a function of
 * duo_stream_driver, except done().
 */
#ifndef DUO_DEVICE_STREAM_H
#define DUO_DEVICE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "device/device.h"

/* First member of the struct by which an interface represents a copy. */
struct duo_stream_copy {
	struct duo_stream *stream;
	LIST_ENTRY(duo_stream_copy) link;	/* in `copies` or `spare` */
};

/*
 * Functions of an interface that call the device's library. Those that return
 * int return 0 or a negative error.
 */
struct duo_stream_driver {
	/* sizes of the interface's structs for streams and copies, bytes */
	size_t size;
	size_t copy_size;
	/*
	 * Open and close the objects that the library needs for a stream. NULL
	 * if there are none.
	 */
	int (*open)(struct duo_stream *stream);
	void (*close)(struct duo_stream *stream);
	/* Create and destroy the object that reports a copy's end. */
	int (*copy_open)(struct duo_stream_copy *copy);
	void (*copy_close)(struct duo_stream_copy *copy);
	/* Starts a copy. After an error, no copy is pending. */
	int (*start)(struct duo_stream_copy *copy, void *to, const void *from,
		     size_t len);
	/* Tests a copy. -FI_EAGAIN: pending; 0: ended; other error: failed. */
	int (*done)(struct duo_stream_copy *copy);
	/* Waits until a copy has ended or failed. */
	void (*wait)(struct duo_stream_copy *copy);
};

/* A stream. May be the first member of an interface's struct for a stream. */
struct duo_stream {
	LIST_ENTRY(duo_stream) link;
	const struct duo_stream_driver *driver;
	uint64_t device;	/* handle of the device; CUDA: of the context */
	void *context;	/* the library's context; NULL: it has none */
	/* number of regions, pending copies, pins and mappings that use it */
	unsigned int refs;
	LIST_HEAD(, duo_stream_copy) copies;	/* copies that have not ended */
	LIST_HEAD(, duo_stream_copy) spare;	/* ended copies, for reuse */
};

/*
 * Finds or opens the stream of a device, takes a reference to it, and stores it
 * in *opened. Returns 0 or an error.
 */
int duo_stream_open(const struct duo_stream_driver *driver, uint64_t device,
		    void *context, struct duo_stream **opened);
/* Waits for all pending copies of a stream, and drops a reference to it. */
void duo_stream_close(struct duo_stream *stream);
/*
 * Starts a copy, and stores its handle. At least one of `to` and `from` must be
 * device memory. Returns 0 or -errno.
 */
int duo_stream_start(struct duo_stream *stream, void *to, const void *from,
		     size_t len, void **handle);
/* Implements near_device.done(). */
int duo_stream_done(void *handle);
/*
 * Takes a reference to a stream: to `stream` or, if it is NULL, to any open
 * stream of the driver. Returns the stream; NULL: none is open.
 */
struct duo_stream *duo_stream_hold(const struct duo_stream_driver *driver,
				   struct duo_stream *stream);
/* Drops the reference of duo_stream_hold(). */
void duo_stream_unhold(struct duo_stream *stream);
/* Waits for all copies that are pending in streams of the driver. */
void duo_stream_settle(const struct duo_stream_driver *driver);

#endif /* DUO_DEVICE_STREAM_H */
