/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry of local endpoints: one file per endpoint in a directory of the
 * user, named by a hash of the core address. registry.c creates and reads
 * files, registry_dir.c keeps the directory, registry_sweep.c removes files of
 * failed processes, registry_index.h finds the addresses to look up. The local
 * transport fills in its part of a record; the registry does not depend on it.
 *
 * An endpoint is alive if its file is locked and its process exists. Malformed
 * files are never trusted. base is the parent of the user's directory.
 *
 * Cost: control path only. A lookup takes about ten system calls to open, read
 * and check a file; one if there is no file; none with an index.
 * Locks: of files. The caller's domain lock protects publication and index.
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
#define DUO_TRANSPORT_NAME_MAX 64	/* bytes of a name, with the 0 byte */
#define DUO_PATH_MAX 512	/* bytes of a path of the registry */

/* An endpoint's record; fd is -1 while there is none. */
struct duo_publication {
	int fd;
	int dir;		/* the user's directory */
	bool hidden;		/* removed from the directory */
	uint64_t pid_ns;	/* duo_proc_ns() */
	uint64_t net_ns;	/* namespace of the address; 0: the host's */
	char path[DUO_PATH_MAX];
	/* written by the transport before duo_registry_reserve(): */
	enum duo_transport_kind peer;
	uint64_t compat_id;	/* must be equal at both ends */
	bool any_pid_ns;	/* peers may be in other pid namespaces */
	char peer_name[DUO_TRANSPORT_NAME_MAX];	/* or an address */
};

/*
 * registry_dir.c: the user's directory. Starting processes share its lock. A
 * process that sweeps, or that repeats a start after space was lacking, holds
 * it alone.
 */
enum duo_registry_hold {
	DUO_REGISTRY_TOGETHER,
	DUO_REGISTRY_ALONE,
};

/*
 * registry_owner.c. Opens the directory, or creates it. Returns its descriptor,
 * and its path in dir (DUO_PATH_MAX bytes, or NULL); or -errno. -FI_EPERM: the
 * kernel does not distinguish this user from others, or base has no owners.
 */
int duo_registry_open(const char *base, char *dir);
/*
 * Opens and locks the directory, which is then not removed. Returns a
 * descriptor for duo_registry_unlock(), or -errno. -FI_ETIMEDOUT: another
 * process held the lock for 3 s while no endpoint started; it has probably
 * stopped.
 */
int duo_registry_lock(const char *base, enum duo_registry_hold hold);
void duo_registry_unlock(int lock);
/*
 * Counts an endpoint of this compatibility id. Returns the count, or -errno.
 * Needs no lock: each endpoint appends one byte to a file. The caller of
 * duo_registry_forget(), which resets the count, holds the lock alone.
 */
int duo_registry_number(int dir, uint64_t compat_id);
void duo_registry_forget(int dir, uint64_t compat_id);
/* Removes file's directory if only counts are left and it is not locked. */
void duo_registry_leave(int dir, const char *file);
/* Opens a stream of the names, which the caller closes. NULL: failed. */
DIR *duo_registry_list(int dir);
/* Returns the number of records, with those of recently failed endpoints. */
size_t duo_registry_count(int dir);
/*
 * Returns a number that changes when a file is created or removed; 0: the last
 * change is too recent.
 */
uint64_t duo_registry_state(int dir);

/*
 * registry_sweep.c. Removes the records of failed processes, and calls each
 * transport, by its kind, to remove their other remains. Returns the number of
 * live endpoints. The caller holds the lock alone.
 */
size_t duo_registry_sweep(int dir, const struct duo_transport *const *peers);
/* Sweeps, at most once a second, and not while other processes start. */
void duo_registry_tidy(const char *base,
		       const struct duo_transport *const *peers);

/*
 * Creates and locks the record of a core address (len bytes). Other processes
 * find it after duo_registry_ready(). per_net: the address is unique only in
 * its network namespace. -FI_EADDRINUSE: the address has a record. The caller
 * holds the directory's lock, shared or alone.
 */
int duo_registry_reserve(const char *base, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub);
int duo_registry_ready(struct duo_publication *pub);
/*
 * Remove the record, so that no peer finds it; withdraw also closes the record
 * and leaves the directory. Need no lock. Idempotent.
 */
void duo_registry_hide(struct duo_publication *pub);
void duo_registry_withdraw(struct duo_publication *pub);

/*
 * Looks up a core address for the endpoint published as *self. Returns
 * FI_DUO_OK and the transport's name of the peer (DUO_TRANSPORT_NAME_MAX
 * bytes), otherwise the reason why the two cannot connect. Needs no lock.
 */
enum fi_duo_reason duo_registry_lookup(const void *addr, size_t len,
				       const struct duo_publication *self,
				       char *peer_name);

#define DUO_HASH_DIGITS 16	/* digits of a record's name */
uint64_t duo_registry_hash(const void *data, size_t len);
bool duo_registry_is_record(const char *name);
/* Returns the hash in the name of addr's record, as *self looks it up. */
uint64_t duo_registry_key(const struct duo_publication *self, const void *addr,
			  size_t len);

#endif /* DUO_REGISTRY_H */
