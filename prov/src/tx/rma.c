/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The RMA calls. Either near or the core executes the operation: onesided.h. */

#include "tx/onesided.h"

/* Returns the arguments for the fast path of a call with one buffer. */
static near_inline struct near_rma_args
duo_rma_small(enum near_verb verb, const struct iovec *iov, uint64_t raddr,
	      uint64_t key, void *context)
{
	return (struct near_rma_args) {
		.verb = verb,
		.addr = raddr,
		.key = key,
		.local = { iov, 1 },
		.len = iov->iov_len,
		.about = FI_RMA | (verb == NEAR_READ ? FI_READ : FI_WRITE),
		.cookie = context,
	};
}

/* Passes RMA to near. Returns the result of duo_onesided_any(). */
static int duo_rma_near(struct duo_ep *ep, enum near_verb verb,
			const struct fi_msg_rma *msg, uint64_t flags,
			bool quiet)
{
	struct near_rma_args op = {
		.verb = msg->rma_iov_count > 1 ? DUO_SEVERAL : verb,
		.local = { msg->msg_iov, msg->iov_count, msg->desc },
		.data = msg->data,
		.about = FI_RMA | (verb == NEAR_READ ? FI_READ : FI_WRITE),
		.cookie = msg->context,
	};

	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, msg->addr);
	op.addr = msg->rma_iov->addr;
	op.key = msg->rma_iov->key;
	op.len = msg->rma_iov->len;
	return duo_onesided_any(ep, msg->addr, &op, flags, quiet);
}

/* Passes RMA to near; if near cannot execute it, to the core. */
static ssize_t duo_rma(struct duo_ep *ep, enum near_verb verb,
		       struct fi_msg_rma msg, uint64_t flags)
{
	struct fid_ep *core = ep->path_ep[FI_DUO_CORE];
	ssize_t ret = duo_rma_near(ep, verb, &msg, flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	flags = duo_tx_core_flags(ep, flags);
	ret = verb == NEAR_READ ? fi_readmsg(core, &msg, flags) :
				  fi_writemsg(core, &msg, flags);
	return duo_onesided_called(ep, ep->stats.rma_ops, ret);
}

/*
 * Reads or writes one remote buffer. The length of the remote buffer is the sum
 * of the lengths of msg's local buffers. Uses the endpoint's default flags, and
 * in addition `flags`.
 */
static ssize_t duo_rma_one(struct duo_ep *ep, enum near_verb verb,
			   struct fi_msg_rma msg, uint64_t raddr, uint64_t key,
			   uint64_t flags)
{
	const struct fi_rma_iov at = {
		raddr, near_iov_len(msg.msg_iov, msg.iov_count), key,
	};

	msg.rma_iov = &at;
	msg.rma_iov_count = 1;
	return duo_rma(ep, verb, msg,
		       duo_onesided_defaults(ep, at.len) | flags);
}

static ssize_t duo_readv(struct fid_ep *ep_fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t src,
			 uint64_t raddr, uint64_t key, void *context)
{
	return duo_rma_one(duo_ep_of(ep_fid), NEAR_READ, (struct fi_msg_rma) {
			.msg_iov = iov, .desc = desc, .iov_count = count,
			.addr = src, .context = context }, raddr, key, 0);
}

static ssize_t duo_writev(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  uint64_t raddr, uint64_t key, void *context)
{
	return duo_rma_one(duo_ep_of(ep_fid), NEAR_WRITE, (struct fi_msg_rma) {
			.msg_iov = iov, .desc = desc, .iov_count = count,
			.addr = dest, .context = context }, raddr, key, 0);
}

/*
 * The slow path of calls with one buffer. It is not inline, so that the fast
 * path needs no stack.
 */
DUO_NOINLINE ssize_t duo_rma_buf(struct fid_ep *ep_fid, const void *buf,
				 size_t len, void *desc, fi_addr_t addr,
				 uint64_t raddr, uint64_t key, void *context,
				 enum near_verb verb, uint64_t data,
				 uint64_t flags)
{
	const struct iovec iov = { (void *) buf, len };

	return duo_rma_one(duo_ep_of(ep_fid), verb, (struct fi_msg_rma) {
			.msg_iov = &iov, .desc = &desc, .iov_count = 1,
			.addr = addr, .context = context, .data = data },
			raddr, key, flags);
}

static ssize_t duo_writedata(struct fid_ep *ep_fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     uint64_t raddr, uint64_t key, void *context)
{
	return duo_rma_buf(ep_fid, buf, len, desc, dest, raddr, key, context,
			   NEAR_WRITE, data, FI_REMOTE_CQ_DATA);
}

static ssize_t duo_readmsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	return duo_rma(duo_ep_of(ep_fid), NEAR_READ, *msg, flags);
}

static ssize_t duo_writemsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	return duo_rma(duo_ep_of(ep_fid), NEAR_WRITE, *msg, flags);
}

static ssize_t duo_read(struct fid_ep *ep_fid, void *buf, size_t len,
			void *desc, fi_addr_t src, uint64_t raddr,
			uint64_t key, void *context)
{
	const struct iovec iov = { buf, len };

	if (duo_onesided_small(ep_fid, src, duo_rma_small(NEAR_READ, &iov,
							  raddr, key, context)))
		return 0;
	return duo_rma_buf(ep_fid, buf, len, desc, src, raddr, key, context,
			   NEAR_READ, 0, 0);
}

static ssize_t duo_write(struct fid_ep *ep_fid, const void *buf, size_t len,
			 void *desc, fi_addr_t dest, uint64_t raddr,
			 uint64_t key, void *context)
{
	const struct iovec iov = { (void *) buf, len };

	if (duo_onesided_small(ep_fid, dest, duo_rma_small(NEAR_WRITE, &iov,
							   raddr, key,
							   context)))
		return 0;
	return duo_rma_buf(ep_fid, buf, len, desc, dest, raddr, key, context,
			   NEAR_WRITE, 0, 0);
}

/*
 * The slow path of injects. An inject that succeeds has no completion.
 * fi_writemsg() has no flag for this, so this function does not call duo_rma():
 * it sets `quiet` for near, and calls an inject function of the core.
 */
DUO_NOINLINE ssize_t duo_rma_inject(struct fid_ep *ep_fid, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t raddr, uint64_t key,
				    uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fid_ep *core = ep->path_ep[FI_DUO_CORE];
	const struct iovec iov = { (void *) buf, len };
	const struct fi_rma_iov at = { raddr, len, key };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = dest,
		.rma_iov = &at, .rma_iov_count = 1, .data = data,
	};
	ssize_t ret = duo_rma_near(ep, NEAR_WRITE, &msg, flags | FI_INJECT,
				   true);

	if (ret != DUO_TO_CORE)
		return ret;
	ret = flags & FI_REMOTE_CQ_DATA ?
	      fi_inject_writedata(core, buf, len, data, msg.addr, raddr, key) :
	      fi_inject_write(core, buf, len, msg.addr, raddr, key);
	return duo_onesided_called(ep, ep->stats.rma_ops, ret);
}

static ssize_t duo_inject_write(struct fid_ep *ep_fid, const void *buf,
				size_t len, fi_addr_t dest, uint64_t raddr,
				uint64_t key)
{
	const struct iovec iov = { (void *) buf, len };
	struct near_rma_args op =
		duo_rma_small(NEAR_WRITE, &iov, raddr, key, NULL);

	op.flags = NEAR_RMA_COPY;
	if (duo_onesided_small(ep_fid, dest, op))
		return 0;
	return duo_rma_inject(ep_fid, buf, len, 0, dest, raddr, key, 0);
}

static ssize_t duo_inject_writedata(struct fid_ep *ep_fid, const void *buf,
				    size_t len, uint64_t data, fi_addr_t dest,
				    uint64_t raddr, uint64_t key)
{
	return duo_rma_inject(ep_fid, buf, len, data, dest, raddr, key,
			      FI_REMOTE_CQ_DATA);
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
