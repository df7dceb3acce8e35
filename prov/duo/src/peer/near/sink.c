/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What becomes of what near delivers. A message for a posted receive with one
 * buffer goes inline from the ring into that buffer and the caller's array of
 * completions; all others end in the functions that are for every local
 * message.
 *
 * A message that is too large is cut by near itself: nothing is bounced.
 */

#include <string.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "peer/near/near_ep.h"
#include "peer/near/near_peer.h"
#include "rx/arrive.h"
#include "rx/recv.h"

/* The ring of completions grows, and what finds no memory stays with near. */
static near_inline bool duo_near_room(void *ctx)
{
	return true;
}

static near_inline uint64_t duo_near_flags(const struct duo_rx *rx,
					   const struct near_msg *msg)
{
	return duo_rx_cq_flags(rx) |
	       (msg->flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0);
}

/* What its end has to say of the message. */
static void duo_near_describe(struct duo_rx *rx, const struct near_msg *msg,
			      uint64_t tag, struct near_peer *peer,
			      fi_addr_t src)
{
	rx->peer.msg_size = msg->len;
	rx->peer.tag = tag;
	rx->peer.cq_data = msg->data;
	rx->peer.flags = duo_near_flags(rx, msg);
	rx->arrival = (struct duo_near_msg) {
		.peer = peer, .rndv = msg->rndv, .src = src,
	};
	near_peer_hold(peer);
}

static void duo_near_failed(struct duo_rx *rx, int err)
{
	const struct fi_cq_err_entry error = {
		.flags = rx->peer.flags,
		.tag = rx->peer.tag,
		.err = err,
		.prov_errno = err,
		NEAR_CQ_ERR_SRC(rx->arrival.src == FI_ADDR_UNSPEC ?
				FI_ADDR_NOTAVAIL : rx->arrival.src)
	};

	duo_arrival_failed(rx, &error);
}

static void duo_near_report(struct duo_rx *rx, int err)
{
	if (err)
		duo_near_failed(rx, err);
	else
		duo_arrival_done_at(rx, rx->peer.flags, rx->peer.msg_size,
				    rx->iov[0].iov_base, rx->peer.cq_data,
				    rx->arrival.src);
	near_peer_put(rx->ep->near->port, rx->arrival.peer);
	duo_rx_release(&rx->ep->pool, rx);
}

/* rx gets a message, at once or later. */
static void duo_near_begin(struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_LOCAL);
	if (rx->multi)
		TAILQ_INSERT_TAIL(&rx->ep->near->pieces, rx, link);
}

/*
 * It has it. What one peer has sent is reported in the order in which it lies
 * in the buffers, so a piece waits for those before it.
 */
static void duo_near_end(struct duo_rx *rx, int err)
{
	struct duo_rx_list *pieces = &rx->ep->near->pieces;
	const struct near_peer *peer = rx->arrival.peer;
	struct duo_rx *next;

	if (!rx->multi) {
		duo_near_report(rx, err);
		return;
	}
	rx->arrival.ended = true;
	rx->arrival.err = err;
	for (rx = TAILQ_FIRST(pieces); rx; rx = next) {
		next = TAILQ_NEXT(rx, link);
		if (rx->arrival.peer != peer)
			continue;
		if (!rx->arrival.ended)
			break;
		TAILQ_REMOVE(pieces, rx, link);
		duo_near_report(rx, rx->arrival.err);
	}
}

/* Bytes of a message into the buffers of rx, as many as fit. */
static void duo_near_fill(struct duo_rx *rx, const void *payload, size_t len)
{
	near_iov_in(rx->iov, 0, payload, len < rx->size ? len : rx->size);
}

/*
 * Keeps a message, and its payload, until it is received. Without memory it
 * stays in the ring, and its sender gets -FI_EAGAIN once that is full.
 */
static int duo_near_unexpected(struct duo_ep *ep, struct near_peer *peer,
			       const struct near_msg *msg, fi_addr_t addr,
			       bool hold)
{
	unsigned int tagged = msg->flags & NEAR_TAGGED;
	struct duo_rx *rx;
	void *payload = NULL;

	if (msg->payload) {
		payload = near_block_get(&ep->near->blocks, msg->len);
		if (!payload)
			return -FI_EAGAIN;
	}
	rx = duo_rx_alloc(&ep->pool);
	if (!rx) {
		if (payload)
			near_block_put(&ep->near->blocks, payload);
		return -FI_EAGAIN;
	}
	if (payload)
		memcpy(payload, msg->payload, msg->len);
	ep->stats.unexpected++;
	rx->kind = tagged ? DUO_TAGGED : DUO_MSG;
	duo_rx_become(rx, DUO_RX_ARRIVING);
	rx->hold = hold;
	rx->src_number = duo_near_number(peer);
	rx->peer.addr = addr;
	rx->peer.count = 0;
	duo_near_describe(rx, msg, tagged ? msg->tag : 0, peer, addr);
	rx->arrival.payload = payload;
	duo_arrival_queue(&rx->peer);
	return 0;
}

/* rx is taken: a large message, one too large, or one for several buffers. */
static int duo_near_rare(struct duo_rx *rx, struct near_peer *peer,
			 const struct near_msg *msg, uint64_t tag,
			 fi_addr_t addr)
{
	struct duo_ep *ep = rx->ep;

	duo_near_describe(rx, msg, tag, peer, addr);
	duo_near_begin(rx);
	if (msg->payload) {
		duo_near_fill(rx, msg->payload, msg->len);
		duo_near_end(rx, 0);
		return 0;
	}
	if (!near_recv(ep->near->port, peer, &msg->rndv, rx->iov, rx->count,
		       msg->len, rx))
		return 0;
	/* no memory: the message is left for another receive */
	duo_near_end(rx, FI_ENOMEM);
	return -FI_EAGAIN;
}

/* The message is in rx's one buffer, all of it. */
static near_inline void duo_near_over(struct duo_rx *rx,
				      const struct near_msg *msg,
				      uint64_t tag, fi_addr_t addr)
{
	struct duo_ep *ep = rx->ep;
	const struct fi_cq_tagged_entry entry = {
		.op_context = rx->context,
		.flags = duo_near_flags(rx, msg),
		.len = msg->len,
		.buf = rx->iov[0].iov_base,
		.data = msg->data,
		.tag = tag,
	};

	ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
	ep->stats.path[FI_DUO_LOCAL].rx_bytes += msg->len;
	duo_cq_push(ep->rx_cq, &entry, addr);
	duo_rx_become(rx, DUO_RX_LOCAL);
	duo_rx_release(&ep->pool, rx);
}

/* rx is taken and has one buffer, which the message fits into. */
static near_inline void duo_near_plain(struct duo_rx *rx,
				       const struct near_msg *msg,
				       uint64_t tag, fi_addr_t addr)
{
	void *buf = rx->iov[0].iov_base;

	if (near_likely(msg->len <= NEAR_INLINE))
		near_copy_small(buf, msg->payload, msg->len);
	else
		memcpy(buf, msg->payload, msg->len);
	duo_near_over(rx, msg, tag, addr);
}

static near_inline int duo_near_arrived(void *ctx, struct near_peer *peer,
					const struct near_msg *msg)
{
	fi_addr_t addr, number = duo_near_number(peer);
	bool tagged = msg->flags & NEAR_TAGGED;
	enum duo_rx_kind kind = tagged ? DUO_TAGGED : DUO_MSG;
	uint64_t tag = tagged ? msg->tag : 0;
	struct duo_ep *ep = ctx;
	struct duo_rx *rx;

	addr = duo_map_peer(ep->map, number);
	if (near_likely(addr != FI_ADDR_UNSPEC))
		duo_arrival_confirm(ep, number);
	/* nothing overtakes what is held; the core may refuse to close */
	if (near_unlikely(!TAILQ_EMPTY(&ep->held) || ep->closing ||
			  (addr == FI_ADDR_UNSPEC && ep->av->high)))
		return duo_near_unexpected(ep, peer, msg, addr, true);
	rx = duo_arrival_take(ep, kind, addr, tag, msg->len);
	if (near_unlikely(!rx))
		return duo_near_unexpected(ep, peer, msg, addr, false);
	if (near_unlikely(msg->len > rx->iov[0].iov_len || !rx->wanted))
		return duo_near_rare(rx, peer, msg, tag, addr);
	if (near_likely(msg->payload))
		duo_near_plain(rx, msg, tag, addr);
	else if (near_recv_now(ep->near->port, peer, &msg->rndv,
			       rx->iov[0].iov_base, msg->len))
		duo_near_over(rx, msg, tag, addr);
	else
		return duo_near_rare(rx, peer, msg, tag, addr);
	return 0;
}

static void duo_near_received(void *ctx, void *cookie, int err)
{
	duo_near_end(cookie, err);
}

/*
 * near may go on as soon as it has the buffers: nothing can fail after that.
 */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv)
{
	struct duo_near *near = rx->ep->near;
	const struct duo_near_msg *from = &rx->arrival;
	void *payload = from->payload;
	size_t len = rx->peer.msg_size;
	bool here = payload;
	int ret;

	if (!here && recv->count == 1 && len <= recv->iov->iov_len)
		here = near_recv_now(near->port, from->peer, &from->rndv,
				     recv->iov->iov_base, len);
	if (!here) {
		ret = near_recv(near->port, from->peer, &from->rndv, recv->iov,
				recv->count, len, rx);
		if (ret)
			return ret;
	}
	duo_arrival_unlink(rx);
	duo_recv_fill(rx, recv);
	rx->arrival.src = rx->peer.addr;
	duo_near_begin(rx);
	if (payload) {
		duo_near_fill(rx, payload, len);
		near_block_put(&near->blocks, payload);
	}
	if (here)
		duo_near_end(rx, 0);
	return 0;
}

static void duo_near_drop_list(struct duo_near *near, struct duo_rx_list *list)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, list, link) {
		if (rx->state != DUO_RX_CORE_CLAIMED && rx->arrival.payload)
			near_block_put(&near->blocks, rx->arrival.payload);
	}
}

void duo_near_drop_all(struct duo_near *near)
{
	struct duo_ep *ep = near->ep;
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_near_drop_list(near, &ep->match[kind].unexp);
	duo_near_drop_list(near, &ep->held);
	duo_near_drop_list(near, &ep->claimed);
}

const struct near_sink duo_near_sink = {
	.room = duo_near_room,
	.arrived = duo_near_arrived,
	.received = duo_near_received,
	.sent = duo_near_sent,
	.met = duo_near_met,
	.gone = duo_near_gone,
	.forgotten = duo_near_forgotten,
};

static __attribute__((noinline)) uint32_t
duo_near_poll_ep(const struct duo_ep *ep, uint32_t from)
{
	return ep->near ? near_poll_from(ep->near->port, &duo_near_sink,
					 from) : 0;
}

DUO_COLD uint32_t duo_near_poll_many(struct duo_cq *cq)
{
	struct duo_ep *ep;
	uint32_t n = 0;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		n += duo_near_poll_ep(ep, 0);
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		n += duo_near_poll_ep(ep, 0);
	return n;
}

/* Calls nothing where there is nothing, and one endpoint. */
uint32_t duo_near_poll(struct duo_cq *cq)
{
	const struct duo_ep *ep = LIST_FIRST(&cq->rx_eps);
	uint32_t at;

	if (near_unlikely(!ep || !ep->near || LIST_NEXT(ep, rx_link) ||
			  !LIST_EMPTY(&cq->tx_eps)))
		return duo_near_poll_many(cq);
	at = near_stirs(ep->near->port);
	return near_likely(at == NEAR_STILL) ? 0 : duo_near_poll_ep(ep, at);
}

int duo_near_arm(struct duo_ep *ep)
{
	return ep->near ? near_arm(ep->near->port) : 0;
}

bool duo_near_woken(struct duo_ep *ep)
{
	return ep->near && near_woken(ep->near->port);
}
