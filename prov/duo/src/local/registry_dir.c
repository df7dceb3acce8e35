/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "local/registry.h"
#include "local/registry_dir.h"

#define DUO_LOCK_WAIT_MS 3000
#define DUO_LOCK_NAP_NS 500000
#define DUO_STATE_SETTLE_NS 50000000

static uint64_t duo_ns(const struct timespec *time)
{
	return (uint64_t) time->tv_sec * 1000000000 + time->tv_nsec;
}

static uint64_t duo_now(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return duo_ns(&now);
}

int duo_dir_lock(int fd, int operation)
{
	const struct timespec nap = { .tv_nsec = DUO_LOCK_NAP_NS };
	uint64_t end = duo_now(CLOCK_MONOTONIC) +
		       DUO_LOCK_WAIT_MS * UINT64_C(1000000);

	while (flock(fd, operation | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (duo_now(CLOCK_MONOTONIC) > end)
			return -FI_ETIMEDOUT;
		nanosleep(&nap, NULL);
	}
	return 0;
}

bool duo_dir_removed(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && st.st_nlink == 0;
}

int duo_registry_lock(const char *base, enum duo_registry_hold hold)
{
	int operation = hold == DUO_REGISTRY_ALONE ? LOCK_EX : LOCK_SH;
	int ret, fd;

	do {
		fd = duo_registry_open(base, NULL);
		if (fd < 0)
			return fd;
		ret = duo_dir_lock(fd, operation);
		if (!ret && !duo_dir_removed(fd))
			return fd;
		close(fd);
	} while (!ret);
	return ret;
}

/* A child that was forked meanwhile has the descriptor as well. */
void duo_registry_unlock(int lock)
{
	flock(lock, LOCK_UN);
	close(lock);
}

/* Removed by another one who left: what has the name now is not ours. */
void duo_registry_leave(int dir, const char *file)
{
	char path[DUO_PATH_MAX];

	if (flock(dir, LOCK_EX | LOCK_NB))
		return;
	if (!duo_dir_removed(dir)) {
		snprintf(path, sizeof(path), "%s", file);
		*strrchr(path, '/') = '\0';
		rmdir(path);
	}
	flock(dir, LOCK_UN);
}

DIR *duo_registry_list(int dir)
{
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd < 0 ? NULL : fdopendir(fd);

	if (!stream && fd >= 0)
		close(fd);
	return stream;
}

size_t duo_registry_count(int dir)
{
	DIR *stream = duo_registry_list(dir);
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
 * Its changes are only seen at the granularity of the kernel's clock, so a
 * directory that has changed a moment ago has no state yet.
 */
uint64_t duo_registry_state(int dir)
{
	struct stat st;
	uint64_t changed;

	if (fstat(dir, &st))
		return 0;
	changed = duo_ns(&st.st_mtim);
	return duo_now(CLOCK_REALTIME) < changed + DUO_STATE_SETTLE_NS ?
	       0 : changed;
}
