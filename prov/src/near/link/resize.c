/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <string.h>

#include "near/link/port.h"

/*
 * maximum of near_resize.backoff: the number of times that a ring must be full
 * before its sender requests a larger one
 */
#define NEAR_RESIZE_BACKOFF_MAX (1u << 16)

void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most)
{
	*resize = (struct near_resize){
		.full_at = UINT64_MAX,
		.backoff = NEAR_RESIZE_FULL,
		.tier = tier,
		.most = most,
	};
}

/* Publishes the RESIZE slot if a slot is free. */
static void near_resize_post(struct near_peer *peer)
{
	struct near_tx *tx = &peer->tx;
	struct near_slot *slot = &tx->slots[tx->tail & tx->mask];

	if (!near_tx_free(tx))
		return;
	slot->resize.more = peer->resize.more;
	near_tx_publish(tx, slot, (uint64_t)NEAR_KIND_RESIZE << NEAR_WORD_KIND);
	if (near_tx_need_doorbell(tx))
		near_doorbell_ring(peer);
	peer->resize.posted = true;
}

/*
 * Records the reply. If the ring's size has not changed, raises the backoff,
 * which delays the next request.
 */
static void near_resize_done(struct near_peer *peer, uint8_t tier)
{
	struct near_resize *resize = &peer->resize;

	if (tier != resize->tier)
		resize->backoff = NEAR_RESIZE_FULL;
	else if (resize->backoff < NEAR_RESIZE_BACKOFF_MAX)
		resize->backoff *= 4;
	resize->tier = tier;
	resize->count++;
	resize->posted = false;
	resize->full = 0;
	resize->full_at = UINT64_MAX;
}

/*
 * Handles the receiver's reply in near_ctl.size, if there is one. Message
 * passing: the load pairs with the release in near_rx_ring_resize(). Before
 * that release, the receiver has zeroed all slots, so its zeros cannot
 * overwrite the slots that this port publishes after this load.
 */
static void near_resize_answer(struct near_port *port, struct near_peer *peer)
{
	uint32_t size = __atomic_load_n(&peer->tx.ctl->size, __ATOMIC_ACQUIRE);
	uint32_t tier = size & NEAR_SIZE_TIER;
	struct near_place place;

	if (size >> NEAR_SIZE_RESIZES !=
	    ((peer->resize.count + 1) & UINT32_MAX >> NEAR_SIZE_RESIZES))
		return;
	if (tier > peer->resize.most ||
	    !near_place(NEAR_SENDERS, 0, tier, &place)) {
		near_log(port, 0, "peer %d: invalid ring size class %u; "
			 "disconnecting it. The peer is faulty or its shared "
			 "memory is corrupt", peer->addr.pid, tier);
		near_peer_fail(port, peer);
		return;
	}
	if (near_ring_extend(peer->tx.ctl, place.size)) {
		if (!peer->logged)
			near_log(port, 0, "peer %d: cannot map its ring: %s; "
				 "sends to it wait. The system is out of memory",
				 peer->addr.pid, strerror(errno));
		peer->logged = true;
		return;		/* the next call tries again */
	}
	near_tx_open_gate(&peer->tx, NEAR_GATE_RESIZE);
	near_tx_restart(&peer->tx, &place);
	near_resize_done(peer, (uint8_t)tier);
}

/* Continues a pending resize. */
static void near_resize_step(struct near_port *port, struct near_peer *peer)
{
	if (peer->draining)
		return;
	if (!peer->resize.posted)
		near_resize_post(peer);
	else
		near_resize_answer(port, peer);
}

/* Starts a resize if the ring was full often enough and can become larger. */
static void near_resize_request(struct near_port *port, struct near_peer *peer,
				uint32_t more)
{
	struct near_resize *resize = &peer->resize;

	if (resize->full < resize->backoff || resize->tier == resize->most)
		return;
	resize->more = more;
	near_tx_gate(&peer->tx, NEAR_GATE_RESIZE);
	near_resize_step(port, peer);
}

/* True if the ring is full. False if it only appears full: a gate is closed. */
static bool near_tx_full(const struct near_tx *tx)
{
	return !tx->gated || !near_tx_free(tx);
}

int near_full(struct near_port *port, struct near_peer *peer)
{
	struct near_resize *resize = &peer->resize;

	if (peer->draining)
		return -ECONNRESET;
	if (peer->tx.gated & NEAR_GATE_RESIZE) {
		near_resize_step(port, peer);
	} else if (near_tx_full(&peer->tx) &&
		   resize->full_at != peer->tx.tail) {
		resize->full_at = peer->tx.tail;
		resize->full++;
		near_resize_request(port, peer, 1);
	}
	return -EAGAIN;
}

void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len)
{
	if (peer->tx.gated & NEAR_GATE_RESIZE)
		return;
	peer->resize.full += NEAR_RESIZE_FULL;
	near_resize_request(port, peer, len);
}
