/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/log.h"
#include "base/proc.h"
#include "local/registry.h"
#include "local/registry_record.h"

#define DUO_MAGIC 0x31304f5544494649ULL	/* "IFIDUO01" */
#define DUO_RECORD_VERSION 6

uint64_t duo_registry_hash(const void *data, size_t len)
{
	return duo_fnv(DUO_FNV, data, len);
}

uint64_t duo_registry_key(const struct duo_publication *self, const void *addr,
			  size_t len)
{
	uint64_t hash = duo_registry_hash(addr, len);

	return self->net_ns ? duo_fnv(hash, &self->net_ns,
					sizeof(self->net_ns)) : hash;
}

static uint64_t duo_record_checksum(const struct duo_record *record)
{
	return duo_registry_hash(record, offsetof(struct duo_record, checksum));
}

const char *duo_record_suffix(const char *name)
{
	return strspn(name, "0123456789abcdef") == DUO_HASH_DIGITS ?
	       name + DUO_HASH_DIGITS : NULL;
}

bool duo_registry_is_record(const char *name)
{
	const char *suffix = duo_record_suffix(name);

	return suffix && !*suffix;
}

static void duo_record_name(const struct duo_publication *self,
			    const void *addr, size_t len, char *name)
{
	snprintf(name, DUO_HASH_DIGITS + 1, "%016" PRIx64,
		 duo_registry_key(self, addr, len));
}

int duo_record_locked(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(fd, F_OFD_GETLK, &lock))
		return -errno;
	return lock.l_type == F_UNLCK ? -ESRCH : 0;
}

/*
 * Does not rely on the lock alone, because a forked child may still hold the
 * lock after the owner has exited.
 */
int duo_record_check(int fd, const struct duo_record *record, uint64_t pid_ns)
{
	int ret = duo_record_locked(fd);

	if (!ret && record->pid_ns == pid_ns)
		ret = duo_proc_check(record->pid, record->start);
	return ret;
}

bool duo_record_ours(int fd, struct stat *st)
{
	return !fstat(fd, st) && st->st_uid == geteuid() &&
	       S_ISREG(st->st_mode);
}

static bool duo_record_valid(const struct duo_record *record)
{
	return record->size == sizeof(*record) &&
	       record->addr_len <= DUO_ADDR_MAX && record->pid > 0 &&
	       record->peer < DUO_TRANSPORT_KINDS &&
	       memchr(record->peer_name, 0, sizeof(record->peer_name)) &&
	       record->checksum == duo_record_checksum(record);
}

/* Reads and checks a record. Returns 0 or an error of duo_record_open(). */
static int duo_record_read(int fd, struct duo_record *record)
{
	struct stat st;
	ssize_t got;

	if (!duo_record_ours(fd, &st))
		return -FI_EINVAL;
	if (st.st_size == 0)
		return -FI_ENODATA;
	got = pread(fd, record, sizeof(*record), 0);
	if (got < (ssize_t) offsetof(struct duo_record, size) ||
	    record->magic != DUO_MAGIC)
		return -FI_EINVAL;
	if (record->version != DUO_RECORD_VERSION)
		return -FI_EPROTO;
	if (got != sizeof(*record) || !duo_record_valid(record) ||
	    st.st_size != sizeof(*record))
		return -FI_EINVAL;
	return 0;
}

/* Logs that a file is ignored, but does not log one file twice in a row. */
static void duo_record_reject(int dir, const char *name, const char *why,
			      const char *remedy)
{
	static _Atomic uint64_t last;
	uint64_t hash = duo_registry_hash(name, strlen(name));
	char link[32], path[DUO_PATH_MAX] = "";

	if (atomic_exchange(&last, hash) == hash)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
	if (readlink(link, path, sizeof(path) - 1) < 0)
		path[0] = '\0';
	DUO_WARN(AV, "%s/%s: ignored: %s. %s\n", path, name, why, remedy);
}

static bool duo_record_passing(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOMEM;
}

int duo_record_open(int dir, const char *name, struct duo_record *record)
{
	int ret, fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC |
			     O_NONBLOCK);

	if (fd < 0 && errno == ENOENT)
		return -FI_ENOENT;
	if (fd < 0) {
		ret = duo_record_passing(errno) ? -errno : -FI_EINVAL;
		duo_record_reject(dir, name, strerror(errno),
				  ret == -FI_EINVAL ?
				  "Remove it if it is stale" :
				  "Raise the limit of open files (ulimit -n) "
				  "or of memory; later lookups read it again");
		return ret;
	}
	ret = duo_record_read(fd, record);
	if (!ret)
		return fd;
	close(fd);
	if (ret == -FI_EINVAL)
		duo_record_reject(dir, name, "not a record of this user",
				  "Remove it if it is stale");
	return ret;
}

static void duo_record_fill(struct duo_record *record, const void *addr,
			    size_t len, const struct duo_publication *pub)
{
	memset(record, 0, sizeof(*record));
	record->magic = DUO_MAGIC;
	record->version = DUO_RECORD_VERSION;
	record->size = sizeof(*record);
	record->pid_ns = pub->pid_ns;
	record->net_ns = pub->net_ns;
	record->compat_id = pub->compat_id;
	record->pid = getpid();
	if (duo_proc_start(record->pid, &record->start))
		record->start = 0;
	record->addr_len = len;
	memcpy(record->addr, addr, len);
	record->peer = pub->peer;
	memcpy(record->peer_name, pub->peer_name, DUO_TRANSPORT_NAME_MAX);
	record->checksum = duo_record_checksum(record);
}

static int duo_record_create(int dir, const char *name)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int err, fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL |
			     O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? -FI_EADDRINUSE : -errno;
	if (!fcntl(fd, F_OFD_SETLK, &lock))
		return fd;
	err = errno;
	close(fd);
	unlinkat(dir, name, 0);
	return -err;
}

static const char *duo_pub_name(const struct duo_publication *pub)
{
	return strrchr(pub->path, '/') + 1;
}

static int duo_pub_write(struct duo_publication *pub,
			 const struct duo_record *record)
{
	ssize_t put = pwrite(pub->fd, record, sizeof(*record), 0);

	if (put < 0)
		return -errno;
	return put == sizeof(*record) ? 0 : -FI_ENOSPC;
}

static void duo_pub_cut_suffix(struct duo_publication *pub)
{
	pub->path[strlen(pub->path) - strlen(DUO_NEW_SUFFIX)] = '\0';
}

static int duo_pub_open(const char *base, const char *name,
			struct duo_publication *pub)
{
	char path[DUO_PATH_MAX];
	int fd;

	pub->dir = duo_registry_open(base, path);
	if (pub->dir < 0)
		return pub->dir;
	if (snprintf(pub->path, DUO_PATH_MAX, "%s/%s" DUO_NEW_SUFFIX, path,
		     name) >= DUO_PATH_MAX)
		fd = -FI_ETOOSMALL;
	else
		fd = duo_record_create(pub->dir, duo_pub_name(pub));
	if (fd < 0)
		close(pub->dir);
	return fd;
}

int duo_registry_reserve(const char *base, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub)
{
	char name[DUO_HASH_DIGITS + 1];
	struct duo_record record;
	int ret;

	pub->fd = -1;
	pub->hidden = false;
	if (len > DUO_ADDR_MAX)
		return -FI_ETOOSMALL;
	if (duo_proc_ns(&pub->pid_ns))
		return -FI_EOPNOTSUPP;	/* peers need this id in the record */
	pub->net_ns = per_net ? duo_proc_inode("/proc/self/ns/net") : 0;
	duo_record_fill(&record, addr, len, pub);
	duo_record_name(pub, addr, len, name);
	ret = duo_pub_open(base, name, pub);
	if (ret < 0)
		return ret;
	pub->fd = ret;
	/*
	 * Only this process, which owns "name.new", could create "name", so
	 * "name" cannot appear after this test.
	 */
	if (!faccessat(pub->dir, name, F_OK, AT_SYMLINK_NOFOLLOW))
		ret = -FI_EADDRINUSE;
	else
		ret = duo_pub_write(pub, &record);
	if (ret)
		duo_registry_withdraw(pub);
	/*
	 * If another record of the address exists, stores the path of that
	 * record in pub->path, because the caller logs it.
	 */
	if (ret == -FI_EADDRINUSE)
		duo_pub_cut_suffix(pub);
	return ret;
}

int duo_registry_ready(struct duo_publication *pub)
{
	char name[DUO_HASH_DIGITS + 1];

	snprintf(name, sizeof(name), "%s", duo_pub_name(pub));
	if (renameat(pub->dir, duo_pub_name(pub), pub->dir, name))
		return -errno;
	duo_pub_cut_suffix(pub);
	return 0;
}

void duo_registry_hide(struct duo_publication *pub)
{
	if (pub->fd >= 0 && !pub->hidden)
		unlinkat(pub->dir, duo_pub_name(pub), 0);
	pub->hidden = true;
}

void duo_registry_withdraw(struct duo_publication *pub)
{
	if (pub->fd < 0)
		return;
	duo_registry_hide(pub);
	close(pub->fd);
	pub->fd = -1;
	duo_registry_leave(pub->dir, pub->path);
	close(pub->dir);
}

/*
 * Converts a result of duo_record_check() to a reason. If the result is -EACCES
 * or -EPERM, /proc hides the process, but the lock of the process's record
 * shows that the process is alive.
 */
static enum fi_duo_reason duo_record_reason(int check)
{
	switch (-check) {
	case 0:
	case EACCES:
	case EPERM:
		return FI_DUO_OK;
	case ESRCH:
		return FI_DUO_EXITED;
	default:
		return FI_DUO_RECORD_UNREADABLE;
	}
}

static enum fi_duo_reason duo_record_judge(int fd, const void *addr,
					   size_t len,
					   const struct duo_record *record,
					   const struct duo_publication *self)
{
	if (record->addr_len != len || memcmp(record->addr, addr, len))
		/* this is the record of another address with the same hash */
		return FI_DUO_NOT_REGISTERED;
	if ((record->pid_ns != self->pid_ns && !self->any_pid_ns) ||
	    record->net_ns != self->net_ns)
		return FI_DUO_NAMESPACE;
	if (record->peer != self->peer)
		return FI_DUO_TRANSPORT_MISMATCH;
	if (record->compat_id != self->compat_id)
		return FI_DUO_NAMESPACE;
	return duo_record_reason(duo_record_check(fd, record, self->pid_ns));
}

enum fi_duo_reason duo_registry_lookup(const void *addr, size_t len,
				       const struct duo_publication *self,
				       char *peer_name)
{
	char name[DUO_HASH_DIGITS + 1];
	struct duo_record record;
	enum fi_duo_reason reason;
	int fd;

	duo_record_name(self, addr, len, name);
	fd = duo_record_open(self->dir, name, &record);
	if (fd == -FI_EPROTO)
		return FI_DUO_NAMESPACE;
	if (fd < 0 && duo_record_passing(-fd))
		return FI_DUO_RECORD_UNREADABLE;
	if (fd < 0)
		return fd == -FI_EINVAL ? FI_DUO_BAD_RECORD :
					  FI_DUO_NOT_REGISTERED;
	reason = duo_record_judge(fd, addr, len, &record, self);
	if (reason == FI_DUO_OK)
		memcpy(peer_name, record.peer_name, sizeof(record.peer_name));
	close(fd);
	return reason;
}
