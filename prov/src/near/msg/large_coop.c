/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <sched.h>

#include "base/proc.h"
#include "near/msg/large.h"

/* The sender. */

bool near_tx_coop_requested(struct near_port *port, struct near_tx_op *op,
			    const struct near_slot *slot)
{
	uint64_t len = __atomic_load_n(&slot->coop.len, __ATOMIC_RELAXED);
	uint32_t step = near_coop_step(len);

	/*
	 * a port never requests a cooperative copy of a message to itself:
	 * another process has written such a slot
	 */
	if (op->state != NEAR_TX_ANNOUNCED || op->iov_count != 1 ||
	    op->device || len > op->len || !step || op->peer->far ||
	    op->peer->own)
		return false;
	op->there = slot->coop.addr;
	op->round = slot->coop.round;
	op->step = step;
	op->steps = near_coop_steps(len, step);
	op->wrote = 0;
	op->shared = len;
	op->state = NEAR_TX_COOP;
	near_port_work(port, &port->sending, &op->link);
	return true;
}

/*
 * Writes step `at` to the receiver's buffer. Subtracts the step's bytes from
 * *budget. False: the write failed.
 */
static bool near_tx_push(struct near_port *port, struct near_tx_op *op,
			 uint32_t at, size_t *budget)
{
	size_t from = (size_t)at * op->step, len = op->shared - from;
	struct iovec here, there;

	if (len > op->step)
		len = op->step;
	*budget -= len < *budget ? len : *budget;
	here.iov_base = (char *)op->iov[0].iov_base + from;
	there.iov_base = (void *)(uintptr_t)(op->there + from);
	here.iov_len = there.iov_len = len;
	return near_peer_alive(port, op->peer) &&
	       process_vm_writev(op->peer->addr.pid, &here, 1, &there, 1, 0) ==
	       (ssize_t)len;
}

/*
 * Takes steps and writes them. If a write fails, the sender takes no more
 * steps, and the receiver reads the step that was not written.
 */
void near_tx_coop(struct near_port *port, struct near_tx_op *op, size_t *budget)
{
	struct near_ctl *ctl = op->peer->tx.ctl;
	bool failed = !ctl;	/* no ctl: the peer was disconnected */
	int32_t n = 0;

	while (!failed && *budget) {
		n = near_coop_take(ctl, op->round, op->steps, true);
		if (n < 0)
			break;
		failed = !near_tx_push(port, op, op->steps - 1 - n, budget);
		op->wrote += !failed;
		near_coop_wrote(ctl, op->round, op->wrote, failed);
	}
	if (failed || n < 0)
		near_tx_coop_finish(op);
}

/* The receiver. */

/*
 * Begins a round, and sends a COOP to the sender of the message. False: no slot
 * is free for the COOP, and a later poll must call this function again.
 */
static bool near_rx_coop_request(struct near_port *port, struct near_rx_op *op)
{
	struct near_slot *slot = near_control_slot(port, op->peer);

	if (!slot)
		return false;
	op->step = near_coop_step(op->len);
	op->steps = near_coop_steps(op->len, op->step);
	if (!++op->peer->round)		/* skip 0: no round */
		op->peer->round++;
	near_coop_begin(op->peer->ring->rx.ctl, op->peer->round);
	slot->coop.id = op->rndv.id;
	slot->coop.len = op->len;
	slot->coop.addr = (uint64_t)(uintptr_t)op->iov[0].iov_base;
	slot->coop.round = op->peer->round;
	near_control_send(port, op->peer, slot, NEAR_KIND_COOP, 0);
	op->state = NEAR_RX_COOP;
	return true;
}

/*
 * Ends the round, so that neither end takes a further step. Limits the number
 * of the sender's steps, which a faulty sender may set too high, to the steps
 * that the receiver has not read.
 */
static void near_rx_coop_end(struct near_rx_op *op)
{
	uint32_t left = op->steps -
			(uint32_t)((op->done + op->step - 1) / op->step);

	op->sender_steps = near_coop_end(op->peer->ring->rx.ctl);
	if (op->sender_steps > left)
		op->sender_steps = left;
	op->state = NEAR_RX_COOP_RUNNING;
}

/*
 * Takes steps and reads them, and subtracts their bytes from *budget. Ends the
 * round when all steps are taken, or after a read has failed.
 */
static void near_rx_coop_steps(struct near_rx_op *op, size_t *budget)
{
	struct near_ctl *ctl = op->peer->ring->rx.ctl;
	int32_t n = 0;

	while (*budget) {
		n = near_coop_take(ctl, op->peer->round, op->steps, false);
		if (n < 0)
			break;
		*budget -= op->step < *budget ? op->step : *budget;
		op->failed = !near_rx_pull(op, op->step);
		if (op->failed) {
			near_rx_coop_end(op);
			return;
		}
	}
	if (n < 0)
		near_rx_coop_end(op);
}

/*
 * Ends the cooperative copy of op, after the sender has written its last step.
 * wrote: number of steps that the sender has written. near_rx_step() then reads
 * the steps that neither end has copied. If a read of the receiver has failed,
 * near_rx_step() requests the whole message in fragments instead.
 */
static void near_rx_coop_finish(struct near_port *port, struct near_rx_op *op,
				uint32_t wrote)
{
	size_t by_us = (size_t)(op->steps - wrote) * op->step;

	near_rx_coop_next(port, op->peer);
	if (wrote < op->sender_steps)	/* a write of the sender has failed */
		op->peer->coop = false;
	if (op->failed) {
		near_rx_pull_failed(op);
		return;
	}
	op->stop = wrote ? by_us : op->len;
	op->state = NEAR_RX_READ;
}

void near_rx_coop(struct near_port *port, struct near_rx_op *op, size_t *budget)
{
	uint32_t wrote = 0;

	if (op->state == NEAR_RX_COOP_PENDING &&
	    !near_rx_coop_request(port, op))
		return;
	if (op->state == NEAR_RX_COOP)
		near_rx_coop_steps(op, budget);
	if (op->state == NEAR_RX_COOP_RUNNING &&
	    (!op->sender_steps ||
	     near_coop_sender_ended(op->peer->ring->rx.ctl, op->peer->round,
				    op->sender_steps, &wrote)))
		near_rx_coop_finish(port, op, wrote);
}

/*
 * The wait also ends if the sender's process has exited. near_peer_alive()
 * would be the wrong test for this: it is false, too, if this port has
 * disconnected the sender, whose process may still be alive and write to the
 * buffer.
 */
void near_rx_coop_stop(struct near_rx_op *op, uint64_t end_ms)
{
	uint32_t wrote;

	if (op->state == NEAR_RX_COOP)
		near_rx_coop_end(op);
	if (op->state != NEAR_RX_COOP_RUNNING || !op->sender_steps)
		return;
	while (!near_coop_sender_ended(op->peer->ring->rx.ctl, op->peer->round,
				       op->sender_steps, &wrote) &&
	       !near_peer_check_exited(op->peer) && duo_now_ms() < end_ms)
		sched_yield();
}

void near_ops_stop(struct near_port *port)
{
	uint64_t end_ms = duo_now_ms() + NEAR_STOP_MS;
	struct near_rx_op *op;
	uint32_t at = 0;

	while ((op = near_pool_next(&port->rx_ops, &at)))
		near_rx_coop_stop(op, end_ms);
}
