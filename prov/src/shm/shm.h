/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local side of an endpoint over libfabric's shm, a peer provider
 * (fi_peer(3)): it calls ofi_duo to match messages and to write completions.
 * ep.c opens it, srx.c has the functions that shm calls, region.c handles
 * shared memory. The domain's lock protects it, and is shm's owner lock.
 *
 * Cost: 16 MiB of /dev/shm an endpoint.
 */
#ifndef DUO_SHM_H
#define DUO_SHM_H

#include "base/log.h"
#include "obj/cq.h"
#include "obj/ep.h"

#define DUO_SHM_REGION (16 << 20)	/* bytes of an endpoint, at most */
#define DUO_SHM_TAKES "16 MiB of " DUO_DEV_SHM
#define DUO_SHM_PEERS 256	/* limit of an AV of shm */
#define DUO_SHM_ENDPOINTS 250	/* limit of a host and user, see below */
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
 * An AV of shm has a map of 256 peers. shm also adds peers itself when they
 * connect, without a check for space: a full map is overwritten, and data goes
 * to another process. fi_av_remove of shm, 2.0 to 2.6, leaves the peer's state
 * in this process's region, so no entry becomes free.
 *
 * So each endpoint has its own AV of shm until shm's endpoint closes. The
 * registry counts the endpoints over shm that have been opened since there was
 * none (duo_registry_number()). An endpoint beyond DUO_SHM_ENDPOINTS has no
 * local side, so that no map gets more peers than that.
 */
struct duo_shm {
	struct fid_av *av;
	struct fid_ep *srx;
	char name[DUO_SHM_PEERS][DUO_TRANSPORT_NAME_MAX];	/* by peer
								 * index */
};

/* region.c */
/*
 * Checks for space for a region and allocates nothing. Returns 0, -FI_ENOSPC:
 * no space, -FI_ENOMEM: RLIMIT_AS, or -EFBIG: RLIMIT_FSIZE.
 */
int duo_shm_room(void);
/*
 * Allocates all pages of an enabled endpoint's region. -FI_ENOSPC: only close
 * the endpoint. This user's other endpoints use no space between the check and
 * this (duo_transport.alone). If another user does before shm writes to the
 * region, SIGBUS ends the process, as with libfabric's shm alone.
 */
int duo_shm_allocate(const char *name);
/* Writes shm's part of the record, with a new, random name. */
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
/* Parts of struct duo_transport. They open shm's CQ and counter. */
int duo_shm_start(struct duo_rx *rx, const struct duo_recv *recv);
int duo_shm_cq_open(struct duo_cq *cq, size_t size);
uint32_t duo_shm_poll(struct duo_cq *cq);
int duo_shm_cntr_open(struct duo_cntr *cntr);

#endif /* DUO_SHM_H */
