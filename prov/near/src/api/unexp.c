/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages that nobody has asked for. They are copied out of the ring, so that
 * what comes behind them is not held up, as long as memory for them lasts;
 * then they stay in the ring, and their sender is told to try again. While a
 * receive waits, or something else of that sender's that comes behind them, the
 * limit does not hold.
 */

#include <errno.h>

#include "api/recv.h"
#include "rma/rma.h"

static bool near_unexp_asked(const struct near_ep *ep,
			     const struct near_peer *peer)
{
	const struct near_source *source = peer->user;
	int kind;

	for (kind = 0; kind < NEAR_KINDS; kind++)
		if (!near_list_empty(&ep->match.any[kind]) ||
		    !near_list_empty(&source->posted[kind]))
			return true;
	return near_peer_awaited(peer);
}

static int near_unexp_payload(struct near_ep *ep, struct near_unexp *unexp,
			      const struct near_peer *peer,
			      const struct near_msg *msg)
{
	void *to = unexp->bytes;

	unexp->block = NULL;
	if (!msg->payload)
		return 0;
	if (msg->len > sizeof(unexp->bytes)) {
		to = near_block_get(&ep->blocks, msg->len);
		if (!to && near_unexp_asked(ep, peer))
			to = near_block_get_beyond(&ep->blocks, msg->len);
		if (!to)
			return -EAGAIN;
		unexp->block = to;
	}
	memcpy(to, msg->payload, msg->len);
	unexp->msg.payload = to;
	return 0;
}

int near_ep_unexpected(struct near_ep *ep, struct near_peer *peer,
		       const struct near_msg *msg)
{
	struct near_unexp *unexp;
	int ret;

	if (!peer->user)
		near_ep_sink.met(ep, peer);
	if (!peer->user)
		return -EAGAIN;
	unexp = near_pool_get(&ep->unexps);
	if (!unexp && near_unexp_asked(ep, peer)) {
		ep->unexps.limit += NEAR_POOL_CHUNK;
		unexp = near_pool_get(&ep->unexps);
	}
	if (!unexp)
		return -EAGAIN;
	unexp->msg = *msg;
	unexp->source = peer->user;
	unexp->claim = NULL;
	ret = near_unexp_payload(ep, unexp, peer, msg);
	if (ret) {
		near_pool_put(&ep->unexps, unexp);
		return ret;
	}
	near_peer_hold(peer);
	near_match_queue(&ep->match, unexp);
	return 0;
}

void near_unexp_free(struct near_ep *ep, struct near_unexp *unexp)
{
	if (unexp->block)
		near_block_put(&ep->blocks, unexp->block);
	near_pool_put(&ep->unexps, unexp);
	near_peer_drop(ep->port, unexp->source->peer);
}

int near_unexp_discard(struct near_ep *ep, struct near_unexp *unexp)
{
	int ret = 0;

	if (!unexp->msg.payload)
		ret = near_recv(ep->port, unexp->source->peer,
				&unexp->msg.rndv, NULL, 0, 0, NULL);
	if (!ret)
		near_unexp_free(ep, unexp);
	return ret;
}
