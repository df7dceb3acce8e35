/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Messages that the fast path in sink.h does not handle. */

#include <assert.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "device/device.h"
#include "transport/near/near_ep.h"
#include "transport/near/sink.h"
#include "rx/arrive.h"
#include "rx/recv.h"

/* otherwise an unexpected message could stay in its ring forever */
static_assert(NEAR_MEDIUM_MAX <= DUO_BLOCK_MAX, "blocks hold eager messages");

/* Stores the values for msg's completion in rx. Takes a reference to peer. */
static void duo_near_describe(struct duo_rx *rx, const struct near_msg *msg,
			      uint64_t tag, struct near_peer *peer,
			      fi_addr_t src)
{
	rx->peer.msg_size = msg->len;
	rx->addr = src;
	rx->tag = tag;
	rx->peer.cq_data = msg->data;
	rx->peer.flags = duo_near_flags(rx->kind, msg);
	rx->arrival = (struct duo_near_msg) {
		.peer = peer, .rndv = msg->rndv,
		.device = msg->flags & NEAR_DEVICE,
	};
	near_peer_hold(peer);
}

/* Writes the completion or error of a receive, and frees rx. */
static void duo_near_report(struct duo_rx *rx, int err)
{
	if (err)
		duo_arrival_failed(rx, err, err);
	else
		duo_arrival_done_at(rx, rx->peer.flags, rx->peer.msg_size,
				    rx->iov.iov_base, rx->peer.cq_data,
				    rx->addr);
	near_peer_put(rx->ep->near->port, rx->arrival.peer);
	duo_rx_release(&rx->ep->pool, rx);
}

/* Marks rx as matched with a local message. */
static void duo_near_begin(struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_LOCAL);
	if (rx->multi)
		TAILQ_INSERT_TAIL(&rx->ep->near->subs, rx, link);
}

/*
 * Ends a receive. If it is into a multi-receive buffer (rx->multi), its
 * completion waits until all earlier receives into multi-receive buffers that
 * have matched messages of the same peer have ended.
 */
static void duo_near_end(struct duo_rx *rx, int err)
{
	struct duo_rx_list *subs = &rx->ep->near->subs;
	const struct near_peer *peer = rx->arrival.peer;
	struct duo_rx *next;

	if (!rx->multi) {
		duo_near_report(rx, err);
		return;
	}
	rx->arrival.ended = true;
	rx->arrival.err = err;
	for (rx = TAILQ_FIRST(subs); rx; rx = next) {
		next = TAILQ_NEXT(rx, link);
		if (rx->arrival.peer != peer)
			continue;
		if (!rx->arrival.ended)
			break;
		TAILQ_REMOVE(subs, rx, link);
		duo_near_report(rx, rx->arrival.err);
	}
}

/* Copies as much of a message as fits into rx. Returns 0 or an error > 0. */
static int duo_near_fill(struct duo_rx *rx, const void *payload, size_t len)
{
	struct duo_domain *domain = rx->ep->domain;
	const struct iovec *iov = duo_rx_iov(rx);
	void **desc = duo_rx_desc(rx);

	len = duo_min(len, duo_rx_size(rx));
	if (near_unlikely(domain->device &&
			  duo_device_handles(domain, desc, rx->count,
					     NULL))) {
		rx->ep->stats.device_rx_msgs++;
		return -duo_device_in(domain, iov, desc, payload, len);
	}
	near_iov_in(iov, 0, payload, len);
	return 0;
}

/*
 * Starts to receive a rendezvous message. Returns 0: near will call
 * duo_near_received() when the receive has ended; or -FI_EAGAIN. The caller
 * must call duo_near_begin(), before or after this call, and then
 * duo_near_fetch() if *fetch is not NULL.
 */
static int duo_near_receive(struct duo_rx *rx,
			    const struct duo_near_msg *from,
			    const struct duo_recv *recv, size_t len,
			    struct near_rx_op **fetch)
{
	struct near_port *port = rx->ep->near->port;
	bool device = from->device ||
		      duo_device_handles(rx->ep->domain, recv->desc,
					 recv->count, NULL);

	*fetch = NULL;
	if (near_likely(!device || !len ||
			!near_iov_len(recv->iov, recv->count)))
		return near_recv(port, from->peer, &from->rndv, recv->iov,
				 recv->count, len, rx);
	*fetch = near_recv_begin(port, from->peer, &from->rndv, rx);
	return *fetch ? 0 : -FI_EAGAIN;
}

/*
 * Queues a message with a copy of its payload. unresolved: true if a later poll
 * must match the message; false: the message is unexpected. Returns 0;
 * -FI_EAGAIN: no memory, and the message stays in the ring.
 */
static int duo_near_unexpected(struct duo_ep *ep, struct near_peer *peer,
			       const struct near_msg *msg, fi_addr_t addr,
			       bool unresolved)
{
	unsigned int tagged = msg->flags & NEAR_TAGGED;
	struct duo_rx *rx;
	void *payload = NULL;

	if (msg->payload) {
		payload = duo_block_get(&ep->near->blocks, msg->len);
		if (!payload)
			return -FI_EAGAIN;
	}
	rx = duo_rx_alloc(&ep->pool);
	if (!rx) {
		if (payload)
			duo_block_put(&ep->near->blocks, payload);
		return -FI_EAGAIN;
	}
	if (payload)
		memcpy(payload, msg->payload, msg->len);
	ep->stats.unexpected++;
	rx->kind = tagged ? DUO_TAGGED : DUO_MSG;
	duo_rx_become(rx, DUO_RX_ARRIVING);
	rx->unresolved = unresolved;
	rx->src_index = duo_near_index(peer);
	duo_near_describe(rx, msg, tagged ? msg->tag : 0, peer, addr);
	rx->arrival.payload = payload;
	duo_arrival_queue(&rx->peer);
	return 0;
}

/*
 * Delivers a message that has matched rx, if duo_near_complete() does not
 * support the message or rx. Returns 0; -FI_EAGAIN: no memory, and rx has ended
 * with FI_ENOMEM.
 */
static int duo_near_slow(struct duo_rx *rx, struct near_peer *peer,
			 const struct near_msg *msg, uint64_t tag,
			 fi_addr_t addr)
{
	const struct duo_recv recv = {
		.iov = duo_rx_iov(rx), .desc = duo_rx_desc(rx),
		.count = rx->count,
	};
	struct near_rx_op *fetch;

	duo_near_describe(rx, msg, tag, peer, addr);
	duo_near_begin(rx);
	if (msg->payload) {
		duo_near_end(rx, duo_near_fill(rx, msg->payload, msg->len));
		return 0;
	}
	if (!duo_near_receive(rx, &rx->arrival, &recv, msg->len, &fetch)) {
		if (fetch)
			duo_near_fetch(rx, fetch);
		return 0;
	}
	/* near will deliver the message again: another receive may match it */
	duo_near_end(rx, FI_ENOMEM);
	return -FI_EAGAIN;
}

int duo_near_arrived_any(struct duo_ep *ep, struct near_peer *peer,
			 struct near_msg *msg)
{
	fi_addr_t addr, index = duo_near_index(peer);
	bool tagged = msg->flags & NEAR_TAGGED;
	enum duo_rx_kind kind = tagged ? DUO_TAGGED : DUO_MSG;
	uint64_t tag = tagged ? msg->tag : 0;
	struct duo_rx *rx;

	addr = duo_map_peer(ep->map, index);
	/*
	 * The source has sent over near, so it is a confirmed source. This is
	 * so even if the AV does not have its address: the application may
	 * insert the address later.
	 */
	if (near_likely(index < DUO_LOCAL_MAX))
		duo_arrival_confirm(ep, index);
	/*
	 * Leaves the match of this message to a later poll if
	 * - earlier messages are unresolved: they must match before this one
	 * - fi_close is running: if it fails, the endpoint continues
	 * - the map has no fi_addr for the source: the AV may have it
	 */
	if (near_unlikely(!TAILQ_EMPTY(&ep->rx.unresolved) || ep->closing ||
			  (addr == FI_ADDR_UNSPEC && ep->av->high)))
		return duo_near_unexpected(ep, peer, msg, addr, true);
	rx = duo_arrival_match(ep, kind, addr, tag, msg->len);
	if (near_unlikely(!rx))
		return duo_near_unexpected(ep, peer, msg, addr, false);
	if (near_unlikely(msg->len > rx->iov.iov_len || rx->count > 1 ||
			  rx->wanted != DUO_RX_WANTED ||
			  !duo_near_place(ep, peer, rx, msg)))
		return duo_near_slow(rx, peer, msg, tag, addr);
	duo_near_complete(rx, kind, msg, addr);
	return 0;
}

/* Implements near_sink.received(): ends the receive of a rendezvous message. */
static void duo_near_received(void *ctx, void *cookie, int err)
{
	struct duo_rx *rx = cookie;

	if (near_unlikely(rx->bounced && !err))
		err = duo_near_fill(rx, rx->bounce, rx->peer.msg_size);
	duo_near_end(rx, err);
}

/*
 * Takes rx from its queue only after the last step that can fail. So after an
 * error, rx is still a waiting message, which a later receive can match.
 */
int duo_near_start(struct duo_rx *rx, const struct duo_recv *recv)
{
	struct duo_near *near = rx->ep->near;
	struct duo_near_msg *from = &rx->arrival;
	struct near_rx_op *fetch = NULL;
	void *payload = from->payload;
	size_t len = rx->peer.msg_size;
	bool here = payload;
	int ret, err = 0;

	if (!here && recv->count == 1 && len <= recv->iov->iov_len &&
	    !rx->ep->domain->device && !from->device)
		here = near_recv_now(near->port, from->peer, &from->rndv,
				     recv->iov->iov_base, len);
	if (!here) {
		ret = duo_near_receive(rx, from, recv, len, &fetch);
		if (ret)
			return ret;
	}
	duo_arrival_unlink(rx);
	duo_recv_fill(rx, recv);
	duo_near_begin(rx);
	if (payload) {
		err = duo_near_fill(rx, payload, len);
		duo_block_put(&near->blocks, payload);
	}
	if (here)
		duo_near_end(rx, err);
	else if (fetch)
		duo_near_fetch(rx, fetch);
	return 0;
}

static void duo_near_drop_list(struct duo_near *near, struct duo_rx_list *list)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, list, link) {
		if (rx->state != DUO_RX_CORE_CLAIMED && rx->arrival.payload)
			duo_block_put(&near->blocks, rx->arrival.payload);
	}
}

void duo_near_drop_all(struct duo_near *near)
{
	struct duo_ep *ep = near->ep;
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_near_drop_list(near, &ep->match[kind].unexp);
	duo_near_drop_list(near, &ep->rx.unresolved);
	duo_near_drop_list(near, &ep->rx.claimed);
}

const struct near_sink duo_near_sink = {
	.arrived = duo_near_arrived,
	.received = duo_near_received,
	.sent = duo_near_sent,
	.unload = duo_near_unload,
	.peer_up = duo_near_peer_up,
	.peer_down = duo_near_peer_down,
	.peer_release = duo_near_peer_release,
};

uint32_t duo_near_poll(struct duo_cq *cq)
{
	const struct duo_ep *ep;
	uint32_t n = 0;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (near_likely(ep->near))
			n += near_poll(ep->near->port, &duo_near_sink);
	}
	return n;
}
