/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <string.h>

#include "near/link/port.h"

#define NEAR_MOVE_PATIENCE (1u << 16)	/* however often it was refused */

void near_move_init(struct near_move *move, uint8_t tier, uint8_t most)
{
	*move = (struct near_move) {
		.full_at = UINT64_MAX,
		.patience = NEAR_MOVE_FULL,
		.tier = tier,
		.most = most,
	};
}

/* The last slot of the ring as it is; later, if there is none. */
static void near_move_post(struct near_peer *peer)
{
	struct near_tx *tx = &peer->tx;
	struct near_slot *slot = &tx->slots[tx->tail & tx->mask];

	if (tx->tail - __atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE) >
	    tx->mask)
		return;
	slot->move.more = peer->move.more;
	near_tx_publish(tx, slot, (uint64_t)NEAR_KIND_MOVE << NEAR_WORD_KIND);
	if (near_tx_cold(tx))
		near_doorbell_ring(peer);
	peer->move.posted = true;
}

/* What was asked for and not given is asked for less often. */
static void near_move_done(struct near_peer *peer, uint8_t tier)
{
	struct near_move *move = &peer->move;

	if (tier != move->tier)
		move->patience = NEAR_MOVE_FULL;
	else if (move->more && move->patience < NEAR_MOVE_PATIENCE)
		move->patience *= 4;
	move->tier = tier;
	move->count++;
	move->posted = false;
	move->full = move->more = 0;
	move->full_at = UINT64_MAX;
}

/* The receiver's answer, which may be anything. */
static void near_move_answer(struct near_port *port, struct near_peer *peer)
{
	uint32_t size = __atomic_load_n(&peer->tx.ctl->size, __ATOMIC_ACQUIRE);
	uint32_t tier = size & NEAR_SIZE_TIER;
	struct near_place place;

	if (size >> NEAR_SIZE_MOVES != ((peer->move.count + 1) &
					UINT32_MAX >> NEAR_SIZE_MOVES))
		return;
	if (tier > peer->move.most ||
	    !near_place(NEAR_SENDERS, 0, tier, &place)) {
		near_log(port, 0, "peer %d: invalid ring size class %u; "
			 "disconnecting it. The peer is faulty or its shared "
			 "memory is corrupt", peer->addr.pid, tier);
		near_peer_fail(port, peer);
		return;
	}
	if (near_ring_extend(peer->tx.ctl, place.size)) {
		near_log(port, 0, "peer %d: cannot map its ring: %s; "
			 "disconnecting it. The system is out of memory",
			 peer->addr.pid, strerror(errno));
		near_peer_fail(port, peer);
		return;
	}
	near_tx_open_gate(&peer->tx, NEAR_GATE_MOVE);
	near_tx_restart(&peer->tx, &place);
	near_move_done(peer, (uint8_t)tier);
}

static void near_move_step(struct near_port *port, struct near_peer *peer)
{
	if (peer->dying)
		return;
	if (!peer->move.posted)
		near_move_post(peer);
	else
		near_move_answer(port, peer);
}

static void near_move_ask(struct near_port *port, struct near_peer *peer,
			  uint32_t more)
{
	struct near_move *move = &peer->move;

	if (move->full < move->patience || move->tier == move->most)
		return;
	move->more = more;
	near_tx_gate(&peer->tx, NEAR_GATE_MOVE);
	near_move_step(port, peer);
}

void near_move_look(struct near_port *port, struct near_peer *peer)
{
	if (!(peer->tx.gated & NEAR_GATE_MOVE)) {
		if (!__atomic_load_n(&peer->tx.ctl->move, __ATOMIC_RELAXED))
			return;
		near_tx_gate(&peer->tx, NEAR_GATE_MOVE);
	}
	near_move_step(port, peer);
}

/* True if a larger ring would help, for want of slots or of data. */
static bool near_tx_full(const struct near_tx *tx)
{
	return !tx->gated ||
	       tx->tail - __atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE) >
	       tx->mask;
}

int near_full(struct near_port *port, struct near_peer *peer)
{
	struct near_move *move = &peer->move;

	if (peer->dying)
		return -ECONNRESET;
	if (peer->tx.gated & NEAR_GATE_MOVE) {
		near_move_step(port, peer);
	} else if (near_tx_full(&peer->tx) && move->full_at != peer->tx.tail) {
		move->full_at = peer->tx.tail;
		move->full++;
		near_move_ask(port, peer, 1);
	}
	return -EAGAIN;
}

void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len)
{
	if (peer->tx.gated & NEAR_GATE_MOVE)
		return;
	peer->move.full += NEAR_MOVE_FULL;
	near_move_ask(port, peer, len);
}
