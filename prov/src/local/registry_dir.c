/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "local/registry.h"
#include "local/registry_record.h"

/* longest wait for a lock while no name in the directory changes, ms */
#define DUO_LOCK_WAIT_MS 3000
#define DUO_LOCK_LAST_MS 60000	/* longest total wait for a lock, ms */
#define DUO_LOCK_RETRY_NS 500000 /* time between two attempts to lock, ns */
#define DUO_STATE_SETTLE_NS 50000000
/* number of lookups that together cost as much as reading the names */
#define DUO_INDEX_LOOKUPS 16
#define DUO_COUNT_NAME (1 + DUO_HASH_DIGITS + 1)

static uint64_t duo_ns(const struct timespec *time)
{
	return (uint64_t) time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Returns the time when a name was last added or removed, ns; 0: unknown. */
static uint64_t duo_dir_changed(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? 0 : duo_ns(&st.st_mtim);
}

int duo_dir_lock(int fd, int operation)
{
	const struct timespec interval = { .tv_nsec = DUO_LOCK_RETRY_NS };
	uint64_t last = duo_now_ms() + DUO_LOCK_LAST_MS;
	uint64_t changed, seen = UINT64_MAX, end = 0;

	while (flock(fd, operation | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		changed = duo_dir_changed(fd);
		if (changed != seen)
			end = duo_now_ms() + DUO_LOCK_WAIT_MS;
		if (duo_now_ms() > (end < last ? end : last))
			return -FI_ETIMEDOUT;
		seen = changed;
		nanosleep(&interval, NULL);
	}
	return 0;
}

bool duo_dir_removed(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_nlink == 0;
}

int duo_registry_lock(const char *base, enum duo_registry_lock_mode mode)
{
	int operation = mode == DUO_REGISTRY_EXCLUSIVE ? LOCK_EX : LOCK_SH;
	int ret, fd;

	do {
		fd = duo_registry_open(base, NULL);
		if (fd < 0)
			return fd == -FI_ETIMEDOUT ? -FI_EBUSY : fd;
		ret = duo_dir_lock(fd, operation);
		if (!ret && !duo_dir_removed(fd))
			return fd;
		close(fd);
	} while (!ret);
	return ret;
}

/*
 * Unlocks explicitly. close() alone would not release the lock while a forked
 * child has the file descriptor, too.
 */
void duo_registry_unlock(int lock)
{
	flock(lock, LOCK_UN);
	close(lock);
}

/*
 * Stores the name of the file whose length is the count of endpoints with this
 * compat_id.
 */
static void duo_count_name(uint64_t compat_id, char *name)
{
	snprintf(name, DUO_COUNT_NAME, ".%016" PRIx64, compat_id);
}

int duo_registry_count_ep(int dir, uint64_t compat_id)
{
	char name[DUO_COUNT_NAME];
	off_t end = -1;
	int fd;

	duo_count_name(compat_id, name);
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW |
		    O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, "", 1) == 1)
		end = lseek(fd, 0, SEEK_CUR);
	close(fd);
	return end < 0 ? -FI_ENOSPC : (int) end;
}

void duo_registry_reset_count(int dir, uint64_t compat_id)
{
	char name[DUO_COUNT_NAME];

	duo_count_name(compat_id, name);
	unlinkat(dir, name, 0);
}

/* Removes the counts of endpoints, if the directory has no other files. */
static void duo_dir_clear(int dir)
{
	DIR *stream = duo_dir_list(dir);
	struct dirent *entry;
	bool empty = true;

	if (!stream)
		return;
	while (empty && (entry = readdir(stream)))
		empty = entry->d_name[0] == '.';
	rewinddir(stream);
	while (empty && (entry = readdir(stream)))
		if (duo_registry_is_record(entry->d_name + 1))
			unlinkat(dir, entry->d_name, 0);
	closedir(stream);
}

/*
 * If another process has already removed this directory, does nothing, because
 * the path may belong to a new directory.
 */
void duo_registry_leave(int dir, const char *file)
{
	char path[DUO_PATH_MAX];

	if (flock(dir, LOCK_EX | LOCK_NB))
		return;
	if (!duo_dir_removed(dir)) {
		snprintf(path, sizeof(path), "%s", file);
		*strrchr(path, '/') = '\0';
		duo_dir_clear(dir);
		rmdir(path);
	}
	flock(dir, LOCK_UN);
}

size_t duo_registry_count(int dir)
{
	DIR *stream = duo_dir_list(dir);
	struct dirent *entry;
	size_t count = 0;

	if (!stream)
		return 0;
	while ((entry = readdir(stream)))
		count += duo_registry_is_record(entry->d_name);
	closedir(stream);
	return count;
}

/*
 * The result is the directory's modification time. The kernel takes this time
 * from a coarse clock, so two changes may get the same time. If a change was
 * less than DUO_STATE_SETTLE_NS ago, a later change might not change the
 * result. Returns 0 then.
 */
uint64_t duo_registry_state(int dir)
{
	uint64_t changed = duo_dir_changed(dir);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return duo_ns(&now) < changed + DUO_STATE_SETTLE_NS ? 0 : changed;
}

const struct duo_registry_index *
duo_registry_index_read(struct duo_registry_index *index, int dir,
			size_t lookups)
{
	DIR *stream = lookups < DUO_INDEX_LOOKUPS ? NULL : duo_dir_list(dir);
	struct dirent *entry;
	size_t bit;
	int err;

	if (!stream)
		return NULL;
	memset(index, 0, sizeof(*index));
	while (errno = 0, (entry = readdir(stream))) {
		if (!duo_registry_is_record(entry->d_name))
			continue;
		bit = strtoull(entry->d_name, NULL, 16) % DUO_INDEX_BITS;
		index->bits[bit / 8] |= 1 << (bit % 8);
	}
	err = errno;
	closedir(stream);
	return err ? NULL : index;
}

bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key)
{
	size_t bit = key % DUO_INDEX_BITS;

	return !index || index->bits[bit / 8] & (1 << (bit % 8));
}
