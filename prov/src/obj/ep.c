/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Computes the attention words of endpoints and CQs. If a bit of an attention
 * word is set, certain calls for this endpoint or CQ take the slow path. Also
 * skips prefixes, and counts operations in the counters of an endpoint. Lock:
 * that of the endpoint's or CQ's group.
 */

#include <string.h>

#include "near/near.h"
#include "obj/cntr.h"
#include "obj/ep.h"

void duo_cq_attend(struct duo_cq *cq)
{
	bool others = !cq->peer || cq->path_cq[FI_DUO_LOCAL];
	const struct duo_ep *ep;

	/* makes duo_cq_next_ep() search the lists for a second endpoint */
	cq->several = true;
	ep = duo_cq_first_ep(cq);
	cq->several = ep && duo_cq_next_ep(cq, ep);
	for (; ep; ep = duo_cq_next_ep(cq, ep))
		others = others || ep->closing;
	cq->attention &= ~(uint32_t) DUO_CQ_OTHERS;
	cq->attention |= others ? DUO_CQ_OTHERS : 0;
}

/*
 * duo_cq.local_busy after duo_ep_use_core(): number of polls of the CQ in a row
 * without a local event, after which each further poll also polls the core
 */
#define DUO_LOCAL_BUSY 256

static void duo_cq_use_core(struct duo_cq *cq)
{
	if (cq && duo_cq_core_unused(cq))
		cq->local_busy = DUO_LOCAL_BUSY;
}

void duo_ep_use_core(struct duo_ep *ep)
{
	if (ep->core.carries_nothing)
		return;
	duo_cq_use_core(ep->rx_cq);
	duo_cq_use_core(ep->tx_cq);
}

/* True if receives with the default flags can take the fast path. */
static bool duo_ep_plain_rx(const struct duo_ep *ep, enum duo_rx_kind kind)
{
	uint64_t flags = ep->rx.op_flags[kind];

	return ep->rx.ready && ep->caps & FI_DIRECTED_RECV &&
	       !(flags & FI_MULTI_RECV) &&
	       (!(ep->rx.special & DUO_RX_SELECTIVE) ||
		flags & FI_COMPLETION);
}

/* True if inline sends with the default flags can take the fast path. */
static bool duo_ep_plain_tx(const struct duo_ep *ep)
{
	return ep->max_msg_size >= NEAR_INLINE &&
	       !(ep->tx.op_flags & (FI_DELIVERY_COMPLETE | FI_FENCE));
}

void duo_ep_attend(struct duo_ep *ep)
{
	bool open = ep->near && ep->path_ep[FI_DUO_LOCAL] && !ep->closing &&
		    !ep->domain->device_mrs;
	int kind;

	ep->attention = open && duo_ep_plain_tx(ep) ? 0 : DUO_EP_SEND;
	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		if (!open || !duo_ep_plain_rx(ep, kind))
			ep->attention |= 1U << kind;
	if (ep->rx_cq)
		duo_cq_attend(ep->rx_cq);
	if (ep->tx_cq)
		duo_cq_attend(ep->tx_cq);
}

bool duo_ep_skip_prefix(const struct duo_ep *ep, struct iovec *to,
			const struct iovec **iov, void ***desc, size_t *count)
{
	const struct iovec *from = *iov;

	if (!*count)
		return true;
	if (*count > DUO_IOV_LIMIT || !from || from->iov_len < ep->prefix)
		return false;
	memcpy(to, from, *count * sizeof(*to));
	to->iov_base = (char *) to->iov_base + ep->prefix;
	to->iov_len -= ep->prefix;
	*iov = to;
	if (*count > 1 && !to->iov_len) {
		++*iov;
		--*count;
		*desc += *desc ? 1 : 0;
	}
	return true;
}

bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flags)
			return true;
	}
	return false;
}

void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err)
{
	struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flag)
			bind->cntr->own[!!err]++;
	}
}
