/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The receiver's side of large messages. */

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "near/msg/large.h"

/* The ring may change its size while a message is under way. */
static uint8_t near_rx_tier(const struct near_peer *peer)
{
	const struct near_lane *lane = peer->lane;
	uint8_t tier = lane ? lane->tier : 0;

	return tier < NEAR_FETCH_TIERS ? tier : NEAR_FETCH_TIERS - 1;
}

/* What both ends know to be possible. */
static unsigned int near_rx_ways(const struct near_peer *peer,
				 const struct near_rndv *rndv, size_t iov_count,
				 size_t len)
{
	unsigned int ways = peer->ways;

	if (!rndv->addr)
		ways &= NEAR_WAY_BIT(NEAR_WAY_PIECES);
	if (iov_count != 1 || len < 2 * NEAR_SHARE_MIN ||
	    !near_share_step(len) || !peer->lane)
		ways &= ~NEAR_WAY_BIT(NEAR_WAY_SHARE);
	return ways ? ways : NEAR_WAY_BIT(NEAR_WAY_PIECES);
}

static enum near_rx_state near_rx_first_state(const struct near_rx_op *op)
{
	if (!op->len)
		return NEAR_RX_ACK;
	if (op->way == NEAR_WAY_PIECES)
		return NEAR_RX_CTS;
	return op->way == NEAR_WAY_SHARE ? NEAR_RX_OFFER : NEAR_RX_READ;
}

/*
 * Begins the next of the peer's, unless it has to wait for those under way:
 * what is measured is measured alone.
 */
static bool near_rx_begin(struct near_port *port, struct near_rx_op *op)
{
	struct near_peer *peer = op->peer;
	uint8_t tier = near_rx_tier(peer);
	struct near_ways *costs = &port->fetch[tier];
	unsigned int ways;
	bool known = true;

	op->way = NEAR_WAYS;
	if (op->len) {
		ways = near_rx_ways(peer, &op->rndv, op->iov_count, op->len);
		op->way = near_way_choose(costs, op->len, ways);
		known = near_way_known(costs, op->way, op->len);
	}
	if (peer->hold || (!known && peer->fetching) ||
	    (op->way == NEAR_WAY_SHARE && peer->sharing))
		return false;
	if (!known)
		near_way_begin(costs, op->way, op->len);
	peer->alone = peer->fetching++ ? NULL : op;
	peer->hold = !known;
	if (op->way == NEAR_WAY_SHARE)
		peer->sharing = op;
	op->since_ns = peer->alone ? duo_now_ns() : 0;
	op->begun = true;
	op->tier = tier;
	op->state = near_rx_first_state(op);
	near_list_remove(&op->link);
	near_port_work(port, &port->receiving, &op->link);
	return true;
}

static void near_rx_begin_all(struct near_port *port, struct near_peer *peer)
{
	while (!near_list_empty(&peer->waiting) &&
	       near_rx_begin(port, near_container(peer->waiting.next,
						  struct near_rx_op, link)))
		;
}

int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie)
{
	struct near_rx_op *op = near_pool_get(&port->rx_ops);
	size_t room = near_iov_len(iov, count);

	if (!op)
		return -EAGAIN;
	op->peer = peer;
	op->rndv = *rndv;
	op->iov_count = (uint32_t)count;
	if (count)
		memcpy(op->iov, iov, count * sizeof(*iov));
	op->stop = op->len = len < room ? len : room;
	op->done = 0;
	op->failed = 0;
	op->begun = false;
	op->cookie = cookie;
	near_peer_hold(peer);
	if (peer->state >= NEAR_PEER_CLOSED_OFF) {
		op->state = NEAR_RX_LOST;
		near_port_work(port, &port->receiving, &op->link);
		return 0;
	}
	op->state = NEAR_RX_NEW;
	near_list_append(&peer->waiting, &op->link);
	near_rx_begin_all(port, peer);
	return 0;
}

/* All of it in one call. */
static bool near_rx_copy(const struct near_peer *peer, uint64_t addr, void *buf,
			 size_t len)
{
	struct iovec there = { (void *)(uintptr_t)addr, len };
	struct iovec here = { buf, len };

	return !len || process_vm_readv(peer->addr.pid, &here, 1, &there, 1,
					0) == (ssize_t)len;
}

/*
 * True if a read is known to be the best way, or there is nothing to read.
 * *timed: its time is to be taken.
 */
static bool near_rx_reads(const struct near_peer *peer, struct near_ways *costs,
			  const struct near_rndv *rndv, size_t len, bool *timed)
{
	*timed = false;
	if (!len || near_way_reads(costs, len))
		return true;
	if (near_way_choose(costs, len, near_rx_ways(peer, rndv, 1, len)) !=
	    NEAR_WAY_READ || !near_way_known(costs, NEAR_WAY_READ, len))
		return false;
	near_way_reads_on(costs, len);
	*timed = true;
	return true;
}

/*
 * Nothing is under way that it would overtake, or disturb where that is
 * measured. The slot of the answer is ours until we send something else.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   const struct near_rndv *rndv, void *buf, size_t len)
{
	struct near_ways *costs = &port->fetch[near_rx_tier(peer)];
	struct near_slot *slot;
	uint64_t since;
	bool timed;

	if (peer->fetching || !near_list_empty(&port->receiving) ||
	    !rndv->addr || !(peer->ways & NEAR_WAY_BIT(NEAR_WAY_READ)) ||
	    len > *near_read_left(port) ||
	    !near_rx_reads(peer, costs, rndv, len, &timed))
		return false;
	slot = near_tx_slot(&peer->tx);
	if (!slot || !near_peer_alive(port, peer))
		return false;
	since = timed ? duo_now_ns() : 0;
	if (!near_rx_copy(peer, rndv->addr, buf, len))
		return false;
	port->read_left -= len;
	if (timed)
		near_way_learn(costs, NEAR_WAY_READ, len, duo_now_ns() - since);
	slot->ack.id = rndv->id;
	near_control_send(port, peer, slot, NEAR_KIND_ACK);
	return true;
}

struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id)
{
	struct near_rx_op *op = near_pool_find(&port->rx_ops, id);

	return op && op->peer == peer && op->state == NEAR_RX_PIECES ?
		op : NULL;
}

/* All that is wanted is here: the owner first, then the sender. */
static void near_rx_done(struct near_port *port, struct near_rx_op *op, int err)
{
	void *cookie = op->cookie;

	op->cookie = NULL;
	if (cookie)
		port->sink->received(port->ctx, cookie, err);
}

/* What it took, if nothing else was under way. */
static void near_rx_measured(struct near_port *port, struct near_rx_op *op,
			     int err)
{
	struct near_peer *peer = op->peer;

	peer->fetching--;
	if (peer->sharing == op)
		peer->sharing = NULL;
	if (peer->alone != op)
		return;
	peer->alone = NULL;
	peer->hold = false;
	if (!err && op->way != NEAR_WAYS)
		near_way_learn(&port->fetch[op->tier], op->way, op->len,
			       duo_now_ns() - op->since_ns);
}

/* op is in no list any more. */
void near_rx_end(struct near_port *port, struct near_rx_op *op, int err)
{
	struct near_peer *peer = op->peer;

	if (op->begun)
		near_rx_measured(port, op, err);
	near_rx_done(port, op, err);
	near_pool_put(&port->rx_ops, op);
	if (!peer->dying && peer->state != NEAR_PEER_GONE)
		near_rx_begin_all(port, peer);
	near_peer_put(port, peer);
}

void near_rx_piece(struct near_port *port, struct near_rx_op *op,
		   const void *data, size_t len)
{
	near_iov_in(op->iov, op->done, data, len);
	op->done += len;
	if (op->done == op->len)
		near_rx_end(port, op, 0);
}

/*
 * Refused, or not to be read by its address. ESRCH is a peer that is about to be
 * found dead, or one whose main thread has ended: its pid names no memory.
 */
void near_rx_pull_failed(struct near_rx_op *op, int err)
{
	if (err == EPERM || err == ENOSYS || err == ESRCH)
		op->peer->ways = NEAR_WAY_BIT(NEAR_WAY_PIECES);
	op->way = NEAR_WAYS;	/* nothing is learned of this one */
	op->done = 0;
	op->state = NEAR_RX_CTS;
}

int near_rx_pull(struct near_rx_op *op, size_t len)
{
	struct iovec here[NEAR_IOV_MAX], there;
	ssize_t n;

	if (len > op->stop - op->done)
		len = op->stop - op->done;
	there.iov_base = (void *)(uintptr_t)(op->rndv.addr + op->done);
	there.iov_len = len;
	n = len ? process_vm_readv(op->peer->addr.pid, here,
				   near_iov_rest(op->iov, op->iov_count,
						 op->done, len, here), &there, 1,
				   0) : 0;
	if (n < 0)
		return -errno;
	op->done += n;
	return (size_t)n == len ? 0 : -EFAULT;
}

static void near_rx_read(struct near_port *port, struct near_rx_op *op,
			 size_t *budget)
{
	size_t len = op->stop - op->done;
	int ret;

	if (op->done < op->stop) {
		len = len < *budget ? len : *budget;
		*budget -= len;
		ret = near_rx_pull(op, len);
		if (ret) {
			near_rx_pull_failed(op, -ret);
			return;
		}
	}
	if (op->done < op->stop)
		return;
	near_rx_done(port, op, 0);
	op->state = NEAR_RX_ACK;
}

/* CTS or ACK; false: no room. */
static bool near_rx_answer(struct near_port *port, struct near_rx_op *op)
{
	struct near_slot *slot = near_control_slot(port, op->peer);

	if (!slot)
		return false;
	if (op->state == NEAR_RX_ACK || !op->len) {
		slot->ack.id = op->rndv.id;
		near_control_send(port, op->peer, slot, NEAR_KIND_ACK);
		near_list_remove(&op->link);
		near_rx_end(port, op, 0);
		return true;
	}
	slot->cts.id = op->rndv.id;
	slot->cts.answer = near_pool_id(op);
	slot->cts.len = op->len;
	op->state = NEAR_RX_PIECES;
	near_list_remove(&op->link);
	near_control_send(port, op->peer, slot, NEAR_KIND_CTS);
	return true;
}

/* The sender's memory is not to be looked for: its end is on its way. */
static bool near_rx_lost(struct near_port *port, struct near_rx_op *op)
{
	op->state = NEAR_RX_LOST;
	if (op->peer->state < NEAR_PEER_CLOSED_OFF)
		return false;	/* near_ops_fail() ends it */
	near_list_remove(&op->link);
	near_rx_end(port, op, ECONNRESET);
	return true;
}

bool near_rx_step(struct near_port *port, struct near_rx_op *op,
		  size_t *budget)
{
	if (op->state == NEAR_RX_LOST || !near_peer_alive(port, op->peer))
		return near_rx_lost(port, op);
	if (op->state >= NEAR_RX_OFFER && op->state <= NEAR_RX_SHARED)
		near_rx_share(port, op, budget);
	if (op->state == NEAR_RX_READ)
		near_rx_read(port, op, budget);
	if (op->state == NEAR_RX_CTS || op->state == NEAR_RX_ACK)
		return near_rx_answer(port, op);
	return false;
}
