/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A stand-in for libcuda.so.1, for tests without a GPU. The CPU cannot access
 * its device memory (PROT_NONE). Copies are asynchronous: they are executed
 * when the program waits for the stream, or queries a later event for the third
 * time.
 *
 * With STANDIN_FAIL=N the process's N-th call fails. Calls that count are
 * copies, events, queries, IPC, and those of standin_vmm.c.
 *
 * A process can open another's IPC handle if both have the same pid namespace
 * and CUDA_VISIBLE_DEVICES.
 */

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "standin.h"

/* bytes of device memory; most pages are never used */
#define SIZE ((size_t) 1 << 30)
#define COPIES 4096		/* largest number of pending copies */
#define NOT_READY 600
#define ALLOCATIONS 256
#define MEMORY_TYPE 2		/* CU_POINTER_ATTRIBUTE_MEMORY_TYPE */
#define BUFFER_ID 7		/* CU_POINTER_ATTRIBUTE_BUFFER_ID */
#define PINNED 64		/* limit of registered blocks of host memory */

struct event { uint64_t after; int polls; };

/* CUipcMemHandle */
struct handle {
	int pid, fd;
	size_t offset, len;
	char visible[40];
};

_Static_assert(sizeof(struct handle) == 64, "as in cuda.h");

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct mapping mappings[MAPPINGS];
static char *base, *shadow;
static int file = -1;
static size_t used;
static struct { char *at; size_t len; } allocations[ALLOCATIONS];
static int allocated;
static struct { char *at; size_t len; } pinned[PINNED];
static struct { char *to, *from; size_t len; } copies[COPIES];
static uint64_t begun, ended;
static long fail_at, calls;

int fails(void)
{
	return fail_at && ++calls == fail_at;
}

static char *reach(uint64_t at)
{
	uint64_t offset = at - (uintptr_t) base;
	int i;

	for (i = 0; i < MAPPINGS; i++) {
		if (at - (uintptr_t) mappings[i].at >= mappings[i].len)
			continue;
		if (!mappings[i].accessible)
			abort();
		return mappings[i].shadow + at - (uintptr_t) mappings[i].at;
	}
	return offset < SIZE ? shadow + offset : (char *) (uintptr_t) at;
}

/*
 * Executes the pending copies with numbers below "until". Call with "lock"
 * held.
 */
static void flush(uint64_t until)
{
	for (; ended < until; ended++)
		memmove(copies[ended % COPIES].to, copies[ended % COPIES].from,
			copies[ended % COPIES].len);
}

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
		file = fd;
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

/*
 * Stores the type "host memory". Returns INVALID if "at" is not in a registered
 * block of host memory.
 */
static int memory_type(unsigned int *type, uint64_t at)
{
	int i, ret = INVALID;

	pthread_mutex_lock(&lock);
	for (i = 0; i < PINNED; i++)
		if (at - (uintptr_t) pinned[i].at < pinned[i].len)
			ret = 0;
	pthread_mutex_unlock(&lock);
	*type = 1;
	return ret;
}

CALL(cuPointerGetAttribute, void *data, int attribute, uint64_t at)
{
	int i;

	if (attribute == MEMORY_TYPE)
		return memory_type(data, at);
	if (attribute != BUFFER_ID) {
		*(void **) data = &base;
		return 0;
	}
	for (i = 0; i < allocated; i++)
		if (at == (uintptr_t) allocations[i].at)
			*(uint64_t *) data = (uint64_t) i + 1;
	for (i = 0; i < MAPPINGS; i++)
		if (mappings[i].len && at == (uintptr_t) mappings[i].at)
			*(uint64_t *) data = ALLOCATIONS + mappings[i].number;
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
	if (allocated < ALLOCATIONS) {
		allocations[allocated].at = (char *) (uintptr_t) *at;
		allocations[allocated++].len = len;
	}
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

/*
 * Adds a block of registered memory. len 0: removes the block that begins at
 * this address. Returns nonzero if there is no space, or no such block.
 */
static int set_pinned(char *memory, size_t len)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < PINNED && (len ? pinned[i].len > 0 : pinned[i].at != memory))
		i++;
	if (i < PINNED) {
		pinned[i].at = len ? memory : NULL;
		pinned[i].len = len;
	}
	pthread_mutex_unlock(&lock);
	return i == PINNED;
}

CALL(cuMemHostRegister_v2, void *memory, size_t len, unsigned int flags)
{
	return set_pinned(memory, len);
}

CALL(cuMemHostUnregister, void *memory)
{
	return set_pinned(memory, 0);
}

/*
 * Finds the allocation or mapping that contains addr. Stores its start in *at
 * and its length in *len. Returns 0, or INVALID if there is none. Call with
 * "lock" held.
 */
static int range(uint64_t *at, size_t *len, uint64_t addr)
{
	int i;

	for (i = 0; i < ALLOCATIONS + MAPPINGS; i++) {
		*at = (uintptr_t) (i < ALLOCATIONS ? allocations[i].at :
				   mappings[i - ALLOCATIONS].at);
		*len = i < ALLOCATIONS ? allocations[i].len :
					 mappings[i - ALLOCATIONS].len;
		if (addr - *at < *len)
			return 0;
	}
	return INVALID;
}

CALL(cuMemGetAddressRange_v2, uint64_t *at, size_t *len, uint64_t addr)
{
	int ret;

	pthread_mutex_lock(&lock);
	ret = fails() ? INVALID : range(at, len, addr);
	pthread_mutex_unlock(&lock);
	return ret;
}

static const char *visible(void)
{
	const char *text = getenv("CUDA_VISIBLE_DEVICES");

	return text ? text : "";
}

CALL(cuIpcGetMemHandle, struct handle *handle, uint64_t addr)
{
	uint64_t at;
	size_t len;
	int ret;

	pthread_mutex_lock(&lock);
	ret = fails() ? INVALID : range(&at, &len, addr);
	pthread_mutex_unlock(&lock);
	if (ret || at - (uintptr_t) base >= SIZE)
		return INVALID;
	*handle = (struct handle) {
		.pid = getpid(), .fd = file, .offset = at - (uintptr_t) base,
		.len = len,
	};
	strncpy(handle->visible, visible(), sizeof(handle->visible) - 1);
	return 0;
}

struct mapping *add_mapping(void *at, size_t len, int fd, size_t offset)
{
	static unsigned int number;
	struct mapping *to = mappings;

	while (to->len)
		if (++to == mappings + MAPPINGS)
			abort();
	*to = (struct mapping) {
		.at = mmap(at, len, PROT_NONE,
			   MAP_SHARED | (at ? MAP_FIXED : 0), fd,
			   (off_t) offset),
		.shadow = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED,
			       fd, (off_t) offset),
		.len = len, .number = ++number,
	};
	if (to->at == MAP_FAILED || to->shadow == MAP_FAILED)
		abort();
	return to;
}

struct mapping *drop_mapping(uint64_t at)
{
	struct mapping *from = mappings;

	flush(begun);
	while (!from->len || (uintptr_t) from->at != at)
		if (++from == mappings + MAPPINGS)
			return NULL;
	munmap(from->shadow, from->len);
	from->len = 0;
	return from;
}

CALL(cuIpcOpenMemHandle_v2, uint64_t *at, struct handle handle,
     unsigned int flags)
{
	struct mapping *to;
	int fd, ret = INVALID;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle.pid, handle.fd);
	if (handle.pid == getpid() || strcmp(handle.visible, visible()))
		return INVALID;
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return INVALID;
	pthread_mutex_lock(&lock);
	if (!fails()) {
		to = add_mapping(NULL, handle.len, fd, handle.offset);
		to->accessible = true;
		*at = (uintptr_t) to->at;
		ret = 0;
	}
	pthread_mutex_unlock(&lock);
	close(fd);
	return ret;
}

CALL(cuIpcCloseMemHandle, uint64_t at)
{
	const struct mapping *from;
	size_t len;
	int ret;

	pthread_mutex_lock(&lock);
	ret = range(&at, &len, at);
	from = ret ? NULL : drop_mapping(at);
	if (from)
		munmap(from->at, len);
	pthread_mutex_unlock(&lock);
	return !from;
}

CALL(cuCtxEnablePeerAccess, void *context, unsigned int flags)
{
	return 0;
}

CALL(cuMemcpyPeerAsync, uint64_t to, void *to_context, uint64_t from,
     void *from_context, size_t len, void *stream)
{
	return cuMemcpyAsync(to, from, len, stream);
}
