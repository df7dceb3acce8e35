/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local side of an endpoint over libfabric's shm, a peer provider
 * (fi_peer(3)): it asks us which receive takes a message, and writes its
 * completions by calling us. ep.c opens it, srx.c is what it calls, region.c
 * has its memory and its peers'. Under the domain's lock, which is shm's owner
 * lock.
 *
 * Cost: 16 MiB of /dev/shm an endpoint.
 */
#ifndef DUO_SHM_H
#define DUO_SHM_H

#include "base/log.h"
#include "obj/cq.h"
#include "obj/ep.h"

#define DUO_SHM_REGION (16 << 20)	/* bytes, of one endpoint; at most */
#define DUO_SHM_TAKES "16 MiB of " DUO_DEV_SHM
#define DUO_SHM_PEERS 256	/* what one AV of shm holds */
#define DUO_SHM_ENDPOINTS 250	/* of a host and user, see below */
#define DUO_SHM_QUEUE 1024	/* operations in flight, each way */
#define DUO_SHM_INJECT 4096	/* bytes */
#define DUO_SHM_IOV 4		/* buffers of a message */
#define DUO_SHM_LIMITS { \
	.inject_size = DUO_SHM_INJECT, \
	.iov_limit = DUO_SHM_IOV, \
	.queue = DUO_SHM_QUEUE, \
	.cq_data_size = sizeof(uint64_t), \
}

struct duo_cntr;

/*
 * shm keeps its peers in a map of 256 places in its AV. It fills the map by
 * itself as well, when a peer connects, and does not notice that it is full:
 * then it writes over a place in use, and data goes to another process.
 * fi_av_remove of shm, 2.0 to 2.6, leaves the removed peer's state in our
 * region, so no place is ever free again.
 *
 * So each endpoint has an AV of shm to itself, which lives as long as shm's
 * endpoint, and the registry counts the endpoints over shm since there was none
 * (duo_registry_number()). An endpoint beyond DUO_SHM_ENDPOINTS has no local
 * side: no map can meet more peers than there have been endpoints.
 */
struct duo_shm {
	struct fid_av *av;
	struct fid_ep *srx;
	char name[DUO_SHM_PEERS][DUO_TRANSPORT_NAME_MAX];	/* by its number */
};

/* region.c */
/*
 * Whether there is room for a region. Returns 0, -FI_ENOSPC: not even now,
 * -FI_ENOMEM: RLIMIT_AS, or -EFBIG: RLIMIT_FSIZE. Takes nothing.
 */
int duo_shm_room(void);
/*
 * Gives the region of an enabled endpoint all its pages. -FI_ENOSPC: the
 * endpoint can only be closed. Others of this user take no room between the two
 * (duo_transport.alone). If another user does before shm has written to the region,
 * the process ends by SIGBUS, as it does with libfabric's shm by itself.
 */
int duo_shm_allocate(const char *name);
/* What the record of an endpoint says: a new name, which nobody can guess. */
int duo_shm_publish(struct duo_publication *pub);
/* Parts of struct duo_transport. */
void duo_shm_reap(const char *name);
void duo_shm_sweep(int dir, uint64_t pid_ns);
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			  fi_addr_t addr, enum fi_duo_reason *reason);
bool duo_shm_lives(const struct duo_ep *ep, fi_addr_t number);
bool duo_shm_oversubscribed(const struct duo_ep *ep, size_t endpoints);

/* srx.c */
void duo_shm_srx_init(struct duo_ep *ep);
/* Parts of struct duo_transport: shm's CQ or counter behind one of ours. */
int duo_shm_start(struct duo_rx *rx, const struct duo_recv *recv);
int duo_shm_cq_open(struct duo_cq *cq, size_t size);
uint32_t duo_shm_poll(struct duo_cq *cq);
int duo_shm_cntr_open(struct duo_cntr *cntr);

#endif /* DUO_SHM_H */
