/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "near/msg/large.h"

struct near_slot *near_control_slot_other(struct near_port *port,
					  struct near_peer *peer)
{
	struct near_slot *slot;

	if (!peer->tx.slots && near_connect(port, peer))
		return NULL;
	slot = near_tx_slot_past(&peer->tx);
	if (!slot)
		near_full(port, peer);
	return slot;
}

ssize_t near_notify(struct near_peer *peer)
{
	if (near_tx_need_doorbell(&peer->tx))
		near_doorbell_ring(peer);
	return 0;
}

/* Handles a CTS, COOP or ACK. Returns 0, or -EPROTO if the slot is invalid. */
static int near_control_answer(struct near_port *port,
			       struct near_rx_ring *ring,
			       const struct near_slot *slot,
			       enum near_kind kind)
{
	if (near_likely(near_tx_answered(port, ring->peer, slot, kind)))
		return 0;
	near_rx_ring_broken(port, ring, "CTS, COOP or ACK id", slot->ack.id);
	return -EPROTO;
}

static int near_control_frag(struct near_port *port, struct near_rx_ring *ring,
			     const struct near_slot *slot, uint64_t word)
{
	struct near_rx_op *op =
		near_rx_find(port, ring->peer, slot->frag.answer);
	uint32_t len = __atomic_load_n(&slot->frag.len, __ATOMIC_RELAXED);
	const uint8_t *data = near_rx_data(&ring->rx, len);

	if (op && word >> NEAR_WORD_FLAGS & NEAR_FRAG_FAILED) {
		near_rx_end(port, op, EIO);
		return 0;
	}
	if (!op || !data || len > op->len - op->done) {
		near_rx_ring_broken(port, ring, "fragment length", len);
		return -EPROTO;
	}
	near_rx_frag(port, op, data, len);
	return 0;
}

static int near_control_resize(struct near_port *port,
			       struct near_rx_ring *ring,
			       const struct near_slot *slot)
{
	near_rx_ring_resize(
		port, ring,
		__atomic_load_n(&slot->resize.more, __ATOMIC_RELAXED));
	ring->rx.dnext = ring->rx.dhead;
	return 0;
}

int near_control(struct near_port *port, struct near_rx_ring *ring,
		 const struct near_slot *slot, uint64_t word)
{
	enum near_kind kind = word >> NEAR_WORD_KIND & 0xf;

	switch (kind) {
	case NEAR_KIND_CTS:
	case NEAR_KIND_ACK:
	case NEAR_KIND_COOP:
		return near_control_answer(port, ring, slot, kind);
	case NEAR_KIND_FRAG:
		return near_control_frag(port, ring, slot, word);
	case NEAR_KIND_RESIZE:
		return near_control_resize(port, ring, slot);
	case NEAR_KIND_RMA:
		if (port->onesided)
			return port->onesided->request(port, ring, slot, word);
		break;
	case NEAR_KIND_ANSWER:
		if (port->onesided)
			return port->onesided->answered(port, ring, slot);
		break;
	default:
		break;
	}
	near_rx_ring_broken(port, ring, "kind", kind);
	return -EPROTO;
}

/*
 * Calls step() for each operation of a list, until *budget bytes are copied.
 * Returns the number of operations that have left the list.
 */
static int near_work_list(struct near_port *port, struct near_link *list,
			  bool (*step)(struct near_port *port,
				       struct near_link *link, size_t *budget),
			  size_t *budget)
{
	struct near_link *link, *next;
	int n = 0;

	for (link = list->next; link != list && *budget; link = next) {
		next = link->next;
		n += step(port, link, budget);
	}
	return n;
}

int near_work(struct near_port *port)
{
	size_t sending = NEAR_STEP;
	bool waits = true;
	int n = 0;

	if (near_likely(port->work == NEAR_WORK_WAITS &&
			near_polls_left(port)))
		return port->onesided->advanced(port);
	n += near_work_list(port, &port->receiving, near_rx_step,
			    near_read_left(port));
	n += near_work_list(port, &port->sending, near_tx_step, &sending);
	if (!near_list_empty(&port->onesided_work))
		n += port->onesided->work(port, &waits);
	if (!near_list_empty(&port->sending) ||
	    !near_list_empty(&port->receiving) || !waits)
		port->work = NEAR_WORK_DUE;
	else
		port->work = near_list_empty(&port->onesided_work) ? 0 :
			     NEAR_WORK_WAITS;
	return n;
}

static void near_ops_close(struct near_port *port)
{
	struct near_tx_op *op;
	uint32_t at = 0;

	while ((op = near_pool_next(&port->tx_ops, &at)))
		free(op->copy);
	near_pool_fini(&port->tx_ops);
	near_pool_fini(&port->rx_ops);
}

static void near_ops_fail(struct near_port *port, struct near_peer *peer)
{
	uint64_t end_ms = duo_now_ms() + NEAR_STOP_MS;
	struct near_tx_op *tx;
	struct near_rx_op *rx;
	uint32_t at = 0;

	while ((tx = near_pool_next(&port->tx_ops, &at))) {
		if (tx->peer != peer)
			continue;
		if (tx->state >= NEAR_TX_FRAGS)
			near_list_remove(&tx->link);
		near_tx_end(port, tx, ECONNRESET);
	}
	at = 0;
	while ((rx = near_pool_next(&port->rx_ops, &at))) {
		/*
		 * Skips rx in the state NEAR_RX_FETCHING, because a read of
		 * the message by near_rma() is pending. near_peer_end() ends
		 * this read with an error after it has called this function.
		 * The embedder then ends rx by near_recv_end().
		 */
		if (rx->peer != peer || rx->state == NEAR_RX_FETCHING)
			continue;
		near_rx_coop_stop(rx, end_ms);
		if (rx->state != NEAR_RX_FRAGS)
			near_list_remove(&rx->link);
		near_rx_end(port, rx, ECONNRESET);
	}
}

static const struct near_messages near_messages = {
	.fail = near_ops_fail,
	.stop = near_ops_stop,
	.close = near_ops_close,
};

int near_open(struct near_port **port, const struct near_attr *attr)
{
	int ret = near_port_open(port, attr, &near_messages);

	if (ret)
		return ret;
	near_pool_init(&(*port)->tx_ops, sizeof(struct near_tx_op),
		       NEAR_POOL_UNLIMITED);
	near_pool_init(&(*port)->rx_ops, sizeof(struct near_rx_op),
		       NEAR_POOL_UNLIMITED);
	(*port)->read_left = NEAR_STEP;
	return 0;
}
