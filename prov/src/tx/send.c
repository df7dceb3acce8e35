/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sends; see send.h. */

#include <rdma/fi_errno.h>

#include "av/route.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "tx/send.h"

/*
 * Chooses the path of a send. If the path is local, takes the group's lock. If
 * another thread has changed the route before this thread got the lock, chooses
 * again. Returns 0, and the caller must call duo_tx_end(); or the error of
 * duo_route_error().
 */
static inline int duo_tx_begin(struct duo_ep *ep, fi_addr_t dest,
			       struct duo_route *to)
{
	for (;;) {
		*to = duo_route(ep, dest);
		if (to->path != FI_DUO_LOCAL)
			return to->ep ? 0 : duo_route_error(ep, dest);
		if (!ep->domain->group.lock.on)
			return 0;
		duo_group_lock(&ep->group);
		if (near_likely(duo_route_still_local(ep, dest, to)))
			return 0;
		duo_unlock(&ep->group->lock);
	}
}

/*
 * Adds len to a statistic, without a lock and without an atomic addition. If
 * two threads add at the same time, one of the additions may get lost.
 */
static inline void duo_tx_add(uint64_t *sum, size_t len)
{
	__atomic_store_n(sum, __atomic_load_n(sum, __ATOMIC_RELAXED) + len,
			 __ATOMIC_RELAXED);
}

/*
 * Ends a send with the result ret. If ret is 0, counts the send. If the path is
 * local, releases the group's lock, which duo_tx_begin() has taken. Returns
 * ret.
 */
DUO_INLINE ssize_t duo_tx_end(struct duo_ep *ep, const struct duo_route *to,
			      const struct duo_send *send, ssize_t ret)
{
	struct fi_duo_path_stats *local = &ep->stats.path[FI_DUO_LOCAL];
	struct fi_duo_path_stats *core = &ep->stats.path[FI_DUO_CORE];

	if (to->path == FI_DUO_LOCAL) {
		if (!ret) {
			local->tx_msgs++;
			local->tx_bytes += send->msg.len;
		}
		duo_unlock(&ep->group->lock);
		return ret;
	}
	if (!ret) {
		duo_tx_count(ep, &core->tx_msgs);
		duo_tx_add(&core->tx_bytes, send->msg.len);
	}
	duo_tx_core_called(ep);
	return ret;
}

ssize_t duo_send_notify(struct duo_lock *lock, struct near_peer *peer)
{
	near_notify(peer);
	return duo_unlock_last(lock, 0);
}

static ssize_t duo_send_untagged(struct fid_ep *ep, const struct duo_send *send,
				 void **desc, fi_addr_t addr)
{
	const struct near_msg *sent = &send->msg;
	const bool data = sent->flags & NEAR_DATA;
	const struct fi_msg msg = {
		send->iov, desc, send->count, addr, send->context, sent->data,
	};

	switch (send->variant) {
	case DUO_SEND:
		return data ? fi_senddata(ep, sent->payload, sent->len,
					  desc ? *desc : NULL, sent->data,
					  addr, send->context) :
			      fi_send(ep, sent->payload, sent->len,
				      desc ? *desc : NULL, addr, send->context);
	case DUO_SEND_INJECT:
		return data ? fi_injectdata(ep, sent->payload, sent->len,
					    sent->data, addr) :
			      fi_inject(ep, sent->payload, sent->len, addr);
	case DUO_SEND_VECTOR:
		return fi_sendv(ep, send->iov, desc, send->count, addr,
				send->context);
	default:
		return fi_sendmsg(ep, &msg, send->flags);
	}
}

static ssize_t duo_send_tagged(struct fid_ep *ep, const struct duo_send *send,
			       void **desc, fi_addr_t addr)
{
	const struct near_msg *sent = &send->msg;
	const bool data = sent->flags & NEAR_DATA;
	const struct fi_msg_tagged msg = {
		.msg_iov = send->iov, .desc = desc, .iov_count = send->count,
		.addr = addr, .tag = sent->tag, .context = send->context,
		.data = sent->data,
	};

	switch (send->variant) {
	case DUO_SEND:
		return data ? fi_tsenddata(ep, sent->payload, sent->len,
					   desc ? *desc : NULL, sent->data,
					   addr, sent->tag, send->context) :
			      fi_tsend(ep, sent->payload, sent->len,
				       desc ? *desc : NULL, addr, sent->tag,
				       send->context);
	case DUO_SEND_INJECT:
		return data ? fi_tinjectdata(ep, sent->payload, sent->len,
					     sent->data, addr, sent->tag) :
			      fi_tinject(ep, sent->payload, sent->len, addr,
					 sent->tag);
	case DUO_SEND_VECTOR:
		return fi_tsendv(ep, send->iov, desc, send->count, addr,
				 sent->tag, send->context);
	default:
		return fi_tsendmsg(ep, &msg, send->flags);
	}
}

/* Passes the send to the endpoint of its path, and returns the result. */
DUO_INLINE ssize_t duo_send_to(struct duo_ep *ep, const struct duo_send *send,
			       const struct duo_route *to)
{
	bool local = to->path == FI_DUO_LOCAL;
	/* the descriptors are those of the core; libfabric's shm needs none */
	void **desc = local ? NULL : send->desc;

	if (local && ep->near)
		return duo_near_send(ep->near, send, to->addr);
	return send->msg.flags & NEAR_TAGGED ?
	       duo_send_tagged(to->ep, send, desc, to->addr) :
	       duo_send_untagged(to->ep, send, desc, to->addr);
}

static ssize_t duo_send_any(struct duo_ep *ep, const struct duo_send *send)
{
	struct duo_route to;
	ssize_t ret;

	if (send->msg.len > ep->max_msg_size)
		return -FI_EMSGSIZE;
	ret = duo_tx_begin(ep, send->dest, &to);
	return ret ? ret :
	       duo_tx_end(ep, &to, send, duo_send_to(ep, send, &to));
}

ssize_t duo_send_one(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, fi_addr_t dest, uint64_t tag, void *context,
		     uint64_t data, enum duo_send_variant variant,
		     unsigned int near_flags)
{
	bool inject = variant == DUO_SEND_INJECT;
	const struct iovec iov = { (void *) buf, len };
	struct duo_ep *ep = duo_ep_of(ep_fid);

	if (inject && len > ep->inject_size)
		return -FI_EMSGSIZE;
	return duo_send_any(ep, &(struct duo_send) {
		.variant = variant,
		.msg = { buf, len, tag, data, near_flags },
		.iov = &iov, .desc = desc ? &desc : NULL, .count = 1,
		.dest = dest, .flags = inject ? 0 : ep->tx.op_flags,
		.context = context,
	});
}

/*
 * Sends a list of buffers. Computes the first buffer, the length and the flags
 * of send.msg. Returns 0 or an error; -FI_EINVAL: the list is invalid.
 */
static ssize_t duo_send_buffers(struct fid_ep *ep_fid, struct duo_send send)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct iovec skipped[DUO_IOV_LIMIT];

	if (ep->prefix && !duo_ep_skip_prefix(ep, skipped, &send.iov,
					      &send.desc, &send.count))
		return -FI_EINVAL;
	if (send.count > DUO_IOV_LIMIT || (send.count && !send.iov))
		return -FI_EINVAL;
	if (send.variant == DUO_SEND_VECTOR)
		send.flags = ep->tx.op_flags;
	else if (send.flags & FI_REMOTE_CQ_DATA)
		send.msg.flags |= NEAR_DATA;
	else
		send.msg.data = 0;
	send.msg.payload = send.count ? send.iov->iov_base : NULL;
	send.msg.len = near_iov_len(send.iov, send.count);
	if (send.variant == DUO_SEND_FLAGS && send.flags & FI_INJECT &&
	    send.msg.len > ep->inject_size)
		return -FI_EMSGSIZE;
	return duo_send_any(ep, &send);
}

ssize_t duo_sendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t dest, void *context)
{
	return duo_send_buffers(ep_fid, (struct duo_send) {
		.variant = DUO_SEND_VECTOR,
		.iov = iov, .desc = desc, .count = count,
		.dest = dest, .context = context,
	});
}

ssize_t duo_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags)
{
	return duo_send_buffers(ep_fid, (struct duo_send) {
		.variant = DUO_SEND_FLAGS,
		.msg = { .data = msg->data },
		.iov = msg->msg_iov, .desc = msg->desc,
		.count = msg->iov_count, .dest = msg->addr,
		.flags = duo_tx_core_flags(duo_ep_of(ep_fid), flags),
		.context = msg->context,
	});
}

ssize_t duo_tsendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t dest, uint64_t tag, void *context)
{
	return duo_send_buffers(ep_fid, (struct duo_send) {
		.variant = DUO_SEND_VECTOR,
		.msg = { .tag = tag, .flags = NEAR_TAGGED },
		.iov = iov, .desc = desc, .count = count,
		.dest = dest, .context = context,
	});
}

ssize_t duo_tsendmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags)
{
	return duo_send_buffers(ep_fid, (struct duo_send) {
		.variant = DUO_SEND_FLAGS,
		.msg = { .tag = msg->tag, .data = msg->data,
			 .flags = NEAR_TAGGED },
		.iov = msg->msg_iov, .desc = msg->desc,
		.count = msg->iov_count, .dest = msg->addr,
		.flags = duo_tx_core_flags(duo_ep_of(ep_fid), flags),
		.context = msg->context,
	});
}
