/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <string.h>

#include "base/proc.h"
#include "near/msg/large.h"

/*
 * True if a cooperative copy is possible, and probably faster than a single
 * copy: docs/near/protocol.md, *Choice of the scheme*.
 */
static bool near_rx_coop_wanted(const struct near_port *port,
				const struct near_peer *peer, size_t iov_count,
				size_t len)
{
	return len >= NEAR_COOP_MIN && iov_count == 1 && peer->coop &&
	       !port->large && peer->ring && near_coop_step(len);
}

static enum near_rx_state near_rx_first_state(const struct near_port *port,
					      const struct near_rx_op *op)
{
	if (!op->len)
		return NEAR_RX_ACK;
	if (!op->rndv.addr || !op->peer->reads)
		return NEAR_RX_CTS;
	return near_rx_coop_wanted(port, op->peer, op->iov_count,
				   op->len)
		       ? NEAR_RX_COOP_PENDING
		       : NEAR_RX_READ;
}

struct near_rx_op *near_recv_begin(struct near_port *port,
				   struct near_peer *peer,
				   const struct near_rndv *rndv, void *cookie)
{
	struct near_rx_op *op = near_pool_get(&port->rx_ops);

	if (!op)
		return NULL;
	op->state = NEAR_RX_FETCHING;
	op->peer = peer;
	op->rndv = *rndv;
	op->done = 0;
	op->failed = false;
	op->err = 0;
	op->cookie = cookie;
	near_peer_hold(peer);
	return op;
}

int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie)
{
	struct near_rx_op *op = near_recv_begin(port, peer, rndv, cookie);
	size_t space = near_iov_len(iov, count);

	if (!op)
		return -EAGAIN;
	op->rndv.key = 0;	/* not measured: no result for the ACK */
	op->iov_count = (uint32_t)count;
	if (count)
		memcpy(op->iov, iov, count * sizeof(*iov));
	op->stop = op->len = len < space ? len : space;
	op->state = near_rx_first_state(port, op);
	if (op->state == NEAR_RX_COOP_PENDING && peer->coop_op) {
		near_list_append(&peer->waiting, &op->link);
		return 0;
	}
	if (op->state == NEAR_RX_COOP_PENDING)
		peer->coop_op = op;
	near_port_work(port, &port->receiving, &op->link);
	return 0;
}

void near_rx_coop_next(struct near_port *port, struct near_peer *peer)
{
	struct near_link *first = peer->waiting.next;

	peer->coop_op = NULL;
	if (first == &peer->waiting)
		return;
	near_list_remove(first);
	near_port_work(port, &port->receiving, first);
	peer->coop_op = near_container(first, struct near_rx_op, link);
}

/*
 * For a message of the port to itself: returns the address of byte `at` of the
 * sent buffer. Another process may have changed the RTS in shared memory, so
 * rndv->addr is not used. NULL: the id is not that of a send to this peer from
 * one host buffer with at + len bytes.
 */
static const void *near_rx_own(const struct near_peer *peer,
			       const struct near_rndv *rndv, size_t at,
			       size_t len)
{
	const struct near_tx_op *op = near_pool_find(peer->own, rndv->id);

	if (!op || op->peer != peer || op->device || op->iov_count != 1 ||
	    at > op->len || len > op->len - at)
		return NULL;
	return (const uint8_t *)op->iov[0].iov_base + at;
}

/*
 * Copies len bytes of the message, from byte `at` on, from the sender's memory.
 * Returns 0 or -errno. If all later copies would return this error, too, clears
 * peer->reads. This port then requests all messages of the peer in fragments.
 */
static near_inline int near_rx_copy(struct near_peer *peer,
				    const struct near_rndv *rndv, size_t at,
				    const struct iovec *to, size_t count,
				    size_t len)
{
	struct iovec from = { (void *)(uintptr_t)(rndv->addr + at), len };
	const void *own = near_unlikely(peer->own) ?
			  near_rx_own(peer, rndv, at, len) : NULL;
	ssize_t n;

	if (near_unlikely(own)) {
		near_iov_in(to, 0, own, len);
		return 0;
	}
	n = len ? process_vm_readv(peer->addr.pid, to, count, &from, 1, 0) : 0;
	if (near_likely(n == (ssize_t)len))
		return 0;
	if (n >= 0)
		return -EFAULT;
	/* ESRCH: the process has exited, or its main thread has */
	if (errno == EPERM || errno == ENOSYS || errno == ESRCH)
		peer->reads = false;
	return -errno;
}

/*
 * Converts the time since `start`, in which len bytes were copied, to the time
 * for NEAR_MEDIUM_MAX bytes. len is 0 if a message was truncated to nothing.
 */
static uint64_t near_rx_ns(uint64_t start, size_t len)
{
	return (duo_now_ns() - start) * NEAR_MEDIUM_MAX / (len | 1);
}

void near_medium_measured(struct near_peer *peer, uint64_t start, size_t len)
{
	uint64_t ns = near_rx_ns(start, len);

	peer->ring_ns = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/*
 * Returns the result of a trial, a single copy of len bytes since `start`. It
 * is compared with a copy from the ring, which costs the sender time, too.
 */
static enum near_trial near_rx_trial(const struct near_peer *peer,
				     uint64_t start, size_t len)
{
	return near_rx_ns(start, len) * 2 <= (uint64_t)peer->ring_ns * 3 ?
	       NEAR_TRIAL_FAST : NEAR_TRIAL_SLOW;
}

/*
 * Copies the message only if a slot is free for the ACK. This slot is still
 * free after the copy, because the embedder serializes all calls for the port.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len)
{
	const struct iovec to = { buf, len };
	struct near_slot *slot;
	uint64_t start;

	if (!near_list_empty(&port->receiving) || !rndv->addr ||
	    !peer->reads || len > *near_read_left(port) ||
	    near_rx_coop_wanted(port, peer, 1, len))
		return false;
	slot = near_tx_slot(&peer->tx);
	if (!slot || !near_peer_alive(port, peer))
		return false;
	start = near_unlikely(rndv->key) ? duo_now_ns() : 0;
	if (near_unlikely(near_rx_copy(peer, rndv, 0, &to, 1, len))) {
		rndv->addr = 0;
		return false;
	}
	port->read_left -= len;
	if (near_unlikely(near_peer_closed(port, peer)))
		return false;
	slot->ack.id = rndv->id;
	slot->ack.trial = near_unlikely(start) ?
			  near_rx_trial(peer, start, len) : NEAR_TRIAL_NONE;
	near_control_send(port, peer, slot, NEAR_KIND_ACK, 0);
	return true;
}

struct near_rx_op *near_rx_find(struct near_port *port, struct near_peer *peer,
				uint64_t id)
{
	struct near_rx_op *op = near_pool_find(&port->rx_ops, id);

	return op && op->peer == peer && op->state == NEAR_RX_FRAGS ? op : NULL;
}

/* Calls near_sink.received(), unless this function has called it for op. */
static void near_rx_done(struct near_port *port, struct near_rx_op *op, int err)
{
	void *cookie = op->cookie;

	op->cookie = NULL;
	if (cookie)
		port->sink->received(port->ctx, cookie, err);
}

void near_rx_end(struct near_port *port, struct near_rx_op *op, int err)
{
	struct near_peer *peer = op->peer;

	if (peer->coop_op == op)
		near_rx_coop_next(port, peer);
	near_rx_done(port, op, op->state == NEAR_RX_ACK ? op->err : err);
	near_pool_put(&port->rx_ops, op);
	near_peer_put(port, peer);
}

void near_rx_pull_failed(struct near_rx_op *op)
{
	op->done = 0;
	op->state = NEAR_RX_CTS;
}

bool near_rx_pull(struct near_rx_op *op, size_t len)
{
	struct iovec to[NEAR_IOV_MAX];
	size_t count;

	if (len > op->stop - op->done)
		len = op->stop - op->done;
	count = near_iov_from(op->iov, op->iov_count, op->done, len, to);
	if (near_rx_copy(op->peer, &op->rndv, op->done, to, count, len))
		return false;
	op->done += len;
	return true;
}

static void near_rx_read(struct near_port *port, struct near_rx_op *op,
			 size_t *budget)
{
	size_t len = op->stop - op->done;

	len = len < *budget ? len : *budget;
	*budget -= len;
	if (!near_rx_pull(op, len)) {
		near_rx_pull_failed(op);
		return;
	}
	if (op->done == op->stop && !near_peer_closed(port, op->peer))
		op->state = NEAR_RX_ACK;
}

/*
 * Sends the CTS or ACK that op->state requires, and removes op from
 * port->receiving. Frees op after an ACK. False: no slot is free, and a later
 * poll must call this function again.
 */
static bool near_rx_answer(struct near_port *port, struct near_rx_op *op)
{
	struct near_slot *slot = near_control_slot(port, op->peer);

	if (!slot)
		return false;
	if (op->state == NEAR_RX_ACK) {
		/* may copy the bytes to device memory */
		near_rx_done(port, op, op->err);
		slot->ack.id = op->rndv.id;
		slot->ack.trial = op->rndv.key == 1 ? NEAR_TRIAL_DEVICE :
						      NEAR_TRIAL_NONE;
		near_control_send(port, op->peer, slot, NEAR_KIND_ACK, 0);
		near_list_remove(&op->link);
		near_rx_end(port, op, 0);
		return true;
	}
	slot->cts.id = op->rndv.id;
	slot->cts.answer = near_pool_id(op);
	slot->cts.len = op->len;
	op->state = NEAR_RX_FRAGS;
	near_list_remove(&op->link);
	near_control_send(port, op->peer, slot, NEAR_KIND_CTS, 0);
	return true;
}

void near_rx_frag(struct near_port *port, struct near_rx_op *op,
		  const void *data, size_t len)
{
	near_iov_in(op->iov, op->done, data, len);
	op->done += len;
	if (op->done == op->len)
		near_recv_end(port, op, 0);
}

void near_recv_end(struct near_port *port, struct near_rx_op *op, int err)
{
	op->err = err;
	op->state = NEAR_RX_ACK;
	if (op->peer->state >= NEAR_PEER_CLOSED_OFF) {
		near_rx_end(port, op, err);
		return;
	}
	near_port_work(port, &port->receiving, &op->link);
	/* does not leave this to a poll: the embedder might not poll again */
	near_rx_answer(port, op);
}

void near_recv_frags(struct near_port *port, struct near_rx_op *op, void *buf,
		     size_t len)
{
	op->iov[0] = (struct iovec) { buf, len };
	op->iov_count = 1;
	op->stop = op->len = len;
	op->state = NEAR_RX_CTS;
	near_port_work(port, &port->receiving, &op->link);
}

bool near_rx_step(struct near_port *port, struct near_link *link,
		  size_t *budget)
{
	struct near_rx_op *op = near_container(link, struct near_rx_op, link);

	if (op->peer->state >= NEAR_PEER_CLOSED_OFF) {
		near_list_remove(&op->link);
		near_rx_end(port, op, ECONNRESET);
		return true;
	}
	if (!near_peer_alive(port, op->peer))
		return false;	/* near_ops_fail() will end op */
	if (op->state >= NEAR_RX_COOP_PENDING &&
	    op->state <= NEAR_RX_COOP_RUNNING)
		near_rx_coop(port, op, budget);
	if (op->state == NEAR_RX_READ)
		near_rx_read(port, op, budget);
	if (op->state == NEAR_RX_CTS || op->state == NEAR_RX_ACK)
		return near_rx_answer(port, op);
	return false;
}
