/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends of both fakes, and receives of the fake core. A send completes at once:
 * shm reports it inside the call, the core in its CQ.
 */

#include <rdma/fi_errno.h>

#include "fake.h"

#define FAKE_INJECT (1ULL << 62)	/* send without a completion */

static ssize_t fake_send(struct fid_ep *ep_fid, enum duo_rx_kind kind,
			 const struct fi_msg_tagged *msg, uint64_t flags)
{
	struct fake_obj *ep = fake_obj_of(&ep_fid->fid);
	struct fake_tx *tx = &fake.tx[ep->path];
	struct fi_cq_err_entry entry = {
		.op_context = msg->context,
		.flags = FI_SEND | (kind == DUO_TAGGED ? FI_TAGGED : FI_MSG),
	};
	size_t i;

	if (ep->path == FI_DUO_LOCAL) {
		fake_shm_check(ep);
		if (fake.shm.tx_eagain)
			return -FI_EAGAIN;
		if (fake.shm.send_polls)
			fake_shm_progress_one(ep);
		strcpy(tx->name, fake_shm_name(ep, msg->addr));
	}
	tx->count++;
	tx->kind = kind;
	tx->dest = msg->addr;
	tx->tag = msg->tag;
	tx->data = msg->data;
	tx->flags = flags;
	tx->desc = msg->desc ? msg->desc[0] : NULL;
	tx->context = msg->context;
	for (tx->len = i = 0; i < msg->iov_count; i++) {
		memcpy(tx->payload + tx->len,
		       fake_reach(ep->path, msg->msg_iov[i].iov_base,
				  msg->desc ? msg->desc[i] : NULL),
		       msg->msg_iov[i].iov_len);
		tx->len += msg->msg_iov[i].iov_len;
	}
	if (ep->tx_cntr && ep->path == FI_DUO_CORE)
		ep->tx_cntr->good++;
	else if (ep->tx_cntr)
		ep->tx_cntr->peer_cntr->owner_ops->inc(ep->tx_cntr->peer_cntr);
	if (flags & FAKE_INJECT)
		return 0;
	if (ep->path == FI_DUO_CORE) {
		entry.err = entry.prov_errno = fake.core.send_err;
		fake_core_event(ep->tx_cq, &entry, 3); /* an arbitrary source */
	}
	else
		ep->tx_cq->peer_cq->owner_ops->write(
			ep->tx_cq->peer_cq, entry.op_context, entry.flags, 0,
			NULL, 0, 0, FI_ADDR_NOTAVAIL);
	return 0;
}

static ssize_t fake_send_one(struct fid_ep *ep, enum duo_rx_kind kind,
			     const void *buf, size_t len, void *desc,
			     fi_addr_t dest, uint64_t tag, uint64_t data,
			     void *context, uint64_t flags)
{
	const struct iovec iov = { (void *) buf, len };
	const struct fi_msg_tagged msg = {
		.msg_iov = &iov,
		.desc = &desc,
		.iov_count = 1,
		.addr = dest,
		.tag = tag,
		.data = data,
		.context = context,
	};

	return fake_send(ep, kind, &msg, flags);
}

static ssize_t fake_tsend1(struct fid_ep *ep, const void *buf, size_t len,
			   void *desc, fi_addr_t dest, uint64_t tag,
			   void *context)
{
	return fake_send_one(ep, DUO_TAGGED, buf, len, desc, dest, tag, 0,
			     context, 0);
}

static ssize_t fake_tsendv(struct fid_ep *ep, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t dest,
			   uint64_t tag, void *context)
{
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .tag = tag, .context = context,
	};

	return fake_send(ep, DUO_TAGGED, &msg, 0);
}

static ssize_t fake_tsendmsg(struct fid_ep *ep,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	return fake_send(ep, DUO_TAGGED, msg, flags);
}

static ssize_t fake_tinject(struct fid_ep *ep, const void *buf, size_t len,
			    fi_addr_t dest, uint64_t tag)
{
	return fake_send_one(ep, DUO_TAGGED, buf, len, NULL, dest, tag, 0,
			     NULL, FAKE_INJECT);
}

static ssize_t fake_tsenddata(struct fid_ep *ep, const void *buf, size_t len,
			      void *desc, uint64_t data, fi_addr_t dest,
			      uint64_t tag, void *context)
{
	return fake_send_one(ep, DUO_TAGGED, buf, len, desc, dest, tag, data,
			     context, FI_REMOTE_CQ_DATA);
}

static ssize_t fake_tinjectdata(struct fid_ep *ep, const void *buf,
				size_t len, uint64_t data, fi_addr_t dest,
				uint64_t tag)
{
	return fake_send_one(ep, DUO_TAGGED, buf, len, NULL, dest, tag, data,
			     NULL, FI_REMOTE_CQ_DATA | FAKE_INJECT);
}

static ssize_t fake_send1(struct fid_ep *ep, const void *buf, size_t len,
			  void *desc, fi_addr_t dest, void *context)
{
	return fake_send_one(ep, DUO_MSG, buf, len, desc, dest, 0, 0, context,
			     0);
}

static ssize_t fake_sendv(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t dest,
			  void *context)
{
	const struct fi_msg_tagged msg = {
		.msg_iov = iov, .desc = desc, .iov_count = count,
		.addr = dest, .context = context,
	};

	return fake_send(ep, DUO_MSG, &msg, 0);
}

static ssize_t fake_sendmsg(struct fid_ep *ep, const struct fi_msg *msg,
			    uint64_t flags)
{
	const struct fi_msg_tagged tagged = {
		.msg_iov = msg->msg_iov, .desc = msg->desc,
		.iov_count = msg->iov_count, .addr = msg->addr,
		.context = msg->context, .data = msg->data,
	};

	return fake_send(ep, DUO_MSG, &tagged, flags);
}

static ssize_t fake_inject(struct fid_ep *ep, const void *buf, size_t len,
			   fi_addr_t dest)
{
	return fake_send_one(ep, DUO_MSG, buf, len, NULL, dest, 0, 0, NULL,
			     FAKE_INJECT);
}

static ssize_t fake_senddata(struct fid_ep *ep, const void *buf, size_t len,
			     void *desc, uint64_t data, fi_addr_t dest,
			     void *context)
{
	return fake_send_one(ep, DUO_MSG, buf, len, desc, dest, 0, data,
			     context, FI_REMOTE_CQ_DATA);
}

static ssize_t fake_injectdata(struct fid_ep *ep, const void *buf, size_t len,
			       uint64_t data, fi_addr_t dest)
{
	return fake_send_one(ep, DUO_MSG, buf, len, NULL, dest, 0, data, NULL,
			     FI_REMOTE_CQ_DATA | FAKE_INJECT);
}

static ssize_t fake_recv(struct fid_ep *ep, enum duo_rx_kind kind,
			 const struct iovec *iov, void **desc, size_t count,
			 fi_addr_t src, uint64_t tag, uint64_t ignore,
			 void *context, uint64_t flags)
{
	struct fake_msg recv = {
		.kind = kind, .addr = src, .tag = tag, .ignore = ignore,
		.context = context, .count = count,
		.to = fake_obj_of(&ep->fid),
	};

	ck_assert_int_eq(recv.to->path, FI_DUO_CORE);
	memcpy(recv.iov, iov, count * sizeof(*iov));
	if (desc)
		memcpy(recv.desc, desc, count * sizeof(*desc));
	return fake_core_recv(&recv, flags);
}

static ssize_t fake_recv1(struct fid_ep *ep, void *buf, size_t len, void *desc,
			  fi_addr_t src, void *context)
{
	const struct iovec iov = { buf, len };

	return fake_recv(ep, DUO_MSG, &iov, &desc, 1, src, 0, ~0ULL, context,
			 0);
}

static ssize_t fake_recvv(struct fid_ep *ep, const struct iovec *iov,
			  void **desc, size_t count, fi_addr_t src,
			  void *context)
{
	return fake_recv(ep, DUO_MSG, iov, desc, count, src, 0, ~0ULL, context,
			 0);
}

static ssize_t fake_trecv1(struct fid_ep *ep, void *buf, size_t len,
			   void *desc, fi_addr_t src, uint64_t tag,
			   uint64_t ignore, void *context)
{
	const struct iovec iov = { buf, len };

	return fake_recv(ep, DUO_TAGGED, &iov, &desc, 1, src, tag, ignore, context,
			 0);
}

static ssize_t fake_trecvv(struct fid_ep *ep, const struct iovec *iov,
			   void **desc, size_t count, fi_addr_t src,
			   uint64_t tag, uint64_t ignore, void *context)
{
	return fake_recv(ep, DUO_TAGGED, iov, desc, count, src, tag, ignore,
			 context, 0);
}

static ssize_t fake_trecvmsg(struct fid_ep *ep,
			     const struct fi_msg_tagged *msg, uint64_t flags)
{
	return fake_recv(ep, DUO_TAGGED, msg->msg_iov, msg->desc, msg->iov_count,
			 msg->addr, msg->tag, msg->ignore, msg->context,
			 flags);
}

struct fi_ops_msg fake_msg_ops = {
	.size = sizeof(struct fi_ops_msg),
	.recv = fake_recv1,
	.recvv = fake_recvv,
	.send = fake_send1,
	.sendv = fake_sendv,
	.sendmsg = fake_sendmsg,
	.inject = fake_inject,
	.senddata = fake_senddata,
	.injectdata = fake_injectdata,
};

struct fi_ops_tagged fake_tagged_ops = {
	.size = sizeof(struct fi_ops_tagged),
	.recv = fake_trecv1,
	.recvv = fake_trecvv,
	.recvmsg = fake_trecvmsg,
	.send = fake_tsend1,
	.sendv = fake_tsendv,
	.sendmsg = fake_tsendmsg,
	.inject = fake_tinject,
	.senddata = fake_tsenddata,
	.injectdata = fake_tinjectdata,
};
