/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The registry of local endpoints: one small file per endpoint in the shared
 * memory directory, found by a hash of the core address. Who holds the lock
 * on its file is alive, whatever became of process ids. Files of other users
 * and malformed ones are never trusted. Control path only.
 */
#ifndef DUO_REGISTRY_H
#define DUO_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#define DUO_ADDR_MAX 256	/* bytes of a core address */
#define DUO_SHM_NAME_MAX 64	/* with the final NUL; shm takes 256 */
#define DUO_PATH_MAX 512	/* of the registry's files */

/* An endpoint's entry; fd is -1 while there is none. */
struct duo_publication {
	int fd;
	char path[DUO_PATH_MAX];
	char shm_name[DUO_SHM_NAME_MAX];
};

/*
 * All but lookup and state are called between lock and unlock, which
 * serialise the processes that start or stop in this directory.
 */

/* Waits 10 s at most. Returns a descriptor for unlock or -errno. */
int duo_registry_lock(const char *dir);
void duo_registry_unlock(int lock);

/* Removes the files and shm regions of dead processes; returns how many
 * live endpoints there are. */
size_t duo_registry_sweep(const char *dir);

/*
 * Makes and locks the file for a core address (len bytes) and chooses the
 * shm name. It is not found by others until ready. per_net: the address
 * means something in one network namespace only. -FI_EADDRINUSE: a live
 * process has this address.
 */
int duo_registry_reserve(const char *dir, const void *addr, size_t len,
			 bool per_net, struct duo_publication *pub);
int duo_registry_ready(struct duo_publication *pub);
/* Needs no lock. Idempotent. */
void duo_registry_withdraw(struct duo_publication *pub);

/*
 * Looks up a core address for the endpoint published as *self. Returns
 * FI_DUO_LOCAL and the peer's shm name (DUO_SHM_NAME_MAX bytes): each has a
 * place in the other's shm. Else the reason why shm cannot reach it.
 */
enum fi_duo_reason duo_registry_lookup(const char *dir, const void *addr,
				       size_t len,
				       const struct duo_publication *self,
				       char *shm_name);

/*
 * A number that changes when a file in the directory has come or gone; 0:
 * one may just have.
 */
uint64_t duo_registry_state(const char *dir);

/* A record's name is a prefix, of this length, and 16 digits of a hash. */
int duo_registry_prefix(char *buf, size_t size);
uint64_t duo_registry_hash(const void *addr, size_t len);

#endif /* DUO_REGISTRY_H */
