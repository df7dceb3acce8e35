/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint: both paths', the route of each address, and its receives.
 * Every layer has its part in it; docs/overview.md says whose is what. Under
 * the domain's lock, but for what sends over the core read. Cost: what a
 * message touches is in its first lines; the rest is for the rare ways.
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
#define DUO_LAZY_SOURCES 256	/* more have numbers in common, see lazy.c */

struct duo_map;
struct duo_near;
struct duo_shm;
struct duo_up;

/*
 * What each message touches comes first, in the order of use: three cache
 * lines for a send, six for a receive.
 */
struct duo_ep {
	struct fid_ep ep_fid;
	struct duo_domain *domain;
	struct fid_ep *path_ep[FI_DUO_PATH_COUNT]; /* the local one, which is
					 * the peer's, from fi_enable on */
	struct duo_near *near;		/* NULL: another peer, or none */
	struct duo_near *quick;		/* the same, where small messages may
					 * take the short ways; see ep.c */
	size_t quick_inject;		/* bytes, likewise */
	duo_route_word *route;		/* the map's, else core_av's */
	fi_addr_t route_size;		/* 0 until enabled */
	struct duo_cq *tx_cq;
	bool *sent;			/* by local number: a message has been;
					 * NULL: the peer does not ask */
	size_t inject_size;		/* bytes */
	size_t max_msg_size;		/* bytes */
	bool counted;			/* in a counter that can be slept on */
	struct duo_cq *rx_cq;
	struct duo_av *av;
	struct duo_core_av *core_av;
	uint64_t caps;
	uint64_t rx_op_flags[DUO_KIND_COUNT];
	uint64_t quick_rx[DUO_KIND_COUNT];	/* what a receive posted by the
					 * short way is; 0: it is closed */

	struct fi_duo_stats stats;	/* by path first */

	/* receive side, under the domain's lock */
	size_t rx_iov_limit;
	bool rx_ready;		/* enabled, and may receive */
	bool rx_selective;
	bool enabled;
	bool closing;		/* no message is matched any more */
	bool wants_local;	/* it is to have a local side */
	bool messages;		/* FI_MSG or FI_TAGGED; else RMA alone, which
				 * is the core's */
	bool local_permitted;	/* FI_OPT_SHARED_MEMORY_PERMITTED */
	bool cuda_denied;	/* FI_OPT_CUDA_API_PERMITTED is false */
	struct duo_traits core;		/* the fabric's */
	uint32_t multi_open;		/* buffers that take messages */
	uint32_t lazy_count;
	uint32_t due_count;		/* of these */
	uint32_t lazy_limit;		/* idle polls; adapts, see lazy.c */
	struct duo_rx_list lazy;	/* posted, not on the core yet */
	struct duo_rx_list held;
	struct duo_rx_pool pool;
	struct duo_match match[DUO_KIND_COUNT];
	uint64_t confirmed[(DUO_LOCAL_MAX + 63) / 64];	/* sent before */
	struct duo_map *map;		/* NULL: no local side */
	struct fid_peer_srx peer_srx;	/* libfabric's shm asks there */

	struct duo_rx_list claimed;	/* by FI_PEEK | FI_CLAIM */
	struct duo_rx_list behind;	/* not on the core either: a multi-
					 * receive buffer is before them */
	struct duo_rx_list multi;	/* buffers that are not released */
	struct duo_rx_list ready;	/* see multi.c */
	struct duo_rx_list spent;	/* see lazy.c */
	uint32_t spent_count;
	size_t min_multi_recv;		/* FI_OPT_MIN_MULTI_RECV, bytes */
	uint64_t lazy_turn_us;		/* when the oldest went to the core */
	uint64_t lazy_all_us;		/* when the whole list did */
	struct duo_rx *lazy_seen;	/* by duo_lazy_overlaps(), see lazy.c */
	bool lazy_any;			/* one of any source */
	bool lazy_from[DUO_LAZY_SOURCES]; /* one of such sources */
	uint64_t tx_op_flags;
	uint64_t tx_order;
	bool mixed_order;	/* of messages and RMA, or fences: one path
				 * for both, or near that keeps it */
	uint64_t tx_bind_flags;
	struct duo_cq *own_cq;		/* where the application has none */
	LIST_HEAD(, duo_cntr_bind) cntrs;	/* see cntr.h */
	uint64_t rx_failed, tx_failed;	/* errors of receives; of sends over
					 * near */
	uint64_t tx_pending;		/* large sends under way over near */
	struct duo_publication publication;
	LIST_ENTRY(duo_ep) rx_link;	/* in rx_cq->rx_eps */
	LIST_ENTRY(duo_ep) tx_link;	/* in tx_cq->tx_eps */
	LIST_ENTRY(duo_ep) av_link;	/* in av->local_eps */
	struct fi_info *info;		/* the core's */
	struct duo_shm *shm;		/* NULL: another peer, or none */
	const struct duo_up *up;
	atomic_bool told_early;		/* that it is not enabled */
};

static inline struct duo_ep *duo_ep_of(struct fid_ep *ep_fid)
{
	return duo_container_of(ep_fid, struct duo_ep, ep_fid);
}

/* ep.c: which short ways are open, after each change to what that rests on. */
void duo_ep_quicken(struct duo_ep *ep);
void duo_cq_quicken(struct duo_cq *cq);

/* True if a full local poll finds entries for what arrives unexpected. */
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
