/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint: both paths' endpoints, the route of each address, the receives.
 * Each layer has a struct of its own in it. Lock: the domain's, except for the
 * fields that sends over the core read.
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
	DUO_RX_DEVICE = 2,	/* descriptors may be of device memory */
};

/*
 * duo_ep.attention: calls that take the slow path. The fast path checks only
 * that near can send a small message now, or that a receive can be queued.
 */
enum {
	DUO_EP_MSG = 1 << DUO_MSG,	/* receives, by kind */
	DUO_EP_TAGGED = 1 << DUO_TAGGED,
	DUO_EP_SEND = 1 << DUO_KIND_COUNT,
};

/* Receives that the core gets later, or gave back: core/lazy.c. */
struct duo_ep_lazy {
	uint32_t count;			/* entries of list */
	uint32_t due;			/* of count: to post at next poll */
	uint32_t limit;			/* idle polls until posted; adapts */
	struct duo_rx_list list;	/* posted, not on the core yet */
	struct duo_rx_list blocked;	/* behind a multi-receive buffer; the
					 * core must not have them yet */
	struct duo_rx_list retired;	/* may complete once more */
	uint32_t retired_count;
	uint64_t turn_us;		/* last post of an oldest entry, us */
	uint64_t all_us;		/* last post of the whole list, us */
};

/* Multi-receive buffers: rx/multi.c. */
struct duo_ep_multi {
	uint32_t open;			/* buffers that messages can fill */
	struct duo_rx_list buffers;	/* buffers that are not released yet */
	struct duo_rx_list ready;	/* remainders to post again */
	size_t min_room;		/* FI_OPT_MIN_MULTI_RECV, bytes */
};

/* Receives: attributes, failures, unresolved and claimed messages: rx/. */
struct duo_ep_rx {
	uint64_t op_flags[DUO_KIND_COUNT];
	size_t iov_limit;
	bool ready;		/* enabled, and can receive */
	uint8_t special;	/* enum duo_rx_special */
	uint64_t failed;
	struct duo_rx_list held;	/* unresolved messages */
	struct duo_rx_list claimed;	/* messages, by FI_PEEK | FI_CLAIM */
};

/* Attributes and counts of sends. */
struct duo_ep_tx {
	struct fid_ep *core;	/* the core's endpoint; NULL: cannot send */
	uint64_t op_flags;
	uint64_t order;
	uint64_t bind_flags;
	uint64_t failed;	/* failed sends over near */
	uint64_t pending;	/* rendezvous sends over near */
};

/* Capabilities and options of the endpoint. */
struct duo_ep_opts {
	bool wants_local;	/* needs a local side */
	bool messages;		/* FI_MSG or FI_TAGGED; else RMA only */
	bool local_permitted;	/* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool cuda_denied;	/* FI_OPT_CUDA_API_PERMITTED is false */
	bool in_order;		/* 128-byte blocks in order: needs the core */
	bool mixed_order;	/* order across messages and RMA, or fences:
				 * needs one path, or near's own ordering */
	bool counted;		/* a counter with a wait object is bound */
	atomic_bool told_early;	/* a call before fi_enable() was logged */
};

/*
 * The fields that each message accesses come first, in the order of use: three
 * cache lines for a send, six for a receive.
 */
struct duo_ep {
	struct fid_ep ep_fid;
	struct duo_domain *domain;
	struct fid_ep *path_ep[FI_DUO_PATH_COUNT]; /* the local one from
					 * fi_enable() on */
	struct duo_near *near;		/* NULL: another transport, or none */
	uint32_t attention;		/* DUO_EP_* */
	duo_route_word *route;		/* core_av->route */
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

	struct fi_duo_stats stats;	/* path[] comes first */

	struct duo_ep_opts opts;
	bool closing;		/* no message is matched from now on */
	struct duo_traits core;		/* of the core: fabric->traits */
	const struct duo_up *up;
	/* queue/ */
	struct duo_rx_pool pool;
	struct duo_match match[DUO_KIND_COUNT];
	/* core/, rx/ */
	struct duo_ep_lazy lazy;
	struct duo_ep_multi multi;
	/* av/ */
	uint64_t confirmed[(DUO_LOCAL_MAX + 63) / 64];	/* sources, by index */
	struct duo_map *map;		/* NULL: no local side */
	LIST_ENTRY(duo_ep) av_link;	/* in av->local_eps */
	/* cq/ */
	struct duo_cq *own_cq;		/* replaces a missing CQ */
	LIST_HEAD(, duo_cntr_bind) cntrs;	/* see cntr.h */
	LIST_ENTRY(duo_ep) rx_link;	/* in rx_cq->rx_eps */
	LIST_ENTRY(duo_ep) tx_link;	/* in tx_cq->tx_eps */
	/* the local side */
	struct duo_publication publication;
	struct duo_near *near_named;	/* near until fi_enable(); near_ep.h */
	struct duo_shm *shm;		/* NULL: another transport, or none */
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

/* True if the peer with this index is a confirmed source. */
static inline bool duo_ep_confirmed(const struct duo_ep *ep, fi_addr_t local)
{
	return ep->confirmed[local / 64] >> local % 64 & 1;
}

/* Iterate over a CQ's endpoints; rx_eps has those that also send with it. */
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

/* ep.c: compute attention anew. Call them after a condition has changed. */
void duo_ep_attend(struct duo_ep *ep);
void duo_cq_attend(struct duo_cq *cq);

/* Makes the next poll resolve messages and post deferred receives. */
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

/* Returns the receive whose address is context; NULL: context is no receive. */
static inline struct duo_rx *duo_cq_rx(const struct duo_cq *cq, void *context)
{
	return duo_ranges_have(&cq->domain->rx_ranges, context) ? context :
								  NULL;
}

#endif /* DUO_OBJ_EP_H */
