/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Exchange by a directory that all hosts share. Each value is a file, made
 * visible by rename(). For each fence, each process creates a file. Rank 0
 * removes all files at the end.
 */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "launch.h"

static int dir_fences;
static bool dir_late;	/* a process did not appear; dir_end() does not wait */

static int dir_failed(const char *path)
{
	launch_say("--mpi: %s: %s; --dir must name a directory that this "
		   "user may write, the same on all hosts", path,
		   strerror(errno));
	return -1;
}

static int dir_path(struct launch *launch, const char *key, char *path,
		    size_t size)
{
	int len = snprintf(path, size, "%s/%s", launch->dir, key);

	if (len >= 0 && (size_t) len < size)
		return 0;
	errno = ENAMETOOLONG;
	return dir_failed(launch->dir);
}

static int dir_put(struct launch *launch, const char *key, const char *value)
{
	char path[PATH_MAX], aside[PATH_MAX + 8];
	FILE *file;

	if (dir_path(launch, key, path, sizeof(path)))
		return -1;
	snprintf(aside, sizeof(aside), "%s.new", path);
	file = fopen(aside, "we");
	if (!file)
		return dir_failed(aside);
	fputs(value, file);
	if (fclose(file) || rename(aside, path))
		return dir_failed(path);
	return 0;
}

static int dir_get(struct launch *launch, int rank, const char *key,
		   char *value, size_t size)
{
	char path[PATH_MAX];
	FILE *file;

	(void) rank;
	if (dir_path(launch, key, path, sizeof(path)))
		return -1;
	file = fopen(path, "re");
	if (!file)
		return dir_failed(path);
	if (!fgets(value, (int) size, file))
		value[0] = '\0';
	fclose(file);
	return 0;
}

static void dir_fence_key(char *key, size_t size, int fence, int rank)
{
	snprintf(key, size, LAUNCH_PREFIX "fence.%d.%d", fence, rank);
}

/*
 * Waits for the fence file of RANK. The sleeps become longer, to reduce the
 * load of the file server. Returns 0 or -1.
 */
static int dir_await(struct launch *launch, int rank, time_t end)
{
	struct timespec interval = { .tv_nsec = 1000000 };
	char key[64], path[PATH_MAX];

	dir_fence_key(key, sizeof(key), dir_fences, rank);
	if (dir_path(launch, key, path, sizeof(path)))
		return -1;
	while (access(path, F_OK)) {
		if (time(NULL) > end) {
			dir_late = true;
			launch_say("--mpi: rank %d of %d did not appear in %s "
				   "within %d s: check that it was started, "
				   "and that the directory is the same there",
				   rank, launch->size, launch->dir,
				   launch->timeout);
			return -1;
		}
		nanosleep(&interval, NULL);
		if (interval.tv_nsec < 100000000)
			interval.tv_nsec *= 2;
	}
	return 0;
}

static int dir_fence(struct launch *launch)
{
	time_t end = time(NULL) + launch->timeout;
	char key[64];
	int rank;

	dir_fence_key(key, sizeof(key), dir_fences, launch->rank);
	if (dir_put(launch, key, ""))
		return -1;
	for (rank = 0; rank < launch->size; rank++)
		if (dir_await(launch, rank, end))
			return -1;
	dir_fences++;
	return 0;
}

static void dir_clean(struct launch *launch)
{
	DIR *dir = opendir(launch->dir);
	const struct dirent *entry;

	if (!dir)
		return;
	while ((entry = readdir(dir)))
		if (!strncmp(entry->d_name, LAUNCH_PREFIX, strlen(LAUNCH_PREFIX)))
			unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

/* In rank 0, waits until all others have called this function; cleans up. */
static void dir_end(struct launch *launch)
{
	time_t end = time(NULL) + launch->timeout;
	char key[64];
	int rank;

	dir_fence_key(key, sizeof(key), dir_fences, launch->rank);
	if (launch->rank) {
		dir_put(launch, key, "");
		return;
	}
	for (rank = 1; rank < launch->size && !dir_late; rank++)
		if (dir_await(launch, rank, end))
			break;
	dir_clean(launch);
}

static const struct launch_ops dir_ops = {
	.put = dir_put,
	.fence = dir_fence,
	.get = dir_get,
	.end = dir_end,
};

int launch_dir_begin(struct launch *launch)
{
	char key[64], path[PATH_MAX];

	dir_fence_key(key, sizeof(key), 0, launch->rank);
	if (dir_path(launch, key, path, sizeof(path)))
		return -1;
	if (!access(path, F_OK)) {
		launch_say("--mpi: %s has files of another job: remove "
			   LAUNCH_PREFIX "* there, or name another directory with "
			   "--dir", launch->dir);
		return -1;
	}
	launch->ops = &dir_ops;
	return 0;
}
