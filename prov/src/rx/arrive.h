/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Local messages: messages that arrive over near or libfabric's shm, not over
 * the core. The local transport calls duo_arrival_match() for each message. If
 * a receive matches, the transport fills and completes this receive. If none
 * matches, the transport queues the message by duo_arrival_queue(). Lock: the
 * group's.
 *
 * An *unresolved* message is a local message with a sender that has no fi_addr
 * yet, or a local message that arrived while such a message waited. ofi_duo
 * holds it back until duo_arrival_resolve() has searched the registry for the
 * sender. A *confirmed* source is a sender that has sent over the local path.
 * All its later messages take the local path, too.
 */
#ifndef DUO_ARRIVE_H
#define DUO_ARRIVE_H

#include "core/lazy.h"
#include "obj/ep.h"
#include "rx/multi.h"

/*
 * Removes the first receive that matches the message from the posted queue, and
 * returns it. NULL: no receive matches. If the receive is also posted to the
 * core, first recalls it from the core by fi_cancel(). If the core has already
 * matched this receive, tries the next receive that matches. size: length of
 * the message, bytes.
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
 * Makes the source with this peer index a confirmed source. From now on, no
 * message over the core can fill a multi-receive buffer that names this source.
 * Such a buffer therefore need not block later receives any more, so this
 * function also unblocks all blocked receives (duo_lazy_unblock()).
 */
void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t index);
DUO_INLINE void duo_arrival_confirm(struct duo_ep *ep, fi_addr_t index)
{
	if (__builtin_expect(!duo_ep_confirmed(ep, index), 0))
		duo_arrival_confirm_new(ep, index);
}

/*
 * Puts a new message into the list of unresolved messages if rx->unresolved is
 * set, otherwise into the unexpected queue. Returns 0.
 */
int duo_arrival_queue(struct fi_peer_rx_entry *entry);
/*
 * Removes a local message from the queue or list that contains it. Does nothing
 * if the message is in none.
 */
void duo_arrival_unlink(struct duo_rx *rx);
/*
 * Starts to receive the waiting message msg into the buffers of rx. rx must be
 * in no queue. Copies the receive from rx to msg and frees rx, because the
 * local transport continues with the entry msg. False: there was no memory. The
 * receive has then ended with FI_ENOMEM, and msg still waits.
 */
bool duo_arrival_adopt(struct duo_rx *msg, struct duo_rx *rx);
/*
 * Calls duo_multi_resume(). Then scans the registry in two cases: there are
 * unresolved messages; or it is time for the scan that was planned after the
 * failure of a peer or of a lookup (duo_map_retry_due()). After the scan,
 * matches all unresolved messages with the posted receives. A message that
 * matches none joins the unexpected queue. Does nothing during fi_close().
 */
void duo_arrival_resolve(struct duo_ep *ep);
/*
 * Implements duo_up.known(). Takes messages out of the unexpected queue and
 * makes them unresolved. The next duo_arrival_resolve() then looks up the
 * current fi_addr of each sender, and matches the messages with the posted
 * receives. These messages are
 * - those with a sender that had no fi_addr, but has one now
 * - those with the sender `gone`, an fi_addr that the application has removed
 *   from the AV (FI_ADDR_UNSPEC: none); another process may get this fi_addr
 * Also unblocks all blocked receives, because the source that a multi-receive
 * buffer names may be a confirmed source now.
 */
void duo_arrival_identify(struct duo_ep *ep, fi_addr_t gone);

/*
 * Slow path of duo_arrival_done_at(): no completion, a sub-receive, a discard,
 * or a message that is longer than the receive. May change *entry.
 */
void duo_arrival_done_slow(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src);
/* Reports an error of a receive over the local path. rx->addr: the sender. */
void duo_arrival_failed(struct duo_rx *rx, int err, int prov_errno);

/*
 * Completes a receive that the local transport has filled. src: the sender. The
 * fields of the CQ entry are separate arguments: if the caller passed a struct,
 * loads from the struct would wait for the caller's stores.
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
