/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The shared memory files of shm, called regions: their names, the space that
 * they need, connections to the regions of peers, and the removal of the
 * regions of failed processes. shm does not allocate the pages of a region. If
 * /dev/shm has no space for a page, the first access to the page raises SIGBUS.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/proc.h"
#include "near/near.h"
#include "obj/fabric.h"
#include "shm/shm.h"

/*
 * Writes the prefix of the names of this user's regions to buf. Returns the
 * length of the prefix.
 */
static int duo_shm_prefix(char *buf, size_t size)
{
	return snprintf(buf, size, "ofi_duo.s.%u.", (unsigned) geteuid());
}

/*
 * Makes a name for a region, with a random number. If another user could guess
 * the name, that user could create the file first, and shm would use it.
 * Returns 0 or -errno.
 */
static int duo_shm_make_name(uint64_t pid_ns, char *name)
{
	char prefix[32];
	uint64_t random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -errno;
	duo_shm_prefix(prefix, sizeof(prefix));
	memset(name, 0, DUO_TRANSPORT_NAME_MAX);
	snprintf(name, DUO_TRANSPORT_NAME_MAX, "%s%d.%" PRIx64 ".%016" PRIx64,
		 prefix, (int)getpid(), pid_ns & 0xffffffff, random);
	return 0;
}

/*
 * Computes the compatibility id: two endpoints use shm for each other only if
 * their ids are equal. The user namespace is part of the id, because the kernel
 * may forbid a process to read the memory of a process in another user
 * namespace. Returns 0; -FI_EOPNOTSUPP: there is no /dev/shm.
 */
static int duo_shm_compat_id(uint64_t *compat_id)
{
	uint64_t same[] = {
		0, fi_version(), duo_proc_inode("/proc/self/ns/user"),
	};
	struct stat st;

	if (stat(DUO_DEV_SHM, &st))
		return -FI_EOPNOTSUPP;
	same[0] = st.st_dev;
	*compat_id = duo_registry_hash(same, sizeof(same));
	return 0;
}

int duo_shm_publish(struct duo_publication *pub)
{
	uint64_t pid_ns = 0;
	int ret = duo_shm_compat_id(&pub->compat_id);

	if (ret)
		return ret;
	pub->peer = DUO_TRANSPORT_SHM;
	duo_proc_ns(&pid_ns);
	return duo_shm_make_name(pid_ns, pub->peer_name);
}

/*
 * True if two region names have the same user, pid and pid namespace, so that
 * both regions belong to the same process.
 */
static bool duo_shm_sibling(const char *name, const char *other)
{
	return !strncmp(name, other, strrchr(name, '.') - name + 1);
}

/*
 * Removes the region of a failed process, by name. Does not compare the uid in
 * the name with the uid of this process, because one user may have different
 * uids in different user namespaces.
 */
void duo_shm_reap(const char *name)
{
	static const char prefix[] = "ofi_duo.s.";

	if (!strncmp(name, prefix, sizeof(prefix) - 1) && !strchr(name, '/'))
		shm_unlink(name);
}

/*
 * Removes the regions of this user's processes in the pid namespace pid_ns that
 * have exited. The name of a region contains the pid of its process. If no
 * region of this user remains, resets the number of endpoints that the registry
 * counts.
 */
void duo_shm_sweep(int dir, uint64_t pid_ns)
{
	char prefix[32], ns[32];
	int pid, len = duo_shm_prefix(prefix, sizeof(prefix));
	DIR *stream = opendir(DUO_DEV_SHM);
	struct dirent *entry;
	uint64_t compat_id;
	size_t left = 0;

	if (!stream)
		return;
	snprintf(ns, sizeof(ns), ".%" PRIx64 ".", pid_ns & 0xffffffff);
	while ((entry = readdir(stream))) {
		if (strncmp(entry->d_name, prefix, len))
			continue;
		pid = atoi(entry->d_name + len);
		if (pid > 0 && strstr(entry->d_name + len, ns) &&
		    duo_proc_check(pid, 0) == -ESRCH)
			shm_unlink(entry->d_name);
		else
			left++;
	}
	closedir(stream);
	if (!left && !duo_shm_compat_id(&compat_id))
		duo_registry_reset_count(dir, compat_id);
}

/*
 * True if RLIMIT_AS permits this process to map the regions of
 * DUO_SHM_ENDPOINTS endpoints, the largest number that it may have to map.
 */
static bool duo_shm_maps(void)
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

int duo_shm_check_space(void)
{
	struct statvfs st;
	struct rlimit limit;

	if (!duo_shm_maps())
		return -FI_ENOMEM;
	/* if shm made its file longer than this limit, SIGXFSZ would follow */
	if (!getrlimit(RLIMIT_FSIZE, &limit) &&
	    limit.rlim_cur < DUO_SHM_REGION)
		return -EFBIG;
	if (statvfs(DUO_DEV_SHM, &st))
		return -errno;
	/* f_blocks is 0 if the file system has no limit */
	return st.f_blocks && (uint64_t) st.f_bavail * st.f_bsize <
	       DUO_SHM_REGION ? -FI_ENOSPC : 0;
}

int duo_shm_allocate(const char *name)
{
	struct stat st;
	int ret, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	ret = fstat(fd, &st) ? -errno : -posix_fallocate(fd, 0, st.st_size);
	close(fd);
	return ret;
}

/* Returns the peer's index in shm's AV; FI_ADDR_NOTAVAIL: none. */
static fi_addr_t duo_shm_known(const struct duo_shm *shm, const char *peer_name)
{
	fi_addr_t index;

	for (index = 0; index < DUO_SHM_PEERS; index++) {
		if (!strcmp(shm->name[index], peer_name))
			return index;
	}
	return FI_ADDR_NOTAVAIL;
}

/*
 * Maps a peer's region, and unmaps it again. This is a test: shm maps the
 * region at the first send, and cannot handle a failure there
 * (docs/registry.md, "Mapping"). Returns 0 or -errno.
 */
static int duo_shm_probe(const char *name)
{
	int ret = 0, fd = shm_open(name, O_RDWR | O_CLOEXEC, 0);
	struct stat st;
	void *map;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st)) {
		ret = -errno;
	} else if (!st.st_size) {
		ret = -FI_ENODATA;
	} else {
		map = mmap(NULL, st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
		if (map == MAP_FAILED)
			ret = -errno;
		else
			munmap(map, st.st_size);
	}
	close(fd);
	return ret;
}

static bool duo_shm_reachable(struct duo_ep *ep, const char *peer_name,
			      fi_addr_t addr)
{
	int ret = duo_shm_probe(peer_name);

	if (!ret)
		return true;
	if (ep->map->reason[addr] != FI_DUO_NOT_MAPPED)
		DUO_WARN(AV, "ep %p: the shared memory " DUO_DEV_SHM "/%s of "
			 "the peer with fi_addr %" PRIu64 " cannot be mapped: "
			 "%s; the core %s carries its messages. Check that the "
			 "file is there, the limits (ulimit -n, -v) and the "
			 "log of a security module\n", (void *) ep, peer_name,
			 addr, fi_strerror(-ret),
			 ep->domain->fabric->core_name);
	ep->map->reason[addr] = FI_DUO_NOT_MAPPED;
	ep->map->failed = true;
	return false;
}

static fi_addr_t duo_shm_insert(struct duo_shm *shm, const char *peer_name)
{
	fi_addr_t index = FI_ADDR_NOTAVAIL;
	int ret = fi_av_insert(shm->av, peer_name, 1, &index, 0, NULL);

	if (ret != 1 || index >= DUO_SHM_PEERS) {
		DUO_WARN(AV, "shm rejects peer %s: %d; the core carries "
			 "its messages\n", peer_name, ret);
		return FI_ADDR_NOTAVAIL;
	}
	strcpy(shm->name[index], peer_name);
	return index;
}

/*
 * Implements duo_transport.connect(): inserts a peer into shm's AV. Rejects
 * endpoints of this process, because shm might read their regions after they
 * have been unmapped.
 */
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			  fi_addr_t addr, enum fi_duo_reason *reason)
{
	fi_addr_t index = duo_shm_known(ep->shm, peer_name);

	if (index != FI_ADDR_NOTAVAIL)
		return index;
	*reason = FI_DUO_NAMESPACE;
	if (duo_shm_sibling(ep->publication.peer_name, peer_name))
		return FI_ADDR_NOTAVAIL;
	*reason = FI_DUO_NOT_MAPPED;
	if (!duo_shm_reachable(ep, peer_name, addr))
		return FI_ADDR_NOTAVAIL;
	*reason = FI_DUO_NO_PEER_SLOT;
	index = duo_shm_insert(ep->shm, peer_name);
	if (index != FI_ADDR_NOTAVAIL)
		*reason = FI_DUO_OK;
	return index;
}

bool duo_shm_exists(const struct duo_ep *ep, fi_addr_t index)
{
	char path[sizeof(DUO_DEV_SHM "/") + DUO_TRANSPORT_NAME_MAX];

	snprintf(path, sizeof(path), DUO_DEV_SHM "/%s",
		 ep->shm->name[index]);
	return !access(path, F_OK);
}

/*
 * Implements duo_transport.oversubscribed(). Assumes that each endpoint belongs
 * to another process, and that all these processes use this thread's CPUs.
 */
bool duo_shm_oversubscribed(const struct duo_ep *ep, size_t endpoints)
{
	return near_oversub(NULL, 0, endpoints ? endpoints - 1 : 0);
}
