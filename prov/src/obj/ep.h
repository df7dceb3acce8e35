/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint: both paths' endpoints, the route of each address, the receives.
 * Each layer has a struct of its own in it. Locks: the domain's lock, except for
 * the fields that sends over the core read. Cost: the first cache lines have the
 * fields that a message touches; the others are for the slow path.
 */
#ifndef DUO_OBJ_EP_H
#define DUO_OBJ_EP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/util.h"
#include "local/registry.h"
#include "obj/av.h"
#include "obj/cq.h"
#include "obj/domain.h"
#include "obj/traits.h"
#include "queue/match.h"
#include "queue/rx.h"

#define DUO_LOCAL_BATCH 4096	/* new messages of one local poll, at most */

struct duo_map;
struct duo_near;
struct duo_shm;
struct duo_up;

/* Reasons for which a receive is not simply filled and reported. */
enum duo_rx_special {
	DUO_RX_SELECTIVE = 1,	/* reported with FI_COMPLETION only */
	DUO_RX_DEVICE = 2,	/* its descriptors may be of device memory */
};

/*
 * duo_ep.attention: calls that must check more than whether a small message can
 * be sent over near now, or a receive be queued.
 */
enum {
	DUO_EP_MSG = 1 << DUO_MSG,	/* receives of a kind */
	DUO_EP_TAGGED = 1 << DUO_TAGGED,
	DUO_EP_SEND = 1 << DUO_KIND_COUNT,
};

/* Receives that the core gets later, or gave back: core/lazy.c. */
struct duo_ep_lazy {
	uint32_t count;			/* entries of list */
	uint32_t due;			/* of these */
	uint32_t limit;			/* idle polls; adapts */
	struct duo_rx_list list;	/* posted, not on the core yet */
	struct duo_rx_list blocked;	/* not on the core either: a multi-
					 * receive buffer is before them */
	struct duo_rx_list retired;	/* may end once more */
	uint32_t retired_count;
	uint64_t turn_us;		/* when the oldest went to the core */
	uint64_t all_us;		/* when the whole list did */
};

/* Multi-receive buffers: rx/multi.c. */
struct duo_ep_multi {
	uint32_t open;			/* buffers that take messages */
	struct duo_rx_list buffers;	/* that are not released */
	struct duo_rx_list ready;	/* rests, to be posted again */
	size_t min_room;		/* FI_OPT_MIN_MULTI_RECV, bytes */
};

/* Attributes of receives, failures, unresolved and claimed messages: rx/. */
struct duo_ep_rx {
	uint64_t op_flags[DUO_KIND_COUNT];
	size_t iov_limit;
	bool ready;		/* enabled, and may receive */
	uint8_t special;	/* enum duo_rx_special: receives to look at */
	uint64_t failed;
	struct duo_rx_list held;	/* until their source is looked up */
	struct duo_rx_list claimed;	/* by FI_PEEK | FI_CLAIM */
};

/* The same of sends. */
struct duo_ep_tx {
	struct fid_ep *core;	/* the core's; NULL: it sends nothing */
	uint64_t op_flags;
	uint64_t order;
	uint64_t bind_flags;
	uint64_t failed;	/* over near */
	uint64_t pending;	/* large ones under way over near */
};

/* Capabilities that it was opened for, and options. */
struct duo_ep_opts {
	bool wants_local;	/* it is to have a local side */
	bool messages;		/* FI_MSG or FI_TAGGED; else RMA alone, which
				 * is the core's */
	bool local_permitted;	/* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool cuda_denied;	/* FI_OPT_CUDA_API_PERMITTED is false */
	bool in_order;		/* blocks of 128 bytes: the core's alone */
	bool mixed_order;	/* of messages and RMA, or fences: one path
				 * for both, or near that keeps it */
	bool counted;		/* in a counter that can be slept on */
	atomic_bool told_early;	/* that it is not enabled */
};

/*
 * The fields that each message touches come first, in the order of use: three
 * cache lines for a send, six for a receive.
 */
struct duo_ep {
	struct fid_ep ep_fid;
	struct duo_domain *domain;
	struct fid_ep *path_ep[FI_DUO_PATH_COUNT]; /* the local one, which is
					 * the peer's, from fi_enable on */
	struct duo_near *near;		/* NULL: another peer, or none */
	uint32_t attention;		/* DUO_EP_*: calls that look further */
	duo_route_word *route;		/* core_av's */
	fi_addr_t route_size;		/* 0 until enabled */
	struct duo_cq *tx_cq;
	size_t inject_size;		/* bytes */
	size_t max_msg_size;		/* bytes */
	struct duo_cq *rx_cq;
	struct duo_av *av;
	struct duo_core_av *core_av;
	uint64_t caps;
	struct duo_ep_rx rx;
	struct duo_ep_tx tx;

	struct fi_duo_stats stats;	/* by path first */

	struct duo_ep_opts opts;
	bool closing;		/* no message is matched any more */
	struct duo_traits core;		/* the fabric's */
	const struct duo_up *up;
	/* of the queue */
	struct duo_rx_pool pool;
	struct duo_match match[DUO_KIND_COUNT];
	/* core/, rx/ */
	struct duo_ep_lazy lazy;
	struct duo_ep_multi multi;
	/* av/ */
	uint64_t confirmed[(DUO_LOCAL_MAX + 63) / 64];	/* sent before */
	struct duo_map *map;		/* NULL: no local side */
	LIST_ENTRY(duo_ep) av_link;	/* in av->local_eps */
	/* cq/ */
	struct duo_cq *own_cq;		/* where the application has none */
	LIST_HEAD(, duo_cntr_bind) cntrs;	/* see cntr.h */
	LIST_ENTRY(duo_ep) rx_link;	/* in rx_cq->rx_eps */
	LIST_ENTRY(duo_ep) tx_link;	/* in tx_cq->tx_eps */
	/* the local side */
	struct duo_publication publication;
	struct duo_near *near_named;	/* what is to be near; see near_ep.h */
	struct duo_shm *shm;		/* NULL: another peer, or none */
	struct fid_peer_srx peer_srx;	/* libfabric's shm calls it */
	/* FI_MSG_PREFIX: fi/calls_prefix.c */
	struct {
		size_t size;		/* bytes before a message */
		struct fi_ops_msg *msg;	/* calls without the prefix */
		struct fi_ops_tagged *tagged;
	} prefix;
};

static inline struct duo_ep *duo_ep_of(struct fid_ep *ep_fid)
{
	return duo_container_of(ep_fid, struct duo_ep, ep_fid);
}

static inline bool duo_ep_enabled(const struct duo_ep *ep)
{
	return ep->route_size;
}

/* Has the local peer of this number sent before? */
static inline bool duo_ep_confirmed(const struct duo_ep *ep, fi_addr_t local)
{
	return ep->confirmed[local / 64] >> local % 64 & 1;
}

/* Those of a CQ: an endpoint has one for both, or is in one list of each. */
static inline struct duo_ep *duo_cq_first_ep(const struct duo_cq *cq)
{
	struct duo_ep *ep = LIST_FIRST(&cq->rx_eps);

	return ep ? ep : LIST_FIRST(&cq->tx_eps);
}

static inline struct duo_ep *duo_cq_next_ep(const struct duo_cq *cq,
					    const struct duo_ep *ep)
{
	struct duo_ep *next;

	if (__builtin_expect(!cq->several, true))
		return NULL;
	if (ep->rx_cq != cq)
		return LIST_NEXT(ep, tx_link);
	next = LIST_NEXT(ep, rx_link);
	return next ? next : LIST_FIRST(&cq->tx_eps);
}

/* ep.c: after each change to a condition of attention. */
void duo_ep_attend(struct duo_ep *ep);
void duo_cq_attend(struct duo_cq *cq);

/* Messages wait for their source, or receives for the core: for the next poll. */
static inline void duo_ep_chore(const struct duo_ep *ep)
{
	if (ep->rx_cq)
		ep->rx_cq->attention |= DUO_CQ_CHORES;
	if (ep->tx_cq)
		ep->tx_cq->attention |= DUO_CQ_CHORES;
}

/* True if there are entries for all unexpected messages of a local poll. */
static inline bool duo_ep_room(struct duo_ep *ep)
{
	return duo_rx_pool_reserve(&ep->pool, DUO_LOCAL_BATCH);
}

static inline void duo_ep_count_core(struct duo_ep *ep, size_t len)
{
	ep->stats.path[FI_DUO_CORE].rx_msgs++;
	ep->stats.path[FI_DUO_CORE].rx_bytes += len;
}

/* The receive that the context is; NULL: it is the application's own. */
static inline struct duo_rx *duo_cq_rx(const struct duo_cq *cq, void *context)
{
	return duo_ranges_have(&cq->domain->rx_ranges, context) ? context :
								  NULL;
}

#endif /* DUO_OBJ_EP_H */
