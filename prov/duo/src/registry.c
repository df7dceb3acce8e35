/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "duo.h"
#include "guests.h"
#include "registry.h"

#define DUO_MAGIC 0x31304f5544494649ULL	/* "IFIDUO01" */
#define DUO_RECORD_VERSION 1
#define DUO_LOCK_WAIT_MS 10000
#define DUO_STATE_SETTLE_NS 50000000
#define DUO_FILE_SIZE \
	((off_t) (sizeof(struct duo_record) + sizeof(struct duo_guests)))
#define DUO_NEW_SUFFIX ".new"	/* of a file that is not ready */

/* What a file begins with; guests.h follows. All integers are the host's. */
struct duo_record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* of this struct, bytes */
	uint32_t libfabric;	/* FI_VERSION() of its owner */
	int32_t pid;
	uint64_t pid_ns;	/* inodes of the owner's namespaces */
	uint64_t user_ns;
	uint64_t net_ns;	/* 0: the address is unique without it */
	uint64_t shm_dev;	/* the mount of /dev/shm */
	uint32_t reserved;	/* 0 */
	uint32_t addr_len;	/* bytes */
	uint8_t addr[DUO_ADDR_MAX];
	char shm_name[DUO_SHM_NAME_MAX];
	uint64_t checksum;	/* of all that precedes */
};

static_assert(sizeof(struct duo_record) == 392, "on-disk layout");

uint64_t duo_registry_hash(const void *data, size_t len)
{
	const uint8_t *byte = data;
	uint64_t hash = 0xcbf29ce484222325ULL;	/* FNV-1a */

	while (len--)
		hash = (hash ^ *byte++) * 0x100000001b3ULL;
	return hash;
}

static uint64_t duo_record_checksum(const struct duo_record *record)
{
	return duo_registry_hash(record, offsetof(struct duo_record, checksum));
}

/* 0: not known, for example without /proc. */
static uint64_t duo_namespace(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	return stat(path, &st) ? 0 : st.st_ino;
}

static uint64_t duo_shm_mount(void)
{
	struct stat st;

	return stat(DUO_SHM_DIR, &st) ? 0 : st.st_dev;
}

/* Names of records and of shm regions; regions never match the former. */
int duo_registry_prefix(char *buf, size_t size)
{
	return snprintf(buf, size, "ofi_duo.r.%u.", (unsigned) geteuid());
}

static int duo_region_prefix(char *buf, size_t size)
{
	return snprintf(buf, size, "ofi_duo.s.%u.", (unsigned) geteuid());
}

static int duo_record_path(const char *dir, const void *addr, size_t len,
			   char *path)
{
	char prefix[32];
	int ret;

	duo_registry_prefix(prefix, sizeof(prefix));
	ret = snprintf(path, DUO_PATH_MAX, "%s/%s%016" PRIx64, dir, prefix,
		       duo_registry_hash(addr, len));
	return ret < DUO_PATH_MAX - (int) sizeof(DUO_NEW_SUFFIX) ?
	       0 : -FI_ETOOSMALL;
}

int duo_registry_lock(const char *dir)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int waited, fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited++) {
		if (errno != EWOULDBLOCK && errno != EINTR) {
			int err = errno;

			close(fd);
			return -err;
		}
		if (waited == DUO_LOCK_WAIT_MS) {
			close(fd);
			return -FI_ETIMEDOUT;
		}
		nanosleep(&nap, NULL);
	}
	return fd;
}

void duo_registry_unlock(int lock)
{
	close(lock);	/* and with it the flock */
}

static bool duo_record_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* A forked child inherits the lock, so its holder must be there as well. */
static bool duo_record_live(int fd, const struct duo_record *record)
{
	return duo_record_locked(fd) &&
	       (kill(record->pid, 0) == 0 || errno == EPERM);
}

/*
 * Reads and checks a record. -FI_ENODATA: being written; -FI_EINVAL: not
 * ours or malformed.
 */
static int duo_record_read(int fd, struct duo_record *record)
{
	struct stat st;
	ssize_t got;

	if (fstat(fd, &st))
		return -FI_EINVAL;
	if (st.st_uid != geteuid() || !S_ISREG(st.st_mode))
		return -FI_EINVAL;
	if (st.st_size == 0)
		return -FI_ENODATA;
	if (st.st_size != DUO_FILE_SIZE)
		return -FI_EINVAL;
	got = pread(fd, record, sizeof(*record), 0);
	if (got != sizeof(*record))
		return -FI_EINVAL;
	if (record->magic != DUO_MAGIC || record->size != sizeof(*record) ||
	    record->version != DUO_RECORD_VERSION ||
	    record->addr_len > DUO_ADDR_MAX || record->pid <= 0 ||
	    !memchr(record->shm_name, 0, sizeof(record->shm_name)) ||
	    record->checksum != duo_record_checksum(record))
		return -FI_EINVAL;
	return 0;
}

/* Said once, as long as no other file is bad: it is looked at often. */
static void duo_record_reject(const char *path, const char *why)
{
	static _Atomic uint64_t last;
	uint64_t hash = duo_registry_hash(path, strlen(path));

	if (atomic_exchange(&last, hash) != hash)
		DUO_WARN(AV, "%s: %s (version %d); ignored. Remove it if it "
			 "is stale\n", path, why, DUO_RECORD_VERSION);
}

/* Opens and reads; returns the descriptor or as duo_record_read(). */
static int duo_record_open(int dir, const char *path,
			   struct duo_record *record)
{
	int ret, fd = openat(dir, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC |
			     O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return -FI_ENOENT;
	if (fd < 0) {
		duo_record_reject(path, strerror(errno));
		return -FI_EINVAL;
	}
	ret = duo_record_read(fd, record);
	if (!ret)
		return fd;
	close(fd);
	if (ret == -FI_EINVAL)
		duo_record_reject(path, "not a record of this user");
	return ret;
}

/* Removes the region only if its name says that it is one of ours. */
static void duo_record_bury(int dir, const char *name,
			    const struct duo_record *record)
{
	char prefix[32];
	int len = duo_region_prefix(prefix, sizeof(prefix));

	if (!strncmp(record->shm_name, prefix, len) &&
	    !strchr(record->shm_name, '/'))
		shm_unlink(record->shm_name);
	unlinkat(dir, name, 0);
	DUO_INFO(AV, "removed %s and %s of dead process %d\n", name,
		 record->shm_name, record->pid);
}

/* A file of ours whose maker died, under the lock we hold, making it. */
static bool duo_record_unborn(int dir, const char *name)
{
	const char *suffix = strrchr(name, '.');
	struct stat st;

	return suffix && !strcmp(suffix, DUO_NEW_SUFFIX) &&
	       !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* Returns 1 for a live endpoint. */
static size_t duo_record_sweep(int dir, const char *name)
{
	struct duo_record record;
	size_t live = 0;
	int fd = duo_record_open(dir, name, &record);

	if (fd >= 0) {
		live = duo_record_locked(fd) &&
		       (record.pid_ns != duo_namespace("pid") ||
			duo_record_live(fd, &record));
		if (!live)
			duo_record_bury(dir, name, &record);
		close(fd);
	} else if (duo_record_unborn(dir, name)) {
		unlinkat(dir, name, 0);
	}
	return live;
}

/* Regions whose record is gone: their names say whose they were. */
static void duo_region_sweep(void)
{
	char prefix[32], ns[32];
	int pid, len = duo_region_prefix(prefix, sizeof(prefix));
	DIR *stream = opendir(DUO_SHM_DIR);
	struct dirent *entry;

	if (!stream)
		return;
	snprintf(ns, sizeof(ns), ".%" PRIx64 ".",
		 duo_namespace("pid") & 0xffffffff);
	while ((entry = readdir(stream))) {
		if (strncmp(entry->d_name, prefix, len))
			continue;
		pid = atoi(entry->d_name + len);
		if (pid > 0 && strstr(entry->d_name + len, ns) &&
		    kill(pid, 0) && errno == ESRCH)
			shm_unlink(entry->d_name);
	}
	closedir(stream);
}

size_t duo_registry_sweep(const char *dir)
{
	char prefix[32];
	int len = duo_registry_prefix(prefix, sizeof(prefix));
	DIR *stream = opendir(dir);
	struct dirent *entry;
	size_t live = 0;

	if (!stream)
		return 0;
	while ((entry = readdir(stream))) {
		if (!strncmp(entry->d_name, prefix, len))
			live += duo_record_sweep(dirfd(stream), entry->d_name);
	}
	closedir(stream);
	duo_region_sweep();
	return live;
}

static void duo_record_fill(struct duo_record *record, const void *addr,
			    size_t len, bool per_net)
{
	static atomic_uint count;
	char prefix[32];

	memset(record, 0, sizeof(*record));
	record->magic = DUO_MAGIC;
	record->version = DUO_RECORD_VERSION;
	record->size = sizeof(*record);
	record->libfabric = fi_version();
	record->pid_ns = duo_namespace("pid");
	record->user_ns = duo_namespace("user");
	record->net_ns = per_net ? duo_namespace("net") : 0;
	record->shm_dev = duo_shm_mount();
	record->pid = getpid();
	record->addr_len = len;
	memcpy(record->addr, addr, len);
	duo_region_prefix(prefix, sizeof(prefix));
	snprintf(record->shm_name, sizeof(record->shm_name),
		 "%s%d.%" PRIx64 ".%u", prefix, record->pid,
		 record->pid_ns & 0xffffffff, atomic_fetch_add(&count, 1));
	record->checksum = duo_record_checksum(record);
}

static int duo_record_create(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err, fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW |
			   O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? -FI_EADDRINUSE : -errno;
	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return fd;
	err = errno;
	close(fd);
	unlink(path);
	return -err;
}

int duo_registry_reserve(const char *dir, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub)
{
	struct duo_record record;
	int ret;

	pub->fd = -1;
	if (len > DUO_ADDR_MAX)
		return -FI_ETOOSMALL;
	if (!duo_namespace("pid") || !duo_shm_mount())
		return -FI_EOPNOTSUPP;	/* nobody could tell who is local */
	ret = duo_record_path(dir, addr, len, pub->path);
	if (ret)
		return ret;
	if (!access(pub->path, F_OK))
		return -FI_EADDRINUSE;
	strcat(pub->path, DUO_NEW_SUFFIX);
	ret = duo_record_create(pub->path);
	if (ret < 0)
		return ret;

	duo_record_fill(&record, addr, len, per_net);
	memcpy(pub->shm_name, record.shm_name, sizeof(pub->shm_name));
	pub->fd = ret;
	ret = -posix_fallocate(pub->fd, 0, DUO_FILE_SIZE);
	if (!ret && pwrite(pub->fd, &record, sizeof(record), 0) !=
	    sizeof(record))
		ret = -FI_ENOSPC;
	if (ret)
		duo_registry_withdraw(pub);
	return ret;
}

int duo_registry_ready(struct duo_publication *pub)
{
	char new_path[DUO_PATH_MAX];

	memcpy(new_path, pub->path, sizeof(new_path));
	pub->path[strlen(pub->path) - strlen(DUO_NEW_SUFFIX)] = '\0';
	if (!rename(new_path, pub->path))
		return 0;
	memcpy(pub->path, new_path, sizeof(new_path));
	return -errno;
}

void duo_registry_withdraw(struct duo_publication *pub)
{
	if (pub->fd < 0)
		return;
	unlink(pub->path);
	close(pub->fd);
	pub->fd = -1;
}

static enum fi_duo_reason duo_record_judge(int fd, const void *addr,
					   size_t len,
					   const struct duo_record *record)
{
	if (record->addr_len != len || memcmp(record->addr, addr, len))
		return FI_DUO_NOT_REGISTERED;	/* the hashes collide */
	if (record->pid_ns != duo_namespace("pid") ||
	    record->user_ns != duo_namespace("user") ||
	    (record->net_ns && record->net_ns != duo_namespace("net")) ||
	    record->shm_dev != duo_shm_mount() ||
	    record->libfabric != fi_version())
		return FI_DUO_NAMESPACE;
	if (!duo_record_live(fd, record))
		return FI_DUO_DEAD;
	return FI_DUO_LOCAL;
}

/*
 * A place for each in the other's shm, or in neither. If our own list is full
 * the peer cannot have got, nor get, into it meanwhile, so it does without
 * our place in its own.
 */
static bool duo_record_join(int fd, const char *peer_name,
			    const struct duo_publication *self)
{
	const off_t list = sizeof(struct duo_record);
	uint64_t peer = duo_registry_hash(peer_name, strlen(peer_name));
	uint64_t own = duo_registry_hash(self->shm_name, strlen(self->shm_name));
	enum duo_guest there, here;

	there = duo_guest_join(fd, list, own);
	if (there != DUO_GUEST_NEW && there != DUO_GUEST_KNOWN)
		return false;
	here = duo_guest_join(self->fd, list, peer);
	if (here == DUO_GUEST_FULL && there == DUO_GUEST_NEW)
		duo_guest_leave(fd, list, own);
	return here == DUO_GUEST_NEW || here == DUO_GUEST_KNOWN;
}

enum fi_duo_reason duo_registry_lookup(const char *dir, const void *addr,
				       size_t len,
				       const struct duo_publication *self,
				       char *shm_name)
{
	struct duo_record record;
	enum fi_duo_reason reason;
	char path[DUO_PATH_MAX];
	int fd;

	if (duo_record_path(dir, addr, len, path))
		return FI_DUO_NOT_REGISTERED;
	fd = duo_record_open(AT_FDCWD, path, &record);
	if (fd < 0)
		return fd == -FI_EINVAL ? FI_DUO_BAD_RECORD :
					  FI_DUO_NOT_REGISTERED;
	reason = duo_record_judge(fd, addr, len, &record);
	if (reason == FI_DUO_LOCAL &&
	    !duo_record_join(fd, record.shm_name, self))
		reason = FI_DUO_SHM_FULL;
	if (reason == FI_DUO_LOCAL)
		memcpy(shm_name, record.shm_name, sizeof(record.shm_name));
	close(fd);
	return reason;
}

/*
 * Its changes are only seen at the granularity of the kernel's clock, so a
 * directory that has changed a moment ago has no state yet.
 */
uint64_t duo_registry_state(const char *dir)
{
	struct timespec now;
	struct stat st;
	uint64_t changed;

	if (stat(dir, &st))
		return 0;
	clock_gettime(CLOCK_REALTIME, &now);
	changed = (uint64_t) st.st_mtim.tv_sec * 1000000000 +
		  st.st_mtim.tv_nsec;
	if ((uint64_t) now.tv_sec * 1000000000 + now.tv_nsec <
	    changed + DUO_STATE_SETTLE_NS)
		return 0;
	return changed;
}
