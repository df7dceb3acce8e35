/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The order of operations and messages: see docs/near/rma.md, *Order*. */

#include <errno.h>

#include "near/rma/ops.h"

bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args)
{
	return args->flags & NEAR_RMA_BEHIND &&
	       !near_tx_consumed(&at->peer->tx);
}

void near_rma_append(struct near_rma_peer *at, struct near_rma_op *op)
{
	struct near_link *next = &at->queue;
	const struct near_rma_op *other;

	if (op->args.flags & NEAR_RMA_MESSAGE)
		for (next = next->next; next != &at->queue; next = next->next) {
			other = near_container(next, struct near_rma_op, link);
			if (!other->begun && !other->sent &&
			    !(other->args.flags & NEAR_RMA_MESSAGE))
				break;
		}
	near_list_append(next, &op->link);
	op->queued = op->gates = true;
	at->gates++;
	near_tx_gate(&at->peer->tx, NEAR_GATE_QUEUE);
}

/*
 * op also waits while a posted read is pending (at->reading). Otherwise a write
 * could change the memory before the target has sent all bytes of the read.
 */
bool near_rma_must_wait(const struct near_rma_op *op)
{
	const struct near_rma_peer *at = op->to;

	if (op->begun || op->sent)
		return false;
	return (op->args.flags & NEAR_RMA_FENCE &&
		(at->unanswered || at->peer->large)) || at->reading ||
	       (at->device_pending && !op->on_device);
}

bool near_rma_busy(const struct near_peer *peer)
{
	return peer->rma && (peer->rma->unanswered ||
			     !near_list_empty(&peer->rma->queue));
}

bool near_rma_fenced(const struct near_peer *peer)
{
	return peer->large || near_rma_busy(peer);
}

/*
 * Sends a write of 0 bytes. The reply will show that the peer has consumed all
 * earlier slots.
 */
static void near_rma_barrier(struct near_port *port, struct near_rma_peer *at)
{
	const struct near_rma_args args = { .verb = NEAR_WRITE };
	struct near_rma_op *op = near_rma_op(port, at, &args);

	if (!op)
		/* no memory: the embedder calls near_rma_quiet() again */
		return;
	if (near_rma_part(port, op, 0, 0)) {
		near_pool_put(&port->rma->ops, op);
		return;
	}
	near_rma_begun(at, op);
}

int near_rma_quiet(struct near_port *port, struct near_peer *peer)
{
	struct near_rma_peer *at;

	if (!peer->tx.slots || peer->segment->table_fd < 0)
		return 0;
	at = near_rma_peer(peer);
	if (!at || near_rma_busy(peer))
		return -EAGAIN;
	if (near_tx_consumed(&peer->tx))
		return 0;
	near_rma_barrier(port, at);
	return -EAGAIN;
}
