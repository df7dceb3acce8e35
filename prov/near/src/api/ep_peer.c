/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* From fi_addr to peer and back. */

#include <stdlib.h>
#include <string.h>

#include "api/recv.h"
#include "near_crowd.h"

static int near_ep_peers_grow(struct near_ep *ep, uint32_t count)
{
	struct near_peer **peer = realloc(ep->peer, count * sizeof(*peer));

	if (!peer)
		return -FI_ENOMEM;
	memset(peer + ep->peer_count, 0,
	       (count - ep->peer_count) * sizeof(*peer));
	ep->peer = peer;
	ep->peer_count = count;
	return 0;
}

/* Afterwards ep->peer[addr] is the peer. The first data call ends up here. */
int near_ep_resolve(struct near_ep *ep, fi_addr_t addr,
		    struct near_peer **peer)
{
	const struct near_addr *at;
	struct near_source *source;
	int ret;

	if (!ep->enabled)
		return near_ep_early(ep);
	at = near_av_at(ep->av, addr);
	if (!at)
		return -FI_EINVAL;
	if (addr >= ep->peer_count) {
		ret = near_ep_peers_grow(ep, ep->av->room);
		if (ret)
			return ret;
	}
	ret = near_peer_get(ep->port, at, &ep->peer[addr]);
	if (ret)
		return ret;
	*peer = ep->peer[addr];
	/* whoever waits for it is to hear of its end; a send says what is foreign */
	if (!near_addr_check(ep->port, at))
		near_peer_watch(ep->port, *peer);
	source = near_source_of(*peer);
	if (source && source->addr == FI_ADDR_NOTAVAIL)
		source->addr = addr;
	return 0;
}

/*
 * A peer that has sent before its address was inserted gets its name. Who inserts
 * addresses when he needs them looks for a crowd each time they have doubled;
 * more: this is one more than there ever were.
 */
void near_ep_av_added(struct near_ep *ep, fi_addr_t addr, bool more)
{
	struct near_peer *peer = near_peer_find(ep->port,
						near_av_at(ep->av, addr));
	struct near_source *source = peer ? near_source_of(peer) : NULL;

	if (source && source->addr == FI_ADDR_NOTAVAIL)
		source->addr = addr;
	if (!more || addr & (addr - 1) || !ep->enabled)
		return;
	near_crowd_again(&ep->tx_cq->crowd);
	near_crowd_again(&ep->rx_cq->crowd);
}

/* The AV does not find it by its address any more, but still has it. */
void near_ep_av_removed(struct near_ep *ep, fi_addr_t addr)
{
	const struct near_addr *at = near_av_at(ep->av, addr);
	struct near_peer *peer = near_peer_find(ep->port, at);
	struct near_source *source = peer ? near_source_of(peer) : NULL;

	if (source && source->addr == addr)
		source->addr = near_av_find(ep->av, at);
	if (addr >= ep->peer_count || !ep->peer[addr])
		return;
	ep->peer[addr] = NULL;
	near_peer_put(ep->port, peer);
}

/* Not those that the port knows: it knows nobody before his first message. */
bool near_ep_crowded(const struct near_ep *ep)
{
	const struct near_addr *at;
	pid_t pid[NEAR_SENDERS];
	struct near_addr own;
	size_t count = 0;
	uint32_t i;

	near_address(ep->port, &own);
	for (i = 0; ep->av && i < ep->av->count && count < NEAR_SENDERS; i++) {
		at = near_av_at(ep->av, i);
		if (at && !near_addr_check(ep->port, at))
			pid[count++] = at->pid_ns == own.pid_ns ? at->pid : 0;
	}
	return near_crowd(pid, count, 0);
}
