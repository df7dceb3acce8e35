/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A local message meets our receives: what whoever carries it calls. It takes
 * a receive (duo_arrival_take), fills it and says that it is done; or it hands
 * over an entry of its own that waits for one. Under the domain's lock.
 *
 * Cost: the receive that was posted first is looked at inline; taking one
 * from the core is a fi_cancel and reads of the core's CQ.
 */
#ifndef DUO_ARRIVE_H
#define DUO_ARRIVE_H

#include "core/lazy.h"
#include "obj/ep.h"
#include "rx/multi.h"

/*
 * Takes the first posted receive for a message away from the core. Mostly it
 * is the one that was posted first, and the core has not had it.
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

/* This peer has sent: nothing has to wait for buffers that name it. */
void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t local);
DUO_INLINE void duo_arrival_confirm(struct duo_ep *ep, fi_addr_t local)
{
	if (__builtin_expect(!duo_ep_confirmed(ep, local), 0))
		duo_arrival_confirm_new(ep, local);
}

/* An arriving message that finds no receive, or that is to be held. */
int duo_arrival_queue(struct fi_peer_rx_entry *entry);
/* Takes a local message off the list that its state says. */
void duo_arrival_unlink(struct duo_rx *rx);
/* Matches the messages that were held until their source was looked up. */
void duo_arrival_resolve(struct duo_ep *ep);
/* Gives sources to unexpected messages when it is known whose a number is. */
void duo_arrival_identify(struct duo_ep *ep);

/* It is too large, discarded, of a multi-receive buffer, or not reported. */
void duo_arrival_done_rare(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src);
void duo_arrival_failed(struct duo_rx *rx, const struct fi_cq_err_entry *entry);

/*
 * A receive that shared memory has taken is complete; src is our fi_addr. The
 * entry is made of registers: one that has just been written in words is slow
 * to copy.
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
