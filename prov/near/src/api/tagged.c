/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_TAGGED: ops.h has what the calls do. */

#include "api/ops.h"

static near_noinline ssize_t near_tagged_send_any(struct fid_ep *ep,
						  const void *buf, size_t len,
						  void *desc, fi_addr_t dest,
						  uint64_t tag, void *context)
{
	return near_op_send(ep, buf, len, 0, 0, dest, tag, context, true,
			    false);
}

static ssize_t near_tagged_send(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest, uint64_t tag,
				void *context)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, 0, 0, dest, tag, context, true,
				  false);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_tagged_send_any(ep, buf, len, desc, dest, tag, context);
}

static near_noinline ssize_t
near_tagged_senddata_any(struct fid_ep *ep, const void *buf, size_t len,
			 void *desc, uint64_t data, fi_addr_t dest,
			 uint64_t tag, void *context)
{
	return near_op_send(ep, buf, len, data, NEAR_DATA, dest, tag, context,
			    true, false);
}

static ssize_t near_tagged_senddata(struct fid_ep *ep, const void *buf,
				    size_t len, void *desc, uint64_t data,
				    fi_addr_t dest, uint64_t tag, void *context)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, data, NEAR_DATA, dest, tag,
				  context, true, false);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_tagged_senddata_any(ep, buf, len, desc, data, dest, tag,
					context);
}

static near_noinline ssize_t near_tagged_inject_any(struct fid_ep *ep,
						    const void *buf,
						    size_t len, fi_addr_t dest,
						    uint64_t tag)
{
	return near_op_inject(ep, buf, len, 0, 0, dest, tag, true);
}

static ssize_t near_tagged_inject(struct fid_ep *ep, const void *buf,
				  size_t len, fi_addr_t dest, uint64_t tag)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, 0, 0, dest, tag, NULL, true,
				  true);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_tagged_inject_any(ep, buf, len, dest, tag);
}

static near_noinline ssize_t
near_tagged_injectdata_any(struct fid_ep *ep, const void *buf, size_t len,
			   uint64_t data, fi_addr_t dest, uint64_t tag)
{
	return near_op_inject(ep, buf, len, data, NEAR_DATA, dest, tag, true);
}

static ssize_t near_tagged_injectdata(struct fid_ep *ep, const void *buf,
				      size_t len, uint64_t data, fi_addr_t dest,
				      uint64_t tag)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, data, NEAR_DATA, dest, tag,
				  NULL, true, true);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_tagged_injectdata_any(ep, buf, len, data, dest, tag);
}

static ssize_t near_tagged_sendmsg(struct fid_ep *ep,
				   const struct fi_msg_tagged *msg,
				   uint64_t flags)
{
	return near_op_sendmsg(ep, msg, flags, true);
}

static ssize_t near_tagged_sendv(struct fid_ep *ep, const struct iovec *iov,
				 void **desc, size_t count, fi_addr_t dest,
				 uint64_t tag, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = dest,
		.tag = tag,
		.context = context,
	};

	return near_op_sendmsg(ep, &msg, near_ep_of(ep)->tx_flags, true);
}

static ssize_t near_tagged_recvmsg(struct fid_ep *ep,
				   const struct fi_msg_tagged *msg,
				   uint64_t flags)
{
	return near_op_recvmsg(ep, msg, flags, true);
}

static ssize_t near_tagged_recvv(struct fid_ep *ep, const struct iovec *iov,
				 void **desc, size_t count, fi_addr_t src,
				 uint64_t tag, uint64_t ignore, void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = src,
		.tag = tag,
		.ignore = ignore,
		.context = context,
	};

	return near_op_recvmsg(ep, &msg, near_ep_of(ep)->rx_flags, true);
}

static near_noinline ssize_t near_tagged_recv_any(struct fid_ep *ep, void *buf,
						  size_t len, void *desc,
						  fi_addr_t src, uint64_t tag,
						  uint64_t ignore,
						  void *context)
{
	return near_op_recv(ep, buf, len, src, tag, ignore, context, true);
}

static ssize_t near_tagged_recv(struct fid_ep *ep, void *buf, size_t len,
				void *desc, fi_addr_t src, uint64_t tag,
				uint64_t ignore, void *context)
{
	if (near_likely(near_op_recv_short(ep, buf, len, src, tag, ignore,
					   context, true)))
		return 0;
	return near_tagged_recv_any(ep, buf, len, desc, src, tag, ignore,
				    context);
}

struct fi_ops_tagged near_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = near_tagged_recv,
	.recvv = near_tagged_recvv,
	.recvmsg = near_tagged_recvmsg,
	.send = near_tagged_send,
	.sendv = near_tagged_sendv,
	.sendmsg = near_tagged_sendmsg,
	.inject = near_tagged_inject,
	.senddata = near_tagged_senddata,
	.injectdata = near_tagged_injectdata,
};
