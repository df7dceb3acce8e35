/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * These functions decide whether and when ofi_duo posts a receive to the core,
 * the provider that ofi_duo wraps. They also post the receive. A table in
 * docs/matching.md, "Posting a receive to the core", has the rules. Terms:
 * - A confirmed source is an address that has sent over the local path. Its
 *   later messages take the same path, so the core never gets a receive that
 *   names this source.
 * - A deferred receive is posted to the core later or never, because a local
 *   message may match it first.
 * - A due receive is a deferred receive that the next poll posts.
 *
 * Lock: the group's. Cost: two loads to decide, 330 instructions on efa to
 * post.
 */
#ifndef DUO_POST_H
#define DUO_POST_H

#include "av/route.h"
#include "base/params.h"
#include "obj/ep.h"

/* time for which receives or peeks wait before the core becomes used, us */
#define DUO_UNUSED_US 1000000

/* time at which ofi_duo posts a receive to the core */
enum duo_recv_when {
	DUO_RECV_NO_SOURCE, /* the source is not in the AV: the call fails */
	DUO_RECV_NOW,	/* at once, or at the next poll */
	DUO_RECV_LATER,	/* deferred, because a local message may match */
	DUO_RECV_NEVER,		/* never, because the source is confirmed */
};

DUO_INLINE enum duo_recv_when
duo_recv_when(const struct duo_ep *ep, const struct duo_want *want)
{
	uint64_t word;

	if (want->addr < ep->route_size) {
		word = duo_route_load(ep->route, want->addr);
		if (duo_route_state(word) == DUO_ROUTE_NONE)
			return DUO_RECV_NO_SOURCE;
		if (!duo_route_mapped(word))
			return DUO_RECV_NOW;
		if (duo_ep_confirmed(ep, duo_route_index(word)))
			return DUO_RECV_NEVER;
	} else if (want->addr != FI_ADDR_UNSPEC) {
		return DUO_RECV_NO_SOURCE;
	}
	return ep->path_ep[FI_DUO_LOCAL] ? DUO_RECV_LATER : DUO_RECV_NOW;
}

/*
 * True if the core never gets a receive for *want. The endpoint must have a
 * local side, that is, an endpoint at the local transport.
 */
DUO_INLINE bool duo_recv_never(const struct duo_ep *ep,
			       const struct duo_want *want)
{
	return duo_recv_when(ep, want) == DUO_RECV_NEVER ||
	       (want->addr == FI_ADDR_UNSPEC && ep->core.carries_nothing);
}

/* True if the core might deliver a message that matches *want. */
static inline bool duo_recv_core_may(const struct duo_ep *ep,
				     const struct duo_want *want)
{
	return !ep->core.carries_nothing &&
	       duo_recv_when(ep, want) != DUO_RECV_NEVER;
}

/*
 * True if a receive for *want would stay on the core, because ofi_duo cannot
 * recall it. Also true if the core carries no data: such a core never gets a
 * receive.
 */
DUO_INLINE bool duo_want_final(const struct duo_ep *ep, enum duo_rx_kind kind,
			       const struct duo_want *want)
{
	return ep->core.carries_nothing ||
	       (ep->core.util_srx && kind == DUO_MSG &&
		want->addr != FI_ADDR_UNSPEC);
}

static inline bool duo_recv_final(const struct duo_rx *rx)
{
	return duo_want_final(rx->ep, rx->kind, &rx->want);
}

/* Posts rx to the core. Returns 0 or the core's error. */
int duo_lazy_post(struct duo_rx *rx);
/*
 * Posts all deferred receives. Returns 0; -FI_EAGAIN: the core has no space, so
 * some receives remain deferred.
 */
int duo_lazy_flush(struct duo_ep *ep);
/*
 * Posts all deferred receives if one of them overlaps with *want, that is, if
 * one message can match both. Must be called before each post of a receive or
 * peek to the core, to keep the posting order. Returns 0; -FI_EAGAIN: some
 * deferred receives remain, so the caller must not post.
 */
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/*
 * True if an earlier deferred receive overlaps with rx, and therefore must be
 * posted to the core before rx.
 */
bool duo_lazy_precedes(const struct duo_rx *rx);
/*
 * Reads the clock, and posts deferred receives to the core by aging: those that
 * have waited for too long during local traffic. Must be called before the poll
 * of the local transport, whose messages might match these receives before the
 * core can.
 */
void duo_cq_age(struct duo_cq *cq);
/*
 * Posts the due receives. If the local transport is idle, posts all deferred
 * receives. Must be called after the poll of the local transport.
 */
void duo_cq_flush_lazy(struct duo_cq *cq);

#define DUO_LONG_AGO (-(1ULL << 62))	/* earlier than any clock time, us */
/*
 * Makes the next poll post the oldest deferred receive. If the local transport
 * is idle, the poll posts all deferred receives. Must be called after each
 * message from the core, because the core may have more messages.
 */
static inline void duo_lazy_expedite(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.aged_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->clock_in = 0;
}

#endif /* DUO_POST_H */
