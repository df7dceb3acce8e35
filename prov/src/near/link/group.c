/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory limits of Linux's control groups (cgroups). The limits of the
 * process's group and of all its ancestors apply. In version 1, memory has its
 * own hierarchy of groups; in version 2, all resources share one.
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc.h"
#include "near/link/segment.h"

#define NEAR_GROUPS 8	/* maximum number of groups in near_groups */
#define NEAR_GROUP_PATH 512	/* buffer size for a path, bytes */
#define NEAR_GROUP_TEXT 8192	/* buffer size for a file, bytes */

/* Index 0: version 1 of control groups; 1: version 2. */
static const struct near_group_names {
	const char *mount, *limit, *used;
	/* words in memory.stat that precede the two sizes of the page cache */
	const char *cache[2];
} near_group_names[] = {
	{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  { "total_inactive_file ", "total_active_file " } },
	{ "/sys/fs/cgroup", "memory.max", "memory.current",
	  { "inactive_file ", "active_file " } },
};

/* This process's control groups and their ancestors: those with a limit. */
static struct {
	char dir[NEAR_GROUPS][NEAR_GROUP_PATH];
	bool v2[NEAR_GROUPS];
	int count;
} near_groups;

static bool near_group_read(const char *dir, const char *name, char *text)
{
	char path[NEAR_GROUP_PATH + 32];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return duo_proc_read(path, text, NEAR_GROUP_TEXT) > 0;
}

/*
 * Reads a number from a file. False: the file does not exist, or has no number
 * ("max": no limit).
 */
static bool near_group_number(const char *dir, const char *name,
			      uint64_t *number)
{
	char text[NEAR_GROUP_TEXT];

	return near_group_read(dir, name, text) &&
	       sscanf(text, "%" SCNu64, number) == 1;
}

/* Returns the number after `word` in the line that begins with it; 0: none. */
static uint64_t near_group_line(const char *text, const char *word)
{
	const size_t len = strlen(word);
	const char *at = text;

	while (at && strncmp(at, word, len)) {
		at = strchr(at, '\n');
		if (at)
			at++;
	}
	return at ? strtoull(at + len, NULL, 10) : 0;
}

/* Returns the size of the group's reclaimable page cache in bytes. */
static uint64_t near_group_cache(const char *dir,
				 const struct near_group_names *names)
{
	char text[NEAR_GROUP_TEXT];

	if (!near_group_read(dir, "memory.stat", text))
		return 0;
	return near_group_line(text, names->cache[0]) +
	       near_group_line(text, names->cache[1]);
}

bool near_group_dir_has(const char *dir, bool v2, size_t size)
{
	const struct near_group_names *names = &near_group_names[v2];
	uint64_t limit, used, want = (uint64_t)size + NEAR_GROUP_SPARE;

	if (!near_group_number(dir, names->limit, &limit) ||
	    !near_group_number(dir, names->used, &used) ||
	    used + want <= limit)
		return true;
	return used + want <= limit + near_group_cache(dir, names);
}

/* Adds the group of directory dir if it has a limit. */
static void near_group_add(const char *dir, bool v2)
{
	int i = near_groups.count;
	uint64_t limit;

	if (i == NEAR_GROUPS || strlen(dir) >= NEAR_GROUP_PATH ||
	    !near_group_number(dir, near_group_names[v2].limit, &limit) ||
	    limit > INT64_MAX / 2)	/* in version 1: no limit */
		return;
	strcpy(near_groups.dir[i], dir);
	near_groups.v2[i] = v2;
	near_groups.count++;
}

/* Adds the control group `path` and its ancestors, up to the mount point. */
static void near_group_add_all(char *path, bool v2)
{
	const char *mount = near_group_names[v2].mount;
	char dir[2 * NEAR_GROUP_PATH];
	char *end;

	path[strcspn(path, "\n")] = '\0';
	while ((end = strrchr(path, '/')) && end[1]) {
		snprintf(dir, sizeof(dir), "%s%s", mount, path);
		near_group_add(dir, v2);
		*end = '\0';
		if (end == path)
			break;
	}
	near_group_add(mount, v2);
}

/* Fills near_groups. A line of the file is NUMBER:CONTROLLERS:PATH. */
static void near_groups_find(void)
{
	char line[NEAR_GROUP_PATH], *path;
	FILE *file = fopen("/proc/self/cgroup", "re");

	while (file && fgets(line, sizeof(line), file)) {
		path = strchr(line, ':');
		if (path && !strncmp(path, "::", 2))
			near_group_add_all(path + 2, true);
		else if (path && !strncmp(path, ":memory:", 8))
			near_group_add_all(path + 8, false);
	}
	if (file)
		fclose(file);
}

bool near_group_has(size_t size)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	int i;

	pthread_once(&once, near_groups_find);
	for (i = 0; i < near_groups.count; i++)
		if (!near_group_dir_has(near_groups.dir[i], near_groups.v2[i],
					size))
			return false;
	return true;
}
