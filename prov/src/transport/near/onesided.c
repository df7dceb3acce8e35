/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Completions of RMA and atomics over near, and events of peers' accesses. */

#include <assert.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "device/device.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "transport/near/near_ep.h"
#include "transport/near/onesided.h"

/* bits of near_rma_args.about that become flags of the completion */
#define DUO_NEAR_ABOUT (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE)

static_assert((DUO_NEAR_ABOUT | FI_COMPLETION) <= UINT32_MAX,
	      "they fit into near_rma_args.about");

void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context, .flags = about & DUO_NEAR_ABOUT,
	};
	struct duo_ep *ep = ctx;

	if (about == DUO_NEAR_FETCH) {
		duo_near_fetched(context, err);
		return;
	}
	duo_cntr_add_ep(ep, about & (FI_READ | FI_WRITE), err);
	if (near_unlikely(err))
		duo_cq_push_own_err(ep->tx_cq, context, entry.flags, 0,
				    duo_near_addr(ep, duo_near_index(peer)),
				    err);
	else if (about & FI_COMPLETION)
		duo_cq_push(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
}

/*
 * Implements near_rma_sink.event(): a peer has accessed a memory region of this
 * process.
 */
static void duo_near_onesided_event(void *ctx,
				    const struct near_rma_event *event)
{
	struct duo_ep *ep = ctx;
	const struct fi_cq_tagged_entry entry = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = event->len,
		.data = event->data,
	};

	if (!ep->near->onesided)
		return;		/* only a faulty peer starts RMA here */
	duo_cntr_add_ep(ep, event->write ? FI_REMOTE_WRITE : FI_REMOTE_READ, 0);
	if (!event->has_data)
		return;
	duo_cq_push(ep->rx_cq, &entry,
		    duo_near_addr(ep, duo_near_index(event->peer)));
}

static const struct near_rma_sink duo_near_onesided_sink = {
	.device = &duo_device_near,
	.done = duo_near_onesided_done,
	.event = duo_near_onesided_event,
};

void duo_near_onesided_events(struct duo_ep *ep)
{
	if (ep->near->onesided)
		near_rma_events(ep->near->port,
				duo_cntr_counts(ep, FI_REMOTE_READ),
				duo_cntr_counts(ep, FI_REMOTE_WRITE));
}

/*
 * Returns the value of near->small, the operations that may use the fast path.
 * The endpoint's settings exclude
 * - writes and injects, if writes must follow earlier sends: FI_ORDER_WAS
 * - reads, if reads must follow earlier sends, or sends must follow earlier
 *   reads: FI_ORDER_RAS, FI_ORDER_SAR
 * - all but injects, which have no default flags, if the endpoint has one of
 *   the default flags below (tx.op_flags)
 * - fetch-and-adds, unless core.cpu_atomics is set
 * No order excludes fetch-and-adds. They are always in order with messages,
 * because the target executes them when it consumes their slots.
 */
static uint32_t duo_near_small_ones(const struct duo_ep *ep)
{
	uint32_t small = ep->tx.order & FI_ORDER_WAS ? 0 :
			 1u << NEAR_WRITE | 1u << NEAR_VERBS;

	if (!(ep->tx.order & (FI_ORDER_RAS | FI_ORDER_SAR)))
		small |= 1u << NEAR_READ;
	if (ep->core.cpu_atomics)
		small |= 1u << NEAR_FETCH;
	if (ep->tx.op_flags & (FI_FENCE | FI_REMOTE_CQ_DATA | FI_INJECT |
			       FI_COMMIT_COMPLETE))
		small &= 1u << NEAR_VERBS;
	return small;
}

int duo_near_onesided_open(struct duo_near *near)
{
	const struct duo_ep *ep = near->ep;
	bool onesided = ep->domain->onesided &&
			(ep->caps & (FI_RMA | FI_ATOMIC) ||
			 ep->core.carries_nothing);

	if (!ep->domain->table || (!onesided && !ep->domain->device))
		return 0;
	if (near_rma_open(near->port, &duo_near_onesided_sink,
			  ep->domain->table, !onesided)) {
		if (!onesided)
			return 0;
		if (ep->opts.mixed_order || ep->core.carries_nothing)
			return -FI_ENOMEM;
		DUO_WARN(EP_CTRL, "ep %p: near: cannot allocate memory for "
			 "RMA; the core carries RMA to local peers\n",
			 (const void *) ep);
		return 0;
	}
	near->onesided = near->direct = onesided;
	near->fetches = ep->domain->device;
	return 0;
}

void duo_near_onesided_start(struct duo_ep *ep)
{
	/* the fast path does not support device memory */
	if (ep->near->onesided && !ep->domain->device)
		ep->near->small = duo_near_small_ones(ep);
	duo_near_onesided_events(ep);
}
