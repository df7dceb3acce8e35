/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* One-sided operations over near, from call to completion; see onesided.h. */

#include <inttypes.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "av/route.h"
#include "base/log.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "peer/near/near_ep.h"
#include "peer/near/onesided.h"

/* Once; an operation that is refused, as it names no region, takes no effect. */
static void duo_near_unordered(struct duo_ep *ep,
			       const struct near_rma_args *args, int ret)
{
	if (!ep->mixed_order || ep->near->unordered ||
	    (ret != -FI_EOPNOTSUPP && ret != -FI_EKEYREJECTED &&
	     ret != -FI_ENOENT))
		return;
	ep->near->unordered = true;
	DUO_WARN(EP_DATA, "ep %p: an operation to a local peer (key 0x%" PRIx64
		 ", type %u) is not near's but the core's: messages and "
		 "fenced operations that follow do not wait for it. Where "
		 "they have to, set FI_OFI_DUO_USE_SHM=0\n", (void *) ep,
		 args->key, args->type);
}

/*
 * The core does an operation on several buffers, and near would not wait for
 * its end: from then on the core does all, and alone keeps their order.
 */
DUO_COLD void duo_near_several(struct duo_ep *ep)
{
	if (ep->near->direct)
		DUO_INFO(EP_DATA, "ep %p: an operation on several remote "
			 "buffers: the core carries all RMA and atomics from "
			 "now on. One buffer in each is faster with local "
			 "peers\n", (void *) ep);
	ep->near->direct = false;
}

/* 0: near does it; -FI_EAGAIN; anything else: the core does. */
static int duo_near_ask(struct duo_ep *ep, fi_addr_t number,
			const struct near_rma_args *args)
{
	struct near_peer *peer = ep->near->peer[number];
	bool atomic = args->verb != NEAR_READ && args->verb != NEAR_WRITE;
	int ret;

	if (!peer)
		return -FI_EAGAIN;	/* gone since it was looked up */
	if (near_unlikely(args->verb == DUO_SEVERAL))
		duo_near_several(ep);
	if (!ep->near->direct ||
	    (atomic && (!ep->core.cpu_atomics ||
			!near_atomic_ok(args->verb, args->type, args->op))))
		ret = -FI_EOPNOTSUPP;
	else
		ret = near_rma_check(ep->near->port, peer, args);
	/* as for sends: no ring is to be had, and none is on its way */
	if (ret == -FI_EHOSTUNREACH ||
	    (ret == -FI_EAGAIN && !peer->tx.slots && !peer->waits_ms))
		duo_map_refuse(ep, number);
	if (!ret || ret == -FI_EAGAIN)
		return ret;
	/* the dead are found out by a poll, and then looked up anew */
	if (ret == -FI_ECONNRESET)
		return -FI_EAGAIN;
	/* not before what near has still to do */
	if (near_rma_busy(peer) ||
	    (ep->mixed_order && near_rma_quiet(ep->near->port, peer)))
		return -FI_EAGAIN;
	duo_near_unordered(ep, args, ret);
	return ret;
}

int duo_near_onesided_begin(struct duo_ep *ep, fi_addr_t dest,
			    const struct near_rma_args *args,
			    struct duo_onesided *to)
{
	struct duo_route route = duo_route(ep, dest);
	int ret;

	if (!route.ep)
		return ep->enabled ? -FI_EINVAL : -FI_EOPBADSTATE;
	*to = (struct duo_onesided) { route.ep, route.addr, route.path };
	if (route.path == FI_DUO_CORE)
		return 0;
	duo_lock(&ep->domain->lock);
	ret = duo_near_ask(ep, route.addr, args);
	if (!ret)
		return 0;
	duo_unlock(&ep->domain->lock);
	if (ret == -FI_EAGAIN)
		return ret;
	to->ep = ep->path_ep[FI_DUO_CORE];
	to->path = FI_DUO_CORE;
	return duo_route_onesided(ep, dest, &to->addr);
}

DUO_COLD void duo_near_onesided_failed(struct duo_ep *ep,
					      const struct near_peer *peer,
					      void *context, uint64_t flags,
					      int err)
{
	const struct fi_cq_err_entry error = {
		.op_context = context, .flags = flags, .err = err,
		.prov_errno = err,
		NEAR_CQ_ERR_SRC(duo_near_addr(ep, duo_near_number(peer)))
	};

	duo_cq_push_err(ep->tx_cq, &error, FI_DUO_LOCAL);
}

/* about: what a completion says; FI_COMPLETION: there is one. */
static void duo_near_onesided_done(void *ctx, struct near_peer *peer,
				   void *context, uint32_t about, int err)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context, .flags = about & NEAR_ONESIDED_FLAGS,
	};
	struct duo_ep *ep = ctx;

	duo_cntr_add_ep(ep, about & (FI_READ | FI_WRITE), err);
	if (near_unlikely(err))
		duo_near_onesided_failed(ep, peer, context, entry.flags, err);
	else if (about & FI_COMPLETION)
		duo_cq_push(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
}

ssize_t near_onesided_issue(struct fid_ep *fid, struct near_onesided_call *call)
{
	struct duo_near *near = duo_near_of(fid);
	int ret = near_onesided_prepare(call, near->msg_order);

	if (ret)
		return ret;
	call->args.cookie = call->context;
	call->args.about = near_onesided_about(call, !call->inject &&
			(near->tx_all || call->flags & FI_COMPLETION));
	ret = near_rma(near->port, near->peer[call->dest], &call->args);
	if (ret == NEAR_RMA_DONE || near_onesided_reported(ret)) {
		duo_near_onesided_done(near->ep, near->peer[call->dest],
				       call->context, call->args.about,
				       ret < 0 ? -ret : 0);
		return 0;
	}
	return ret == -FI_ECONNRESET ? -FI_EAGAIN : ret;
}

uint64_t near_onesided_tx_flags(const struct fid_ep *fid)
{
	return duo_near_of(fid)->tx_flags;
}

/* What a local peer has done to our memory. */
static void duo_near_onesided_event(void *ctx,
				    const struct near_rma_event *event)
{
	struct duo_ep *ep = ctx;
	const struct fi_cq_tagged_entry entry = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = event->len,
		.data = event->data,
	};

	duo_cntr_add_ep(ep, event->write ? FI_REMOTE_WRITE : FI_REMOTE_READ, 0);
	if (!event->has_data)
		return;
	duo_cq_push(ep->rx_cq, &entry,
		    duo_near_addr(ep, duo_near_number(event->peer)));
}

static const struct near_rma_sink duo_near_onesided_sink = {
	.done = duo_near_onesided_done,
	.event = duo_near_onesided_event,
};

/* Whether it counts what others do to it: else they need not say. */
void duo_near_onesided_tell(struct duo_ep *ep)
{
	if (ep->near->onesided)
		near_rma_tell(ep->near->port,
			      duo_cntr_counts(ep, FI_REMOTE_READ),
			      duo_cntr_counts(ep, FI_REMOTE_WRITE));
}

int duo_near_onesided_open(struct duo_ep *ep)
{
	struct duo_near *near = ep->near;

	if (!ep->domain->table || !(ep->caps & (FI_RMA | FI_ATOMIC)))
		return 0;
	if (near_rma_open(near->port, &duo_near_onesided_sink,
			  ep->domain->table)) {
		if (ep->mixed_order)
			return -FI_ENOMEM;
		DUO_WARN(EP_CTRL, "ep %p: near: no memory for RMA; the core "
			 "carries it to local peers\n", (void *) ep);
		return 0;
	}
	near->onesided = true;
	near->direct = true;
	near->fid.rma = &near_rma_ops;
	near->fid.atomic = &near_atomic_ops;
	duo_near_onesided_tell(ep);
	return 0;
}
