/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Decides whether and when a receive is posted to the core: the table in
 * docs/matching.md. Lock: the group's. Cost: two loads.
 */
#ifndef DUO_WHEN_H
#define DUO_WHEN_H

#include "av/route.h"
#include "obj/ep.h"

/* time at which ofi_duo posts a receive to the core */
enum duo_recv_when {
	/* the call fails: the source is not in the AV */
	DUO_RECV_NO_SOURCE,
	DUO_RECV_NOW,	/* at once, or at the next poll */
	DUO_RECV_LATER,	/* deferred, because a local message may match */
	DUO_RECV_NEVER,		/* never: the source is confirmed */
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
 * local side.
 */
DUO_INLINE bool duo_recv_never(const struct duo_ep *ep,
			       const struct duo_want *want)
{
	return duo_recv_when(ep, want) == DUO_RECV_NEVER ||
	       (want->addr == FI_ADDR_UNSPEC && ep->core.carries_nothing);
}

/* True if the core may deliver a message that matches *want. */
static inline bool duo_recv_core_may(const struct duo_ep *ep,
				     const struct duo_want *want)
{
	return !ep->core.carries_nothing &&
	       duo_recv_when(ep, want) != DUO_RECV_NEVER;
}

/*
 * True if ofi_duo cannot recall a receive for *want after its post to the core.
 * Also true if the core carries no data, and so gets no receives.
 */
DUO_INLINE bool duo_want_final(const struct duo_ep *ep, enum duo_rx_kind kind,
			       const struct duo_want *want)
{
	return ep->core.carries_nothing ||
	       (ep->core.cannot_cancel && kind == DUO_MSG &&
		want->addr != FI_ADDR_UNSPEC);
}

static inline bool duo_recv_final(const struct duo_rx *rx)
{
	return duo_want_final(rx->ep, rx->kind, &rx->want);
}

/*
 * True if the core never gets rx. Reason: a local message may match rx, and
 * then ofi_duo could not recall rx from the core.
 */
static inline bool duo_recv_local_only(const struct duo_rx *rx)
{
	return duo_recv_final(rx) &&
	       duo_recv_when(rx->ep, &rx->want) != DUO_RECV_NOW;
}

#endif /* DUO_WHEN_H */
