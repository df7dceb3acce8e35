/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Pages of /dev/shm for an endpoint's region. shm only maps its region, and
 * to use a page that /dev/shm has no room for is SIGBUS.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "shm/shm.h"

/* Under a limit of address space: shm maps regions when it needs them. */
static bool duo_room_maps(void)
{
	const size_t size = (size_t) DUO_SHM_ENDPOINTS * DUO_SHM_REGION;
	struct rlimit limit;
	void *map;

	if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY)
		return true;
	map = mmap(NULL, size, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	return map != MAP_FAILED && !munmap(map, size);
}

int duo_room_check(void)
{
	struct statvfs st;
	struct rlimit limit;

	if (!duo_room_maps())
		return -FI_ENOMEM;
	/* A file that becomes longer ends its process by SIGXFSZ. */
	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur < DUO_SHM_REGION)
		return -EFBIG;
	if (statvfs(DUO_DEV_SHM, &st))
		return -errno;
	/* f_blocks is 0 where there is no limit */
	return st.f_blocks && (uint64_t) st.f_bavail * st.f_bsize <
	       DUO_SHM_REGION ? -FI_ENOSPC : 0;
}

/* Gives a region its pages, those that are there already stay. */
static int duo_room_allocate(const char *name)
{
	struct stat st;
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : -posix_fallocate(fd, 0, st.st_size);
	close(fd);
	return ret;
}

int duo_room_enable(struct fid_ep *shm, const char *name)
{
	int ret = fi_enable(shm);

	return ret ? ret : duo_room_allocate(name);
}
