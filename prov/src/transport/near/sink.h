/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fast path of received messages, inlined into polls. The caller must hold
 * the lock of the endpoint's group, ep->group. Cost: 100 instructions for a
 * message of 8 bytes. Terms:
 * - deferred receive: a receive that ofi_duo posts to the core (the provider
 *   that ofi_duo wraps) later or never, because a local message may match first
 * - confirmed source: a peer that has sent over near, so that all its later
 *   messages come over near
 * - unresolved message: a message that ofi_duo matches only after it has looked
 *   up the addresses of the AV again
 */
#ifndef DUO_TRANSPORT_NEAR_SINK_H
#define DUO_TRANSPORT_NEAR_SINK_H

#include <string.h>

#include "av/map.h"
#include "core/lazy.h"
#include "transport/near/near_ep.h"

/*
 * Slow path: delivers any message. Returns 0; -FI_EAGAIN: no memory, and a
 * later poll delivers the message again.
 */
int duo_near_arrived_any(struct duo_ep *ep, struct near_peer *peer,
			 struct near_msg *msg);

static near_inline uint64_t duo_near_flags(enum duo_rx_kind kind,
					   const struct near_msg *msg)
{
	return FI_RECV | (kind == DUO_TAGGED ? FI_TAGGED : FI_MSG) |
	       (msg->flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0);
}

/*
 * Copies a message to the buffer of rx. False: not received, because the
 * message must be received by near_recv() or, if it is in device memory, by
 * near_recv_begin().
 */
static near_inline bool duo_near_place(struct duo_ep *ep,
				       struct near_peer *peer,
				       const struct duo_rx *rx,
				       struct near_msg *msg)
{
	void *buf = rx->iov.iov_base;

	if (near_unlikely(!msg->payload))
		return !(msg->flags & NEAR_DEVICE) &&
		       near_recv_now(ep->near->port, peer, &msg->rndv, buf,
				     msg->len);
	if (near_likely(msg->len <= NEAR_INLINE))
		near_copy_small(buf, msg->payload, msg->len);
	else
		memcpy(buf, msg->payload, msg->len);
	return true;
}

/* Returns the completion for a message that is in the buffer of rx. */
static near_inline struct fi_cq_tagged_entry
duo_near_entry(const struct duo_rx *rx, enum duo_rx_kind kind,
	       const struct near_msg *msg)
{
	return (struct fi_cq_tagged_entry) {
		.op_context = rx->context,
		.flags = duo_near_flags(kind, msg),
		.len = msg->len,
		.buf = rx->iov.iov_base,
		.data = msg->data,
		.tag = kind == DUO_TAGGED ? msg->tag : 0,
	};
}

/* Counts the message and frees rx, which must not be in the posted queue. */
static near_inline void duo_near_finish(struct duo_rx *rx, size_t len)
{
	struct duo_ep *ep = rx->ep;

	ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
	ep->stats.path[FI_DUO_LOCAL].rx_bytes += len;
	duo_rx_release_plain(&ep->pool, rx);
}

/* Completes a receive whose payload duo_near_place() has copied. */
static near_inline void duo_near_complete(struct duo_rx *rx,
					  enum duo_rx_kind kind,
					  const struct near_msg *msg,
					  fi_addr_t addr)
{
	const struct fi_cq_tagged_entry entry = duo_near_entry(rx, kind, msg);

	duo_cq_push(rx->ep->rx_cq, &entry, addr);
	duo_near_finish(rx, msg->len);
}

/*
 * Returns the first posted receive, and stores the source's fi_addr in *addr.
 * Returns NULL if the fast path cannot deliver the message to this receive,
 * because
 * - the receive does not match, or is posted to the core
 * - the receive is for a multi-receive buffer (FI_MULTI_RECV), or has several
 *   buffers, too short a buffer, a buffer that may be in device memory, or no
 *   completion
 * - the source is not a confirmed source (ep->confirmed), or has no fi_addr
 * - the posted queue is so long that it has an index (match->by_want.on)
 */
static near_inline struct duo_rx *
duo_near_first(struct duo_ep *ep, enum duo_rx_kind kind, fi_addr_t index,
	       const struct near_msg *msg, fi_addr_t *addr)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx = TAILQ_FIRST(&match->posted);

	if (near_unlikely(!rx || index >= DUO_LOCAL_MAX ||
			  !(ep->confirmed[index / 64] & 1ULL << index % 64) ||
			  match->by_want.on))
		return NULL;
	*addr = ep->map->addr_of_index[index];
	if (near_unlikely(!duo_rx_is_plain(rx, kind) ||
			  !duo_rx_matches(rx, *addr, kind ? msg->tag : 0) ||
			  *addr == FI_ADDR_UNSPEC ||
			  msg->len > rx->iov.iov_len))
		return NULL;
	return rx;
}

/* Implements near_sink.arrived() for messages of one kind. */
static near_inline int duo_near_arrived_kind(struct duo_ep *ep,
					     struct near_peer *peer,
					     enum duo_rx_kind kind,
					     struct near_msg *msg)
{
	fi_addr_t addr, index = duo_near_index(peer);
	struct duo_rx *rx = NULL;

	/*
	 * If there are unresolved messages, they must match before this one.
	 * During fi_close, no message may match. The slow path handles both.
	 */
	if (near_likely(TAILQ_EMPTY(&ep->rx.unresolved) && !ep->closing))
		rx = duo_near_first(ep, kind, index, msg, &addr);
	if (near_unlikely(!rx || !duo_near_place(ep, peer, rx, msg)))
		return duo_near_arrived_any(ep, peer, msg);
	duo_match_unpost_plain(&ep->match[kind], rx);
	if (near_unlikely(rx->lazy))
		duo_lazy_drop(rx);
	duo_near_complete(rx, kind, msg, addr);
	return 0;
}

/*
 * Implements near_sink.arrived(): delivers a message. Returns 0; -EAGAIN: no
 * memory, and a later poll delivers the message again.
 */
static near_inline int duo_near_arrived(void *ctx, struct near_peer *peer,
					struct near_msg *msg)
{
	return msg->flags & NEAR_TAGGED ?
	       duo_near_arrived_kind(ctx, peer, DUO_TAGGED, msg) :
	       duo_near_arrived_kind(ctx, peer, DUO_MSG, msg);
}

/*
 * Second part of duo_near_match_first(). msg: the ring's next message, which is
 * inline. kind: the kind of msg, tagged or untagged.
 */
static near_inline void *
duo_near_match_kind(struct duo_ep *ep, struct near_rx_ring *ring,
		    enum duo_rx_kind kind, const struct near_msg *msg,
		    enum fi_cq_format format, void *at, fi_addr_t *src)
{
	fi_addr_t addr, index = duo_near_index(ring->peer);
	struct duo_rx *rx = duo_near_first(ep, kind, index, msg, &addr);
	struct fi_cq_tagged_entry entry;

	if (near_unlikely(!rx || rx->lazy))
		return NULL;
	near_copy_small(rx->iov.iov_base, msg->payload, msg->len);
	duo_match_unpost_plain(&ep->match[kind], rx);
	entry = duo_near_entry(rx, kind, msg);
	at = duo_entry_write(at, format, &entry);
	if (src)
		*src = addr;
	duo_near_finish(rx, msg->len);
	near_rx_release_slot(&ring->rx);
	return at;
}

/*
 * Receives a ring's next message if the message is inline, if it matches the
 * first posted receive, and if this receive is not deferred. Writes the
 * completion to `at`, and the source to *src unless src is NULL. Returns the
 * place of the next completion; NULL: the conditions do not hold, and nothing
 * was done. The caller must check that duo_cq.attention is 0: then there are no
 * unresolved messages, and fi_close is not running.
 */
static near_inline void *
duo_near_match_first(struct duo_ep *ep, struct near_rx_ring *ring,
		     enum fi_cq_format format, void *at, fi_addr_t *src)
{
	struct near_slot *slot;
	struct near_msg msg;
	uint64_t word;

	if (near_unlikely(!near_rx_ready(&ring->rx, &slot, &word) ||
			  (word >> NEAR_WORD_KIND & 0xf) != NEAR_KIND_INLINE))
		return NULL;
	near_rx_ring_header(&msg, slot, word);
	msg.len = (uint8_t) (word >> NEAR_WORD_LEN);
	msg.payload = slot->bytes;
	if (near_unlikely(msg.len > NEAR_INLINE))
		return NULL;
	return near_likely(msg.flags & NEAR_TAGGED)
		       ? duo_near_match_kind(ep, ring, DUO_TAGGED, &msg, format,
					     at, src)
		       : duo_near_match_kind(ep, ring, DUO_MSG, &msg, format,
					     at, src);
}

/* The callbacks for near_rx_ring_poll(), which calls only arrived(). */
static const struct near_sink duo_near_rings = {
	.arrived = duo_near_arrived,
};

#endif /* DUO_TRANSPORT_NEAR_SINK_H */
