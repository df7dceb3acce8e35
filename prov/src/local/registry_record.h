/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry's files and the directory's lock. Only registry*.c may include
 * this header.
 */
#ifndef DUO_REGISTRY_RECORD_H
#define DUO_REGISTRY_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "local/registry.h"

/*
 * Locks a directory with LOCK_SH or LOCK_EX. Returns 0 or -errno. Returns
 * -FI_ETIMEDOUT if other processes have held the lock for 60 s, or have held it
 * for 3 s in which no file of the directory was added or removed.
 */
int duo_dir_lock(int fd, int operation);
/* True if the directory was removed after it was opened. */
bool duo_dir_removed(int fd);

/* end of the names of records that are not ready yet */
#define DUO_NEW_SUFFIX ".new"

/* Contents of a record, in the host's byte order. */
struct duo_record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* size of this struct, bytes */
	uint32_t peer;		/* enum duo_transport_kind */
	int32_t pid;
	uint64_t pid_ns;	/* duo_proc_ns() of the owner */
	uint64_t net_ns;	/* duo_publication.net_ns of the owner */
	uint64_t compat_id;	/* duo_publication.compat_id of the owner */
	uint64_t start;		/* duo_proc_start() of the owner; 0: unknown */
	uint64_t addr_len;	/* length of addr, bytes */
	uint8_t addr[DUO_ADDR_MAX];
	char peer_name[DUO_TRANSPORT_NAME_MAX];
	uint64_t checksum;	/* checksum of all preceding fields */
};

static_assert(sizeof(struct duo_record) == 392, "on-disk layout");

/*
 * Opens and reads a record. Returns its file descriptor or an error. Logs these
 * errors, but not twice in a row for one file:
 * - -FI_EINVAL: the file is malformed, is another user's, or is not accessible
 * - -EMFILE, -ENFILE, -ENOMEM: this process temporarily cannot open the file
 *
 * Does not log these errors:
 * - -FI_ENOENT: there is no record
 * - -FI_ENODATA: the owner has not written the record yet
 * - -FI_EPROTO: the record has another version
 */
int duo_record_open(int dir, const char *name, struct duo_record *record);
/* Returns the part of a file name after the hash; NULL: it has no hash. */
const char *duo_record_suffix(const char *name);
/* True if fd is a regular file of this user. Stores its status in *st. */
bool duo_record_ours(int fd, struct stat *st);
/*
 * Tests the lock of the record that is open as fd. Returns 0 if the record is
 * locked, which shows that its owner is alive, -ESRCH if it is not locked
 * because the owner has failed, or another error.
 */
int duo_record_locked(int fd);
/*
 * Tests the lock by duo_record_locked(). If the owner is in pid_ns, the pid
 * namespace of this process, also tests whether the owner's process exists.
 * Returns 0 if the owner is alive, -ESRCH if it has failed, or another error.
 */
int duo_record_check(int fd, const struct duo_record *record, uint64_t pid_ns);

#endif /* DUO_REGISTRY_RECORD_H */
