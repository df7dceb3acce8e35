/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry of local endpoints (docs/registry.md): a directory for each
 * user, with a file for each endpoint, the endpoint's *record*. The file's name
 * is a hash of the *core address*, the endpoint's address at the provider that
 * ofi_duo wraps. `base` is the directory that has the directories of all users.
 *
 * An endpoint is alive if its record's file is locked and its process exists.
 * For a process in another pid namespace, only the lock is tested.
 *
 * Cost: control path only. If an address has a record, a lookup takes about ten
 * system calls. If the address has no record, a lookup takes one system call,
 * or none if the caller has read a duo_registry_index.
 *
 * Locks: flock(2) on the directory, and a lock on each record's file. The
 * caller must serialize calls with the same struct duo_publication.
 */
#ifndef DUO_REGISTRY_H
#define DUO_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#include "transport/transport.h"

#define DUO_ADDR_MAX 256	/* longest core address, bytes */
#define DUO_TRANSPORT_NAME_MAX 64	/* size of peer_name, bytes */
#define DUO_PATH_MAX 512	/* longest path in the registry, bytes */

/* An endpoint's record, in the process that has the endpoint: the *owner* */
struct duo_publication {
	int fd;		/* descriptor of the record's file; -1: no record */
	int dir;		/* descriptor of the user's directory */
	bool hidden;	/* the record's file was removed from the directory */
	uint64_t pid_ns;	/* id of the owner's pid namespace */
	/*
	 * id of the network namespace in which the core address is unique; 0:
	 * the core address is unique on the host
	 */
	uint64_t net_ns;
	char path[DUO_PATH_MAX];
	/*
	 * The local transport sets all fields below before
	 * duo_registry_reserve().
	 */
	enum duo_transport_kind peer;
	uint64_t compat_id; /* two endpoints connect only if theirs are equal */
	bool any_pid_ns; /* peers in other pid namespaces can connect, too */
	/* name or address of the endpoint at the local transport */
	char peer_name[DUO_TRANSPORT_NAME_MAX];
};

/*
 * Modes of the directory's lock. A process takes the lock in shared mode to add
 * a record, so that several processes can do so at once. A process takes the
 * lock exclusively for a sweep, which removes the files of failed processes,
 * and to add a record directly after a sweep.
 */
enum duo_registry_lock_mode {
	DUO_REGISTRY_SHARED,
	DUO_REGISTRY_EXCLUSIVE,
};

/*
 * Opens the user's directory, and creates it first if necessary. Stores its
 * path in dir, a buffer of DUO_PATH_MAX bytes, unless dir is NULL. Returns a
 * file descriptor or -errno. -FI_EPERM: this user cannot be distinguished from
 * others (overflow uid, or a file system that stores no owners).
 */
int duo_registry_open(const char *base, char *dir);
/*
 * Opens and locks the directory, so that no process removes it. Returns a file
 * descriptor for duo_registry_unlock(), or
 * - -FI_ETIMEDOUT of duo_dir_lock(): the process with the lock is probably
 *   stopped
 * - -FI_EBUSY: duo_registry_open() has timed out; a retry would time out, too
 * - another -errno
 */
int duo_registry_lock(const char *base, enum duo_registry_lock_mode mode);
void duo_registry_unlock(int lock);
/*
 * Adds 1 to the count of endpoints with this compat_id. Returns the new count
 * or -errno.
 */
int duo_registry_count_ep(int dir, uint64_t compat_id);
/*
 * Sets the count of endpoints with this compat_id to 0. The caller must hold
 * the exclusive lock of the directory.
 */
void duo_registry_reset_count(int dir, uint64_t compat_id);
/*
 * Removes the directory, with its counts of endpoints, unless it has other
 * files or another process holds its lock. file: path of a file in the
 * directory, from which this function takes the directory's path. The file need
 * not exist any more.
 */
void duo_registry_leave(int dir, const char *file);
/* Returns the number of records, including those of failed endpoints. */
size_t duo_registry_count(int dir);
/*
 * Returns a number that changes when a file is added to the directory or
 * removed from it. 0: the number is not reliable, because the last change is
 * less than 50 ms ago.
 */
uint64_t duo_registry_state(int dir);

/* A summary of the names of all records, read once for many lookups */
#define DUO_INDEX_BITS 65536
struct duo_registry_index {
	/*
	 * for each record, the bit duo_registry_key() % DUO_INDEX_BITS is set
	 */
	uint8_t bits[DUO_INDEX_BITS / 8];
};
/*
 * Reads the records' names into *index. lookups: number of lookups that follow.
 * Reads nothing if they are fewer than 16, because the lookups themselves then
 * cost less than reading all names. Returns index; NULL: nothing was read.
 */
const struct duo_registry_index *
duo_registry_index_read(struct duo_registry_index *index, int dir,
			size_t lookups);
/* True if a record may have this key, or if index is NULL. */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

/*
 * Removes the records of failed processes. Also calls reap() and sweep() of
 * each local transport, which remove the transport's own files of these
 * processes. peers: the local transports, indexed by enum duo_transport_kind.
 * Returns the number of live endpoints. The caller must hold the exclusive lock
 * of the directory.
 */
size_t duo_registry_sweep(int dir, const struct duo_transport *const *peers);
/*
 * Calls duo_registry_sweep(), unless another process has locked the directory,
 * or the last sweep was less than a second ago.
 */
void duo_registry_tidy(const char *base,
		       const struct duo_transport *const *peers);

/*
 * Creates and locks the record of a core address. Lookups find the record only
 * after duo_registry_ready(). per_net: the address is unique only in its
 * network namespace. Returns 0, -FI_EADDRINUSE if the address already has a
 * record, or another -errno. The caller should hold the directory's lock until
 * duo_registry_ready() has returned. Otherwise another process's sweep might
 * remove the record.
 */
int duo_registry_reserve(const char *base, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub);
/* Makes the record visible to lookups. -FI_ENOENT: a sweep has removed it. */
int duo_registry_ready(struct duo_publication *pub);
/* Removes the record from the directory. A repeated call does nothing. */
void duo_registry_hide(struct duo_publication *pub);
/* Hides the record, closes its file, and calls duo_registry_leave(). */
void duo_registry_withdraw(struct duo_publication *pub);

/*
 * Looks up a core address for the endpoint `self`. Stores the peer's name at
 * the local transport in peer_name (DUO_TRANSPORT_NAME_MAX bytes) and returns
 * FI_DUO_OK. Otherwise returns the reason why the two endpoints cannot connect
 * over the local transport.
 */
enum fi_duo_reason duo_registry_lookup(const void *addr, size_t len,
				       const struct duo_publication *self,
				       char *peer_name);

#define DUO_HASH_DIGITS 16	/* hexadecimal digits of a record's file name */
uint64_t duo_registry_hash(const void *data, size_t len);
bool duo_registry_is_record(const char *name);
/* Returns the hash in the file name of this address's record. */
uint64_t duo_registry_key(const struct duo_publication *self, const void *addr,
			  size_t len);

#endif /* DUO_REGISTRY_H */
