/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Memory control groups: available memory, and a group at its limit */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define MIB (1ul << 20)
#define V1 "/sys/fs/cgroup/memory"
#define V2 "/sys/fs/cgroup"

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	int fd;

	if (!text)
		return;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

/* has: the group has 64 MiB available, in addition to NEAR_GROUP_SPARE */
static const struct {
	const char *name, *limit, *used, *stat;
	bool v2, has;
} dirs[] = {
	{ "v2, none", "max\n", "99999999\n", NULL, true, true },
	{ "v2, enough", "134217728\n", "66060288\n", NULL, true, true },
	{ "v2, a byte less", "134217728\n", "66060289\n", NULL, true, false },
	{ "v2, over it", "134217728\n", "999999999\n", NULL, true, false },
	{ "v2, files go", "134217728\n", "134217728\n", "anon 1\n"
	  "inactive_file 60000000\nactive_file 10000000\n", true, true },
	{ "v2, too few go", "134217728\n", "134217728\n", "anon 99999999\n"
	  "file 99999999\ninactive_file 100\nactive_file 100\n", true, false },
	{ "v1, enough", "134217728\n", "66060288\n", NULL, false, true },
	{ "v1, a byte less", "134217728\n", "66060289\n", NULL, false, false },
	{ "v1, files of all go", "134217728\n", "134217728\n",
	  "inactive_file 0\ntotal_inactive_file 60000000\n"
	  "total_active_file 10000000\n", false, true },
	{ "no files", NULL, NULL, NULL, true, true },
	{ "empty", "", "", "", true, true },
};

UNIT_CASE("group", NULL, NULL);

UNIT_LOOP(limit_of_group_is_read, 0, ARRAY_SIZE(dirs))
{
	char dir[] = "/tmp/near-group-XXXXXX";

	ck_assert_ptr_nonnull(mkdtemp(dir));
	put(dir, dirs[_i].v2 ? "memory.max" : "memory.limit_in_bytes",
	    dirs[_i].limit);
	put(dir, dirs[_i].v2 ? "memory.current" : "memory.usage_in_bytes",
	    dirs[_i].used);
	put(dir, "memory.stat", dirs[_i].stat);
	ck_assert_msg(near_group_dir_has(dir, dirs[_i].v2, 64 * MIB) ==
		      dirs[_i].has, "%s", dirs[_i].name);
	ck_assert_int_eq(chdir(dir), 0);
	unlink("memory.max");
	unlink("memory.limit_in_bytes");
	unlink("memory.current");
	unlink("memory.usage_in_bytes");
	unlink("memory.stat");
	ck_assert_int_eq(rmdir(dir), 0);
}

/* Makes a control group with a limit of 64 MiB. False: not permitted. */
static bool make_group(char *dir, size_t size)
{
	const char *const mounts[] = { V1, V2 };
	const char *const limits[] = { "memory.limit_in_bytes", "memory.max" };
	char path[256];
	int i;

	for (i = 0; i < 2; i++) {
		snprintf(dir, size, "%s/near-test-XXXXXX", mounts[i]);
		if (!mkdtemp(dir))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, limits[i]);
		if (!access(path, W_OK)) {
			put(dir, limits[i], "67108864");
			return true;
		}
		rmdir(dir);
	}
	return false;
}

static void enter(const char *dir)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", getpid());
	put(dir, "cgroup.procs", pid);
}

/*
 * Allocates until near_group_has() denies a page. Returns 0: success; 2 or 3: a
 * send had the wrong result; 77: near_group_has() denied no page.
 */
static int at_the_limit(void)
{
	struct rig *a, *b;
	struct near_peer *to_b;
	size_t size = 64 * MIB;
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	size_t i = 0;

	to_b = rig_pair(&a, &b, false);
	while (i < size && near_group_has(NEAR_PAGE)) {
		memory[i] = 1;
		i += NEAR_PAGE;
	}
	if (i == size)
		return 77;
	if (rig_send(a, to_b, 1, "", 1) != -EAGAIN || a->warnings != 1)
		return 2;
	munmap(memory, size);
	if (rig_send(a, to_b, 1, "", 1))
		return 3;
	rig_until(b, NULL, 1);
	return 0;
}

/* Runs at_the_limit() in a child in a new group. 77: no group may be made. */
static int at_the_limit_of_group(void)
{
	char dir[128];
	int status;
	pid_t pid;

	if (!make_group(dir, sizeof(dir)))
		return 77;
	pid = fork();
	if (!pid) {
		enter(dir);
		_exit(at_the_limit());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	ck_assert_msg(WIFEXITED(status), "killed by signal %d",
		      WTERMSIG(status));
	return WEXITSTATUS(status);
}

UNIT_TEST(full_group_denies_pages)
{
	int result = at_the_limit_of_group();

	if (result == 77)
		rig_skip("group", "no memory control group may be made");
	else
		ck_assert_int_eq(result, 0);
}
