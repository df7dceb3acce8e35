/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Slots that are no messages in themselves, and the list of what is under way. */

#include <errno.h>
#include <stdlib.h>

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

void near_control_send(struct near_port *port, struct near_peer *peer,
		       struct near_slot *slot, enum near_kind kind)
{
	near_tx_publish_quiet(&peer->tx, slot, near_word(kind, 0, 0, 0));
	near_sent(port, peer);
}

ssize_t near_tell(struct near_peer *peer)
{
	if (near_tx_cold(&peer->tx))
		near_bell(peer);
	return 0;
}

static int near_control_cts(struct near_port *port, struct near_lane *lane,
			    const struct near_slot *slot)
{
	struct near_tx_op *op = near_tx_find(port, lane->peer, slot->cts.id);
	uint64_t len = __atomic_load_n(&slot->cts.len, __ATOMIC_RELAXED);

	if (!op || op->state == NEAR_TX_SENT || len > op->len) {
		near_lane_broken(port, lane, "a request for", len);
		return -EPROTO;
	}
	near_tx_share_over(op);
	near_tx_cts(port, op, slot->cts.answer, len);
	return 0;
}

static int near_control_share(struct near_port *port, struct near_lane *lane,
			      const struct near_slot *slot)
{
	struct near_tx_op *op = near_tx_find(port, lane->peer, slot->share.id);

	if (!op || !near_tx_offer(port, op, slot)) {
		near_lane_broken(port, lane, "an offer to share",
				 slot->share.id);
		return -EPROTO;
	}
	return 0;
}

static int near_control_ack(struct near_port *port, struct near_lane *lane,
			    const struct near_slot *slot)
{
	uint64_t id = __atomic_load_n(&slot->ack.id, __ATOMIC_RELAXED);
	struct near_tx_op *op = near_tx_find(port, lane->peer, id);

	if (!op) {
		near_lane_broken(port, lane, "an acknowledgement of", id);
		return -EPROTO;
	}
	near_tx_share_over(op);
	near_tx_end(port, op, 0);
	return 0;
}

static int near_control_piece(struct near_port *port, struct near_lane *lane,
			      const struct near_slot *slot)
{
	struct near_rx_op *op = near_rx_find(port, lane->peer,
					     slot->piece.answer);
	uint32_t len = __atomic_load_n(&slot->piece.len, __ATOMIC_RELAXED);
	const uint8_t *data = near_rx_data(&lane->rx, len);

	if (!op || !data || len > op->len - op->done) {
		near_lane_broken(port, lane, "a piece of", len);
		return -EPROTO;
	}
	near_rx_piece(port, op, data, len);
	return 0;
}

static int near_control_move(struct near_port *port, struct near_lane *lane,
			     const struct near_slot *slot)
{
	near_lane_move(port, lane, __atomic_load_n(&slot->move.more,
						   __ATOMIC_RELAXED));
	lane->rx.dnext = lane->rx.dhead;
	return 0;
}

/* Nonzero: the slot stays. */
int near_control(struct near_port *port, struct near_lane *lane,
		 const struct near_slot *slot, uint64_t word)
{
	switch (word >> NEAR_WORD_KIND & 0xf) {
	case NEAR_KIND_CTS:
		return near_control_cts(port, lane, slot);
	case NEAR_KIND_ACK:
		return near_control_ack(port, lane, slot);
	case NEAR_KIND_PIECE:
		return near_control_piece(port, lane, slot);
	case NEAR_KIND_SHARE:
		return near_control_share(port, lane, slot);
	case NEAR_KIND_MOVE:
		return near_control_move(port, lane, slot);
	case NEAR_KIND_RMA:
		if (!port->onesided)
			break;
		return port->onesided->request(port, lane, slot, word);
	case NEAR_KIND_ANSWER:
		if (!port->onesided)
			break;
		return port->onesided->answered(port, lane, slot);
	default:
		break;
	}
	near_lane_broken(port, lane, "kind", word >> NEAR_WORD_KIND & 0xf);
	return -EPROTO;
}

static int near_work_receiving(struct near_port *port)
{
	size_t *budget = near_read_left(port);
	struct near_link *link, *next;
	int n = 0;

	for (link = port->receiving.next;
	     link != &port->receiving && *budget; link = next) {
		next = link->next;
		if (!port->sink->room(port->ctx))
			break;
		n += near_rx_step(port, near_container(link, struct near_rx_op,
						       link), budget);
	}
	return n;
}

static int near_work_sending(struct near_port *port)
{
	struct near_link *link, *next;
	size_t budget = NEAR_STEP;
	int n = 0;

	for (link = port->sending.next; link != &port->sending && budget;
	     link = next) {
		next = link->next;
		if (!port->sink->room(port->ctx))
			break;
		n += near_tx_step(port, near_container(link, struct near_tx_op,
						       link), &budget);
	}
	return n;
}

/*
 * A step of what is under way, as long as the sink has room for the ends: the
 * first that came is served first, so that none takes longer for the others.
 */
int near_work(struct near_port *port)
{
	bool waits = true;
	int n = 0;

	if (near_likely(port->work == NEAR_WORK_WAITS &&
			near_polls_left(port)))
		return port->onesided->moved(port);
	if (!near_list_empty(&port->receiving))
		n += near_work_receiving(port);
	if (!near_list_empty(&port->sending))
		n += near_work_sending(port);
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

static void near_ops_fail(struct near_port *port, struct near_peer *peer,
			  int err)
{
	struct near_tx_op *tx;
	struct near_rx_op *rx;
	uint32_t at = 0;

	while ((tx = near_pool_next(&port->tx_ops, &at))) {
		if (tx->peer != peer)
			continue;
		if (tx->state >= NEAR_TX_PIECES)
			near_list_remove(&tx->link);
		near_tx_end(port, tx, err);
	}
	at = 0;
	while ((rx = near_pool_next(&port->rx_ops, &at))) {
		if (rx->peer != peer)
			continue;
		if (rx->state != NEAR_RX_PIECES)
			near_list_remove(&rx->link);
		near_rx_end(port, rx, err);
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
