/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Sends and receives of duobench; counts completions. */

#include <sched.h>

#include "bench.h"

void bn_cq_fail(ssize_t ret)
{
	struct fi_cq_err_entry err = { 0 };

	if (ret != -FI_EAVAIL)
		BN_DIE("fi_cq_read: %s", fi_strerror((int) -ret));
	if (fi_cq_readerr(bn.cq, &err, 0) < 0)
		BN_DIE("fi_cq_readerr");
	BN_DIE("completion with error %d (%s), provider's %d", err.err,
	       fi_strerror(err.err), err.prov_errno);
}

void bn_poll(void)
{
	struct fi_cq_tagged_entry entry[BN_BATCH];
	ssize_t i, ret = fi_cq_read(bn.cq, entry, BN_BATCH);

	if (ret == -FI_EAGAIN) {
		if (bn.yield)
			sched_yield();
		return;
	}
	if (ret < 0)
		bn_cq_fail(ret);
	for (i = 0; i < ret; i++) {
		if (entry[i].flags & FI_MULTI_RECV) {
			bn.release[bn.released++] = entry[i].op_context;
			if (!(entry[i].flags & FI_RECV))
				continue;
		}
		/* lnx 2.1 does not set FI_RECV: the last case is a receive */
		if (entry[i].flags & (FI_RMA | FI_ATOMIC))
			bn.rma++;
		else if (entry[i].flags & FI_SEND)
			bn.tx++;
		else
			bn.rx++;
	}
}

static struct fi_context2 *bn_next_ctx(void)
{
	return &bn.ctx[bn.next_ctx++ % BN_CTXS];
}

static bool bn_injects(size_t len)
{
	return bn.opts.inject && len <= bn.info->tx_attr->inject_size;
}

static ssize_t bn_try_send(fi_addr_t to, size_t len, uint64_t tag)
{
	void *context = bn_next_ctx();

	if (bn_injects(len)) {
		ssize_t ret = bn.msg ? fi_inject(bn.ep, bn.sbuf, len, to) :
			      fi_tinject(bn.ep, bn.sbuf, len, to, tag);

		bn.tx += !ret;
		return ret;
	}
	if (bn.msg)
		return fi_send(bn.ep, bn.sbuf, len, bn.sdesc, to, context);
	return fi_tsend(bn.ep, bn.sbuf, len, bn.sdesc, to, tag, context);
}

void bn_send(fi_addr_t to, size_t len, uint64_t tag)
{
	ssize_t ret;

	while ((ret = bn_try_send(to, len, tag)) == -FI_EAGAIN)
		bn_poll();
	if (ret)
		BN_DIE("send of %zu bytes: %s", len, fi_strerror((int) -ret));
}

int bn_try_recv(fi_addr_t src, size_t len, uint64_t tag, void *context)
{
	if (bn.msg)
		return fi_recv(bn.ep, bn.rbuf, len, bn.rdesc, src, context);
	return fi_trecv(bn.ep, bn.rbuf, len, bn.rdesc, src, tag, 0, context);
}

void bn_recv(fi_addr_t src, size_t len, uint64_t tag)
{
	void *context = bn_next_ctx();
	int ret;

	while ((ret = bn_try_recv(src, len, tag, context)) == -FI_EAGAIN)
		bn_poll();
	if (ret)
		BN_DIE("receive of %zu bytes: %s", len, fi_strerror(-ret));
}

void bn_wait(uint64_t tx, uint64_t rx)
{
	while (bn.tx < tx || bn.rx < rx)
		bn_poll();
}

fi_addr_t bn_from(int rank)
{
	return bn.any ? FI_ADDR_UNSPEC : bn.peer[rank];
}
