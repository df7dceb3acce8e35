/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Physical memory (cuMemCreate) of the stand-in: a file for each handle. Other
 * processes map a shareable handle by the file's descriptor.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "standin.h"

#define HANDLES 64
#define DESCRIPTOR 1		/* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

/* CUmemAllocationProp */
struct prop {
	int type, handle_types;
	struct { int type, id; } location;
	void *win32;
	uint8_t flags[8];
};

static struct {
	int fd, handle_types;
	unsigned int refs;	/* number of uses: the handle, and mappings */
	size_t len;
} handles[HANDLES + 1];		/* entry 0 is not used */

/* Returns a new handle. Call with "lock" held. */
static uint64_t add_handle(int fd, size_t len, int handle_types)
{
	uint64_t i = 1;

	while (handles[i].refs)
		i++;
	handles[i].fd = fd;
	handles[i].len = len;
	handles[i].handle_types = handle_types;
	handles[i].refs = 1;
	return i;
}

static void drop_handle(uint64_t handle)
{
	if (!--handles[handle].refs)
		close(handles[handle].fd);
}

/* Returns the mapping of physical memory with this address, or NULL. */
static struct mapping *find(uint64_t at)
{
	struct mapping *found;

	for (found = mappings; found < mappings + MAPPINGS; found++)
		if (found->handle && at - (uintptr_t) found->at < found->len)
			return found;
	return NULL;
}

/*
 * Takes "lock" and returns 0. If STANDIN_FAIL makes this call fail, returns an
 * error without "lock".
 */
static int begin(void)
{
	pthread_mutex_lock(&lock);
	if (!fails())
		return 0;
	pthread_mutex_unlock(&lock);
	return INVALID;
}

static int end(bool valid)
{
	pthread_mutex_unlock(&lock);
	return valid ? 0 : INVALID;
}

CALL(cuCtxGetDevice, int *device)
{
	*device = 0;
	return 0;
}

CALL(cuMemCreate, uint64_t *handle, size_t len, const struct prop *prop,
     uint64_t flags)
{
	int fd = memfd_create("stand-in", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	pthread_mutex_lock(&lock);
	if (fd >= 0 && !ftruncate(fd, (off_t) len))
		*handle = add_handle(fd, len, prop->handle_types);
	return end(fd >= 0);
}

CALL(cuMemRelease, uint64_t handle)
{
	pthread_mutex_lock(&lock);
	drop_handle(handle);
	return end(true);
}

CALL(cuMemAddressReserve, uint64_t *at, size_t len, size_t align,
     uint64_t where, uint64_t flags)
{
	void *found;

	if (begin())
		return INVALID;
	found = mmap(NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*at = (uintptr_t) found;
	return end(found != MAP_FAILED);
}

CALL(cuMemAddressFree, uint64_t at, size_t len)
{
	pthread_mutex_lock(&lock);
	return end(!find(at) && !munmap((void *) (uintptr_t) at, len));
}

CALL(cuMemMap, uint64_t at, size_t len, size_t offset, uint64_t handle,
     uint64_t flags)
{
	bool valid;

	if (begin())
		return INVALID;
	valid = !offset && len && len <= handles[handle].len && !find(at);
	if (valid) {
		add_mapping((void *) (uintptr_t) at, len, handles[handle].fd, 0)
			->handle = handle;
		handles[handle].refs++;
	}
	return end(valid);
}

CALL(cuMemUnmap, uint64_t at, size_t len)
{
	struct mapping *from;

	pthread_mutex_lock(&lock);
	from = find(at);
	if (!from || from->len != len || !drop_mapping(at))
		return end(false);
	drop_handle(from->handle);
	from->handle = 0;
	return end(mmap(from->at, len, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		   MAP_FAILED);
}

CALL(cuMemSetAccess, uint64_t at, size_t len, const void *access, size_t count)
{
	struct mapping *to;

	if (begin())
		return INVALID;
	to = find(at);
	if (to)
		to->accessible = true;
	return end(to);
}

CALL(cuMemRetainAllocationHandle, uint64_t *handle, uint64_t at)
{
	const struct mapping *found;

	if (begin())
		return INVALID;
	found = find(at);
	if (found)
		handles[*handle = found->handle].refs++;
	return end(found);
}

CALL(cuMemGetAllocationPropertiesFromHandle, struct prop *prop, uint64_t handle)
{
	if (begin())
		return INVALID;
	*prop = (struct prop) {
		.type = 1, .handle_types = handles[handle].handle_types,
	};
	return end(true);
}

CALL(cuMemExportToShareableHandle, int *fd, uint64_t handle, int type,
     uint64_t flags)
{
	if (begin())
		return INVALID;
	if (type != DESCRIPTOR || !(handles[handle].handle_types & DESCRIPTOR))
		return end(false);
	*fd = fcntl(handles[handle].fd, F_DUPFD_CLOEXEC, 0);
	return end(*fd >= 0);
}

CALL(cuMemImportFromShareableHandle, uint64_t *handle, intptr_t descriptor,
     int type)
{
	struct stat st;
	int fd;

	if (begin())
		return INVALID;
	if (type != DESCRIPTOR || fstat((int) descriptor, &st) ||
	    fcntl((int) descriptor, F_GET_SEALS) < 0)
		return end(false);
	fd = fcntl((int) descriptor, F_DUPFD_CLOEXEC, 0);
	if (fd >= 0)
		*handle = add_handle(fd, (size_t) st.st_size, DESCRIPTOR);
	return end(fd >= 0);
}
