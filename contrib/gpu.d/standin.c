/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A stand-in for libcuda.so.1, for tests without a GPU. The CPU cannot access
 * its memory (PROT_NONE). Its copies are asynchronous: the bytes are copied
 * when the program waits for the stream, or queries an event behind the copy
 * for the third time. STANDIN_FAIL=N: copy, event or query number N of the
 * process fails.
 */

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* size of all memory, bytes; most pages are never used */
#define SIZE ((size_t) 1 << 30)
#define COPIES 4096		/* largest number of pending copies */
#define NOT_READY 600

struct event { uint64_t after; int polls; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *base, *shadow;
static size_t used;
static struct { char *to, *from; size_t len; } copies[COPIES];
static uint64_t begun, ended;
static long fail_at, calls;

static int fails(void)
{
	return fail_at && ++calls == fail_at;
}

static char *reach(uint64_t at)
{
	uint64_t offset = at - (uintptr_t) base;

	return offset < SIZE ? shadow + offset : (char *) (uintptr_t) at;
}

/*
 * Executes all copies that were started up to this one. The caller holds the
 * lock.
 */
static void flush(uint64_t until)
{
	for (; ended < until; ended++)
		memmove(copies[ended % COPIES].to, copies[ended % COPIES].from,
			copies[ended % COPIES].len);
}

#define CALL(name, ...) int name(__VA_ARGS__); int name(__VA_ARGS__)

CALL(cuInit, unsigned int flags)
{
	int fd;

	pthread_mutex_lock(&lock);
	if (!base) {
		fd = memfd_create("stand-in", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, SIZE))
			abort();
		base = mmap(NULL, SIZE, PROT_NONE, MAP_SHARED, fd, 0);
		shadow = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
			      fd, 0);
		close(fd);
		fail_at = getenv("STANDIN_FAIL") ?
			  atol(getenv("STANDIN_FAIL")) : 0;
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

CALL(cuDeviceGetCount, int *count)
{
	*count = 2;
	return 0;
}

CALL(cuDeviceGetName, char *name, int len, int device)
{
	strncpy(name, "stand-in", (size_t) len);
	return 0;
}

CALL(cuPointerGetAttribute, void *data, int attribute, uint64_t at)
{
	*(void **) data = &base;
	return 0;
}

CALL(cuPointerSetAttribute, const void *data, int attribute, uint64_t at)
{
	return 0;
}

CALL(cuDevicePrimaryCtxRetain, void **context, int device)
{
	*context = &base;
	return 0;
}

CALL(cuDevicePrimaryCtxRelease_v2, int device)
{
	return 0;
}

CALL(cuCtxSetCurrent, void *context)
{
	return 0;
}

CALL(cuCtxPushCurrent_v2, void *context)
{
	return 0;
}

CALL(cuCtxPopCurrent_v2, void **context)
{
	*context = &base;
	return 0;
}

CALL(cuMemAlloc_v2, uint64_t *at, size_t len)
{
	pthread_mutex_lock(&lock);
	*at = (uintptr_t) base + used;
	used += (len + 4095) & ~(size_t) 4095;
	pthread_mutex_unlock(&lock);
	return used > SIZE;
}

CALL(cuMemAllocHost_v2, void **at, size_t len)
{
	*at = malloc(len);
	return !*at;
}

CALL(cuStreamCreate, void **stream, unsigned int flags)
{
	*stream = &begun;
	return 0;
}

CALL(cuStreamDestroy_v2, void *stream)
{
	return 0;
}

CALL(cuMemcpyAsync, uint64_t to, uint64_t from, size_t len, void *stream)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = fails();
	if (!ret) {
		if (begun - ended == COPIES)
			flush(begun);
		copies[begun % COPIES].to = reach(to);
		copies[begun % COPIES].from = reach(from);
		copies[begun++ % COPIES].len = len;
	}
	pthread_mutex_unlock(&lock);
	return ret;
}

CALL(cuStreamSynchronize, void *stream)
{
	pthread_mutex_lock(&lock);
	flush(begun);
	pthread_mutex_unlock(&lock);
	return 0;
}

CALL(cuCtxSynchronize, void)
{
	return cuStreamSynchronize(NULL);
}

CALL(cuMemcpyDtoH_v2, void *to, uint64_t from, size_t len)
{
	cuStreamSynchronize(NULL);
	memcpy(to, reach(from), len);
	return 0;
}

CALL(cuMemcpyHtoD_v2, uint64_t to, const void *from, size_t len)
{
	cuStreamSynchronize(NULL);
	memcpy(reach(to), from, len);
	return 0;
}

CALL(cuEventCreate, void **event, unsigned int flags)
{
	*event = calloc(1, sizeof(struct event));
	return !*event;
}

CALL(cuEventDestroy_v2, void *event)
{
	free(event);
	return 0;
}

CALL(cuEventRecord, void *event, void *stream)
{
	struct event *at = event;

	at->after = begun;
	at->polls = 2;
	return fails();
}

CALL(cuEventQuery, void *event)
{
	struct event *at = event;

	if (fails())
		return 1;
	if (at->polls-- > 0)
		return NOT_READY;
	pthread_mutex_lock(&lock);
	flush(at->after);
	pthread_mutex_unlock(&lock);
	return 0;
}

CALL(cuMemHostRegister_v2, void *memory, size_t len, unsigned int flags)
{
	return 0;
}

CALL(cuMemHostUnregister, void *memory)
{
	return 0;
}
