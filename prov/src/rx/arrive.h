/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages and their receives: the functions that a local transport
 * calls. The transport gets a posted receive (duo_arrival_take), fills it and
 * reports its completion, or queues an unexpected message. Under the domain's
 * lock.
 *
 * Cost: the test of the oldest posted receive is inline; a recall from the core
 * is an fi_cancel and reads of the core's CQ.
 */
#ifndef DUO_ARRIVE_H
#define DUO_ARRIVE_H

#include "core/lazy.h"
#include "obj/ep.h"
#include "rx/multi.h"

/*
 * Returns the first posted receive that matches a message of size bytes,
 * unposted and recalled from the core; NULL: none.
 */
struct duo_rx *duo_arrival_take_any(struct duo_ep *ep, enum duo_rx_kind kind,
				    fi_addr_t addr, uint64_t tag, size_t size);
DUO_INLINE struct duo_rx *duo_arrival_take(struct duo_ep *ep,
					   enum duo_rx_kind kind,
					   fi_addr_t addr, uint64_t tag,
					   size_t size)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx = TAILQ_FIRST(&match->posted);

	if (__builtin_expect(!rx || !duo_rx_takes(rx, addr, tag) ||
			     rx->multi | rx->on_core || match->by_want.on,
			     false))
		return duo_arrival_take_any(ep, kind, addr, tag, size);
	duo_match_unpost(match, rx);
	if (rx->lazy)
		duo_lazy_drop(rx);
	return rx;
}

/* Marks a source as confirmed, and makes blocked receives deferred. */
void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t local);
DUO_INLINE void duo_arrival_confirm(struct duo_ep *ep, fi_addr_t local)
{
	if (__builtin_expect(!duo_ep_confirmed(ep, local), 0))
		duo_arrival_confirm_new(ep, local);
}

/* Queues an arriving message as unexpected, or as unresolved. Returns 0. */
int duo_arrival_queue(struct fi_peer_rx_entry *entry);
/* Unlinks a local message from the list of its state. */
void duo_arrival_unlink(struct duo_rx *rx);
/* Looks up the sources of unresolved messages, and matches or queues them. */
void duo_arrival_resolve(struct duo_ep *ep);
/* Makes unexpected messages whose source now has an address unresolved. */
void duo_arrival_identify(struct duo_ep *ep);

/* Completes rx: truncated, discarded, unreported, or a sub-receive. */
void duo_arrival_done_rare(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src);
void duo_arrival_failed(struct duo_rx *rx, const struct fi_cq_err_entry *entry);

/*
 * Completes a receive over the local transport; src is ofi_duo's fi_addr. The
 * completion stays in registers: it is slow to copy one that words just stored.
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
	struct fi_cq_tagged_entry rare;

	if (rx->wanted && len <= duo_rx_size(rx) && !(rx->flags & FI_DISCARD)) {
		ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
		ep->stats.path[FI_DUO_LOCAL].rx_bytes += len;
		duo_cq_push(ep->rx_cq, &entry, src);
		return;
	}
	rare = entry;
	duo_arrival_done_rare(rx, &rare, src);
}

#endif /* DUO_ARRIVE_H */
