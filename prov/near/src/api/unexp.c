/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Unexpected messages. They are copied out of the ring, so that what comes
 * behind them is not held up. Without memory for a copy a message stays in the
 * ring, and its sender gets -FI_EAGAIN once that is full.
 */

#include <errno.h>

#include "api/recv.h"

static int near_unexp_payload(struct near_ep *ep, struct near_unexp *unexp,
			      const struct near_msg *msg)
{
	void *to = unexp->bytes;

	unexp->block = NULL;
	if (!msg->payload)
		return 0;
	if (msg->len > sizeof(unexp->bytes)) {
		to = near_block_get(&ep->blocks, msg->len);
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
	if (!unexp)
		return -EAGAIN;
	unexp->msg = *msg;
	unexp->source = peer->user;
	unexp->claim = NULL;
	ret = near_unexp_payload(ep, unexp, msg);
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
