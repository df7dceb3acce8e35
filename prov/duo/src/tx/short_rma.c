/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short way of one-sided calls with one small buffer, over near, where no
 * lock is to be taken: rma/short.h. All else is left to rma.c and atomic.c by
 * a function of the same arguments, which is jumped to.
 */

#include "av/route.h"
#include "peer/near/near_ep.h"
#include "rma/short.h"
#include "tx/onesided.h"

/* Flags of calls without flags that ask for more. */
#define DUO_SHORT_NOT (FI_FENCE | FI_REMOTE_CQ_DATA | FI_INJECT)

/* Who is to do it; NULL: it is another way's, or to be ordered by order. */
static near_inline struct near_peer *
duo_short_target(const struct duo_ep *ep, fi_addr_t dest, uint64_t order)
{
	const struct duo_near *near = ep->quick;
	uint64_t word;

	if (near_unlikely(!near || !near->direct || near->msg_order & order ||
			  dest >= ep->route_size))
		return NULL;
	word = duo_route_load(ep->route, dest);
	return duo_route_state(word) == DUO_ROUTE_LOCAL ?
	       near->peer[duo_route_number(word)] : NULL;
}

/* ops: the count of those that were done. false: nothing has been done. */
static near_inline bool duo_short_done(struct duo_ep *ep, fi_addr_t dest,
				       struct near_rma_short call,
				       uint64_t order, uint64_t *ops)
{
	struct near_peer *peer;

	if (!near_short_len(call.len))
		return false;
	peer = duo_short_target(ep, dest, order);
	if (near_unlikely(!peer || (!call.copy &&
				    ep->quick->tx_flags & DUO_SHORT_NOT)))
		return false;
	if (!call.copy && ep->quick->tx_reports)
		call.about |= (uint32_t) FI_COMPLETION;
	if (near_unlikely(!near_rma_short(ep->quick->port, peer, call)))
		return false;
	ops[FI_DUO_LOCAL]++;
	return true;
}

ssize_t duo_short_read(struct fid_ep *ep_fid, void *buf, size_t len,
		       void *desc, fi_addr_t src, uint64_t raddr, uint64_t key,
		       void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);

	return duo_short_done(ep, src, (struct near_rma_short) {
			.verb = NEAR_READ, .buf = buf, .len = len,
			.addr = raddr, .key = key, .cookie = context,
			.about = FI_RMA | FI_READ,
		}, FI_ORDER_RAS | FI_ORDER_SAR, ep->stats.rma_ops) ? 0 :
		duo_read(ep_fid, buf, len, desc, src, raddr, key, context);
}

ssize_t duo_short_write(struct fid_ep *ep_fid, const void *buf, size_t len,
			void *desc, fi_addr_t dest, uint64_t raddr,
			uint64_t key, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);

	return duo_short_done(ep, dest, (struct near_rma_short) {
			.verb = NEAR_WRITE, .buf = (void *) buf, .len = len,
			.addr = raddr, .key = key, .cookie = context,
			.about = FI_RMA | FI_WRITE,
		}, FI_ORDER_WAS, ep->stats.rma_ops) ? 0 :
		duo_write(ep_fid, buf, len, desc, dest, raddr, key, context);
}

ssize_t duo_short_inject_write(struct fid_ep *ep_fid, const void *buf,
			       size_t len, fi_addr_t dest, uint64_t raddr,
			       uint64_t key)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);

	return duo_short_done(ep, dest, (struct near_rma_short) {
			.verb = NEAR_WRITE, .buf = (void *) buf, .len = len,
			.addr = raddr, .key = key, .copy = true,
			.about = FI_RMA | FI_WRITE,
		}, FI_ORDER_WAS, ep->stats.rma_ops) ? 0 :
		duo_inject_write(ep_fid, buf, len, dest, raddr, key);
}

ssize_t duo_short_fetch(struct fid_ep *ep_fid, const void *buf, size_t count,
			void *desc, void *result, void *result_desc,
			fi_addr_t dest, uint64_t raddr, uint64_t key,
			enum fi_datatype type, enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);

	return near_short_adds(type, op, count) && ep->core.cpu_atomics &&
	       duo_short_done(ep, dest, (struct near_rma_short) {
			.verb = NEAR_FETCH, .buf = (void *) buf, .len = 8,
			.addr = raddr, .key = key, .cookie = context,
			.about = FI_ATOMIC | FI_READ, .result = result,
			.op = NEAR_SUM, .type = (uint8_t) type,
		}, 0, ep->stats.atomic_ops) ? 0 :
		duo_fetch_atomic(ep_fid, buf, count, desc, result, result_desc,
				 dest, raddr, key, type, op, context);
}
