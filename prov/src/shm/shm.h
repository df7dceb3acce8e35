/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local transport over libfabric's provider shm, called shm in this folder.
 * ofi_duo opens shm as a peer provider (fi_peer(3)): shm calls ofi_duo to match
 * messages with receives, and to write completions. Each endpoint has a
 * *region*, a file of 16 MiB in /dev/shm. Lock: the caller must hold the
 * domain's lock; shm itself takes no lock.
 */
#ifndef DUO_SHM_H
#define DUO_SHM_H

#include "base/log.h"
#include "obj/cq.h"
#include "obj/ep.h"

#define DUO_SHM_REGION (16 << 20)	/* maximum size of a region, bytes */
#define DUO_SHM_TAKES "16 MiB of " DUO_DEV_SHM
#define DUO_SHM_PEERS 256	/* maximum number of peers in an AV of shm */
/* maximum number of endpoints of a user on a host: docs/registry.md */
#define DUO_SHM_ENDPOINTS 250

struct duo_shm {
	struct fid_av *av;
	struct fid_ep *srx;
	/* names of the peers' regions, indexed by peer index */
	char name[DUO_SHM_PEERS][DUO_TRANSPORT_NAME_MAX];
};

/* region.c */
/*
 * Checks whether there is space for the region of an endpoint. Returns
 * - 0: there is space
 * - -FI_ENOMEM: RLIMIT_AS is too low
 * - -EFBIG: RLIMIT_FSIZE is too low
 * - -FI_ENOSPC: /dev/shm has too little free space
 * - another -errno
 */
int duo_shm_check_space(void);
/*
 * Allocates all pages of the region with this name. Must be called after the
 * fi_enable() of shm's endpoint, which creates the region. Returns 0 or -errno;
 * -FI_ENOSPC: other files have used the space since duo_shm_check_space().
 * After an error, the caller must close the endpoint.
 */
int duo_shm_allocate(const char *name);
/*
 * Sets the fields of an endpoint's registry record that belong to shm. One of
 * them is the name of the region, which contains a random number. Returns 0 or
 * -errno.
 */
int duo_shm_publish(struct duo_publication *pub);
/* Functions of struct duo_transport. */
void duo_shm_reap(const char *name);
void duo_shm_sweep(int dir, uint64_t pid_ns);
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			  fi_addr_t addr, enum fi_duo_reason *reason);
bool duo_shm_exists(const struct duo_ep *ep, fi_addr_t index);
bool duo_shm_oversubscribed(const struct duo_ep *ep, size_t endpoints);

/* srx.c */
void duo_shm_srx_init(struct duo_ep *ep);
/* Functions of struct duo_transport. */
int duo_shm_start(struct duo_rx *rx, const struct duo_recv *recv);
int duo_shm_cq_open(struct duo_cq *cq, size_t size);
uint32_t duo_shm_poll(struct duo_cq *cq);
int duo_shm_cntr_open(struct duo_cntr *cntr);

#endif /* DUO_SHM_H */
