/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "guard.h"

#define GUARD_RANGES 8
#define GUARD_MAPS 512

static struct {
	uintptr_t start, end;
} permitted[GUARD_RANGES];
static unsigned int ranges;
static struct {
	void *at;
	size_t len;
} maps[GUARD_MAPS];

void guard_permit(void *memory, size_t len)
{
	if (ranges == GUARD_RANGES)
		abort();
	permitted[ranges].start = (uintptr_t)memory;
	permitted[ranges++].end = (uintptr_t)memory + len;
}

static bool guard_may(const struct iovec *iov)
{
	uintptr_t at = (uintptr_t)iov->iov_base;
	unsigned int i;

	for (i = 0; i < ranges; i++)
		if (at >= permitted[i].start && at <= permitted[i].end &&
		    iov->iov_len <= permitted[i].end - at)
			return true;
	return false;
}

void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t from);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t from);
int __real_munmap(void *at, size_t len);
int __wrap_munmap(void *at, size_t len);

static size_t guard_page(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t guard_pages(size_t len)
{
	return (len + guard_page() - 1) / guard_page() * guard_page();
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t from)
{
	char *all, *got;
	int i = 0;

	if (at)
		abort();	/* near lets the kernel choose the address */
	while (maps[i].at)
		if (++i == GUARD_MAPS)
			abort();
	all = __real_mmap(NULL, guard_pages(len) + 2 * guard_page(), PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (all == MAP_FAILED)
		return all;
	got = __real_mmap(all + guard_page(), len, prot, flags | MAP_FIXED, fd,
			  from);
	if (got == MAP_FAILED) {
		__real_munmap(all, guard_pages(len) + 2 * guard_page());
		return got;
	}
	maps[i].at = got;
	maps[i].len = len;
	return got;
}

int __wrap_munmap(void *at, size_t len)
{
	int i;

	for (i = 0; i < GUARD_MAPS; i++) {
		if (maps[i].at != at)
			continue;
		if (maps[i].len != len)
			abort();
		maps[i].at = NULL;
		return __real_munmap((char *)at - guard_page(),
				     guard_pages(len) + 2 * guard_page());
	}
	abort();
}

#define GUARD_PARAMS							\
	pid_t pid, const struct iovec *here, unsigned long heres,	\
	const struct iovec *there, unsigned long theres, unsigned long flags

#define GUARD_CALL(name)						\
	ssize_t __real_##name(GUARD_PARAMS);				\
	ssize_t __wrap_##name(GUARD_PARAMS);				\
	ssize_t __wrap_##name(GUARD_PARAMS)				\
	{								\
		if (theres != 1 || !guard_may(there)) {			\
			errno = EFAULT;					\
			return -1;					\
		}							\
		return __real_##name(pid, here, heres, there, theres,	\
				     flags);				\
	}

GUARD_CALL(process_vm_readv)
GUARD_CALL(process_vm_writev)
