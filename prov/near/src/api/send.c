/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sends that are not short. */

#include "api/send.h"
#include "rma/rma.h"

#define NEAR_GATHER 8192	/* on the stack */

ssize_t near_ep_send_large(struct near_ep *ep, struct near_peer *peer,
			   const struct near_send_args *args, bool inject,
			   const struct iovec *iov, size_t count)
{
	struct near_large large = {
		.iov = iov,
		.count = count,
		.copy = args->flags & FI_INJECT,
	};
	struct near_send_op *op = NULL;
	int ret;

	/* by fi_inject: forgotten, unless a counter counts it */
	if (!inject || ep->tx_cntr) {
		op = near_pool_get(&ep->sends);
		if (!op)
			return -FI_EAGAIN;
		op->context = args->context;
		op->to = args->dest;
		op->flags = FI_SEND | (args->flags & (FI_TAGGED | FI_MSG));
		op->report = !inject && near_send_reports(ep, args->flags);
		large.cookie = op;
	}
	ret = near_send_large(ep->port, peer, &args->msg, &large);
	if (ret && op)
		near_pool_put(&ep->sends, op);
	return ret;
}

ssize_t near_ep_send(struct near_ep *ep, const struct near_send_args *args,
		     bool inject)
{
	bool report = !inject && near_send_reports(ep, args->flags);
	struct near_peer *peer;
	struct iovec iov;
	ssize_t ret;

	ret = near_ep_peer(ep, args->dest, &peer);
	if (near_unlikely(ret))
		return ret;
	if (near_unlikely((report && !near_cq_room(ep->tx_cq)) ||
			  (args->flags & FI_FENCE && near_rma_fenced(peer))))
		return -FI_EAGAIN;
	if (near_unlikely(args->flags & FI_DELIVERY_COMPLETE))
		ret = NEAR_LARGE;
	else
		ret = near_send(ep->port, peer, &args->msg);
	if (near_unlikely(ret)) {
		if (ret != NEAR_LARGE)
			return ret;
		iov.iov_base = (void *)args->msg.payload;
		iov.iov_len = args->msg.len;
		return near_ep_send_large(ep, peer, args, inject, &iov, 1);
	}
	near_count(ep->tx_cntr);
	if (report)
		near_send_report(ep, args->context, args->flags);
	return 0;
}

/* Several buffers: gathered where they fit into the ring together. */
ssize_t near_ep_sendv(struct near_ep *ep, struct near_send_args *args,
		      const struct iovec *iov, size_t count)
{
	uint8_t gathered[NEAR_GATHER];
	struct near_peer *peer;
	ssize_t ret;

	if (count > NEAR_IOV_MAX)
		return -FI_EINVAL;
	args->msg.len = near_iov_len(iov, count);
	if (count <= 1) {
		args->msg.payload = count ? iov->iov_base : NULL;
		return near_ep_send(ep, args, false);
	}
	ret = near_ep_peer(ep, args->dest, &peer);
	if (ret)
		return ret;
	if (args->flags & FI_FENCE && near_rma_fenced(peer))
		return -FI_EAGAIN;
	if (!(args->flags & FI_DELIVERY_COMPLETE) &&
	    args->msg.len <= sizeof(gathered)) {
		if (near_send_reports(ep, args->flags) &&
		    !near_cq_room(ep->tx_cq))
			return -FI_EAGAIN;
		near_iov_out(gathered, iov, 0, args->msg.len);
		args->msg.payload = gathered;
		ret = near_send(ep->port, peer, &args->msg);
		if (!ret)
			near_count(ep->tx_cntr);
		if (!ret && near_send_reports(ep, args->flags))
			near_send_report(ep, args->context, args->flags);
		if (ret != NEAR_LARGE)
			return ret;
	}
	return near_ep_send_large(ep, peer, args, false, iov, count);
}
