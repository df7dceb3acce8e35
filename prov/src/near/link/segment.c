/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/link/segment.h"

#define NEAR_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
/* bytes that the owner allocates: up to the end of the first page of claims */
#define NEAR_SEGMENT_FIRST (offsetof(struct near_segment, claim) + NEAR_PAGE)

/*
 * Maps span bytes of the file, of which the first size bytes are accessible.
 * Without PROT_NONE, mmap() would allocate all span bytes if the process has
 * called mlockall().
 */
static int near_map(int fd, size_t offset, size_t span, size_t size,
		    void **memory)
{
	void *map;
	int ret;

	assert(!(offset % near_page_size()));
	map = mmap(NULL, span, PROT_NONE, MAP_SHARED, fd, (off_t)offset);
	if (map == MAP_FAILED)
		return -errno;
	/* otherwise a core dump would read all pages, and so allocate them */
	madvise(map, span, MADV_DONTDUMP);
	ret = near_ring_extend(map, size);
	if (ret) {
		munmap(map, span);
		return ret;
	}
	*memory = map;
	return 0;
}

int near_ring_extend(void *ring, size_t size)
{
	return mprotect(ring, size, PROT_READ | PROT_WRITE) ? -errno : 0;
}

int near_segment_reserve(int fd, size_t offset, size_t size)
{
	int ret;

	if (!near_group_has(size))
		return -ENOMEM;
	do
		ret = fallocate(fd, 0, (off_t)offset, (off_t)size);
	while (ret && errno == EINTR);
	return ret ? -ENOMEM : 0;
}

/*
 * Sets the size of the file. Returns 0 or -errno; -EFBIG: size exceeds
 * RLIMIT_FSIZE, and ftruncate() would raise SIGXFSZ.
 */
static int near_segment_resize(int fd, size_t size)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < size)
		return -EFBIG;
	return ftruncate(fd, (off_t)size) ? -errno : 0;
}

int near_segment_file(const char *name, size_t size, size_t first)
{
	int ret, fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	/* EPERM: a seccomp filter disables memfd_create() */
	if (fd < 0)
		return errno == EPERM ? -ENOSYS : -errno;
	ret = near_segment_resize(fd, size);
	if (!ret)
		ret = fcntl(fd, F_ADD_SEALS, NEAR_SEALS) ? -errno :
			near_segment_reserve(fd, 0, first);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int near_segment_create(struct near_segment **segment, uint32_t growing,
			uint64_t nonce, bool fence)
{
	int ret, fd = near_segment_file("near", near_segment_size(growing),
					NEAR_SEGMENT_FIRST);
	void *map = NULL;

	if (fd < 0)
		return fd;
	ret = near_map(fd, 0, sizeof(**segment), sizeof(**segment), &map);
	if (ret) {
		close(fd);
		return ret;
	}
	*segment = map;
	(*segment)->layout = NEAR_LAYOUT;
	(*segment)->nonce = nonce;
	(*segment)->growing = growing;
	(*segment)->page = (uint32_t)near_page_size();
	(*segment)->flags = fence ? NEAR_SEGMENT_FENCE : 0;
	(*segment)->wake_fd = -1;
	(*segment)->table_fd = -1;
	__atomic_store_n(&(*segment)->magic, NEAR_MAGIC, __ATOMIC_RELEASE);
	return fd;
}

void near_segment_clear(int fd, size_t offset, size_t size)
{
	static const char zeros[NEAR_PAGE];

	if (!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		       (off_t)offset, (off_t)size))
		return;
	for (; size; offset += sizeof(zeros), size -= sizeof(zeros))
		(void)!pwrite(fd, zeros, sizeof(zeros), (off_t)offset);
}

int near_segment_check_file(int fd, size_t *size)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -ENOENT;
	if (fstat(fd, &st))
		return -errno;
	*size = (size_t)st.st_size;
	return *size > sizeof(struct near_segment) ? 0 : -ENOENT;
}

static int near_segment_check_head(const struct near_segment *head, size_t size,
				   uint64_t nonce, uint32_t *growing)
{
	if (__atomic_load_n(&head->magic, __ATOMIC_ACQUIRE) != NEAR_MAGIC ||
	    head->layout != NEAR_LAYOUT || head->nonce != nonce)
		return -ENOENT;
	if (head->page != near_page_size())
		return -ENOTSUP;
	*growing = __atomic_load_n(&head->growing, __ATOMIC_RELAXED);
	return *growing <= NEAR_SENDERS && near_segment_size(*growing) == size
		       ? 0
		       : -ENOENT;
}

int near_segment_open(struct near_segment **segment, uint32_t *growing, int fd,
		      uint64_t nonce)
{
	void *map = NULL;
	size_t size = 0;
	int ret;

	ret = near_segment_check_file(fd, &size);
	if (!ret)
		ret = near_map(fd, 0, sizeof(**segment), sizeof(**segment),
			       &map);
	if (ret)
		return ret;
	ret = near_segment_check_head(map, size, nonce, growing);
	if (ret)
		munmap(map, sizeof(**segment));
	else
		*segment = map;
	return ret;
}

void near_segment_close(struct near_segment *segment)
{
	munmap(segment, sizeof(*segment));
}

int near_ring_map(int fd, const struct near_place *place, void **ring)
{
	return near_map(fd, place->offset, place->span, place->size, ring);
}
