/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry of local endpoints: one small file per endpoint in a directory
 * of the user's own, found by a hash of the core address. registry.c makes
 * and reads files, registry_dir.c has the directory, registry_sweep.c removes
 * what the dead have left, registry_index.h says which addresses to look up
 * at all. Who carries the messages is no matter here: what a record says of the
 * peer it has from the peer.
 *
 * Who holds the lock on its file is alive, if its process is. Malformed files
 * are never trusted. base is the directory that the user's own one is in.
 *
 * Cost: control path only. A look-up is some ten system calls, to open, read
 * and judge a file; where there is none, one; with an index, none.
 * Locks: those of files. The domain's is the caller's, for the publication and
 * the index that he gives.
 */
#ifndef DUO_REGISTRY_H
#define DUO_REGISTRY_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#include "transport/transport.h"

#define DUO_ADDR_MAX 256	/* bytes of a core address */
#define DUO_TRANSPORT_NAME_MAX 64	/* of a peer's name; the last byte is 0 */
#define DUO_PATH_MAX 512	/* of the registry's files */

/* An endpoint's entry; fd is -1 while there is none. */
struct duo_publication {
	int fd;
	int dir;		/* the user's directory */
	bool hidden;		/* found no more */
	uint64_t pid_ns;	/* duo_proc_ns() */
	uint64_t net_ns;	/* in which the address is unique; 0: in all */
	char path[DUO_PATH_MAX];
	/* What the peer writes before duo_registry_reserve(): */
	enum duo_transport_kind peer;
	uint64_t compat_id;		/* the same at both ends, or they do not meet */
	bool any_pid_ns;	/* it meets those of other pid namespaces */
	char peer_name[DUO_TRANSPORT_NAME_MAX];	/* or other bytes of its */
};

/*
 * registry_dir.c: the user's directory. Processes that start hold its lock
 * together; one that removes what others have left, or that found too little
 * room beside them, holds it alone.
 */
enum duo_registry_hold {
	DUO_REGISTRY_TOGETHER,
	DUO_REGISTRY_ALONE,
};

/*
 * registry_owner.c. Returns a descriptor of the directory, which is made if it
 * is not there, and its path in dir (DUO_PATH_MAX bytes, or NULL); or -errno.
 * -FI_EPERM: the kernel does not tell this user from all others, or the base
 * keeps no owners. base is the directory that it is in.
 */
int duo_registry_open(const char *base, char *dir);
/*
 * Opens and locks. -FI_ETIMEDOUT: for 3 s the lock was not to be had, and no
 * endpoint has started: a process that has the lock has stopped. The directory
 * is not removed while this is held. Returns a descriptor for unlock or -errno.
 */
int duo_registry_lock(const char *base, enum duo_registry_hold hold);
void duo_registry_unlock(int lock);
/*
 * Counts one more endpoint of a realm. Returns how many there have been since
 * the count began, or -errno. Needs no lock: each writes one byte at the end of
 * a file. Forgetting the count needs the directory's lock alone.
 */
int duo_registry_number(int dir, uint64_t compat_id);
void duo_registry_forget(int dir, uint64_t compat_id);
/*
 * Removes the file's directory if nothing but counts are left in it and nobody
 * holds its lock.
 */
void duo_registry_leave(int dir, const char *file);
/* Its names; to be closed. NULL: cannot be read. */
DIR *duo_registry_list(int dir);
/* Of its records: endpoints that are there, or were not long ago. */
size_t duo_registry_count(int dir);
/*
 * A number that changes when a file in the directory has come or gone; 0:
 * one may just have.
 */
uint64_t duo_registry_state(int dir);

/* registry_sweep.c */
/*
 * Removes the files of dead processes, and has each peer, by its kind, remove
 * what else is left of them; returns how many live endpoints there are. The
 * caller holds the lock alone.
 */
size_t duo_registry_sweep(int dir, const struct duo_transport *const *peers);
/* The same, at most once a second, and not while processes start. */
void duo_registry_tidy(const char *base,
		       const struct duo_transport *const *peers);

/*
 * Makes and locks the file for a core address (len bytes). It is not found by
 * others until ready. per_net: the address means something in one network
 * namespace only. -FI_EADDRINUSE: there is a file for this address. The caller
 * holds the directory's lock, either way.
 */
int duo_registry_reserve(const char *base, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub);
int duo_registry_ready(struct duo_publication *pub);
/*
 * From now on it is not found; the directory stays. Need no lock. Idempotent.
 */
void duo_registry_hide(struct duo_publication *pub);
void duo_registry_withdraw(struct duo_publication *pub);

/*
 * Looks up a core address for the endpoint published as *self. Returns
 * FI_DUO_OK and the name of the peer there (DUO_TRANSPORT_NAME_MAX bytes),
 * else the reason why the two do not meet. Needs no lock.
 */
enum fi_duo_reason duo_registry_lookup(const void *addr, size_t len,
				       const struct duo_publication *self,
				       char *peer_name);

/* A record's name is so many digits of a hash. */
#define DUO_HASH_DIGITS 16
uint64_t duo_registry_hash(const void *data, size_t len);
bool duo_registry_is_record(const char *name);
/* Returns the hash in the name of the record that *self finds for addr. */
uint64_t duo_registry_key(const struct duo_publication *self, const void *addr,
			  size_t len);

#endif /* DUO_REGISTRY_H */
