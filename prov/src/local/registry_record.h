/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The files of the registry, and locks of its directory: registry*.c alone. */
#ifndef DUO_REGISTRY_RECORD_H
#define DUO_REGISTRY_RECORD_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "local/registry.h"

/*
 * Waits as long as files come and go in the directory, and 3 s more. operation:
 * LOCK_SH or LOCK_EX. Returns 0, -FI_ETIMEDOUT or -errno.
 */
int duo_dir_lock(int fd, int operation);
/* True if the directory has no name any more. */
bool duo_dir_removed(int fd);

#define DUO_NEW_SUFFIX ".new"	/* of a file that is not ready */

/* What a file has in it. All integers are in the byte order of the host. */
struct duo_record {
	uint64_t magic;
	uint32_t version;
	uint32_t size;		/* of this struct, bytes */
	uint32_t peer;		/* enum duo_transport_kind */
	int32_t pid;
	uint64_t pid_ns;	/* its owner's: duo_proc_ns() */
	uint64_t net_ns;	/* 0: the address is unique without it */
	uint64_t compat_id;		/* struct duo_publication */
	uint64_t start;		/* of the process: duo_proc_start(); or 0 */
	uint64_t addr_len;	/* bytes */
	uint8_t addr[DUO_ADDR_MAX];
	char peer_name[DUO_TRANSPORT_NAME_MAX];
	uint64_t checksum;	/* of all that precedes */
};

static_assert(sizeof(struct duo_record) == 392, "on-disk layout");

/*
 * Opens and reads a record. Returns its descriptor; -FI_ENOENT; -FI_ENODATA:
 * it is being written; -FI_EPROTO: another version of the format; -FI_EINVAL,
 * after a warning: not ours or malformed.
 */
int duo_record_open(int dir, const char *name, struct duo_record *record);
/* What follows the hash in a name; NULL: it has none. */
const char *duo_record_suffix(const char *name);
/* True if it is a regular file of this user. */
bool duo_record_ours(int fd, struct stat *st);
/*
 * Return 0 if the record's owner lives, -ESRCH if it is dead. Any other error:
 * that cannot be told now, because no descriptor is free, for example. The
 * first goes by the lock alone, and so does the second where the owner is not
 * in pid_ns.
 */
int duo_record_locked(int fd);
int duo_record_check(int fd, const struct duo_record *record, uint64_t pid_ns);

#endif /* DUO_REGISTRY_RECORD_H */
