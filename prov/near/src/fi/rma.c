/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_RMA: arguments into one form. */

#include "fi/onesided.h"

static ssize_t near_rma_msg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			    uint64_t flags, enum near_verb verb)
{
	struct near_onesided_call call = {
		.args = {
			.verb = verb,
			.local = { msg->msg_iov, msg->iov_count },
			.len = near_iov_len(msg->msg_iov, msg->iov_count),
			.data = msg->data,
		},
		.dest = msg->addr,
		.context = msg->context,
		.flags = FI_RMA | (verb == NEAR_READ ? FI_READ : FI_WRITE) |
			 flags,
	};

	if (msg->rma_iov_count != 1 || msg->rma_iov->len != call.args.len)
		return -FI_EINVAL;
	call.args.addr = msg->rma_iov->addr;
	call.args.key = msg->rma_iov->key;
	return near_onesided_issue(ep_fid, &call);
}

/* One buffer, by a call without flags; the caller adds what it has more. */
static struct near_onesided_call
near_rma_call(enum near_verb verb, const struct iovec *iov, fi_addr_t dest,
	      uint64_t addr, uint64_t key)
{
	return (struct near_onesided_call) {
		.args = {
			.verb = verb,
			.addr = addr,
			.key = key,
			.local = { iov, 1 },
			.len = iov->iov_len,
		},
		.dest = dest,
		.flags = FI_RMA | (verb == NEAR_READ ? FI_READ : FI_WRITE),
	};
}

static ssize_t near_rma_vector(struct fid_ep *ep, const struct iovec *iov,
			       size_t count, fi_addr_t dest, uint64_t addr,
			       uint64_t key, enum near_verb verb,
			       void *context)
{
	const struct fi_rma_iov rma_iov = {
		addr, near_iov_len(iov, count), key,
	};
	const struct fi_msg_rma msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = dest,
		.rma_iov = &rma_iov,
		.rma_iov_count = 1,
		.context = context,
	};

	return near_rma_msg(ep, &msg, near_onesided_tx_flags(ep), verb);
}

ssize_t near_rma_read(struct fid_ep *ep, void *buf, size_t len,
			     void *desc, fi_addr_t src, uint64_t addr,
			     uint64_t key, void *context)
{
	const struct iovec iov = { buf, len };
	struct near_onesided_call call =
		near_rma_call(NEAR_READ, &iov, src, addr, key);

	call.context = context;
	call.flags |= near_onesided_tx_flags(ep);
	return near_onesided_issue(ep, &call);
}

static ssize_t near_rma_readv(struct fid_ep *ep, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t src,
			      uint64_t addr, uint64_t key, void *context)
{
	return near_rma_vector(ep, iov, count, src, addr, key, NEAR_READ,
			       context);
}

static ssize_t near_rma_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
				uint64_t flags)
{
	return near_rma_msg(ep, msg, flags & ~FI_REMOTE_CQ_DATA, NEAR_READ);
}

ssize_t near_rma_write(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, fi_addr_t dest, uint64_t addr,
			      uint64_t key, void *context)
{
	const struct iovec iov = { (void *)buf, len };
	struct near_onesided_call call =
		near_rma_call(NEAR_WRITE, &iov, dest, addr, key);

	call.context = context;
	call.flags |= near_onesided_tx_flags(ep);
	return near_onesided_issue(ep, &call);
}

static ssize_t near_rma_writev(struct fid_ep *ep, const struct iovec *iov,
			       void **desc, size_t count, fi_addr_t dest,
			       uint64_t addr, uint64_t key, void *context)
{
	return near_rma_vector(ep, iov, count, dest, addr, key, NEAR_WRITE,
			       context);
}

static ssize_t near_rma_writemsg(struct fid_ep *ep,
				 const struct fi_msg_rma *msg, uint64_t flags)
{
	return near_rma_msg(ep, msg, flags, NEAR_WRITE);
}

ssize_t near_rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t addr, uint64_t key)
{
	const struct iovec iov = { (void *)buf, len };
	struct near_onesided_call call =
		near_rma_call(NEAR_WRITE, &iov, dest, addr, key);

	call.flags |= FI_INJECT;
	call.inject = true;
	return near_onesided_issue(ep, &call);
}

static ssize_t near_rma_writedata(struct fid_ep *ep, const void *buf,
				  size_t len, void *desc, uint64_t data,
				  fi_addr_t dest, uint64_t addr, uint64_t key,
				  void *context)
{
	const struct iovec iov = { (void *)buf, len };
	struct near_onesided_call call =
		near_rma_call(NEAR_WRITE, &iov, dest, addr, key);

	call.args.data = data;
	call.context = context;
	call.flags |= near_onesided_tx_flags(ep) | FI_REMOTE_CQ_DATA;
	return near_onesided_issue(ep, &call);
}

static ssize_t near_rma_injectdata(struct fid_ep *ep, const void *buf,
				   size_t len, uint64_t data, fi_addr_t dest,
				   uint64_t addr, uint64_t key)
{
	const struct iovec iov = { (void *)buf, len };
	struct near_onesided_call call =
		near_rma_call(NEAR_WRITE, &iov, dest, addr, key);

	call.args.data = data;
	call.flags |= FI_INJECT | FI_REMOTE_CQ_DATA;
	call.inject = true;
	return near_onesided_issue(ep, &call);
}

struct fi_ops_rma near_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = near_rma_read,
	.readv = near_rma_readv,
	.readmsg = near_rma_readmsg,
	.write = near_rma_write,
	.writev = near_rma_writev,
	.writemsg = near_rma_writemsg,
	.inject = near_rma_inject,
	.writedata = near_rma_writedata,
	.injectdata = near_rma_injectdata,
};
