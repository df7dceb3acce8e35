/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The short way of a read: one endpoint, over near, where nothing waits, no
 * lock is to be taken and nothing but messages is to be looked after. A small
 * message goes from its slot into its receive's buffer and the reader's array,
 * by way of registers; a large one is read there, if that can be done at once.
 * All else, every sixteenth read among it, is left to cq.c, which has the same
 * arguments and is jumped to.
 *
 * Cost: 50 instructions of a read that finds nothing, 160 of one that finds a
 * message of 8 bytes.
 */

#include <string.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "base/params.h"
#include "cq/cq.h"
#include "peer/near/near_ep.h"

#define DUO_SHORT_MAX 16	/* messages; then other lanes have their turn */

/* Is this read to look for messages, and for nothing else? */
static near_inline bool duo_short_may(const struct duo_cq *cq,
				      const struct near_port *port)
{
	return duo_ring_empty(&cq->ring) && duo_err_none(&cq->errs) &&
	       !duo_cq_minds(cq) && cq->short_left && near_calm(port);
}

/*
 * Another queue of the endpoint may have polled the port since: the poll that
 * looks at the clock is not passed by.
 */
void duo_short_settle(struct duo_cq *cq)
{
	struct near_port *port = cq->quick->quick->port;
	uint32_t polls = cq->short_given - cq->short_left;
	uint32_t left = near_polls_left(port);

	port->polls += polls < left ? polls : left;
	cq->core_skip += polls;
	if (cq->short_left)
		cq->short_left--;	/* the one that follows */
	cq->short_given = cq->short_left;
}

void duo_short_give(struct duo_cq *cq)
{
	uint32_t polls = near_polls_left(cq->quick->quick->port);

	if (duo_cq_core_wanted(cq))
		return;
	if (polls >= duo_params.core_interval - cq->core_skip)
		polls = duo_params.core_interval - cq->core_skip - 1;
	cq->short_given = polls;
	cq->short_left = polls;
}

/* The receive that takes it, where that is the first one, and plain. */
static near_inline struct duo_rx *duo_short_rx(struct duo_match *match,
					       enum duo_rx_kind kind,
					       fi_addr_t addr, uint64_t tag,
					       size_t len)
{
	struct duo_rx *rx = TAILQ_FIRST(&match->posted);

	return near_likely(rx && rx->what == duo_rx_plain(kind) &&
			   rx->peer.addr == addr &&
			   !((rx->peer.tag ^ tag) & ~rx->ignore) &&
			   len <= rx->iov[0].iov_len && !match->by_want.on) ?
	       rx : NULL;
}

/* Where a message lies: in its slot, in the data ring, with its sender. */
enum duo_short_at { DUO_SHORT_SLOT, DUO_SHORT_RING, DUO_SHORT_SENDER };

/*
 * A message of who has sent before, into a posted receive. What is held would
 * come first, but there is nothing: duo_short_may(). False: nothing has been
 * done.
 */
static near_inline bool duo_short_take(struct duo_ep *ep,
				       struct near_peer *peer,
				       enum duo_rx_kind kind,
				       enum duo_short_at from,
				       const struct near_msg *msg,
				       struct fi_cq_tagged_entry *to,
				       fi_addr_t *src)
{
	uint64_t tag = kind == DUO_TAGGED ? msg->tag : 0;
	fi_addr_t addr, number = duo_near_number(peer);
	struct duo_match *match = &ep->match[kind];
	void *context, *at;
	struct duo_rx *rx;

	if (near_unlikely(number >= DUO_LOCAL_MAX ||
			  !(ep->confirmed[number / 64] & 1ULL << number % 64)))
		return false;
	addr = ep->map->addr_of_number[number];
	rx = duo_short_rx(match, kind, addr, tag, msg->len);
	if (near_unlikely(!rx || addr == FI_ADDR_UNSPEC))
		return false;
	context = rx->context;
	at = rx->iov[0].iov_base;
	if (from == DUO_SHORT_SLOT)
		near_copy_small(at, msg->payload, msg->len);
	else if (from == DUO_SHORT_RING)
		memcpy(at, msg->payload, msg->len);
	else if (!near_recv_now(ep->quick->port, peer, &msg->rndv, at,
				msg->len))
		return false;
	to->op_context = context;
	to->flags = FI_RECV | (kind == DUO_TAGGED ? FI_TAGGED : FI_MSG) |
		    (msg->flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0);
	to->len = msg->len;
	to->buf = at;
	to->data = msg->data;
	to->tag = tag;
	if (src)
		*src = addr;
	duo_match_unpost_plain(match, rx);
	duo_rx_release_plain(&ep->pool, rx);
	ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
	ep->stats.path[FI_DUO_LOCAL].rx_bytes += msg->len;
	return true;
}

static near_inline bool duo_short_inline(struct duo_ep *ep,
					 struct near_lane *lane,
					 const struct near_slot *slot,
					 uint64_t word, enum duo_rx_kind kind,
					 struct fi_cq_tagged_entry *to,
					 fi_addr_t *src)
{
	struct near_msg msg;

	near_lane_header(&msg, slot, word);
	msg.len = (uint8_t)(word >> NEAR_WORD_LEN);
	msg.payload = slot->bytes;
	if (near_unlikely(msg.len > NEAR_INLINE ||
			  !duo_short_take(ep, lane->peer, kind,
					  DUO_SHORT_SLOT, &msg, to, src)))
		return false;
	near_rx_release_slot(&lane->rx);
	return true;
}

static __attribute__((noinline)) bool
duo_short_eager(struct duo_ep *ep, struct near_lane *lane,
		const struct near_slot *slot, uint64_t word,
		struct fi_cq_tagged_entry *to, fi_addr_t *src)
{
	struct near_msg msg;

	near_lane_header(&msg, slot, word);
	if (near_unlikely(!near_lane_payload(lane, slot, &msg) ||
			  !duo_short_take(ep, lane->peer,
					  msg.flags & NEAR_TAGGED ? DUO_TAGGED :
								    DUO_MSG,
					  DUO_SHORT_RING, &msg, to, src)))
		return false;
	near_rx_release(&lane->rx);
	return true;
}

/* One that its sender has, where it can be read at once. */
static __attribute__((noinline)) bool
duo_short_announced(struct duo_ep *ep, struct near_lane *lane,
		    const struct near_slot *slot, uint64_t word,
		    struct fi_cq_tagged_entry *to, fi_addr_t *src)
{
	struct near_msg msg;

	near_lane_header(&msg, slot, word);
	near_lane_announced(&msg, slot);
	if (!duo_short_take(ep, lane->peer, msg.flags & NEAR_TAGGED ?
			    DUO_TAGGED : DUO_MSG, DUO_SHORT_SENDER, &msg, to,
			    src))
		return false;
	near_rx_release_slot(&lane->rx);
	return true;
}

/* Of a slot's word: what it is, and how that is said of a message. */
#define DUO_SHORT_WHAT(kind, flags) ((kind) | (flags) << 4)
#define DUO_SHORT_TAGGED DUO_SHORT_WHAT(NEAR_KIND_INLINE, NEAR_TAGGED)

static near_inline unsigned int duo_short_what(uint64_t word)
{
	return (unsigned int)(word >> NEAR_WORD_KIND) &
	       DUO_SHORT_WHAT(0xf, NEAR_TAGGED);
}

/* The next one of the lane, if there is one that can be taken so. */
static near_inline bool duo_short_next(struct duo_ep *ep,
				       struct near_lane *lane,
				       struct fi_cq_tagged_entry *to,
				       fi_addr_t *src)
{
	struct near_slot *slot;
	uint64_t word;

	if (near_unlikely(!near_rx_ready(&lane->rx, &slot, &word)))
		return false;
	switch (duo_short_what(word)) {
	case DUO_SHORT_TAGGED:
		return duo_short_inline(ep, lane, slot, word, DUO_TAGGED, to,
					src);
	case DUO_SHORT_WHAT(NEAR_KIND_INLINE, 0):
		return duo_short_inline(ep, lane, slot, word, DUO_MSG, to,
					src);
	case DUO_SHORT_WHAT(NEAR_KIND_EAGER, NEAR_TAGGED):
	case DUO_SHORT_WHAT(NEAR_KIND_EAGER, 0):
		return duo_short_eager(ep, lane, slot, word, to, src);
	case DUO_SHORT_WHAT(NEAR_KIND_RTS, NEAR_TAGGED):
	case DUO_SHORT_WHAT(NEAR_KIND_RTS, 0):
		return duo_short_announced(ep, lane, slot, word, to, src);
	default:
		return false;
	}
}

/* What cannot be taken here, and what is too much, after got messages. */
static ssize_t duo_short_rest(struct duo_cq *cq, void *buf, size_t count,
			      fi_addr_t *src, size_t got)
{
	cq->sink = (struct duo_sink) { buf, src, count, 0 };
	duo_sink_advance(&cq->sink, got);
	return duo_cq_read_fresh(cq);
}

static __attribute__((noinline)) ssize_t
duo_short_more(struct duo_cq *cq, void *buf, size_t count, fi_addr_t *src,
	       struct near_lane *const *lane)
{
	struct duo_ep *ep = cq->quick;
	const struct near_port *port = ep->quick->port;
	struct fi_cq_tagged_entry *to = buf;
	size_t got = 1;

	do {
		if (near_unlikely(got == count || got == DUO_SHORT_MAX ||
				  !duo_short_next(ep, *lane, &to[got],
						  src ? &src[got] : NULL)))
			return duo_short_rest(cq, buf, count, src, got);
		near_rx_ahead(&(*lane)->rx, (int)++got);
		lane = near_look(port, lane);
	} while (lane);
	cq->short_left--;
	return (ssize_t)got;
}

/* One was taken, from that lane; mostly there is no other, in no lane. */
static near_inline ssize_t duo_short_end(struct duo_cq *cq, void *buf,
					 size_t count, fi_addr_t *src,
					 struct near_lane *const *lane)
{
	struct near_port *port = cq->quick->quick->port;

	port->run = NULL;
	cq->local_idle = 0;
	lane = near_look(port, lane);
	if (near_unlikely(lane != NULL))
		return duo_short_more(cq, buf, count, src, lane);
	cq->short_left--;
	return 1;
}

static __attribute__((noinline)) ssize_t
duo_short_other(struct duo_cq *cq, void *buf, size_t count, fi_addr_t *src,
		struct near_lane *const *lane)
{
	if (near_unlikely(!count ||
			  !duo_short_next(cq->quick, *lane, buf, src)))
		return duo_short_rest(cq, buf, count, src, 0);
	return duo_short_end(cq, buf, count, src, lane);
}

/*
 * The lane has something: mostly a tagged message of a few bytes. Nothing is
 * called for that, and the rest is jumped to, so hardly a register is saved.
 */
static __attribute__((noinline)) ssize_t
duo_short_found(struct duo_cq *cq, void *buf, size_t count, fi_addr_t *src,
		struct near_lane *const *lane)
{
	struct near_slot *slot;
	uint64_t word;

	if (near_unlikely(!count ||
			  !near_rx_ready(&(*lane)->rx, &slot, &word) ||
			  duo_short_what(word) != DUO_SHORT_TAGGED ||
			  !duo_short_inline(cq->quick, *lane, slot, word,
					    DUO_TAGGED, buf, src)))
		return duo_short_other(cq, buf, count, src, lane);
	return duo_short_end(cq, buf, count, src, lane);
}

static near_inline ssize_t duo_short_read(struct duo_cq *cq, void *buf,
					  size_t count, fi_addr_t *src)
{
	struct near_lane *const *lane;
	struct duo_ep *ep = cq->quick;
	struct near_port *port;

	if (near_unlikely(!ep || duo_cq_core_busy(cq)))
		return duo_cq_read_long(cq, buf, count, src);
	port = ep->quick->port;
	if (near_unlikely(!duo_short_may(cq, port)))
		return duo_cq_read_long(cq, buf, count, src);
	lane = near_look(port, port->hot);
	if (near_unlikely(lane != NULL))
		return duo_short_found(cq, buf, count, src, lane);
	cq->short_left--;
	return ++cq->local_idle & duo_params.yield_mask ? -FI_EAGAIN :
							  duo_cq_yield(cq);
}

ssize_t duo_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
			fi_addr_t *src)
{
	return duo_short_read(duo_cq_of(cq), buf, count, src);
}

ssize_t duo_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return duo_short_read(duo_cq_of(cq), buf, count, NULL);
}
