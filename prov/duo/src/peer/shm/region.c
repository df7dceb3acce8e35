/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "peer/shm/region.h"
#include "peer/shm/shm.h"

/* fd -1: any memory. */
static int duo_region_try(size_t size, int prot, int flags, int fd)
{
	void *map = mmap(NULL, size, prot, flags, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	munmap(map, size);
	return 0;
}

/* Each region is about as large as the next. */
static int duo_region_room(size_t size, size_t pending)
{
	struct rlimit limit;

	if (!pending || getrlimit(RLIMIT_AS, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY)
		return 0;
	return duo_region_try(size * (pending + 1), PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

int duo_region_probe(const char *name, size_t pending)
{
	struct stat st;
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		ret = -errno;
	else if (!st.st_size)
		ret = -FI_ENODATA;
	else
		ret = duo_region_try(st.st_size, PROT_READ | PROT_WRITE,
				     MAP_SHARED, fd);
	close(fd);
	return ret ? ret : duo_region_room(st.st_size, pending);
}

bool duo_region_exists(const char *name)
{
	char path[sizeof(DUO_DEV_SHM "/") + DUO_PEER_NAME_MAX];

	snprintf(path, sizeof(path), DUO_DEV_SHM "/%s", name);
	return !access(path, F_OK);
}
