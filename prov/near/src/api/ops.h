/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The bodies of FI_MSG's and FI_TAGGED's calls: arguments into one form, the
 * lock, and the path of all. tagged is a constant where they are called.
 *
 * A small message to a peer that is known, and a receive of one buffer that
 * nothing has come for, are done in registers where no lock is needed
 * (near_op_*_short()). The rest is left to a function of the same arguments,
 * which is jumped to: so the short way saves no register.
 */
#ifndef NEAR_API_OPS_H
#define NEAR_API_OPS_H

#include "api/recv.h"
#include "api/send.h"

static near_inline uint64_t near_kind(bool tagged)
{
	return tagged ? FI_TAGGED : FI_MSG;
}

#define near_noinline __attribute__((noinline))

static near_inline struct near_msg near_op_msg(const void *buf, size_t len,
					       uint64_t data,
					       unsigned int flags,
					       uint64_t tag, bool tagged)
{
	return (struct near_msg) {
		.payload = buf,
		.len = len,
		.tag = tag,
		.data = data,
		.flags = flags | (tagged ? NEAR_TAGGED : 0),
	};
}

/* Who was sent to: near_send_end() is left. NULL: nothing has been done. */
static near_inline struct near_peer *
near_op_send_short(struct fid_ep *ep_fid, const void *buf, size_t len,
		   uint64_t data, unsigned int flags, fi_addr_t dest,
		   uint64_t tag, void *context, bool tagged, bool inject)
{
	const struct near_msg msg = near_op_msg(buf, len, data, flags, tag,
						tagged);
	struct near_ep *ep = near_ep_of(ep_fid);
	bool report = !inject && near_send_reports(ep, ep->tx_flags);
	struct near_peer *peer;

	if (near_unlikely(ep->domain->locked || dest >= ep->peer_count))
		return NULL;
	peer = ep->peer[dest];
	if (near_unlikely(!peer ||
			  (!inject && ep->tx_flags &
			   (FI_DELIVERY_COMPLETE | FI_FENCE)) ||
			  (report && !near_cq_room(ep->tx_cq)) ||
			  !near_send_short(ep->port, peer, &msg)))
		return NULL;
	near_count(ep->tx_cntr);
	if (report)
		near_send_report(ep, context, near_kind(tagged));
	return peer;
}

static near_inline ssize_t near_op_send(struct fid_ep *ep_fid, const void *buf,
					size_t len, uint64_t data,
					unsigned int flags, fi_addr_t dest,
					uint64_t tag, void *context,
					bool tagged, bool inject)
{
	struct near_ep *ep = near_ep_of(ep_fid);
	const struct near_send_args args = {
		.msg = near_op_msg(buf, len, data, flags, tag, tagged),
		.dest = dest,
		.context = context,
		.flags = near_kind(tagged) |
			 (inject ? FI_INJECT : ep->tx_flags),
	};
	ssize_t ret;

	near_lock(ep->domain);
	ret = near_ep_send(ep, &args, inject);
	near_unlock(ep->domain);
	return ret;
}

static near_inline ssize_t near_op_inject(struct fid_ep *ep, const void *buf,
					  size_t len, uint64_t data,
					  unsigned int flags, fi_addr_t dest,
					  uint64_t tag, bool tagged)
{
	if (near_unlikely(len > NEAR_INJECT))
		return -FI_EINVAL;
	return near_op_send(ep, buf, len, data, flags, dest, tag, NULL, tagged,
			    true);
}

/* FI_MSG's messages differ from these by what is not read: no tag. */
static near_inline ssize_t near_op_sendmsg(struct fid_ep *ep_fid,
					   const struct fi_msg_tagged *msg,
					   uint64_t flags, bool tagged)
{
	bool data = flags & FI_REMOTE_CQ_DATA;
	struct near_ep *ep = near_ep_of(ep_fid);
	struct near_send_args args = {
		.msg = {
			.data = data ? msg->data : 0,
			.flags = (tagged ? NEAR_TAGGED : 0) |
				 (data ? NEAR_DATA : 0),
			.tag = msg->tag,
		},
		.dest = msg->addr,
		.context = msg->context,
		.flags = near_kind(tagged) | flags,
	};
	ssize_t ret;

	near_lock(ep->domain);
	ret = near_ep_sendv(ep, &args, msg->msg_iov, msg->iov_count);
	near_unlock(ep->domain);
	return ret;
}

static near_inline ssize_t near_op_recvmsg(struct fid_ep *ep_fid,
					   const struct fi_msg_tagged *msg,
					   uint64_t flags, bool tagged)
{
	struct near_ep *ep = near_ep_of(ep_fid);
	struct near_recv_args args = {
		.iov = msg->msg_iov,
		.count = msg->iov_count,
		.src = msg->addr,
		.tag = msg->tag,
		.ignore = msg->ignore,
		.context = msg->context,
		.flags = near_kind(tagged) | FI_RECV | flags |
			 (ep->rx_all ? FI_COMPLETION : 0),
	};
	ssize_t ret;

	near_lock(ep->domain);
	ret = near_ep_recv(ep, &args);
	near_unlock(ep->domain);
	return ret;
}

/* Whether the receive was posted; if not, nothing has been done. */
static near_inline bool near_op_recv_short(struct fid_ep *ep_fid, void *buf,
					   size_t len, fi_addr_t src,
					   uint64_t tag, uint64_t ignore,
					   void *context, bool tagged)
{
	struct near_ep *ep = near_ep_of(ep_fid);

	return near_likely(!ep->domain->locked) &&
	       near_ep_recv_short(ep, buf, len, src, tag, ignore, context,
				  near_kind(tagged) | ep->rx_op_flags, tagged);
}

static near_inline ssize_t near_op_recv(struct fid_ep *ep_fid, void *buf,
					size_t len, fi_addr_t src, uint64_t tag,
					uint64_t ignore, void *context,
					bool tagged)
{
	struct near_ep *ep = near_ep_of(ep_fid);
	const struct iovec iov = { buf, len };
	const struct near_recv_args args = {
		.iov = &iov,
		.count = 1,
		.src = src,
		.tag = tag,
		.ignore = ignore,
		.context = context,
		.flags = near_kind(tagged) | ep->rx_op_flags,
	};
	ssize_t ret;

	near_lock(ep->domain);
	ret = near_ep_recv(ep, &args);
	near_unlock(ep->domain);
	return ret;
}

#endif /* NEAR_API_OPS_H */
