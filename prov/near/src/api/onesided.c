/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* From call to completion, and what others do to our memory. */

#include "api/recv.h"
#include "api/send.h"

static struct near_cntr *near_onesided_cntr(const struct near_ep *ep,
					    uint64_t flags)
{
	return ep->rma_cntr[flags & FI_READ ? NEAR_CNTR_READ :
			    NEAR_CNTR_WRITE];
}

static __attribute__((cold)) void
near_onesided_failed(struct near_ep *ep, const struct near_peer *peer,
		     void *context, uint64_t flags, int err)
{
	const struct near_source *source = near_source_of(peer);
	const struct fi_cq_err_entry error = {
		.op_context = context, .flags = flags, .err = err,
		NEAR_CQ_ERR_SRC(source ? source->addr : FI_ADDR_NOTAVAIL)
	};

	near_count_err(near_onesided_cntr(ep, flags));
	near_cq_error(ep->tx_cq, &error);
}

/* about: what a completion says; FI_COMPLETION: there is one. */
static void near_onesided_done(void *ctx, struct near_peer *peer,
			       void *context, uint32_t about, int err)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context, .flags = about & NEAR_ONESIDED_FLAGS,
	};
	struct near_ep *ep = ctx;

	if (near_unlikely(err)) {
		near_onesided_failed(ep, peer, context, entry.flags, err);
		return;
	}
	near_count(near_onesided_cntr(ep, about));
	if (about & FI_COMPLETION)
		near_cq_put(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
}

static void near_onesided_event(void *ctx, const struct near_rma_event *event)
{
	struct near_source *source = near_source_of(event->peer);
	struct near_ep *ep = ctx;
	const struct fi_cq_tagged_entry entry = {
		.flags = FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA,
		.len = event->len,
		.data = event->data,
	};

	near_count(ep->rma_cntr[event->write ? NEAR_CNTR_REMOTE_WRITE :
				NEAR_CNTR_REMOTE_READ]);
	if (event->has_data)
		near_cq_put(ep->rx_cq, &entry,
			    source ? source->addr : FI_ADDR_NOTAVAIL);
}

const struct near_rma_sink near_ep_rma_sink = {
	.done = near_onesided_done,
	.event = near_onesided_event,
};

static ssize_t near_ep_onesided(struct near_ep *ep,
				struct near_onesided_call *call)
{
	bool report = !call->inject && near_send_reports(ep, call->flags);
	struct near_peer *peer;
	ssize_t ret;

	ret = near_ep_peer(ep, call->dest, &peer);
	if (near_unlikely(ret))
		return ret;
	if (near_unlikely(report && !near_cq_room(ep->tx_cq)))
		return -FI_EAGAIN;
	call->args.cookie = call->context;
	call->args.about = near_onesided_about(call, report);
	ret = near_rma(ep->port, peer, &call->args);
	if (ret != NEAR_RMA_DONE && !near_onesided_reported((int)ret))
		return ret;
	near_onesided_done(ep, peer, call->context, call->args.about,
			   ret < 0 ? (int)-ret : 0);
	return 0;
}

ssize_t near_onesided_issue(struct fid_ep *ep_fid,
			    struct near_onesided_call *call)
{
	struct near_ep *ep = near_ep_of(ep_fid);
	ssize_t ret = near_onesided_prepare(call, ep->msg_order);

	if (ret)
		return ret;
	if (call->inject && call->args.len > NEAR_INJECT)
		return -FI_EINVAL;
	near_lock(ep->domain);
	ret = near_ep_onesided(ep, call);
	near_unlock(ep->domain);
	return ret;
}

uint64_t near_onesided_tx_flags(const struct fid_ep *ep_fid)
{
	return near_ep_of(ep_fid)->tx_flags;
}
