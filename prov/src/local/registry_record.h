/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The registry's files and the lock of its directory; only for registry*.c. */
#ifndef DUO_REGISTRY_RECORD_H
#define DUO_REGISTRY_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "local/registry.h"

/*
 * Waits for the lock while files are created and removed in the directory, and
 * 3 s more. operation: LOCK_SH or LOCK_EX. Returns 0, -FI_ETIMEDOUT or -errno.
 */
int duo_dir_lock(int fd, int operation);
/* True if the directory was removed. */
bool duo_dir_removed(int fd);

#define DUO_NEW_SUFFIX ".new"	/* ends the name of a file that is not ready */

/* Contents of a record's file, in the host's byte order. */
struct duo_record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* of this struct, bytes */
	uint32_t peer;		/* enum duo_transport_kind */
	int32_t pid;
	uint64_t pid_ns;	/* duo_proc_ns() of the owner */
	uint64_t net_ns;	/* 0: the address is unique without it */
	uint64_t compat_id;	/* struct duo_publication */
	uint64_t start;		/* duo_proc_start(); 0: unknown */
	uint64_t addr_len;	/* bytes */
	uint8_t addr[DUO_ADDR_MAX];
	char peer_name[DUO_TRANSPORT_NAME_MAX];
	uint64_t checksum;	/* of all preceding fields */
};

static_assert(sizeof(struct duo_record) == 392, "on-disk layout");

/*
 * Opens and reads a record. Returns its descriptor; -FI_ENOENT; -FI_ENODATA:
 * not written yet; -FI_EPROTO: another version of the format; -FI_EINVAL,
 * logged: malformed, or of another user; -errno, logged: no descriptor or
 * memory.
 */
int duo_record_open(int dir, const char *name, struct duo_record *record);
/* Returns the part of a name behind the hash; NULL: it has no hash. */
const char *duo_record_suffix(const char *name);
/* True if fd is a regular file of this user. */
bool duo_record_ours(int fd, struct stat *st);
/*
 * Check whether the record's owner is alive. Return 0: it is; -ESRCH: it has
 * failed; any other error: the check is impossible now, for example because no
 * descriptor is free. The first tests only the lock; so does the second if the
 * owner is not in pid_ns.
 */
int duo_record_locked(int fd);
int duo_record_check(int fd, const struct duo_record *record, uint64_t pid_ns);

#endif /* DUO_REGISTRY_RECORD_H */
