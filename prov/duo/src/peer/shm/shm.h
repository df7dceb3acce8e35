/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local side of an endpoint over libfabric's shm, a peer provider
 * (fi_peer(3)): it asks us which receive takes a message, and writes its
 * completions by calling us. ep.c opens it, map.c keeps its AV, srx.c and
 * done.c are what it calls, room.c and region.c see to its memory. Under the
 * domain's lock, which is shm's owner lock.
 *
 * Cost: 16 MiB of /dev/shm an endpoint, and 250 peers in its life.
 */
#ifndef DUO_SHM_H
#define DUO_SHM_H

#include "obj/cq.h"
#include "obj/ep.h"

#define DUO_SHM_REGION (16 << 20)	/* bytes, of one endpoint; at most */
#define DUO_SHM_ENLARGE \
	"Enlarge " DUO_SHM_DIR " (docker --shm-size, Kubernetes emptyDir " \
	"with medium Memory, AWS Batch sharedMemorySize)"
#define DUO_SHM_PEERS 256	/* what one AV of shm holds */
#define DUO_SHM_TRIES 1024	/* sends, until the peer's file is read */
#define DUO_SHM_SENT UINT16_MAX	/* of tries: never mind */
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

struct duo_shm {
	struct fid_av *av;
	struct fid_ep *srx;
	char name[DUO_SHM_PEERS][DUO_PEER_NAME_MAX];	/* by shm address */
	size_t known;			/* peers that shm has been told of */
	uint16_t tries[DUO_SHM_PEERS];	/* sends that it did not take before it
					 * took the first; DUO_SHM_SENT then */
};

/* info.c: the shm provider as a peer, or NULL with a warning; caps: FI_HMEM
 * or none */
struct fi_info *duo_shm_getinfo(uint64_t caps);

/* map.c: parts of struct duo_peer */
int duo_shm_av_open(struct duo_ep *ep);
fi_addr_t duo_shm_connect(struct duo_ep *ep, const char *peer_name,
			  fi_addr_t addr, enum fi_duo_reason *reason);
bool duo_shm_lives(const struct duo_ep *ep, fi_addr_t number);
void duo_shm_leaves(struct duo_ep *ep, const char *peer_name);
void duo_shm_left(struct duo_ep *ep, const char *peer_name);
/* A message has gone to this peer, so all others do. */
static inline void duo_shm_sent(struct duo_shm *shm, fi_addr_t number)
{
	shm->tries[number] = DUO_SHM_SENT;
}
/*
 * One has not: -FI_EAGAIN. If the peer cannot map our region that never ends,
 * and the core takes what goes to it from now on; none is on this path.
 */
void duo_shm_not_sent(struct duo_ep *ep, fi_addr_t number);

/* srx.c */
void duo_shm_srx_init(struct duo_ep *ep);
/* Starts unexpected, held or claimed message rx, see peer.h. */
int duo_shm_start(struct duo_rx *rx, const struct duo_recv *recv);

/* done.c: shm's CQ or counter behind one of ours */
int duo_shm_cq_open(struct duo_cq *cq, size_t size);
uint32_t duo_shm_poll(struct duo_cq *cq);
int duo_shm_cntr_open(struct duo_cntr *cntr);

#endif /* DUO_SHM_H */
