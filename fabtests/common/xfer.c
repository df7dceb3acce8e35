/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Posts operations by all calls, and passes completions to struct ft_op. */

#include <sched.h>

#include "ft.h"

#define FT_BATCH 16

const char *const ft_tx_name[FT_TX_COUNT] = {
	[FT_TX_SEND] = "send",
	[FT_TX_SENDV] = "sendv",
	[FT_TX_SENDMSG] = "sendmsg",
	[FT_TX_SENDMSG_DATA] = "sendmsg with data",
	[FT_TX_INJECT] = "inject",
	[FT_TX_SENDDATA] = "senddata",
	[FT_TX_INJECTDATA] = "injectdata",
};

const char *const ft_rx_name[FT_RX_COUNT] = {
	[FT_RX_RECV] = "recv",
	[FT_RX_RECVV] = "recvv",
	[FT_RX_RECVMSG] = "recvmsg",
};

bool ft_tx_is_inject(enum ft_tx how)
{
	return how == FT_TX_INJECT || how == FT_TX_INJECTDATA;
}

bool ft_tx_has_data(enum ft_tx how)
{
	return how == FT_TX_SENDMSG_DATA || how == FT_TX_SENDDATA ||
	       how == FT_TX_INJECTDATA;
}

void ft_op_reset(struct ft_op *op)
{
	memset(op, 0, sizeof(*op));
}

/*
 * Splits the buffer in two, if the provider accepts two buffers. Returns the
 * number of buffers.
 */
static size_t ft_split(const struct ft_xfer *x, size_t limit,
		       struct iovec iov[2], void *desc[2])
{
	size_t first = x->len;

	if (limit > 1 && x->len > 1)
		first = x->len / 3 + 1;
	iov[0].iov_base = x->buf;
	iov[0].iov_len = first;
	iov[1].iov_base = (char *)x->buf + first;
	iov[1].iov_len = x->len - first;
	desc[0] = desc[1] = x->desc;
	return iov[1].iov_len ? 2 : 1;
}

static ssize_t ft_tx_tagged(struct ft_ep *e, enum ft_tx how, fi_addr_t to,
			    const struct ft_xfer *x, struct ft_op *op)
{
	struct fi_msg_tagged msg = { .addr = to, .tag = x->tag,
				     .context = op, .data = x->data };
	uint64_t flags = FI_COMPLETION;
	struct iovec iov[2];
	void *desc[2];

	msg.iov_count = ft_split(x, e->info->tx_attr->iov_limit, iov, desc);
	msg.msg_iov = iov;
	msg.desc = desc;
	switch (how) {
	case FT_TX_SEND:
		return fi_tsend(e->ep, x->buf, x->len, x->desc, to, x->tag, op);
	case FT_TX_SENDV:
		return fi_tsendv(e->ep, iov, desc, msg.iov_count, to, x->tag,
				 op);
	case FT_TX_SENDMSG_DATA:
		flags |= FI_REMOTE_CQ_DATA;
		return fi_tsendmsg(e->ep, &msg, flags);
	case FT_TX_SENDMSG:
		return fi_tsendmsg(e->ep, &msg, flags);
	case FT_TX_INJECT:
		return fi_tinject(e->ep, x->buf, x->len, to, x->tag);
	case FT_TX_SENDDATA:
		return fi_tsenddata(e->ep, x->buf, x->len, x->desc, x->data,
				    to, x->tag, op);
	case FT_TX_INJECTDATA:
		return fi_tinjectdata(e->ep, x->buf, x->len, x->data, to,
				      x->tag);
	default:
		return -FI_EINVAL;
	}
}

static ssize_t ft_tx_msg(struct ft_ep *e, enum ft_tx how, fi_addr_t to,
			 const struct ft_xfer *x, struct ft_op *op)
{
	struct fi_msg msg = { .addr = to, .context = op, .data = x->data };
	uint64_t flags = FI_COMPLETION;
	struct iovec iov[2];
	void *desc[2];

	msg.iov_count = ft_split(x, e->info->tx_attr->iov_limit, iov, desc);
	msg.msg_iov = iov;
	msg.desc = desc;
	switch (how) {
	case FT_TX_SEND:
		return fi_send(e->ep, x->buf, x->len, x->desc, to, op);
	case FT_TX_SENDV:
		return fi_sendv(e->ep, iov, desc, msg.iov_count, to, op);
	case FT_TX_SENDMSG_DATA:
		flags |= FI_REMOTE_CQ_DATA;
		return fi_sendmsg(e->ep, &msg, flags);
	case FT_TX_SENDMSG:
		return fi_sendmsg(e->ep, &msg, flags);
	case FT_TX_INJECT:
		return fi_inject(e->ep, x->buf, x->len, to);
	case FT_TX_SENDDATA:
		return fi_senddata(e->ep, x->buf, x->len, x->desc, x->data, to,
				   op);
	case FT_TX_INJECTDATA:
		return fi_injectdata(e->ep, x->buf, x->len, x->data, to);
	default:
		return -FI_EINVAL;
	}
}

ssize_t ft_tx_try(struct ft_ep *e, enum ft_tx how, fi_addr_t addr,
		  const struct ft_xfer *x, struct ft_op *op)
{
	return x->tagged ? ft_tx_tagged(e, how, addr, x, op) :
			   ft_tx_msg(e, how, addr, x, op);
}

void ft_tx_counted(struct ft_ep *e, int rank)
{
	atomic_fetch_add(&e->tx[ft_path(e, rank)], 1);
	atomic_fetch_add(&e->tx_to[rank], 1);
}

void ft_tx(struct ft_ep *e, enum ft_tx how, int rank, const struct ft_xfer *x,
	   struct ft_op *op)
{
	ssize_t ret;

	if (op)
		ft_op_reset(op);
	ret = FT_RETRY(e, ft_tx_try(e, how, e->peer[rank].addr, x, op));
	FT_CHECK(!ret, "%s of %zu bytes to rank %d: %zd (%s)", ft_tx_name[how],
		 x->len, rank, ret, fi_strerror((int)-ret));
	ft_tx_counted(e, rank);
	if (op && ft_tx_is_inject(how))
		atomic_store(&op->done, 1);
}

ssize_t ft_rx_try(struct ft_ep *e, enum ft_rx how, const struct ft_xfer *x,
		  struct ft_op *op)
{
	struct fi_msg_tagged tmsg = { .addr = x->addr, .tag = x->tag,
				      .ignore = x->ignore, .context = op };
	struct fi_msg msg = { .addr = x->addr, .context = op };
	struct iovec iov[2];
	void *desc[2];

	tmsg.iov_count = ft_split(x, e->info->rx_attr->iov_limit, iov, desc);
	msg.iov_count = tmsg.iov_count;
	msg.msg_iov = tmsg.msg_iov = iov;
	msg.desc = tmsg.desc = desc;
	switch (how) {
	case FT_RX_RECV:
		return x->tagged ?
			fi_trecv(e->ep, x->buf, x->len, x->desc, x->addr,
				 x->tag, x->ignore, op) :
			fi_recv(e->ep, x->buf, x->len, x->desc, x->addr, op);
	case FT_RX_RECVV:
		return x->tagged ?
			fi_trecvv(e->ep, iov, desc, msg.iov_count, x->addr,
				  x->tag, x->ignore, op) :
			fi_recvv(e->ep, iov, desc, msg.iov_count, x->addr, op);
	case FT_RX_RECVMSG:
		return x->tagged ? fi_trecvmsg(e->ep, &tmsg, FI_COMPLETION) :
				   fi_recvmsg(e->ep, &msg, FI_COMPLETION);
	default:
		return -FI_EINVAL;
	}
}

void ft_rx(struct ft_ep *e, enum ft_rx how, const struct ft_xfer *x,
	   struct ft_op *op)
{
	ssize_t ret;

	ft_op_reset(op);
	ret = FT_RETRY(e, ft_rx_try(e, how, x, op));
	FT_CHECK(!ret, "%s of %zu bytes: %zd (%s)", ft_rx_name[how], x->len,
		 ret, fi_strerror((int)-ret));
}

static void ft_op_end(struct ft_op *op, const struct fi_cq_tagged_entry *entry,
		      fi_addr_t src)
{
	if (op->each) {
		op->each(op, entry, src);
		return;
	}
	op->flags = entry->flags;
	op->tag = entry->tag;
	op->data = entry->data;
	op->len = entry->len;
	op->src = src;
	FT_CHECK(atomic_fetch_add(&op->done, 1) == 0,
		 "an operation completed twice (flags 0x%lx)",
		 (unsigned long)entry->flags);
}

static int ft_read_error(struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };
	ssize_t ret = fi_cq_readerr(cq, &err, 0);
	struct ft_op *op = err.op_context;

	if (ret == -FI_EAGAIN)
		return 0; /* another thread has read the entry */
	FT_CHECK(ret == 1, "fi_cq_readerr: %zd", ret);
	FT_CHECK(op, "an error entry without context: %d (%s), provider's %d",
		 err.err, fi_strerror(err.err), err.prov_errno);
	op->flags = err.flags;
	op->tag = err.tag;
	op->len = err.len;
	op->olen = err.olen;
	op->prov_errno = err.prov_errno;
#if FI_MAJOR_VERSION >= 2
	op->err_src = err.src_addr;
#endif
	op->err = err.err;
	FT_CHECK(atomic_fetch_add(&op->done, 1) == 0 || op->repeats,
		 "an operation completed twice, now with %d (%s)", err.err,
		 fi_strerror(err.err));
	return 1;
}

static int ft_read_cq(struct ft_ep *e, struct fid_cq *cq)
{
	struct fi_cq_tagged_entry entry[FT_BATCH];
	fi_addr_t src[FT_BATCH];
	struct ft_op *op;
	ssize_t n, i;

	if (e->cfg.raw) {
		fi_cq_read(cq, NULL, 0);
		return 0;
	}
	for (i = 0; i < FT_BATCH; i++)
		src[i] = FI_ADDR_NOTAVAIL;
	n = e->info->caps & FI_SOURCE ?
		fi_cq_readfrom(cq, entry, FT_BATCH, src) :
		fi_cq_read(cq, entry, FT_BATCH);
	if (n == -FI_EAGAIN)
		return 0;
	if (n == -FI_EAVAIL)
		return ft_read_error(cq);
	FT_CHECK(n >= 0, "fi_cq_read: %zd (%s)", n, fi_strerror((int)-n));
	for (i = 0; i < n; i++) {
		op = entry[i].op_context;
		FT_CHECK(op, "a completion without context, flags 0x%lx",
			 (unsigned long)entry[i].flags);
		if (entry[i].flags & FI_RECV && !op->uncounted)
			atomic_fetch_add(&e->rx_ok, 1);
		ft_op_end(op, &entry[i], src[i]);
	}
	return (int)n;
}

int ft_progress(struct ft_ep *e)
{
	int n;

	if (e->cfg.no_cqs) {
		fi_cntr_read(e->tx_cntr);
		fi_cntr_read(e->rx_cntr);
		return 0;
	}
	n = ft_read_cq(e, e->txcq);
	if (e->rxcq != e->txcq)
		n += ft_read_cq(e, e->rxcq);
	return n;
}

int ft_progress_all(void)
{
	int i, n = 0;

	for (i = 0; i < ft.neps; i++)
		n += ft_progress(ft.eps[i]);
	return n;
}

int ft_progress_in_wait(struct ft_ep *e)
{
	return ft.together ? ft_progress_all() : ft_progress(e);
}

void ft_progress_for(struct ft_ep *e, unsigned int ms)
{
	uint64_t end = ft_now_ns() + ms * 1000000ull;

	while (ft_now_ns() < end)
		if (!ft_progress(e))
			sched_yield();
}

void ft_wait_any(struct ft_ep *e, struct ft_op *op)
{
	unsigned int idle = 0;

	while (!atomic_load(&op->done)) {
		if (ft_progress_in_wait(e))
			idle = 0;
		else if (++idle > 200)
			sched_yield();
	}
}

void ft_wait(struct ft_ep *e, struct ft_op *op)
{
	ft_wait_any(e, op);
	FT_CHECK(!op->err, "an operation failed: %d (%s), provider's %d",
		 op->err, fi_strerror(op->err), op->prov_errno);
}

void ft_wait_err(struct ft_ep *e, struct ft_op *op, int err)
{
	ft_wait_any(e, op);
	FT_CHECK(op->err == err, "%d (%s) instead of %d (%s)", op->err,
		 op->err ? fi_strerror(op->err) : "success", err,
		 fi_strerror(err));
}
