/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short way of one-sided calls with one buffer, where no lock is to be
 * taken: rma/short.h. All else is left to fi/rma.c and fi/atomic.c by a
 * function of the same arguments, which is jumped to.
 */

#include "api/send.h"
#include "rma/short.h"

/* Of calls without flags: what these would mean, and orders with messages. */
static near_inline bool near_short_plain(const struct near_ep *ep,
					 uint64_t order)
{
	return !(ep->tx_flags & (FI_FENCE | FI_REMOTE_CQ_DATA) ||
		 ep->msg_order & order);
}

static near_inline bool near_ep_short(struct fid_ep *ep_fid, fi_addr_t dest,
				      struct near_rma_short call, bool inject,
				      uint64_t order)
{
	struct near_ep *ep = near_ep_of(ep_fid);
	bool report = !inject && near_send_reports(ep, ep->tx_flags);

	call.about |= report ? (uint32_t)FI_COMPLETION : 0;
	call.copy = inject || ep->tx_flags & FI_INJECT;
	return near_short_len(call.len) &&
	       near_likely(!ep->domain->locked && dest < ep->peer_count &&
			   ep->peer[dest] && near_short_plain(ep, order) &&
			   (!report || near_cq_room(ep->tx_cq))) &&
	       near_rma_short(ep->port, ep->peer[dest], call);
}

static ssize_t near_short_read(struct fid_ep *ep, void *buf, size_t len,
			       void *desc, fi_addr_t src, uint64_t addr,
			       uint64_t key, void *context)
{
	return near_ep_short(ep, src, (struct near_rma_short) {
			.verb = NEAR_READ, .buf = buf, .len = len,
			.addr = addr, .key = key, .cookie = context,
			.about = FI_RMA | FI_READ,
		}, false, FI_ORDER_RAS | FI_ORDER_SAR) ? 0 :
		near_rma_read(ep, buf, len, desc, src, addr, key, context);
}

static ssize_t near_short_write(struct fid_ep *ep, const void *buf, size_t len,
				void *desc, fi_addr_t dest, uint64_t addr,
				uint64_t key, void *context)
{
	return near_ep_short(ep, dest, (struct near_rma_short) {
			.verb = NEAR_WRITE, .buf = (void *)buf, .len = len,
			.addr = addr, .key = key, .cookie = context,
			.about = FI_RMA | FI_WRITE,
		}, false, FI_ORDER_WAS) ? 0 :
		near_rma_write(ep, buf, len, desc, dest, addr, key, context);
}

static ssize_t near_short_inject(struct fid_ep *ep, const void *buf,
				 size_t len, fi_addr_t dest, uint64_t addr,
				 uint64_t key)
{
	return near_ep_short(ep, dest, (struct near_rma_short) {
			.verb = NEAR_WRITE, .buf = (void *)buf, .len = len,
			.addr = addr, .key = key, .about = FI_RMA | FI_WRITE,
		}, true, FI_ORDER_WAS) ? 0 :
		near_rma_inject(ep, buf, len, dest, addr, key);
}

static ssize_t near_short_fetch(struct fid_ep *ep, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t dest,
				uint64_t addr, uint64_t key,
				enum fi_datatype type, enum fi_op op,
				void *context)
{
	return near_short_adds(type, op, count) &&
	       near_ep_short(ep, dest, (struct near_rma_short) {
			.verb = NEAR_FETCH, .buf = (void *)buf, .len = 8,
			.addr = addr, .key = key, .cookie = context,
			.about = FI_ATOMIC | FI_READ, .result = result,
			.op = NEAR_SUM, .type = (uint8_t)type,
		}, false, 0) ? 0 :
		near_atomic_fetch(ep, buf, count, desc, result, result_desc,
				  dest, addr, key, type, op, context);
}

void near_short_ops(struct near_ep *ep)
{
	ep->rma_ops = near_rma_ops;
	ep->rma_ops.read = near_short_read;
	ep->rma_ops.write = near_short_write;
	ep->rma_ops.inject = near_short_inject;
	ep->fid.rma = &ep->rma_ops;
	ep->atomic_ops = near_atomic_ops;
	ep->atomic_ops.readwrite = near_short_fetch;
	ep->fid.atomic = &ep->atomic_ops;
}
