/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends over near. What fits into the peer's ring is complete when it is
 * there; what is larger, or whose delivery is asked for, when the peer has it.
 */

#include <rdma/fi_errno.h>

#include <stdlib.h>

#include "av/map.h"
#include "device/device.h"
#include "peer/near/near_ep.h"

#define DUO_NEAR_GATHER 8192	/* bytes on the stack */
#define DUO_NEAR_FLAGGED (FI_DELIVERY_COMPLETE | FI_FENCE)

/* One send call, whatever its variant. */
struct duo_near_args {
	struct near_msg msg;	/* with the only buffer, if there is but one */
	fi_addr_t dest;
	void *context;
	uint64_t flags;		/* FI_TAGGED or FI_MSG, and the call's */
	bool quiet;		/* inject: a success is not reported */
};

static near_inline bool duo_near_reports(const struct duo_near *near,
					 const struct duo_near_args *args)
{
	return !args->quiet &&
	       (near->tx_all || args->flags & FI_COMPLETION);
}

static near_inline uint64_t duo_near_tx_flags(const struct duo_near_args *args)
{
	return FI_SEND | (args->flags & (FI_TAGGED | FI_MSG));
}

static near_inline void duo_near_report(struct duo_near *near,
					const struct duo_near_args *args)
{
	if (duo_near_reports(near, args))
		duo_cq_push_sent(near->ep->tx_cq, args->context,
				 duo_near_tx_flags(args));
}

DUO_COLD void duo_near_unsent(struct duo_ep *ep,
			      const struct duo_near_send *op, int err)
{
	const struct fi_cq_err_entry error = {
		.op_context = op->context, .flags = op->flags, .err = err,
		.prov_errno = err, DUO_CQ_ERR_SRC(op->to)
	};

	ep->tx.failed++;
	duo_cq_push_err(ep->tx_cq, &error, FI_DUO_LOCAL);
}

/* Within a read, that is where near tells of it. */
void duo_near_sent(void *ctx, void *cookie, int err)
{
	struct duo_near_send *op = cookie;
	struct duo_ep *ep = ctx;
	const struct fi_cq_tagged_entry entry = {
		.op_context = op->context, .flags = op->flags,
	};

	ep->tx.pending--;
	if (err)
		duo_near_unsent(ep, op, err);
	else if (op->report)
		duo_cq_push(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
	near_pool_put(&ep->near->sends, op);
}

/*
 * It has not gone out. Where near alone carries messages, its error is the
 * caller's. Who cannot be connected to gets it over the core, next
 * time, unless it has yet to answer; who has died is found out by a poll, and
 * then looked up anew.
 */
static ssize_t duo_near_refused(struct duo_near *near,
				const struct duo_near_args *args, int ret)
{
	const struct near_peer *peer = near->peer[args->dest];

	if (ret == -FI_EINVAL || near->ep->core.carries_nothing)
		return ret;
	if (peer && !near_peer_rings(peer) && ret != -FI_ECONNRESET)
		duo_map_refuse(near->ep, args->dest);
	return -FI_EAGAIN;
}

/*
 * An injected one is forgotten, unless its end is to be reported. owned: NULL,
 * or the message's memory, which is near's if there is no error.
 */
static int duo_near_large(struct duo_near *near,
			  const struct duo_near_args *args,
			  const struct iovec *iov, size_t count, void *owned)
{
	struct near_large large = {
		.iov = iov,
		.count = count,
		.copy = !owned && (args->quiet || args->flags & FI_INJECT),
		.owned = owned,
	};
	struct duo_near_send *op = NULL;
	int ret;

	if (!args->quiet) {
		op = near_pool_get(&near->sends);
		if (!op)
			return -FI_EAGAIN;
		op->context = args->context;
		op->flags = duo_near_tx_flags(args);
		op->to = duo_near_addr(near->ep, args->dest);
		op->report = duo_near_reports(near, args);
		large.cookie = op;
	}
	ret = near_send_large(near->port, near->peer[args->dest], &args->msg,
			      &large);
	if (ret && op)
		near_pool_put(&near->sends, op);
	near->ep->tx.pending += !ret && op;
	return ret;
}

/* What near_send() has not taken. */
static __attribute__((noinline)) ssize_t
duo_near_send_rest(struct duo_near *near, const struct duo_near_args *args,
		   int ret)
{
	const struct iovec iov = {
		(void *) args->msg.payload, args->msg.len,
	};

	if (ret == NEAR_LARGE)
		ret = duo_near_large(near, args, &iov, 1, NULL);
	return ret ? duo_near_refused(near, args, ret) : 0;
}

/* What can go out now. Several buffers are gathered where that may do. */
static int duo_near_send_host(struct duo_near *near, struct duo_near_args *args,
			      const struct iovec *iov, size_t count)
{
	uint8_t gathered[DUO_NEAR_GATHER];

	if (args->flags & FI_DELIVERY_COMPLETE ||
	    (count > 1 && args->msg.len > sizeof(gathered)))
		return NEAR_LARGE;
	args->msg.payload = count ? iov->iov_base : NULL;
	if (count > 1) {
		near_iov_out(gathered, iov, 0, args->msg.len);
		args->msg.payload = gathered;
	}
	return near_send(near->port, near->peer[args->dest], &args->msg);
}

/* A message in host memory. owned: as for duo_near_large(), or it is freed. */
static ssize_t duo_near_sendv(struct duo_near *near, struct duo_near_args *args,
			      const struct iovec *iov, size_t count,
			      void *owned)
{
	int ret = duo_near_send_host(near, args, iov, count);

	if (!ret)
		duo_near_report(near, args);
	if (ret == NEAR_LARGE) {
		ret = duo_near_large(near, args, iov, count, owned);
		owned = ret ? owned : NULL;
	}
	free(owned);
	return ret ? duo_near_refused(near, args, ret) : 0;
}

/*
 * Sends from device memory: copies the message to host memory, and sends that.
 * Small ones use the stack.
 */
DUO_COLD ssize_t duo_near_send_device(struct duo_near *near,
				      struct duo_near_args *args,
				      const struct iovec *iov, void **desc)
{
	uint8_t small[DUO_NEAR_GATHER];
	size_t len = args->msg.len;
	void *owned = len > sizeof(small) ? malloc(len) : NULL;
	const struct iovec host = { owned ? owned : small, len };

	if (len > sizeof(small) && !owned)
		return -FI_EAGAIN;
	if (duo_device_out(near->ep->domain, host.iov_base, iov, desc, len)) {
		free(owned);
		return -FI_EIO;
	}
	args->flags |= FI_INJECT;	/* small is gone when this returns */
	return duo_near_sendv(near, args, &host, 1, owned);
}

/*
 * Any message. A fenced one waits for all that is under way to its peer, which
 * may have gone since it was looked up.
 */
static __attribute__((noinline)) ssize_t
duo_near_send_any(struct duo_near *near, const struct duo_near_args *from,
		  const struct iovec *iov, void **desc, size_t count)
{
	const struct near_peer *peer = near->peer[from->dest];
	struct duo_near_args args = *from;

	if (!peer || (args.flags & FI_FENCE && near_rma_fenced(peer)))
		return -FI_EAGAIN;
	args.msg.len = near_iov_len(iov, count);
	return desc && duo_device_any(near->ep->domain, desc, count) ?
	       duo_near_send_device(near, &args, iov, desc) :
	       duo_near_sendv(near, &args, iov, count, NULL);
}

static near_inline ssize_t duo_near_vector(struct fid_ep *fid,
					   unsigned int kind,
					   const struct iovec *iov, void **desc,
					   size_t count, uint64_t data,
					   fi_addr_t dest, uint64_t tag,
					   void *context, uint64_t flags)
{
	const struct duo_near_args args = {
		.msg = {
			.tag = tag,
			.data = kind & NEAR_DATA ? data : 0,
			.flags = kind,
		},
		.dest = dest,
		.context = context,
		.flags = (kind & NEAR_TAGGED ? FI_TAGGED : FI_MSG) | flags,
	};

	return duo_near_send_any(duo_near_of(fid), &args, iov, desc, count);
}

/* kind: NEAR_TAGGED, NEAR_DATA */
static near_inline ssize_t duo_near_one(struct fid_ep *fid, unsigned int kind,
					const void *buf, size_t len, void *desc,
					uint64_t data, fi_addr_t dest,
					uint64_t tag, void *context, bool quiet)
{
	const struct iovec iov = { (void *) buf, len };
	struct duo_near *near = duo_near_of(fid);
	struct near_peer *peer = near->peer[dest];
	const struct duo_near_args args = {
		.msg = {
			.payload = buf,
			.len = len,
			.tag = tag,
			.data = data,
			.flags = kind,
		},
		.dest = dest,
		.context = context,
		.flags = (kind & NEAR_TAGGED ? FI_TAGGED : FI_MSG) |
			 (quiet ? 0 : near->tx_flags),
		.quiet = quiet,
	};
	int ret;

	if (near_unlikely(!peer || args.flags & DUO_NEAR_FLAGGED ||
			  (desc && duo_device_any(near->ep->domain, &desc, 1))))
		return duo_near_send_any(near, &args, &iov,
					 desc ? &desc : NULL, 1);
	ret = near_send(near->port, peer, &args.msg);
	if (near_unlikely(ret))
		return duo_near_send_rest(near, &args, ret);
	duo_near_report(near, &args);
	return 0;
}

static near_inline unsigned int duo_near_data_kind(uint64_t flags)
{
	return flags & FI_REMOTE_CQ_DATA ? NEAR_DATA : 0;
}

static ssize_t duo_near_msg_send(struct fid_ep *ep, const void *buf,
				 size_t len, void *desc, fi_addr_t dest,
				 void *context)
{
	return duo_near_one(ep, 0, buf, len, desc, 0, dest, 0, context, false);
}

static ssize_t duo_near_msg_senddata(struct fid_ep *ep, const void *buf,
				     size_t len, void *desc, uint64_t data,
				     fi_addr_t dest, void *context)
{
	return duo_near_one(ep, NEAR_DATA, buf, len, desc, data, dest, 0,
			    context, false);
}

static ssize_t duo_near_msg_inject(struct fid_ep *ep, const void *buf,
				   size_t len, fi_addr_t dest)
{
	return duo_near_one(ep, 0, buf, len, NULL, 0, dest, 0, NULL, true);
}

static ssize_t duo_near_msg_injectdata(struct fid_ep *ep, const void *buf,
				       size_t len, uint64_t data,
				       fi_addr_t dest)
{
	return duo_near_one(ep, NEAR_DATA, buf, len, NULL, data, dest, 0, NULL,
			    true);
}

static ssize_t duo_near_msg_sendmsg(struct fid_ep *ep,
				    const struct fi_msg *msg, uint64_t flags)
{
	return duo_near_vector(ep, duo_near_data_kind(flags), msg->msg_iov,
			       msg->desc, msg->iov_count, msg->data, msg->addr,
			       0, msg->context, flags);
}

static ssize_t duo_near_msg_sendv(struct fid_ep *ep, const struct iovec *iov,
				  void **desc, size_t count, fi_addr_t dest,
				  void *context)
{
	return duo_near_vector(ep, 0, iov, desc, count, 0, dest, 0, context,
			       duo_near_of(ep)->tx_flags);
}

static ssize_t duo_near_tagged_send(struct fid_ep *ep, const void *buf,
				    size_t len, void *desc, fi_addr_t dest,
				    uint64_t tag, void *context)
{
	return duo_near_one(ep, NEAR_TAGGED, buf, len, desc, 0, dest, tag,
			    context, false);
}

static ssize_t duo_near_tagged_senddata(struct fid_ep *ep, const void *buf,
					size_t len, void *desc, uint64_t data,
					fi_addr_t dest, uint64_t tag,
					void *context)
{
	return duo_near_one(ep, NEAR_TAGGED | NEAR_DATA, buf, len, desc, data,
			    dest, tag, context, false);
}

static ssize_t duo_near_tagged_inject(struct fid_ep *ep, const void *buf,
				      size_t len, fi_addr_t dest, uint64_t tag)
{
	return duo_near_one(ep, NEAR_TAGGED, buf, len, NULL, 0, dest, tag,
			    NULL, true);
}

static ssize_t duo_near_tagged_injectdata(struct fid_ep *ep, const void *buf,
					  size_t len, uint64_t data,
					  fi_addr_t dest, uint64_t tag)
{
	return duo_near_one(ep, NEAR_TAGGED | NEAR_DATA, buf, len, NULL, data,
			    dest, tag, NULL, true);
}

static ssize_t duo_near_tagged_sendmsg(struct fid_ep *ep,
				       const struct fi_msg_tagged *msg,
				       uint64_t flags)
{
	return duo_near_vector(ep, NEAR_TAGGED | duo_near_data_kind(flags),
			       msg->msg_iov, msg->desc, msg->iov_count,
			       msg->data, msg->addr, msg->tag, msg->context,
			       flags);
}

static ssize_t duo_near_tagged_sendv(struct fid_ep *ep,
				     const struct iovec *iov, void **desc,
				     size_t count, fi_addr_t dest,
				     uint64_t tag, void *context)
{
	return duo_near_vector(ep, NEAR_TAGGED, iov, desc, count, 0, dest, tag,
			       context, duo_near_of(ep)->tx_flags);
}

/* Receives are ofi_duo's own. */
struct fi_ops_msg duo_near_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.send = duo_near_msg_send,
	.sendv = duo_near_msg_sendv,
	.sendmsg = duo_near_msg_sendmsg,
	.inject = duo_near_msg_inject,
	.senddata = duo_near_msg_senddata,
	.injectdata = duo_near_msg_injectdata,
};

struct fi_ops_tagged duo_near_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.send = duo_near_tagged_send,
	.sendv = duo_near_tagged_sendv,
	.sendmsg = duo_near_tagged_sendmsg,
	.inject = duo_near_tagged_inject,
	.senddata = duo_near_tagged_senddata,
	.injectdata = duo_near_tagged_injectdata,
};
