/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* RMA: decide who carries it, forward; see onesided.h. */

#include <rdma/fi_rma.h>

#include "tx/onesided.h"

static inline int duo_rma_begin(struct duo_ep *ep, fi_addr_t dest,
				enum near_verb verb, uint64_t raddr,
				uint64_t key, size_t len,
				struct duo_onesided *to)
{
	const struct near_rma_args args = {
		.verb = verb,
		.addr = raddr,
		.key = key,
		.len = len,
	};

	return duo_onesided_begin(ep, dest, &args, to);
}

static inline int duo_rma_begin_msg(struct duo_ep *ep,
				    const struct fi_msg_rma *msg,
				    enum near_verb verb,
				    struct duo_onesided *to)
{
	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, msg->addr, to);
	if (msg->rma_iov_count > 1)
		verb = DUO_SEVERAL;
	return duo_rma_begin(ep, msg->addr, verb, msg->rma_iov->addr,
			     msg->rma_iov->key, msg->rma_iov->len, to);
}

static inline ssize_t duo_rma_end(struct duo_ep *ep,
				  const struct duo_onesided *to, ssize_t ret)
{
	return duo_onesided_end(ep, to, ep->stats.rma_ops, ret);
}

ssize_t duo_read(struct fid_ep *ep_fid, void *buf, size_t len,
			void *desc, fi_addr_t peer, uint64_t raddr,
			uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_READ, raddr, key, len, &to);

	if (ret)
		return ret;
	return duo_rma_end(
		ep, &to,
		fi_read(to.ep, buf, len, desc, to.addr, raddr, key, context));
}

static ssize_t duo_readv(struct fid_ep *ep_fid, const struct iovec *iov,
			 void **desc, size_t count, fi_addr_t peer,
			 uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_READ, raddr, key,
				near_iov_len(iov, count), &to);

	if (ret)
		return ret;
	return duo_rma_end(ep, &to,
			   fi_readv(to.ep, iov, desc, count, to.addr, raddr,
				    key, context));
}

static ssize_t duo_readmsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			   uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_rma out = *msg;
	struct duo_onesided to;
	int ret = duo_rma_begin_msg(ep, msg, NEAR_READ, &to);

	if (ret)
		return ret;
	out.addr = to.addr;
	return duo_rma_end(ep, &to, fi_readmsg(to.ep, &out, flags));
}

ssize_t duo_write(struct fid_ep *ep_fid, const void *buf, size_t len,
			 void *desc, fi_addr_t peer, uint64_t raddr,
			 uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_WRITE, raddr, key, len, &to);

	if (ret)
		return ret;
	return duo_rma_end(
		ep, &to,
		fi_write(to.ep, buf, len, desc, to.addr, raddr, key, context));
}

static ssize_t duo_writev(struct fid_ep *ep_fid, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t peer,
			  uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_WRITE, raddr, key,
				near_iov_len(iov, count), &to);

	if (ret)
		return ret;
	return duo_rma_end(ep, &to,
			   fi_writev(to.ep, iov, desc, count, to.addr, raddr,
				     key, context));
}

static ssize_t duo_writemsg(struct fid_ep *ep_fid, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_rma out = *msg;
	struct duo_onesided to;
	int ret = duo_rma_begin_msg(ep, msg, NEAR_WRITE, &to);

	if (ret)
		return ret;
	out.addr = to.addr;
	return duo_rma_end(ep, &to, fi_writemsg(to.ep, &out, flags));
}

ssize_t duo_inject_write(struct fid_ep *ep_fid, const void *buf,
				size_t len, fi_addr_t peer, uint64_t raddr,
				uint64_t key)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_WRITE, raddr, key, len, &to);

	if (ret)
		return ret;
	return duo_rma_end(
		ep, &to, fi_inject_write(to.ep, buf, len, to.addr, raddr, key));
}

static ssize_t duo_writedata(struct fid_ep *ep_fid, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t peer,
			     uint64_t raddr, uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_WRITE, raddr, key, len, &to);

	if (ret)
		return ret;
	return duo_rma_end(ep, &to,
			   fi_writedata(to.ep, buf, len, desc, data, to.addr,
					raddr, key, context));
}

static ssize_t duo_inject_writedata(struct fid_ep *ep_fid, const void *buf,
				    size_t len, uint64_t data, fi_addr_t peer,
				    uint64_t raddr, uint64_t key)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	int ret = duo_rma_begin(ep, peer, NEAR_WRITE, raddr, key, len, &to);

	if (ret)
		return ret;
	return duo_rma_end(ep, &to,
			   fi_inject_writedata(to.ep, buf, len, data, to.addr,
					       raddr, key));
}

struct fi_ops_rma duo_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.read = duo_short_read,
	.readv = duo_readv,
	.readmsg = duo_readmsg,
	.write = duo_short_write,
	.writev = duo_writev,
	.writemsg = duo_writemsg,
	.inject = duo_short_inject_write,
	.writedata = duo_writedata,
	.injectdata = duo_inject_writedata,
};
