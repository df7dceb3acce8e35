/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short ways, which small messages over near take: of receives
 * (rx/recv.c), of sends (tx/short.c) and of reads (cq/short.c). What stays as
 * it is while an endpoint is open is looked at here, once, and not for each
 * message. Under the domain's lock.
 */

#include "link/shm.h"
#include "obj/cntr.h"
#include "obj/ep.h"

/* Is one posted with the flags of all such calls reported, and is that all? */
static bool duo_ep_quick_rx(const struct duo_ep *ep, enum duo_rx_kind kind)
{
	uint64_t flags = ep->rx_op_flags[kind];

	return ep->quick && ep->rx_ready && ep->caps & FI_DIRECTED_RECV &&
	       !(flags & FI_MULTI_RECV) &&
	       (!ep->rx_selective || flags & FI_COMPLETION);
}

void duo_cq_quicken(struct duo_cq *cq)
{
	struct duo_ep *ep = LIST_FIRST(&cq->rx_eps);
	bool alone = ep && !LIST_NEXT(ep, rx_link) && LIST_EMPTY(&cq->tx_eps);

	cq->quick = alone && ep->quick && cq->format == FI_CQ_FORMAT_TAGGED ?
		    ep : NULL;
	cq->short_left = 0;
	cq->short_given = 0;
}

/* Whom the end of a call that has held the lock wakes: duo_lock.watch. */
static bool duo_ep_watched(const struct duo_ep *ep)
{
	const struct duo_cntr_bind *bind;
	int i;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		for (i = 0; i < DUO_CNTR_WAYS; i++)
			if (atomic_load(&bind->cntr->sleeper[i].asleep))
				return true;
	}
	return false;
}

/* Can what fits into a slot be sent at once, and its end be told then? */
static bool duo_ep_quick(const struct duo_ep *ep)
{
	return ep->path_ep[FI_DUO_LOCAL] && !ep->closing &&
	       !ep->domain->lock.on && !duo_ep_watched(ep) &&
	       ep->max_msg_size >= NEAR_INLINE &&
	       !(ep->tx_op_flags & FI_DELIVERY_COMPLETE);
}

void duo_ep_quicken(struct duo_ep *ep)
{
	int kind;

	ep->quick = duo_ep_quick(ep) ? ep->near : NULL;
	ep->quick_inject = ep->inject_size < NEAR_INLINE ? ep->inject_size :
							   NEAR_INLINE;
	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		ep->quick_rx[kind] = duo_ep_quick_rx(ep, kind) ?
				     duo_rx_plain(kind) : 0;
	if (ep->rx_cq)
		duo_cq_quicken(ep->rx_cq);
	if (ep->tx_cq)
		duo_cq_quicken(ep->tx_cq);
}
