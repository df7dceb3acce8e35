/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Fast path of near_rma() for operations with one short local buffer: rma.md,
 * *Fast path*. Most callers pass a constant verb, so that the compiler removes
 * the code for other verbs. Writes and reads are delegated (delegate.h).
 */
#ifndef NEAR_RMA_INLINE_H
#define NEAR_RMA_INLINE_H

#include "near/rma/delegate.h"

/* True if the fast path delegates operations of this verb. */
static near_inline bool near_rma_delegated(enum near_verb verb)
{
	return verb == NEAR_WRITE || verb == NEAR_READ;
}

/* True if args fit the fast path. */
static near_inline bool near_rma_is_small(const struct near_rma_args *args)
{
	if (near_unlikely(args->flags & ~(NEAR_RMA_COPY | NEAR_RMA_TRY) ||
			  args->len - 1 >= NEAR_RMA_BYTES ||
			  args->local.count != 1))
		return false;
	return near_rma_delegated(args->verb) ||
	       (args->verb == NEAR_FETCH && args->result.count == 1 &&
		args->len == 8 && near_rma_adds(args->type, args->op));
}

/*
 * True if a new operation may start now. A delegated operation must not start
 * while operations of other kinds are pending: if the initiator revoked it, it
 * would overtake them. An atomic must not start while a posted read is pending
 * (at->reading): it could change the memory between two parts of the read.
 */
static near_inline bool near_small_now(const struct near_peer *peer,
				       const struct near_rma_peer *at,
				       bool delegated)
{
	if (near_unlikely(at->expect >= NEAR_RMA_EXPECT || peer->draining))
		return false;
	if (!delegated)
		return !at->reading;
	return near_likely(at->unanswered == at->delegs && !at->skip &&
			   peer->reads);
}

/* True if the cached region entry (near_table_view.known) permits args. */
static near_inline bool near_small_allowed(const struct near_rma_peer *at,
					   const struct near_rma_args *args)
{
	const struct near_region_entry *entry;
	uint64_t memory;

	if (near_unlikely(!at->view))
		return false;
	entry = near_table_view_known(at->view, args->key);
	return near_likely(
		       entry &&
		       !near_region_check(entry, args->addr, args->len,
					  near_rma_access(args->verb, args->op),
					  &memory)) &&
	       (near_rma_delegated(args->verb) || !(memory % sizeof(uint64_t)));
}

/* Sets the fields of op that near reads when op ends or is revoked. */
static near_inline void near_small_keep(struct near_rma_op *op,
					const struct near_rma_args *args)
{
	bool copy = args->flags & NEAR_RMA_COPY && args->verb != NEAR_READ;

	op->args.verb = args->verb;
	op->args.flags = copy ? NEAR_RMA_COPY : 0;
	op->args.addr = args->addr;
	op->args.key = args->key;
	op->args.len = args->len;
	op->args.cookie = args->cookie;
	op->args.about = args->about;
	op->args.data = 0;
	op->args.op = args->op;
	op->args.type = args->type;
	op->args.local.iov = op->local;
	op->args.local.count = 1;
	op->local[0] = (struct iovec) { args->local.iov->iov_base, args->len };
	if (copy) {
		near_copy_small(op->kept, args->local.iov->iov_base,
				args->len);
		op->local[0].iov_base = op->kept;
	}
	if (!near_rma_delegated(args->verb)) {
		op->args.result.iov = op->result;
		op->args.result.count = 1;
		op->result[0] = (struct iovec) { args->result.iov->iov_base,
						 args->len };
	}
	op->copy = NULL;
	op->sent = args->len;
	op->answered = 0;
	op->expect = 1;
	op->begun = op->small = true;
	op->queued = op->delegated = false;
}

static near_inline void near_small_post(struct near_port *port,
					struct near_peer *peer,
					const struct near_rma_op *op,
					struct near_slot *slot,
					const struct near_rma_args *args,
					unsigned int flags)
{
	bool operands = args->verb != NEAR_READ;

	slot->tag = args->addr;
	slot->rma.key = args->key;
	slot->rma.id = near_pool_id(op);
	if (operands) {
		near_copy_small(slot->rma.bytes, args->local.iov->iov_base,
				args->len);
	} else {
		slot->rma.total = args->len;
		slot->rma.offset = 0;
	}
	slot->rma.verb = args->verb;
	slot->rma.op = args->op;
	slot->rma.type = args->type;
	slot->rma.flags = operands ? NEAR_RMA_INLINE : 0;
	slot->rma.len = operands ? (uint32_t)args->len : 0;
	near_control_send(port, peer, slot, NEAR_KIND_RMA, flags);
}

/*
 * Starts an operation for which near_rma_is_small() is true. False: not
 * started, the caller must use the slow path.
 */
static near_inline bool near_rma_small(struct near_port *port,
				       struct near_peer *peer,
				       const struct near_rma_args *args)
{
	bool delegated = near_rma_delegated(args->verb);
	struct near_rma_peer *at = peer->rma;
	struct near_slot *slot;
	struct near_rma_op *op;

	if (near_unlikely(!at || (delegated && port->fence) ||
			  !near_small_now(peer, at, delegated) ||
			  !near_small_allowed(at, args) ||
			  !near_pool_ready(&port->rma->ops)))
		return false;
	/* also NULL while operations are queued: NEAR_GATE_QUEUE is closed */
	slot = near_tx_slot(&peer->tx);
	if (near_unlikely(!slot))
		return false;
	op = near_pool_get(&port->rma->ops);
	near_small_post(port, peer, op, slot, args,
			delegated ? NEAR_DELEG_OPEN : NEAR_DELEG_NONE);
	/* fills in op after the post, so the target finds the request sooner */
	op->to = at;
	near_small_keep(op, args);
	near_peer_hold(peer);
	at->expect++;
	at->unanswered++;
	port->rma->small++;
	if (delegated)
		near_deleg_add(port, at, op, slot);
	return true;
}

/* issue.c: part of near_rma_end() for operations of the slow path */
void near_rma_end_more(struct near_rma_op *op, int err);

/*
 * Ends and frees op. If op->args.about is not 0, calls near_rma_sink.done().
 * err: positive errno value, or 0.
 */
static near_inline void near_rma_end(struct near_port *port,
				     struct near_rma_op *op, int err)
{
	void *cookie = op->args.cookie;
	uint32_t about = op->args.about;
	struct near_rma_peer *at = op->to;
	struct near_peer *peer = at->peer;

	if (near_likely(op->small)) {
		at->unanswered--;
		at->expect -= op->expect;
	} else {
		near_rma_end_more(op, err);
	}
	if (op->delegated)
		near_deleg_ended(at, op);
	near_pool_put(&port->rma->ops, op);
	if (near_likely(about))
		port->rma->sink->done(port->ctx, peer, cookie, about, err);
	near_rma_drop_work(port, at);
	near_peer_unhold(port, peer);
}

#endif /* NEAR_RMA_INLINE_H */
