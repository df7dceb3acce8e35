/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages, and the receives that match them. For each message, a local
 * transport calls duo_arrival_match(). If a receive matches, the transport
 * fills the receive and reports its completion. Otherwise the transport queues
 * the message as unexpected. Lock: the group's.
 *
 * Cost: the comparison with the oldest receive is inline. A recall from the
 * core takes an fi_cancel() and reads of the core's CQ.
 */
#ifndef DUO_ARRIVE_H
#define DUO_ARRIVE_H

#include "core/lazy.h"
#include "obj/ep.h"
#include "rx/multi.h"

/*
 * Removes the first matching posted receive from its queue and returns it;
 * NULL: none. If the receive is on the core, recalls it first; if that fails,
 * the core has matched the receive, and the function tries the next one. size:
 * length of the message, bytes, to which a multi-receive buffer is cut.
 */
struct duo_rx *duo_arrival_match_any(struct duo_ep *ep, enum duo_rx_kind kind,
				     fi_addr_t addr, uint64_t tag, size_t size);
DUO_INLINE struct duo_rx *duo_arrival_match(struct duo_ep *ep,
					    enum duo_rx_kind kind,
					    fi_addr_t addr, uint64_t tag,
					    size_t size)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx = TAILQ_FIRST(&match->posted);

	if (__builtin_expect(!rx || !duo_rx_matches(rx, addr, tag) ||
			     rx->multi | rx->on_core || match->by_want.on,
			     false))
		return duo_arrival_match_any(ep, kind, addr, tag, size);
	duo_match_unpost(match, rx);
	if (rx->lazy)
		duo_lazy_drop(rx);
	return rx;
}

/*
 * Makes the source with this peer index a confirmed one. Blocked receives
 * become deferred, because a multi-receive buffer that names this source no
 * longer blocks them: only local messages can fill it now.
 */
void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t index);
DUO_INLINE void duo_arrival_confirm(struct duo_ep *ep, fi_addr_t index)
{
	if (__builtin_expect(!duo_ep_confirmed(ep, index), 0))
		duo_arrival_confirm_new(ep, index);
}

/*
 * Queues a new message: as unresolved if rx->unresolved is set, else as
 * unexpected. Returns 0.
 */
int duo_arrival_queue(struct fi_peer_rx_entry *entry);
/* Removes a local message from the queue or list that belongs to its state. */
void duo_arrival_unlink(struct duo_rx *rx);
/*
 * Posts the remainders that are ready (duo_multi_resume()). If there are
 * unresolved messages, or a planned scan is due, scans the registry
 * (duo_map_scan()). Then starts to receive each unresolved message that matches
 * a receive, and queues the others as unexpected.
 */
void duo_arrival_resolve(struct duo_ep *ep);
/*
 * Makes unexpected messages without a source unresolved if their source has an
 * fi_addr now.
 */
void duo_arrival_identify(struct duo_ep *ep);

/*
 * Slow path of duo_arrival_done_at(), for truncated or discarded messages,
 * receives without a completion, and sub-receives.
 */
void duo_arrival_done_slow(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src);
/*
 * Reports the error of a receive whose message the local transport was
 * receiving. rx->addr: ofi_duo's fi_addr of the sender. prov_errno: as in
 * struct fi_cq_err_entry.
 */
void duo_arrival_failed(struct duo_rx *rx, int err, int prov_errno);

/*
 * Completes a receive over the local transport. src: ofi_duo's fi_addr of the
 * sender. The arguments are in registers, not in a struct that the caller
 * fills: loads from this struct would have to wait for the caller's stores.
 */
DUO_INLINE void duo_arrival_done_at(struct duo_rx *rx, uint64_t flags,
				    size_t len, void *buf, uint64_t data,
				    fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;
	const struct fi_cq_tagged_entry entry = {
		.op_context = rx->context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = rx->tag,
	};
	struct fi_cq_tagged_entry slow;

	if (rx->wanted && len <= duo_rx_size(rx) && !(rx->flags & FI_DISCARD)) {
		ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
		ep->stats.path[FI_DUO_LOCAL].rx_bytes += len;
		duo_cq_push(ep->rx_cq, &entry, src);
		return;
	}
	slow = entry;
	duo_arrival_done_slow(rx, &slow, src);
}

#endif /* DUO_ARRIVE_H */
