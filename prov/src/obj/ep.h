/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint of ofi_duo. It has an endpoint at the core and one at the local
 * transport, the path of each address (its *route*), and its receives. Lock:
 * that of the endpoint's group (obj/group.h). Exception: a send takes no lock
 * if the path of its address is already the core.
 *
 * Terms:
 * - The *core* is the provider that ofi_duo wraps.
 * - The *local side* is the part of an endpoint that belongs to the local
 *   transport (near or libfabric's shm). Only an enabled endpoint has one.
 * - A *confirmed source* is a peer that has sent over the local path. It sends
 *   nothing over the core, so the core gets no receive that names it.
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

/* maximum number of new messages that a poll of the local transport delivers */
#define DUO_LOCAL_BATCH 4096

struct duo_map;
struct duo_near;
struct duo_shm;
struct duo_up;

/* bits of duo_ep_rx.special: conditions to check for each receive */
enum duo_rx_special {
	/*
	 * FI_SELECTIVE_COMPLETION: only receives with FI_COMPLETION report
	 * their completion
	 */
	DUO_RX_SELECTIVE = 1,
	DUO_RX_DEVICE = 2,	/* buffers may be in device memory */
};

/* bits of duo_ep.attention: calls that must take the slow path */
enum {
	DUO_EP_MSG = 1 << DUO_MSG,		/* untagged receives */
	DUO_EP_TAGGED = 1 << DUO_TAGGED,	/* tagged receives */
	DUO_EP_SEND = 1 << DUO_KIND_COUNT,	/* all sends */
};

/*
 * Receives that are not on the core, because core/ posts them later or never
 * (docs/matching.md), and entries that the core may still report:
 * - A *deferred* receive is in `list`. ofi_duo posts it to the core later or
 *   never, because a local message may match it first.
 * - A *due* receive is a deferred one that the next poll posts to the core.
 * - A *blocked* receive must not be posted to the core before an earlier
 *   multi-receive buffer is used up or canceled.
 * - A *retired* entry belonged to a receive that has ended. ofi_duo does not
 *   reuse it yet, because the core may report the receive once more.
 */
struct duo_ep_lazy {
	uint32_t count;			/* number of receives in `list` */
	uint32_t due;	/* number of due receives in `list` */
	/*
	 * number of polls of the CQ in a row without a local event (cq.h),
	 * after which ofi_duo posts all of `list` to the core
	 */
	uint32_t limit;
	struct duo_rx_list list;	/* deferred receives in posting order */
	struct duo_rx_list blocked;
	struct duo_rx_list retired;
	uint32_t retired_count;
	bool readmitting;		/* duo_lazy_readmit() is running */
	/*
	 * start of the interval duo_params.defer_us, after which *aging* posts
	 * the oldest receive of `list` to the core, us. Aging is the posting of
	 * deferred receives while local messages arrive.
	 */
	uint64_t aged_us;
	/*
	 * last time when all of `list` was posted to the core, us; 0: the next
	 * duo_ep_age() sets it to the current time
	 */
	uint64_t all_us;
	/*
	 * Source of a peek that the core did not get while it was unused, and
	 * time of the first such peek, us; 0: there was none
	 */
	fi_addr_t peek_addr;
	uint64_t peek_us;
};

/*
 * Multi-receive buffers; used by rx/multi.c. The *owner entry* is the receive
 * entry of a whole buffer. The *remainder* is the receive entry of the buffer's
 * unused space, into which the next message goes.
 */
struct duo_ep_multi {
	uint32_t open;	/* number of buffers that further messages can match */
	/* owner entries of buffers not yet returned to the application */
	struct duo_rx_list buffers;
	/*
	 * remainders that are not posted yet, because unexpected messages match
	 * them; the next poll or receive call receives these messages
	 */
	struct duo_rx_list ready;
	size_t min_space;	/* FI_OPT_MIN_MULTI_RECV, bytes */
};

/* State of receives; used by rx/. */
struct duo_ep_rx {
	uint64_t op_flags[DUO_KIND_COUNT];
	/*
	 * unresolved messages, oldest first: local messages that wait until
	 * ofi_duo has looked up the fi_addr of their source, or that arrived
	 * behind such a message
	 */
	struct duo_rx_list unresolved;
	bool ready;		/* the endpoint is enabled and can receive */
	uint8_t special;	/* DUO_RX_* bits of enum duo_rx_special */
	bool peer_exited;	/* at least one peer's process has exited */
	size_t iov_limit;
	uint64_t failed;
	struct duo_rx_list claimed; /* messages claimed by FI_PEEK | FI_CLAIM */
};

/* Attributes and counts of sends. */
struct duo_ep_tx {
	struct fid_ep *core;	/* NULL: sends over the core are not possible */
	uint64_t op_flags;
	uint64_t order;
	uint64_t bind_flags;
	uint64_t failed;	/* number of sends over near that have failed */
	uint64_t pending; /* number of rendezvous sends over near in flight */
};

/* Capabilities and options of the endpoint. */
struct duo_ep_opts {
	/* needs a local side, for messages or for RMA and atomics over near */
	bool wants_local;
	/* has FI_MSG or FI_TAGGED; false: has only RMA and atomics */
	bool messages;
	bool local_permitted;	/* value of FI_OPT_SHARED_MEMORY_PERMITTED */
	bool cuda_denied;	/* FI_OPT_CUDA_API_PERMITTED was set to false */
	/*
	 * The application has set an option for which DUO_OPT_IN_ORDER() is
	 * true. The endpoint then gets no local side.
	 */
	bool in_order;
	/* FI_FENCE, or an order between messages and RMA, was requested */
	bool mixed_order;
	/* duo_ep_early() has logged its warning */
	atomic_bool early_logged;
};

/*
 * Field order: a send uses the first four cache lines. A receive uses
 * - the first three cache lines
 * - the two cache lines from rx_cq on
 * - one cache line of `match`, and one of `confirmed`
 */
struct duo_ep {
	struct fid_ep ep_fid;
	struct duo_group *group;
	struct duo_domain *domain;
	/* NULL: no local side, or the local transport is not near */
	struct duo_near *near;
	/* array of route words, indexed by fi_addr; NULL before fi_enable() */
	duo_route_word *route;
	/* number of route words: DUO_AV_MAX, or 0 before fi_enable() */
	fi_addr_t route_size;
	struct duo_cq *tx_cq;
	/* DUO_EP_* bits: calls that take the slow path */
	uint32_t attention;
	bool closing;	/* fi_close() is running: no message is matched */
	/* aligned: stats.path[], which each message updates, is a cache line */
	struct fi_duo_stats stats __attribute__((aligned(DUO_LINE)));
	size_t inject_size;		/* bytes */
	size_t max_msg_size;		/* bytes */
	struct duo_cq *rx_cq __attribute__((aligned(DUO_LINE)));
	struct duo_map *map;		/* NULL: no local side */
	struct duo_ep_rx rx;
	struct duo_rx_pool pool;
	struct duo_match match[DUO_KIND_COUNT]
		__attribute__((aligned(DUO_LINE)));
	/* bitmap of the confirmed sources, indexed by peer index */
	uint64_t confirmed[(DUO_LOCAL_MAX + 63) / 64];
	/* endpoints of both paths; the local one is NULL before fi_enable() */
	struct fid_ep *path_ep[FI_DUO_PATH_COUNT];
	/* fi_enable() has bound CQs and counters to the core's endpoint */
	bool core_bound;
	struct duo_av *av;
	uint64_t caps;
	struct duo_ep_tx tx;
	struct duo_ep_opts opts;
	struct duo_traits core;	/* copy of fabric->traits */
	const struct duo_up *up;
	/* used by core/ and rx/: */
	struct duo_ep_lazy lazy;
	struct duo_ep_multi multi;
	/* used by av/: */
	LIST_ENTRY(duo_ep) av_link;	/* in av->eps, if route is not NULL */
	/* used by cq/: */
	/*
	 * hidden CQ, which drops all entries. It is tx_cq or rx_cq, or both, if
	 * the application has not bound these; NULL: there is no hidden CQ
	 */
	struct duo_cq *own_cq;
	LIST_HEAD(, duo_cntr_bind) cntrs; /* bindings of counters, see cntr.h */
	LIST_ENTRY(duo_ep) rx_link;	/* in rx_cq->rx_eps */
	LIST_ENTRY(duo_ep) tx_link;	/* in tx_cq->tx_eps */
	/* the local side: */
	struct duo_publication publication;
	/*
	 * near's state of this endpoint, from its creation on. `near` points to
	 * the same object, but is NULL before fi_enable(), so that no thread
	 * polls it earlier.
	 */
	struct duo_near *near_opened;
	/* NULL: no local side, or the local transport is not shm */
	struct duo_shm *shm;
	struct fid_peer_srx peer_srx; /* receive context for libfabric's shm */
	/*
	 * length of the prefix of messages, which calls skip, bytes; 0: without
	 * FI_MSG_PREFIX
	 */
	size_t prefix;
};

static inline struct duo_ep *duo_ep_of(struct fid_ep *ep_fid)
{
	return duo_container_of(ep_fid, struct duo_ep, ep_fid);
}

static inline bool duo_ep_enabled(const struct duo_ep *ep)
{
	return ep->route_size;
}

/* True if this peer has sent over the local path: a confirmed source. */
static inline bool duo_ep_confirmed(const struct duo_ep *ep, fi_addr_t index)
{
	return ep->confirmed[index / 64] >> index % 64 & 1;
}

/*
 * duo_cq_first_ep() and duo_cq_next_ep() iterate over the endpoints of a CQ. An
 * endpoint is either in rx_eps or in tx_eps of a CQ.
 */
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

/* Computes the attention words of ep and its CQs after a change (obj/ep.c). */
void duo_ep_attend(struct duo_ep *ep);
/* Computes the attention word of one CQ. */
void duo_cq_attend(struct duo_cq *cq);

/*
 * Ends the unused state of the core (docs/matching.md, "An unused core"): from
 * now on the endpoint's CQs poll the core, and post deferred receives to it.
 */
void duo_ep_use_core(struct duo_ep *ep);

/*
 * Makes the next read of each of the endpoint's CQs take the slow path. Must
 * follow each increment of duo_group.pending or duo_group.lazy.
 */
static inline void duo_ep_set_deferred(const struct duo_ep *ep)
{
	if (ep->rx_cq)
		ep->rx_cq->attention |= DUO_CQ_DEFERRED;
	if (ep->tx_cq)
		ep->tx_cq->attention |= DUO_CQ_DEFERRED;
}

/* Wakes the threads that sleep on the endpoint's CQs, so that they poll. */
static inline void duo_ep_wake_sleepers(const struct duo_ep *ep)
{
	if (ep->rx_cq)
		duo_cq_wake_sleeper(ep->rx_cq);
	if (ep->tx_cq)
		duo_cq_wake_sleeper(ep->tx_cq);
}

/*
 * Removes the prefix (FI_MSG_PREFIX) from a list of buffers. Makes *iov refer
 * to to[], which has DUO_IOV_LIMIT elements and gets the buffers. If the first
 * of several buffers has only the prefix, omits this buffer. A call without
 * buffers, such as a peek, has no prefix. False: the first buffer is shorter
 * than the prefix, or there are too many buffers.
 */
bool duo_ep_skip_prefix(const struct duo_ep *ep, struct iovec *to,
			const struct iovec **iov, void ***desc, size_t *count);

/*
 * Returns the receive entry at the address `context`. NULL: no receive entry of
 * the CQ's group has this address.
 */
static inline struct duo_rx *duo_cq_rx(const struct duo_cq *cq, void *context)
{
	return duo_ranges_have(&cq->group->rx_ranges, context) ? context :
								  NULL;
}

#endif /* DUO_OBJ_EP_H */
