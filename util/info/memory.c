/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Checks and computes the space for shared memory. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <linux/magic.h>
#include <unistd.h>

#include "info.h"
#include "base/proc.h"
#include "near/link/shm.h"
#include "base/param.h"

#define INFO_SHM "/dev/shm"
#define INFO_MIB (1ULL << 20)
/* Space of an endpoint over libfabric's shm, MiB */
#define INFO_SHM_EP 16
/* Space of an endpoint's record on a tmpfs, bytes */
#define INFO_RECORD 4096
/*
 * Largest page of a kernel, bytes. "No limit" in version 1 of cgroups is
 * LLONG_MAX in whole pages.
 */
#define INFO_CGROUP_PAGE 65536

static unsigned long info_mib(unsigned long long bytes)
{
	return (unsigned long) ((bytes + INFO_MIB - 1) / INFO_MIB);
}

/*
 * See info.h. libfabric returns shm only if there is space for one endpoint per
 * CPU. The space of one more endpoint is a reserve, for an endpoint that exists
 * only for a short time. near needs space for the records only.
 */
unsigned long info_shm_need(int ranks)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	long eps = ranks > cpus ? ranks : cpus;

	if (!info_local_is_shm())
		return info_mib((unsigned long long) ranks * INFO_RECORD);
	return (unsigned long) (eps + 1) * INFO_SHM_EP;
}

size_t info_near_memory(void)
{
	const char *text = getenv("FI_OFI_DUO_RING_MEMORY");

	return text && duo_param_is_number(text) ? strtoull(text, NULL, 0) :
						    NEAR_MEMORY;
}

/* Returns the memory, MiB, for local messages from each rank to all others. */
static unsigned long info_memory_need(int ranks)
{
	if (info_local_is_shm())
		return info_shm_need(ranks);
	return info_mib((unsigned long long) ranks *
			(near_memory(info_near_memory(), (uint32_t) ranks - 1) +
			 INFO_RECORD));
}

static const char *info_registry_dir(void)
{
	const char *dir = getenv("FI_OFI_DUO_REGISTRY_DIR");

	return dir && *dir ? dir : INFO_SHM;
}

/*
 * Checks the user as local/registry_owner.c does. If there is a problem, this
 * function reports it and returns false.
 */
static bool info_check_user(void)
{
	if (duo_proc_user_known())
		return true;
	info_found("registry", INFO_WARNING, "this user has no number in its "
		   "user namespace, so that the kernel cannot distinguish it "
		   "from others; the core carries all messages");
	info_remedy("map the user to a number: unshare --map-root-user, "
		    "podman --userns=keep-id, newuidmap");
	return false;
}

static bool info_check_registry(void)
{
	const char *dir = info_registry_dir();

	if (!access(dir, R_OK | W_OK | X_OK))
		return info_check_user();
	info_found("registry", INFO_WARNING, "%s: %s; local ranks do not find "
		   "each other, the core carries all messages", dir,
		   strerror(errno));
	info_remedy("make it a directory that this user may write (chmod "
		    "1777), or name another in FI_OFI_DUO_REGISTRY_DIR");
	return false;
}

static unsigned long long info_avail_mib(const struct statvfs *space)
{
	return (unsigned long long) space->f_bavail * space->f_frsize /
	       INFO_MIB;
}

/* Returns the size, MiB, that a tmpfs must have so that NEED MiB are free. */
static unsigned long info_size_for(const struct statvfs *space,
				   unsigned long need)
{
	return need + info_mib((unsigned long long) (space->f_blocks -
						     space->f_bfree) *
			       space->f_frsize);
}

/* Checks the directory of the records. */
static void info_check_records(int ranks)
{
	unsigned long need = info_shm_need(ranks);
	const char *dir = info_registry_dir();
	struct statvfs space;

	if (!info_check_registry() || statvfs(dir, &space))
		return;
	if (space.f_files && space.f_favail < (fsfilcnt_t) ranks + 2) {
		info_found("registry", INFO_WARNING, "%s has %llu free inodes, "
			   "%d ranks need %d; the core carries the messages "
			   "of those that find none", dir,
			   (unsigned long long) space.f_favail, ranks,
			   ranks + 2);
		info_remedy("remove files there, or mount -o "
			    "remount,nr_inodes=0 %s", dir);
	} else if (info_avail_mib(&space) < need) {
		info_found("registry", INFO_WARNING, "%s has %llu MiB free, %d "
			   "ranks need %lu; without that the core carries "
			   "messages", dir, info_avail_mib(&space), ranks,
			   need);
		info_remedy("remove files there, or mount -o "
			    "remount,size=%luM %s", info_size_for(&space, need),
			    dir);
	} else {
		info_found("registry", INFO_OK, "%s has %llu MiB free, %d "
			   "ranks need %lu", dir, info_avail_mib(&space),
			   ranks, need);
	}
}

static void info_check_shm_space(int ranks)
{
	unsigned long need = info_shm_need(ranks);
	struct statvfs space;
	struct statfs fs;
	unsigned long long avail;

	if (statfs(INFO_SHM, &fs) || statvfs(INFO_SHM, &space)) {
		info_found("shm", INFO_WARNING, INFO_SHM ": %s; the core "
			   "carries all messages", strerror(errno));
		info_remedy("mount a tmpfs there: mount -t tmpfs -o "
			    "mode=1777,size=%luM tmpfs " INFO_SHM, need);
		return;
	}
	info_check_registry();
	avail = info_avail_mib(&space);
	if (fs.f_type != TMPFS_MAGIC) {
		info_found("shm", INFO_WARNING, INFO_SHM " is not a tmpfs; "
			   "the core carries all messages");
		info_remedy("mount one there: mount -t tmpfs -o "
			    "mode=1777,size=%luM tmpfs " INFO_SHM, need);
	} else if (space.f_files && !space.f_favail) {
		info_found("shm", INFO_WARNING, INFO_SHM " has no free inode; "
			   "the core carries all messages");
		info_remedy("remove files there, or mount -o "
			    "remount,nr_inodes=0 " INFO_SHM);
	} else if (avail < need) {
		info_found("shm", INFO_WARNING, INFO_SHM " has %llu MiB free, "
			   "%d ranks need %lu; without that the core carries "
			   "messages", avail, ranks, need);
		info_remedy("mount -o remount,size=%luM " INFO_SHM "; docker "
			    "--shm-size=%lum; Kubernetes: emptyDir of medium "
			    "Memory, sizeLimit %luMi; AWS Batch: "
			    "sharedMemorySize %lu", info_size_for(&space, need),
			    need, need, need);
	} else {
		info_found("shm", INFO_OK, INFO_SHM " has %llu MiB free, %d "
			   "ranks need %lu", avail, ranks, need);
	}
}

void info_check_shm(int ranks)
{
	if (info_local_is_shm())
		info_check_shm_space(ranks);
	else
		info_check_records(ranks);
}

void info_check_memfd(void)
{
	int fd = memfd_create("fi_duo_info", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0) {
		info_found("memfd", INFO_OK, "memfd_create works");
	} else if (info_local_is_shm()) {
		info_found("memfd", INFO_OK, "memfd_create: %s; shm does "
			   "not need it", strerror(errno));
	} else {
		info_found("memfd", INFO_WARNING, "memfd_create: %s; the core "
			   "carries all messages", strerror(errno));
		info_remedy("permit memfd_create in the container's seccomp "
			    "profile, or set FI_OFI_DUO_LOCAL=shm");
	}
	if (fd >= 0)
		close(fd);
}

/* Finds this process's path in the hierarchy NAME of /proc/self/cgroup. */
static bool info_cgroup_path(const char *name, char *path, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[PATH_MAX], *controllers, *end;
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		controllers = strchr(line, ':');
		end = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!end)
			continue;
		*end = '\0';
		if (strcmp(controllers + 1, name))
			continue;
		snprintf(path, size, "%s", end + 1);
		found = true;
	}
	fclose(file);
	return found;
}

/*
 * Returns the smallest limit of the cgroup PATH and of its parents; 0: no
 * limit. Changes PATH.
 */
static unsigned long long info_cgroup_limit(const char *root, char *path,
					    const char *file)
{
	char name[2 * PATH_MAX];
	unsigned long long limit = 0;
	long long number;
	char *slash;

	for (;;) {
		snprintf(name, sizeof(name), "%s%s/%s", root, path, file);
		/* no limit is "max" or, in version 1, the largest number */
		if (info_read_number(name, &number) && number > 0 &&
		    number < LLONG_MAX / INFO_CGROUP_PAGE * INFO_CGROUP_PAGE &&
		    (!limit || (unsigned long long) number < limit))
			limit = (unsigned long long) number;
		slash = strrchr(path, '/');
		if (!slash)
			return limit;
		*slash = '\0';
	}
}

void info_check_cgroup(int ranks)
{
	unsigned long need = info_memory_need(ranks);
	unsigned long long limit = 0;
	char path[PATH_MAX];

	if (info_cgroup_path("memory", path, sizeof(path)))
		limit = info_cgroup_limit("/sys/fs/cgroup/memory", path,
					  "memory.limit_in_bytes");
	if (!limit && info_cgroup_path("", path, sizeof(path)))
		limit = info_cgroup_limit("/sys/fs/cgroup", path,
					  "memory.max");
	if (!limit) {
		info_found("cgroup", INFO_OK, "memory is not limited");
	} else if (limit / INFO_MIB >= need) {
		info_found("cgroup", INFO_OK, "memory is limited to %llu MiB, "
			   "of which %d ranks need %lu for shared memory",
			   limit / INFO_MIB, ranks, need);
	} else {
		info_found("cgroup", INFO_WARNING, "memory is limited to %llu "
			   "MiB, %d ranks need %lu for shared memory alone: "
			   "they could be killed", limit / INFO_MIB, ranks,
			   need);
		info_remedy("raise the job's or container's memory (sbatch "
			    "--mem, docker --memory, resources.limits.memory), "
			    "or set FI_OFI_DUO_LOCAL=off");
	}
}

/* Returns the number of ranks in the table's next row; 0: no further row. */
static int info_table_next(int row, int ranks)
{
	if (row == ranks)
		return 0;
	return row * 2 > ranks ? ranks : row * 2;
}

void info_print_table(int ranks)
{
	int row;

	printf("\n%6s %14s %19s %24s\n", "ranks", "/dev/shm (MiB)",
	       "docker --shm-size", "Kubernetes sizeLimit");
	for (row = 1; row; row = info_table_next(row, ranks))
		printf("%6d %14lu %18lum %22luMi\n", row, info_shm_need(row),
		       info_shm_need(row), info_shm_need(row));
}

void info_print_table_json(int ranks)
{
	int row;

	printf(",\n\"shm_mib\": {");
	for (row = 1; row; row = info_table_next(row, ranks))
		printf("%s \"%d\": %lu", row > 1 ? "," : "", row,
		       info_shm_need(row));
	printf(" }");
}
