/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Handles the failure of a peer, after near has delivered the peer's messages
 * and ended all operations with the peer. Ends posted receives with the peer as
 * their source. Drops unmatched rendezvous messages of the peer, whose data are
 * in the peer's memory. The core is the provider that ofi_duo wraps.
 */

#include <rdma/fi_errno.h>

#include "av/map.h"
#include "av/route.h"
#include "core/lazy.h"
#include "transport/near/near_ep.h"
#include "rx/arrive.h"
#include "rx/recv.h"

/* True if rx names the peer with this index as its source. */
static bool duo_near_names(const struct duo_rx *rx, fi_addr_t index)
{
	fi_addr_t addr = rx->addr;
	uint64_t word;

	if (addr >= rx->ep->route_size)
		return false;
	word = duo_route_load(rx->ep->route, addr);
	return duo_route_mapped(word) && duo_route_index(word) == index;
}

/* Returns the first posted receive that names the peer; NULL: none. */
static struct duo_rx *duo_near_named(const struct duo_match *match,
				     fi_addr_t index)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->posted, link) {
		if (duo_near_names(rx, index))
			return rx;
	}
	return NULL;
}

/* Ends posted receives that name the peer, if the core has not matched them. */
static void duo_near_fail_all(struct duo_match *match, fi_addr_t index)
{
	struct duo_rx *rx;

	while ((rx = duo_near_named(match, index))) {
		duo_match_unpost(match, rx);
		duo_lazy_drop(rx);
		if (!rx->on_core || duo_lazy_recall(rx))
			duo_recv_fail(rx, FI_ECONNRESET);
	}
}

/* Frees the peer's rendezvous messages in the list. */
static void duo_near_lose(struct duo_rx_list *list, struct near_peer *peer)
{
	struct duo_rx *rx, *next;

	for (rx = TAILQ_FIRST(list); rx; rx = next) {
		next = TAILQ_NEXT(rx, link);
		if (rx->arrival.peer != peer || rx->arrival.payload)
			continue;
		duo_arrival_unlink(rx);
		near_peer_put(rx->ep->near->port, peer);
		duo_rx_release(&rx->ep->pool, rx);
	}
}

void duo_near_peer_down(void *ctx, struct near_peer *peer)
{
	fi_addr_t index = duo_near_index(peer);
	struct duo_ep *ep = ctx;
	int kind;

	if (ep->map && !TAILQ_EMPTY(&ep->rx.unresolved))
		/*
		 * Matches unresolved messages before duo_map_peer_failed()
		 * removes the peer's fi_addr. Without this fi_addr, the peer's
		 * messages would match no receive that names the peer.
		 */
		duo_arrival_resolve(ep);
	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_near_lose(&ep->match[kind].unexp, peer);
	duo_near_lose(&ep->rx.unresolved, peer);
	if (index == FI_ADDR_NOTAVAIL || !ep->map)
		return;
	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_near_fail_all(&ep->match[kind], index);
	duo_map_peer_failed(ep, index, near_peer_exited(peer));
	duo_near_unbind(ep, index);
}
