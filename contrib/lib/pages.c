/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Preloaded in tests: on a kernel with smaller pages, gives a process pages of
 * 64 KiB, which are the pages of some kernels for aarch64. Maps, protects and
 * unmaps only whole pages, and rejects addresses and offsets within a page.
 *
 * Differences to a kernel with pages of 64 KiB:
 * - an access behind the end of a file, within its last page, raises SIGBUS;
 * - files occupy smaller pages.
 */

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE ((size_t)65536)

static bool aligned(const void *at)
{
	return !((uintptr_t)at % PAGE);
}

static size_t whole(size_t len)
{
	return (len + PAGE - 1) / PAGE * PAGE;
}

static int call(long number, void *at, size_t len, long about)
{
	if (aligned(at))
		return (int)syscall(number, at, whole(len), about);
	errno = EINVAL;
	return -1;
}

long sysconf(int name)
{
	long (*next)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");

	return name == _SC_PAGESIZE ? (long)PAGE : next(name);
}

int getpagesize(void)
{
	return (int)PAGE;
}

static void *map(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	return (void *)syscall(SYS_mmap, at, len, prot, flags, fd, off);
}

/* Without MAP_FIXED, finds an address for whole pages first. */
void *mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	const bool fixed = flags & (MAP_FIXED | MAP_FIXED_NOREPLACE);
	uint8_t *all, *start, *end;

	if (off % (off_t)PAGE || (fixed && !aligned(at)) || !len) {
		errno = EINVAL;
		return MAP_FAILED;
	}
	len = whole(len);
	if (fixed)
		return map(at, len, prot, flags, fd, off);
	all = map(NULL, len + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		  0);
	if (all == MAP_FAILED)
		return all;
	end = all + len + PAGE;
	start = (uint8_t *)whole((uintptr_t)all);
	if (start > all)
		syscall(SYS_munmap, all, start - all);
	if (start + len < end)
		syscall(SYS_munmap, start + len, end - start - len);
	at = map(start, len, prot, flags | MAP_FIXED, fd, off);
	if (at == MAP_FAILED) {
		const int err = errno;

		syscall(SYS_munmap, start, len);
		errno = err;
	}
	return at;
}

void *mmap64(void *at, size_t len, int prot, int flags, int fd, off64_t off)
{
	return mmap(at, len, prot, flags, fd, off);
}

int munmap(void *at, size_t len)
{
	return call(SYS_munmap, at, len, 0);
}

int mprotect(void *at, size_t len, int prot)
{
	return call(SYS_mprotect, at, len, prot);
}

int madvise(void *at, size_t len, int advice)
{
	return call(SYS_madvise, at, len, advice);
}
