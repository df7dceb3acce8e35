/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_MSG: ops.h has what the calls do. */

#include "api/ops.h"

/* Without a tag, and any tag will do. */
static struct fi_msg_tagged near_msg_of(const struct fi_msg *msg)
{
	return (struct fi_msg_tagged) {
		.msg_iov = msg->msg_iov,
		.iov_count = msg->iov_count,
		.addr = msg->addr,
		.ignore = UINT64_MAX,
		.context = msg->context,
		.data = msg->data,
	};
}

static near_noinline ssize_t near_msg_send_any(struct fid_ep *ep,
					       const void *buf, size_t len,
					       void *desc, fi_addr_t dest,
					       void *context)
{
	return near_op_send(ep, buf, len, 0, 0, dest, 0, context, false,
			    false);
}

static ssize_t near_msg_send(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, fi_addr_t dest, void *context)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, 0, 0, dest, 0, context, false,
				  false);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_msg_send_any(ep, buf, len, desc, dest, context);
}

static near_noinline ssize_t near_msg_senddata_any(struct fid_ep *ep,
						   const void *buf, size_t len,
						   void *desc, uint64_t data,
						   fi_addr_t dest,
						   void *context)
{
	return near_op_send(ep, buf, len, data, NEAR_DATA, dest, 0, context,
			    false, false);
}

static ssize_t near_msg_senddata(struct fid_ep *ep, const void *buf, size_t len,
				 void *desc, uint64_t data, fi_addr_t dest,
				 void *context)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, data, NEAR_DATA, dest, 0,
				  context, false, false);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_msg_senddata_any(ep, buf, len, desc, data, dest, context);
}

static near_noinline ssize_t near_msg_inject_any(struct fid_ep *ep,
						 const void *buf, size_t len,
						 fi_addr_t dest)
{
	return near_op_inject(ep, buf, len, 0, 0, dest, 0, false);
}

static ssize_t near_msg_inject(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, 0, 0, dest, 0, NULL, false,
				  true);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_msg_inject_any(ep, buf, len, dest);
}

static near_noinline ssize_t near_msg_injectdata_any(struct fid_ep *ep,
						     const void *buf,
						     size_t len, uint64_t data,
						     fi_addr_t dest)
{
	return near_op_inject(ep, buf, len, data, NEAR_DATA, dest, 0, false);
}

static ssize_t near_msg_injectdata(struct fid_ep *ep, const void *buf,
				   size_t len, uint64_t data, fi_addr_t dest)
{
	struct near_peer *sent;

	sent = near_op_send_short(ep, buf, len, data, NEAR_DATA, dest, 0, NULL,
				  false, true);
	if (near_likely(sent != NULL))
		return near_send_end(sent);
	return near_msg_injectdata_any(ep, buf, len, data, dest);
}

static ssize_t near_msg_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
				uint64_t flags)
{
	struct fi_msg_tagged args = near_msg_of(msg);

	return near_op_sendmsg(ep, &args, flags, false);
}

static ssize_t near_msg_sendv(struct fid_ep *ep, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t dest,
			      void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = dest,
		.context = context,
	};

	return near_op_sendmsg(ep, &msg, near_ep_of(ep)->tx_flags, false);
}

static ssize_t near_msg_recvmsg(struct fid_ep *ep, const struct fi_msg *msg,
				uint64_t flags)
{
	struct fi_msg_tagged args = near_msg_of(msg);

	return near_op_recvmsg(ep, &args, flags, false);
}

static ssize_t near_msg_recvv(struct fid_ep *ep, const struct iovec *iov,
			      void **desc, size_t count, fi_addr_t src,
			      void *context)
{
	struct fi_msg_tagged msg = {
		.msg_iov = iov,
		.iov_count = count,
		.addr = src,
		.ignore = UINT64_MAX,
		.context = context,
	};

	return near_op_recvmsg(ep, &msg, near_ep_of(ep)->rx_flags, false);
}

static near_noinline ssize_t near_msg_recv_any(struct fid_ep *ep, void *buf,
					       size_t len, void *desc,
					       fi_addr_t src, void *context)
{
	return near_op_recv(ep, buf, len, src, 0, UINT64_MAX, context, false);
}

static ssize_t near_msg_recv(struct fid_ep *ep, void *buf, size_t len,
			     void *desc, fi_addr_t src, void *context)
{
	if (near_likely(near_op_recv_short(ep, buf, len, src, 0, UINT64_MAX,
					   context, false)))
		return 0;
	return near_msg_recv_any(ep, buf, len, desc, src, context);
}

struct fi_ops_msg near_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = near_msg_recv,
	.recvv = near_msg_recvv,
	.recvmsg = near_msg_recvmsg,
	.send = near_msg_send,
	.sendv = near_msg_sendv,
	.sendmsg = near_msg_sendmsg,
	.inject = near_msg_inject,
	.senddata = near_msg_senddata,
	.injectdata = near_msg_injectdata,
};
