/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The initiator issues the operations to a peer in order (rma.md, *Order*). */

#include <errno.h>
#include <stdlib.h>

#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

void near_rma_ungate(struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;

	at->gates -= op->gates;
	op->gates = false;
	if (!at->gates)
		near_tx_open_gate(&at->peer->tx, NEAR_GATE_QUEUE);
}

void near_rma_unqueue(struct near_rma_op *op)
{
	if (!op->queued)
		return;
	near_list_remove(&op->link);
	op->queued = false;
	if (!op->on_device)
		near_rma_ungate(op);
}

void near_rma_end_more(struct near_rma_op *op, int err)
{
	struct near_rma_peer *at = op->to;

	near_rma_unqueue(op);
	if (op->begun) {
		if (!err && !op->delegated)
			near_rma_answered_at(at, op->mark);
		at->unanswered--;
		at->expect -= op->expect;
		/* for a read of this kind, near_rma_post() has set `reading` */
		if (op->args.verb == NEAR_READ && !op->delegated &&
		    !op->on_device)
			at->reading = false;
		at->device_pending -= op->on_device;
	}
	near_rma_ungate(op);
	if (op->mapping)
		op->mapping->ops--;
	free(op->copy);
}

/*
 * True if the request can have all operands in its slot: op has operands, they
 * are short enough for one slot, and op has no remote CQ data.
 */
static bool near_rma_inline(const struct near_rma_op *op, size_t len,
			    unsigned int operands)
{
	return operands && len == op->args.len &&
	       len * operands <= NEAR_RMA_BYTES &&
	       !(op->args.flags & NEAR_RMA_DATA);
}

/* Copies the next len bytes of all operands of op to `to`, without gaps. */
static void near_rma_operands_out(const struct near_rma_op *op, uint8_t *to,
				  size_t len, unsigned int operands)
{
	const struct iovec *iov = op->args.local.iov;

	if (near_likely(op->args.local.count == 1 && len <= NEAR_INLINE))
		near_copy_small(to, (uint8_t *)iov->iov_base + op->sent, len);
	else
		near_iov_out(to, iov, op->sent, len);
	if (operands > 1)
		near_iov_out(to + len, op->args.compare.iov, op->sent, len);
}

int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags)
{
	const struct near_rma_args *args = &op->args;
	unsigned int operands = near_rma_operands(args->verb, args->op);
	struct near_peer *peer = op->to->peer;
	struct near_slot *slot = near_control_slot(port, peer);
	bool small = near_rma_inline(op, len, operands);
	uint8_t *data = NULL;
	uint64_t end = 0;

	if (!slot)
		return -EAGAIN;
	if (operands && !small) {
		data = near_tx_data(&peer->tx, len * operands, &end);
		if (!data)
			return near_full(port, peer);
		near_rma_operands_out(op, data, len, operands);
		peer->tx.dtail = end;
	}
	slot->tag = args->addr;
	slot->rma = (struct near_rma_slot) {
		.key = args->key,
		.id = near_pool_id(op),
		.total = args->len,
		.offset = op->sent,
		.data = args->data,
		.verb = args->verb,
		.op = args->op,
		.type = args->type,
		.flags = (args->flags & NEAR_RMA_DATA) |
			 (small ? NEAR_RMA_INLINE : 0),
		.len = args->verb == NEAR_READ ? 0 : (uint32_t)len,
	};
	if (small)
		near_rma_operands_out(op, slot->rma.bytes, len, operands);
	near_control_send(port, peer, slot, NEAR_KIND_RMA, flags);
	op->mark = near_rma_mark(op->to);
	op->sent += len;
	return 0;
}

static size_t near_rma_part_len(const struct near_rma_op *op)
{
	size_t left = op->args.len - op->sent;
	size_t most = near_frag_max(&op->to->peer->tx);

	if (op->args.verb == NEAR_READ)
		return left;
	if (op->args.verb != NEAR_WRITE)
		most = NEAR_RMA_PART;
	return left < most ? left : most;
}

/*
 * Posts requests for the next bytes of op, at most about NEAR_STEP bytes.
 * Returns 0 when requests for all bytes are posted.
 */
static int near_rma_post(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	size_t stop = op->sent + NEAR_STEP;
	bool expects;	/* the next part raises op->expect and at->expect */
	int ret;

	do {
		expects = !op->expect || op->args.verb == NEAR_FETCH ||
			  op->args.verb == NEAR_COMPARE;
		if (expects && at->expect >= NEAR_RMA_EXPECT)
			return -EAGAIN;
		ret = near_rma_part(port, op, near_rma_part_len(op), 0);
		if (ret)
			return ret;
		op->expect += expects;
		at->expect += expects;
		at->unanswered += !op->begun;
		op->begun = true;
		at->reading |= op->args.verb == NEAR_READ;
	} while (op->sent < op->args.len && op->sent < stop);
	return op->sent < op->args.len ? -EAGAIN : 0;
}

/*
 * True if op must use requests, because single copy is impossible or would
 * overtake earlier messages (NEAR_RMA_BEHIND).
 */
static bool near_rma_by_target(const struct near_rma_op *op)
{
	return op->begun || !near_rma_direct_can(op->to, &op->args) ||
	       (!op->sent && near_rma_behind(op->to, &op->args));
}

/*
 * Continues op, the first operation in the queue. Returns -EAGAIN: op stays in
 * the queue; 0: op has left the queue. In the second case op might be freed
 * already, so the caller must not use it.
 */
static int near_rma_continue(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	int ret = 0;

	if (near_rma_must_wait(op))
		return -EAGAIN;
	if (op->on_device)
		return near_stage_continue(port, op);
	if (near_rma_by_target(op)) {
		if (!op->begun || op->sent < op->args.len)
			ret = near_rma_post(port, op);
		if (ret || (op->args.verb == NEAR_READ &&
			    op->args.flags & NEAR_RMA_HOLD))
			return -EAGAIN;
		near_rma_unqueue(op);
		return 0;
	}
	if (at->unanswered)
		return -EAGAIN;
	ret = near_rma_direct(port, op);
	if (ret == -EPERM || ret == -EAGAIN ||
	    (!ret && op->sent < op->args.len))
		return -EAGAIN;
	near_rma_end(port, op, -ret);
	return 0;
}

void near_rma_issue(struct near_port *port, struct near_rma_peer *at)
{
	struct near_rma_op *op;
	size_t len = 0;		/* sum of the operations that have left */

	while (len < NEAR_STEP && !near_list_empty(&at->queue)) {
		op = near_container(at->queue.next, struct near_rma_op, link);
		len += op->args.len;
		if (near_rma_continue(port, op))
			return;
	}
}

/* A reply, loaded only once, because a faulty peer might change the slot. */
struct near_rma_answer {
	uint64_t offset;
	uint32_t len;
	const uint8_t *data;
};

/* Copies the result in a reply to the local buffers. False: invalid reply. */
static bool near_rma_accept(struct near_rma_op *op,
			    const struct near_rma_answer *answer)
{
	bool read = op->args.verb == NEAR_READ;

	if (op->args.verb == NEAR_WRITE || op->args.verb == NEAR_ATOMIC) {
		op->answered = op->args.len;
		return !answer->len && op->sent == op->args.len;
	}
	if (answer->offset != op->answered || !answer->data ||
	    answer->len > op->sent - op->answered || (!read && !op->expect))
		return false;
	near_iov_in(read ? op->args.local.iov : op->args.result.iov,
		    op->answered, answer->data, answer->len);
	op->answered += answer->len;
	if (!read) {
		op->expect--;
		op->to->expect--;
	}
	return true;
}

/* Fast path of near_rma_accept(). False: the caller must use the slow path. */
static near_inline bool near_rma_accept_small(struct near_rma_op *op,
					const struct near_rma_answer *answer)
{
	const struct iovec *to = op->args.verb == NEAR_READ ?
				 op->args.local.iov : op->args.result.iov;

	if (near_unlikely(!op->small || !op->expect || answer->offset ||
			  op->args.verb == NEAR_WRITE ||
			  answer->len != op->args.len))
		return false;
	near_copy_small(to->iov_base, answer->data, answer->len);
	return true;
}

static int near_rma_answer_take(struct near_port *port,
				struct near_rx_ring *ring,
				const struct near_slot *slot)
{
	const struct near_answer_slot *from = &slot->rma_answer;
	uint64_t id = __atomic_load_n(&from->id, __ATOMIC_RELAXED);
	uint32_t err = __atomic_load_n(&from->err, __ATOMIC_RELAXED);
	struct near_rma_answer answer = {
		.offset = __atomic_load_n(&from->offset, __ATOMIC_RELAXED),
		.len = __atomic_load_n(&from->len, __ATOMIC_RELAXED),
		.data = from->bytes,
	};
	struct near_rma_op *op = near_pool_find(&port->rma->ops, id);

	if (near_unlikely(answer.len > NEAR_RMA_BYTES))
		answer.data = near_rx_data(&ring->rx, answer.len);
	if (near_unlikely(!op || op->to->peer != ring->peer || !op->begun ||
			  err > 4095)) {
		near_rx_ring_broken(port, ring, "reply id", id);
		return -EPROTO;
	}
	if (near_likely(!err && near_rma_accept_small(op, &answer))) {
		near_rma_end(port, op, 0);
		return 0;
	}
	if (near_unlikely(!op->small && op->on_device)) {
		if (near_stage_answered(port, op, answer.offset, (int)err))
			return 0;
		near_rx_ring_broken(port, ring, "reply offset", answer.offset);
		return -EPROTO;
	}
	if (!err && !near_rma_accept(op, &answer)) {
		near_rx_ring_broken(port, ring, "reply length", answer.len);
		return -EPROTO;
	}
	if (err || op->answered == op->args.len)
		near_rma_end(port, op, (int)err);
	return 0;
}

int near_rma_answered(struct near_port *port, struct near_rx_ring *ring,
		      const struct near_slot *slot)
{
	int ret = near_rma_answer_take(port, ring, slot);
	const struct near_rma_peer *at = ring->peer->rma;

	/*
	 * if this reply has ended a delegated read, delegated writes behind the
	 * read can be completed now: the next poll must do this
	 */
	if (!ret && at && at->delegs)
		port->work |= NEAR_WORK_DUE;
	return ret;
}

static void near_rma_keep_bufs(struct near_rma_bufs *bufs, struct iovec *iov)
{
	if (near_likely(bufs->count == 1))
		*iov = *bufs->iov;
	else if (bufs->count)
		memcpy(iov, bufs->iov, bufs->count * sizeof(*iov));
	bufs->iov = iov;
}

/*
 * Copies the data of the buffers to `to`, and replaces the buffers in *bufs by
 * this one copy, which iov then describes. Returns the end of the copy.
 */
static uint8_t *near_rma_copy_bufs(struct near_rma_bufs *bufs,
				   struct iovec *iov, uint8_t *to, size_t len)
{
	if (!bufs->count)
		return to;
	near_iov_out(to, bufs->iov, 0, len);
	iov[0] = (struct iovec) { to, len };
	*bufs = (struct near_rma_bufs) { iov, 1, NULL };
	return to + len;
}

static int near_rma_keep(struct near_rma_op *op)
{
	struct near_rma_args *args = &op->args;
	unsigned int operands = near_rma_operands(args->verb, args->op);
	size_t size = args->len * operands;

	if (args->local.device)
		args->local.device = memcpy(op->device, args->local.device,
					    args->local.count *
					    sizeof(*op->device));
	uint8_t *to = op->kept;

	op->copy = NULL;
	near_rma_keep_bufs(&args->result, op->result);
	if (!(args->flags & NEAR_RMA_COPY) || !operands) {
		near_rma_keep_bufs(&args->local, op->local);
		near_rma_keep_bufs(&args->compare, op->compare);
		return 0;
	}
	if (size > sizeof(op->kept)) {
		to = op->copy = malloc(size);
		if (!to)
			return -EAGAIN;
	}
	to = near_rma_copy_bufs(&args->local, op->local, to, args->len);
	near_rma_copy_bufs(&args->compare, op->compare, to, args->len);
	return 0;
}

struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args)
{
	struct near_rma_op *op = near_pool_get(&port->rma->ops);

	if (!op)
		return NULL;
	op->to = at;
	op->args = *args;
	if (near_rma_keep(op)) {
		near_pool_put(&port->rma->ops, op);
		return NULL;
	}
	op->sent = op->answered = 0;
	op->expect = 0;
	op->begun = op->queued = op->gates = false;
	op->delegated = op->small = op->on_device = false;
	op->mapping = NULL;
	return op;
}

int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool on_device,
		   struct near_mapping *mapping)
{
	struct near_rma_op *op = near_rma_op(port, at, args);

	if (!op)
		return -EAGAIN;
	op->on_device = on_device;
	op->err = 0;
	op->mapping = mapping;
	if (mapping)
		mapping->ops++;
	near_peer_hold(at->peer);
	near_rma_append(at, op);
	if (at->queue.next == &op->link && !near_rma_must_wait(op) &&
	    (on_device || near_rma_by_target(op)))
		near_rma_continue(port, op);
	if (!near_rma_waits(at))
		near_rma_add_work(port, at);
	return 0;
}

/* Makes one single copy at once. -EPERM: impossible, or the copy must wait. */
static int near_rma_at_once(struct near_port *port, struct near_rma_peer *at,
			    const struct near_rma_args *args, uint64_t memory)
{
	struct near_rma_op op;
	int ret;

	if (args->len > NEAR_STEP || !near_list_empty(&at->queue) ||
	    at->unanswered || !near_rma_direct_can(at, args) ||
	    (args->flags & NEAR_RMA_FENCE && at->peer->large) ||
	    near_rma_behind(at, args))
		return -EPERM;
	op.to = at;
	op.args = *args;
	op.sent = 0;
	op.delegated = false;
	ret = near_rma_direct_at(port, &op, memory);
	if (ret)
		return ret;
	return op.sent == args->len ? NEAR_RMA_DONE : -EFAULT;
}

/* Delegates, executes or queues an operation. Returns near_rma()'s result. */
static int near_rma_begin(struct near_port *port, struct near_rma_peer *at,
			  const struct near_rma_args *args, uint64_t memory)
{
	int ret;

	if (!args->len && !(args->flags & NEAR_RMA_DATA))
		return args->flags & NEAR_RMA_FENCE &&
		       near_rma_fenced(at->peer) ? -EAGAIN : NEAR_RMA_DONE;
	ret = near_rma_delegate(port, at, args);
	if (ret == -EPERM)
		ret = near_rma_at_once(port, at, args, memory);
	return ret == -EPERM ? near_rma_queue(port, at, args, false, NULL) :
			       ret;
}

int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args)
{
	struct near_region_entry entry;
	struct near_rma_peer *at;
	uint64_t memory = 0;
	bool device;
	int ret = 0;

	if (near_rma_is_small(args) && !args->local.device &&
	    near_rma_small(port, peer, args))
		return 0;
	if (near_unlikely(!peer->tx.slots)) {
		ret = near_connect(port, peer);
		if (ret)
			return ret;
	}
	at = near_rma_peer(peer);
	if (near_unlikely(!at))
		return -EAGAIN;
	if (near_unlikely(peer->draining))
		return -ECONNRESET;
	if (near_unlikely(!(peer->addr.flags &
			    (args->flags & NEAR_RMA_MESSAGE ?
			     NEAR_ADDR_RMA | NEAR_ADDR_DEVICE :
			     NEAR_ADDR_RMA))))
		return -EOPNOTSUPP;
	entry.device = 0;
	if (near_likely(!(args->flags & NEAR_RMA_BY_ID)))
		ret = near_rma_look_up(at, args, &entry, &memory);
	device = args->len && (args->local.device || entry.device ||
			       args->flags & NEAR_RMA_MESSAGE);
	if (near_unlikely(device && args->verb > NEAR_READ))
		return -EOPNOTSUPP;
	if (near_unlikely(ret == -ENOENT && peer->shut)) {
		near_peer_fail(port, peer);
		return -ECONNRESET;
	}
	if (ret && !(ret == -ENOENT && args->flags & NEAR_RMA_TRY && !device))
		return ret;
	return near_unlikely(device) ?
	       near_rma_stage(port, at, args, &entry, memory) :
	       near_rma_begin(port, at, args, memory);
}
