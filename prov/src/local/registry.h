/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry of local endpoints: a directory for each user, with a file for
 * each endpoint, its record. The file's name is a hash of the core address.
 * registry.c creates and reads records, registry_dir.c locks and lists the
 * directory, registry_owner.c finds it, registry_sweep.c removes records of
 * failed processes, and registry_index.h finds addresses with a record. The
 * local transport fills in its part of a record.
 *
 * An endpoint is alive if its file is locked and its process exists; in another
 * pid namespace, only the lock is tested. Malformed files are rejected. "base"
 * is the directory that has the users' directories.
 *
 * Cost: control path only. A lookup takes about ten system calls. If the
 * address has no record, the lookup takes one, or none with an index. Locks:
 * flock on the directory, and a lock on each record's file. The caller must
 * serialize calls with the same struct.
 */
#ifndef DUO_REGISTRY_H
#define DUO_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#include "transport/transport.h"

#define DUO_ADDR_MAX 256	/* longest core address, bytes */
#define DUO_TRANSPORT_NAME_MAX 64	/* longest name, bytes, including the 0
					 * byte */
#define DUO_PATH_MAX 512	/* longest path in the registry, bytes */

/* The record of an endpoint, at its owner. fd is -1 if there is no record. */
struct duo_publication {
	int fd;
	int dir;		/* descriptor of the user's directory */
	bool hidden;		/* the file was removed from the directory */
	uint64_t pid_ns;	/* pid namespace, duo_proc_ns() */
	uint64_t net_ns;	/* network namespace in which the address is
				 * unique; 0: unique on the host */
	char path[DUO_PATH_MAX];
	/* The transport sets these before duo_registry_reserve(): */
	enum duo_transport_kind peer;
	uint64_t compat_id; /* compatibility id; must be equal at both ends */
	bool any_pid_ns; /* peers in other pid namespaces can connect, too */
	char peer_name[DUO_TRANSPORT_NAME_MAX];	/* the endpoint's name or
						 * address at the local
						 * transport */
};

/*
 * Modes of the directory's lock, as in flock(2). Endpoints that start share the
 * lock. A process takes the lock exclusively
 * - for a sweep
 * - to start an endpoint of a transport with duo_transport.exclusive_start
 * - to start an endpoint again, if the first attempt has failed because space
 *   was lacking or because the address had a record
 */
enum duo_registry_lock_mode {
	DUO_REGISTRY_SHARED,
	DUO_REGISTRY_EXCLUSIVE,
};

/*
 * registry_owner.c: opens or creates the user's directory. Returns a descriptor
 * or -errno. If dir is not NULL, stores the path there, at most DUO_PATH_MAX
 * bytes. -FI_EPERM: this user cannot be distinguished from others, because of
 * the overflow uid or because files have no owners.
 */
int duo_registry_open(const char *base, char *dir);
/*
 * Opens and locks the directory, so that no process removes it. Returns a
 * descriptor for duo_registry_unlock(), or
 * - -FI_ETIMEDOUT: another process, which was probably stopped, has held the
 *   lock for 3 s in which no endpoint started, or for 60 s
 * - -FI_EBUSY: duo_registry_open() has waited as long for the process that
 *   creates the directory, so a further call of it would wait again
 * - another -errno
 */
int duo_registry_lock(const char *base, enum duo_registry_lock_mode mode);
void duo_registry_unlock(int lock);
/*
 * duo_registry_count_ep() counts a new endpoint with this compatibility id, by
 * a byte that it appends to a file. It needs no lock, and returns the number of
 * endpoints counted since the last reset, or -errno. duo_registry_reset_count()
 * makes the number 0. It needs the directory's exclusive lock.
 */
int duo_registry_count_ep(int dir, uint64_t compat_id);
void duo_registry_reset_count(int dir, uint64_t compat_id);
/*
 * Removes the user's directory dir, unless this directory has a record or is
 * locked. file: the path of a file in the directory.
 */
void duo_registry_leave(int dir, const char *file);
/* Returns the number of records, also of endpoints that have failed. */
size_t duo_registry_count(int dir);
/*
 * Returns a number that changes when a file is added to the directory or
 * removed. 0: this may have happened within the last 50 ms, so the number does
 * not show whether the directory has changed.
 */
uint64_t duo_registry_state(int dir);

/*
 * registry_sweep.c: removes records of failed processes. The transport
 * peers[kind] removes other files of these processes. Returns the number of
 * endpoints alive. Needs the directory's exclusive lock.
 */
size_t duo_registry_sweep(int dir, const struct duo_transport *const *peers);
/*
 * Sweeps the directory, unless it was swept within the last second or another
 * process holds the directory's lock.
 */
void duo_registry_tidy(const char *base,
		       const struct duo_transport *const *peers);

/*
 * duo_registry_reserve() creates and locks the record of a core address;
 * duo_registry_ready() makes it visible. per_net: the address is unique only in
 * its network namespace. Both return 0 or -errno; -FI_EADDRINUSE: the address
 * already has a record. Without the directory's lock, a sweep may remove the
 * record before it is locked; duo_registry_ready() then returns -FI_ENOENT.
 */
int duo_registry_reserve(const char *base, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub);
int duo_registry_ready(struct duo_publication *pub);
/*
 * Remove the record. duo_registry_withdraw() also closes the record's file, and
 * removes the directory unless it has a record or is locked. Both need no lock,
 * and may be called again.
 */
void duo_registry_hide(struct duo_publication *pub);
void duo_registry_withdraw(struct duo_publication *pub);

/*
 * Looks up a core address, for the endpoint with the record *self. Needs no
 * lock. Returns FI_DUO_OK and stores the peer's name in DUO_TRANSPORT_NAME_MAX
 * bytes. Otherwise returns the reason why the two endpoints cannot connect.
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
