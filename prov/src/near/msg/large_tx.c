/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "near/msg/large.h"

/*
 * Sets op->iov to the buffers of the message. If large->copy is set, allocates
 * memory, copies the buffers to it, and sets op->iov to the copy instead.
 * Returns 0; or -EAGAIN: no memory.
 */
static int near_tx_keep(struct near_tx_op *op, const struct near_large *large)
{
	op->copy = large->owned;
	op->iov_count = (uint32_t)large->count;
	if (near_likely(large->count == 1))
		op->iov[0] = large->iov[0];
	else
		memcpy(op->iov, large->iov, large->count * sizeof(op->iov[0]));
	if (!large->copy || !op->len)
		return 0;
	op->copy = malloc(op->len);
	if (!op->copy)
		return -EAGAIN;
	near_iov_out(op->copy, large->iov, 0, op->len);
	op->iov[0] = (struct iovec) { op->copy, op->len };
	op->iov_count = 1;
	return 0;
}

static bool near_is_medium(size_t len)
{
	return len > NEAR_EAGER_MAX && len <= NEAR_MEDIUM_MAX;
}

/*
 * Also counts messages that do not fit in the ring: if single copy has become
 * slow, a trial must show this, so that the ring grows. The message before a
 * trial is eager even if single copy is fast, so that the receiver can compare.
 */
bool near_medium_eager(struct near_peer *peer, size_t len)
{
	if (!near_is_medium(len))
		return false;
	peer->medium = (uint8_t)((peer->medium + 1) % NEAR_TRIAL);
	return peer->medium > 1 && len <= peer->tx.medium_max &&
	       (peer->trial < NEAR_TRIAL_FAST ||
		(peer->trial == NEAR_TRIAL_FAST &&
		 near_is_measured(peer, len)));
}

/* True if the message is the second one of a trial. */
static bool near_tx_trial(const struct near_peer *peer, size_t len)
{
	return near_is_medium(len) && peer->medium == 1;
}

/*
 * Returns len if the message is too long to be eager in this ring, but would be
 * eager in a larger ring. Otherwise returns 0.
 */
static uint32_t near_tx_too_small(const struct near_peer *peer, size_t len)
{
	size_t max = peer->trial < NEAR_TRIAL_FAST ? NEAR_MEDIUM_MAX :
						     NEAR_EAGER_MAX;

	return len > near_data_max(peer->tx.dsize) && len <= max ?
	       (uint32_t)len : 0;
}

int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large)
{
	struct near_tx_op *op;
	struct near_slot *slot;
	int ret;

	if (!peer->tx.slots) {
		ret = near_connect(port, peer);
		if (ret)
			return ret;
	}
	slot = near_tx_slot(&peer->tx);
	if (!slot)
		return near_full(port, peer);
	op = near_pool_get(&port->tx_ops);
	if (!op)
		return -EAGAIN;
	op->len = msg->len;
	ret = near_tx_keep(op, large);
	if (ret) {
		near_pool_put(&port->tx_ops, op);
		return ret;
	}
	op->state = NEAR_TX_ANNOUNCED;
	op->peer = peer;
	op->done = 0;
	op->cookie = large->cookie;
	op->device = msg->flags & NEAR_DEVICE;
	op->failed = 0;
	op->too_small = near_tx_too_small(peer, msg->len);
	near_peer_hold(peer);
	peer->large++;
	port->large++;
	slot->tag = msg->tag;
	slot->rts.len = msg->len;
	slot->rts.id = near_pool_id(op);
	slot->rts.addr = op->iov_count == 1 &&
		port->reads ?
		(uint64_t)(uintptr_t)op->iov[0].iov_base : 0;
	slot->rts.key = near_tx_trial(peer, msg->len);
	if (near_unlikely(op->device)) {
		slot->rts.addr = msg->rndv.addr;
		slot->rts.key = msg->rndv.key;
	}
	slot->rts.data = (uint32_t)(msg->data >> 32);
	near_tx_publish(&peer->tx, slot, near_word(NEAR_KIND_RTS, msg->flags,
						   0, msg->data));
	near_sent(port, peer);
	return 0;
}

static __attribute__((noinline)) bool
near_tx_cts(struct near_port *port, struct near_tx_op *op,
	    const struct near_slot *slot)
{
	uint64_t len = __atomic_load_n(&slot->cts.len, __ATOMIC_RELAXED);

	if (op->state == NEAR_TX_SENT || len > op->len)
		return false;
	op->state = NEAR_TX_FRAGS;
	op->answer = slot->cts.answer;
	op->len = len;
	near_port_work(port, &port->sending, &op->link);
	return true;
}

/*
 * The slots of CTS, COOP and ACK have the id of the sender's operation at the
 * same offset, so slot->ack.id is correct for all three.
 */
bool near_tx_answered(struct near_port *port, struct near_peer *peer,
		      const struct near_slot *slot, enum near_kind kind)
{
	uint64_t id = __atomic_load_n(&slot->ack.id, __ATOMIC_RELAXED);
	struct near_tx_op *op = near_pool_find(&port->tx_ops, id);
	uint32_t trial;

	if (!op || op->peer != peer || op->state == NEAR_TX_FRAGS)
		return false;
	if (kind == NEAR_KIND_COOP)
		return near_tx_coop_requested(port, op, slot);
	near_tx_coop_finish(op);
	if (kind == NEAR_KIND_CTS)
		return near_tx_cts(port, op, slot);
	trial = __atomic_load_n(&slot->ack.trial, __ATOMIC_RELAXED);
	if (trial != NEAR_TRIAL_NONE)
		peer->trial = (uint8_t)trial;
	near_tx_end(port, op, 0);
	return true;
}

void near_tx_end(struct near_port *port, struct near_tx_op *op, int err)
{
	struct near_peer *peer = op->peer;
	void *cookie = op->cookie;

	/*
	 * Requests a larger ring, if the message would be eager there. Until
	 * the receiver replies, no message can be sent. Therefore the request
	 * is sent only after the ACK, which shows that the receiver polls.
	 */
	if (!err && op->too_small > near_data_max(peer->tx.dsize))
		near_too_small(port, peer, op->too_small);
	free(op->copy);
	near_pool_put(&port->tx_ops, op);
	peer->large--;
	port->large--;
	if (cookie)
		port->sink->sent(port->ctx, cookie, err);
	near_peer_unhold(port, peer);
}

/*
 * Replaces op's device buffer by a copy in host memory. Sets op->failed if
 * near_sink.unload() cannot copy the bytes. False: no memory; a later poll must
 * call this function again.
 */
static bool near_tx_unload(struct near_port *port, struct near_tx_op *op)
{
	void *copy = malloc(op->len);
	int err = !copy ? ENOMEM :
		  port->sink->unload(port->ctx, op->cookie,
				     op->iov[0].iov_base, copy, op->len);

	if (err == ENOMEM) {
		free(copy);
		return false;
	}
	op->copy = copy;
	op->failed = err;
	op->iov[0] = (struct iovec) { op->copy, op->len };
	op->device = false;
	return true;
}

/*
 * Ends a message that near_sink.unload() could not copy. Sends a last fragment
 * with NEAR_FRAG_FAILED, which ends the receiver's operation with EIO. Then
 * ends op with the error op->failed. False: no slot is free, and a later poll
 * must call this function again.
 */
static bool near_tx_give_up(struct near_port *port, struct near_tx_op *op)
{
	struct near_slot *slot = near_control_slot(port, op->peer);

	if (!slot)
		return false;
	slot->frag.answer = op->answer;
	slot->frag.len = 0;
	near_tx_publish(&op->peer->tx, slot,
			near_word(NEAR_KIND_FRAG, NEAR_FRAG_FAILED, 0, 0));
	near_sent(port, op->peer);
	near_list_remove(&op->link);
	near_tx_end(port, op, op->failed);
	return true;
}

/* Sends the next fragment. False: the ring has no space. */
static bool near_tx_frag(struct near_port *port, struct near_tx_op *op)
{
	struct near_tx *tx = &op->peer->tx;
	size_t len = op->len - op->done, most = near_frag_max(tx);
	struct near_slot *slot;
	uint64_t end;
	uint8_t *data;

	if (len > most)
		len = most;
	slot = near_control_slot(port, op->peer);
	data = slot ? near_tx_data(tx, len, &end) : NULL;
	if (!data) {
		near_full(port, op->peer);
		return false;
	}
	near_iov_out(data, op->iov, op->done, len);
	op->done += len;
	tx->dtail = end;
	slot->frag.answer = op->answer;
	slot->frag.len = (uint32_t)len;
	/*
	 * Does not use near_tx_publish_quiet(). So RMA with NEAR_RMA_BEHIND,
	 * which must follow this message, waits until the peer has consumed
	 * the fragment.
	 */
	near_tx_publish(tx, slot, near_word(NEAR_KIND_FRAG, 0, 0, 0));
	near_sent(port, op->peer);
	return true;
}

/*
 * Sends fragments until the whole message or *budget bytes are sent, or until
 * the ring has no space. True: op has left port->sending.
 */
static bool near_tx_frags(struct near_port *port, struct near_tx_op *op,
			  size_t *budget)
{
	size_t start = op->done, sent;

	if (near_unlikely(op->device) && !near_tx_unload(port, op))
		return false;
	if (near_unlikely(op->failed))
		return near_tx_give_up(port, op);
	while (op->done < op->len && op->done - start < *budget)
		if (!near_tx_frag(port, op))
			break;
	sent = op->done - start;
	*budget -= sent < *budget ? sent : *budget;
	if (op->done < op->len)
		return false;
	near_list_remove(&op->link);
	op->state = NEAR_TX_SENT;
	return true;
}

bool near_tx_step(struct near_port *port, struct near_link *link,
		  size_t *budget)
{
	struct near_tx_op *op = near_container(link, struct near_tx_op, link);

	if (op->state == NEAR_TX_FRAGS)
		return near_tx_frags(port, op, budget);
	near_tx_coop(port, op, budget);
	return op->state != NEAR_TX_COOP;
}
