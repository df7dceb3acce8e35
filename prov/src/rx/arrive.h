/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages. A local transport calls duo_arrival_match() for each message.
 * It then fills and completes the receive. If none matches, it queues the
 * message by duo_arrival_queue(). Lock: the group's.
 */
#ifndef DUO_ARRIVE_H
#define DUO_ARRIVE_H

#include "core/lazy.h"
#include "obj/ep.h"
#include "rx/multi.h"

/*
 * Removes and returns the first posted receive that matches; NULL: none. If
 * this receive is on the core, recalls it first. If the core has already
 * matched it, tries the next receive. size: length of the message, bytes.
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
 * Makes the source with this peer index a confirmed source. Unblocks receives:
 * buffers that name this source block none any more.
 */
void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t index);
DUO_INLINE void duo_arrival_confirm(struct duo_ep *ep, fi_addr_t index)
{
	if (__builtin_expect(!duo_ep_confirmed(ep, index), 0))
		duo_arrival_confirm_new(ep, index);
}

/* Queues a new message, as unresolved or unexpected. Returns 0. */
int duo_arrival_queue(struct fi_peer_rx_entry *entry);
/* Removes a local message from the queue or list that belongs to its state. */
void duo_arrival_unlink(struct duo_rx *rx);
/*
 * Starts to receive the waiting message msg into the buffers of rx, which must
 * be in no queue. Copies rx to the entry msg, which the transport uses, and
 * frees rx. False: no memory; rx has ended with FI_ENOMEM, and msg still waits.
 */
bool duo_arrival_adopt(struct duo_rx *msg, struct duo_rx *rx);
/*
 * Calls duo_multi_resume(). Then scans the registry and matches the unresolved
 * messages, if there are any, or if a planned scan is due.
 */
void duo_arrival_resolve(struct duo_ep *ep);
/* Implements duo_up.known(): messages with a changed source match again. */
void duo_arrival_identify(struct duo_ep *ep, fi_addr_t gone);

/* Slow path of duo_arrival_done_at(). May change *entry. */
void duo_arrival_done_slow(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src);
/* Reports an error of a receive over the local path. rx->addr: the sender. */
void duo_arrival_failed(struct duo_rx *rx, int err, int prov_errno);

/*
 * Completes a receive over the local path. src: the sender. Takes the fields of
 * the entry: loads from a struct would wait for the caller's stores.
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
