/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA: each call for near, else forwarded to the core; see onesided.h. A call
 * with one buffer tries whether that is small before it does anything else, and
 * leaves the rest to a function of the same arguments, to which it jumps.
 */

#include "tx/onesided.h"

/* What a call with one remote buffer asks for. */
static near_inline struct near_rma_args
duo_rma_op(enum near_verb verb, const struct iovec *iov, size_t count,
	   uint64_t raddr, uint64_t key, void *context)
{
	return (struct near_rma_args) {
		.verb = verb,
		.addr = raddr,
		.key = key,
		.local = { iov, count },
		.len = count == 1 ? iov->iov_len : near_iov_len(iov, count),
		.about = FI_RMA | (verb == NEAR_READ ? FI_READ : FI_WRITE),
		.cookie = context,
	};
}

static int duo_rma_msg(struct duo_ep *ep, enum near_verb verb,
		       struct fi_msg_rma *msg, uint64_t flags)
{
	const struct fi_rma_iov *at = msg->rma_iov;
	struct near_rma_args op;

	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, &msg->addr);
	op = duo_rma_op(verb, msg->msg_iov, msg->iov_count, at->addr, at->key,
			msg->context);
	if (msg->rma_iov_count > 1)
		op.verb = DUO_SEVERAL;
	op.len = at->len;
	op.data = msg->data;
	return duo_onesided_any(ep, &msg->addr, &op, flags, false);
}

static ssize_t duo_rma_called(struct duo_ep *ep, ssize_t ret)
{
	return duo_onesided_called(ep, ep->stats.rma_ops, ret);
}

DUO_SAME_ARGS ssize_t duo_read_any(struct fid_ep *ep_fid, void *buf,
				   size_t len, void *desc, fi_addr_t src,
				   uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct iovec iov = { buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_READ, &iov, 1, raddr, key, context);
	int ret = duo_onesided_any(ep, &src, &op, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_read(ep->path_ep[FI_DUO_CORE], buf, len,
					  desc, src, raddr, key, context));
}

static ssize_t duo_read(struct fid_ep *ep_fid, void *buf, size_t len,
			void *desc, fi_addr_t src, uint64_t raddr,
			uint64_t key, void *context)
{
	const struct iovec iov = { buf, len };

	if (duo_onesided_small(ep_fid, src, duo_rma_op(NEAR_READ, &iov, 1,
						       raddr, key, context)))
		return 0;
	return duo_read_any(ep_fid, buf, len, desc, src, raddr, key, context);
}

static ssize_t duo_readv(struct fid_ep *ep_fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct near_rma_args op =
		duo_rma_op(NEAR_READ, iov, count, raddr, key, context);
	int ret = duo_onesided_any(ep, &src, &op, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_readv(ep->path_ep[FI_DUO_CORE], iov, desc,
					   count, src, raddr, key, context));
}

static ssize_t duo_readmsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_rma out = *msg;
	int ret = duo_rma_msg(ep, NEAR_READ, &out, flags);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_readmsg(ep->path_ep[FI_DUO_CORE], &out,
					     flags));
}

DUO_SAME_ARGS ssize_t duo_write_any(struct fid_ep *ep_fid, const void *buf,
				    size_t len, void *desc, fi_addr_t dest,
				    uint64_t raddr, uint64_t key,
				    void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, &iov, 1, raddr, key, context);
	int ret = duo_onesided_any(ep, &dest, &op, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_write(ep->path_ep[FI_DUO_CORE], buf, len,
					   desc, dest, raddr, key, context));
}

static ssize_t duo_write(struct fid_ep *ep_fid, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t raddr,
			 uint64_t key, void *context)
{
	const struct iovec iov = { (void *) buf, len };

	if (duo_onesided_small(ep_fid, dest, duo_rma_op(NEAR_WRITE, &iov, 1,
							raddr, key, context)))
		return 0;
	return duo_write_any(ep_fid, buf, len, desc, dest, raddr, key,
			     context);
}

static ssize_t duo_writev(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, iov, count, raddr, key, context);
	int ret = duo_onesided_any(ep, &dest, &op, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_writev(ep->path_ep[FI_DUO_CORE], iov,
					    desc, count, dest, raddr, key,
					    context));
}

static ssize_t duo_writemsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_rma out = *msg;
	int ret = duo_rma_msg(ep, NEAR_WRITE, &out, flags);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_writemsg(ep->path_ep[FI_DUO_CORE], &out,
					      flags));
}

DUO_SAME_ARGS ssize_t duo_inject_write_any(struct fid_ep *ep_fid,
					   const void *buf, size_t len,
					   fi_addr_t dest, uint64_t raddr,
					   uint64_t key)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, &iov, 1, raddr, key, NULL);
	int ret = duo_onesided_any(ep, &dest, &op, FI_INJECT, true);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_inject_write(ep->path_ep[FI_DUO_CORE],
						  buf, len, dest, raddr, key));
}

static ssize_t duo_inject_write(struct fid_ep *ep_fid, const void *buf,
				size_t len, fi_addr_t dest, uint64_t raddr,
				uint64_t key)
{
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, &iov, 1, raddr, key, NULL);

	op.flags = NEAR_RMA_COPY;
	if (duo_onesided_small(ep_fid, dest, op))
		return 0;
	return duo_inject_write_any(ep_fid, buf, len, dest, raddr, key);
}

static ssize_t duo_writedata(struct fid_ep *ep_fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, &iov, 1, raddr, key, context);
	int ret;

	op.data = data;
	ret = duo_onesided_any(ep, &dest, &op,
			       ep->tx.op_flags | FI_REMOTE_CQ_DATA, false);
	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_writedata(ep->path_ep[FI_DUO_CORE], buf,
					       len, desc, data, dest, raddr,
					       key, context));
}

static ssize_t duo_inject_writedata(struct fid_ep *ep_fid, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t raddr, uint64_t key)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_op(NEAR_WRITE, &iov, 1, raddr, key, NULL);
	int ret;

	op.data = data;
	ret = duo_onesided_any(ep, &dest, &op, FI_INJECT | FI_REMOTE_CQ_DATA,
			       true);
	if (ret != DUO_TO_CORE)
		return ret;
	return duo_rma_called(ep, fi_inject_writedata(ep->path_ep[FI_DUO_CORE],
						      buf, len, data, dest,
						      raddr, key));
}

struct fi_ops_rma duo_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = duo_read,
	.readv = duo_readv,
	.readmsg = duo_readmsg,
	.write = duo_write,
	.writev = duo_writev,
	.writemsg = duo_writemsg,
	.inject = duo_inject_write,
	.writedata = duo_writedata,
	.injectdata = duo_inject_writedata,
};
