/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated operations: docs/near/rma.md and docs/near/memory-ordering.md. The
 * initiator numbers the operations that it delegates to a peer, in the order in
 * which it posts them (near_rma_op.seq).
 */

#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"

#define NEAR_DELEG_WRITE 1024	/* limit of a delegated write, bytes */
/* wait before a revocation, ns: about the time of two short single copies */
#define NEAR_DELEG_BACKOFF 3000
/* wait after a revocation that has executed no operation, ns */
#define NEAR_DELEG_PAUSE 100000
/*
 * limits of the value that a revocation stores in near_rma_peer.skip: minimum
 * and maximum number of the next operations that are not delegated
 */
#define NEAR_DELEG_SKIP 16
#define NEAR_DELEG_SKIP_MAX 4096

/* Returns `word` with the operation's state replaced by `deleg`. */
static uint64_t near_deleg_word(uint64_t word, enum near_deleg deleg)
{
	return (word & ~((uint64_t)NEAR_DELEG_MASK << NEAR_WORD_FLAGS)) |
	       (uint64_t)deleg << NEAR_WORD_FLAGS;
}

bool near_deleg_no_reply(struct near_rx_ring *ring, uint64_t word,
			 const struct near_rma_reply *reply)
{
	if (near_deleg_state(word) == NEAR_DELEG_NONE)
		return false;
	if (near_unlikely(reply->err && !ring->rejected)) {
		ring->rejected = true;
		__atomic_store_n(&ring->rx.ctl->rejected, ring->delegs + 1,
				 __ATOMIC_RELAXED);
	}
	return reply->req.verb == NEAR_WRITE && !ring->rejected;
}

/*
 * Must be called when the initiator has revoked a delegated operation, because
 * the target does not poll. Sets at->skip: that number of later operations is
 * not delegated. The number doubles at the next revocation, unless the target
 * executes a delegated operation in between: docs/near/rma.md, *Backoff*.
 */
static void near_deleg_back_off(struct near_rma_peer *at)
{
	at->skip = at->next_skip < NEAR_DELEG_SKIP ? NEAR_DELEG_SKIP
						   : at->next_skip;
	if (at->skip < NEAR_DELEG_SKIP_MAX)
		at->next_skip = 2 * at->skip;
}

/*
 * True if the operation has data, and the data is short enough for one fragment
 * of the ring and for near's buffer. Two kinds of operations have such a
 * buffer, of NEAR_RMA_PART bytes: a write with NEAR_RMA_COPY, at the initiator
 * (near_rma_op.kept); and a read, at the target (near_rma_reply.bytes). The
 * limit of other writes is NEAR_DELEG_WRITE.
 */
static bool near_deleg_small(const struct near_rma_peer *at,
			     const struct near_rma_args *args)
{
	size_t most = NEAR_RMA_PART;

	if (args->verb == NEAR_WRITE && !(args->flags & NEAR_RMA_COPY))
		most = NEAR_DELEG_WRITE;
	return args->len && args->len <= most &&
	       args->len <= near_frag_max(&at->peer->tx);
}

/*
 * True if the operation should be delegated. If only at->skip forbids this,
 * decrements at->skip. All pending operations to the peer must be delegated
 * ones: if an operation of another kind were pending, and the initiator then
 * revoked the new operation, the new one would overtake it.
 */
static bool near_deleg_wanted(struct near_port *port, struct near_rma_peer *at,
			      const struct near_rma_args *args)
{
	if (port->fence || !near_deleg_small(at, args) ||
	    args->flags & (NEAR_RMA_FENCE | NEAR_RMA_HOLD) ||
	    at->unanswered != at->delegs || !near_list_empty(&at->queue) ||
	    !near_rma_direct_can(at, args) || near_rma_behind(at, args))
		return false;
	if (!at->skip)
		return true;
	at->skip--;
	return false;
}

int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args)
{
	struct near_tx *tx = &at->peer->tx;
	uint64_t tail = tx->tail;
	struct near_rma_op *op;
	int ret = -EAGAIN;

	if (!near_deleg_wanted(port, at, args))
		return -EPERM;
	if (at->expect >= NEAR_RMA_EXPECT)
		return -EAGAIN;
	op = near_rma_op(port, at, args);
	if (op) {
		ret = near_rma_part(port, op, op->args.len, NEAR_DELEG_OPEN);
		if (!ret) {
			near_rma_begun(at, op);
			near_deleg_add(port, at, op,
				       &tx->slots[tail & tx->mask]);
			return 0;
		}
		free(op->copy);
		near_pool_put(&port->rma->ops, op);
	}
	/*
	 * If no operation to the peer is pending, no completion will make the
	 * embedder retry after -EAGAIN. After -EPERM the caller makes a single
	 * copy instead.
	 */
	if (ret == -EAGAIN && !at->unanswered) {
		near_deleg_back_off(at);
		return -EPERM;
	}
	return ret;
}

/* Returns the `seq` of the last operation that the target has started. */
static uint64_t near_deleg_at(const struct near_rma_peer *at)
{
	return __atomic_load_n(&at->peer->tx.ctl->doing, __ATOMIC_ACQUIRE);
}

/* Returns the `seq` of the last operation that the target has finished. */
static uint64_t near_delegs_done(const struct near_rma_peer *at)
{
	return __atomic_load_n(&at->peer->tx.ctl->done, __ATOMIC_ACQUIRE);
}

/* Returns the first delegated operation. at->delegs must not be 0. */
static struct near_rma_op *near_deleg_first(const struct near_rma_peer *at)
{
	return near_container(at->delegated.next, struct near_rma_op, link);
}

/*
 * Changes the state `from` to `to` in the slots of all delegated operations
 * that the target has not finished. Uses compare-and-swap, because meanwhile
 * the target might finish an operation and clear its slot for a resize.
 */
static void near_delegs_change(struct near_rma_peer *at, enum near_deleg from,
			       enum near_deleg to)
{
	struct near_rma_op *op;
	uint64_t word;

	near_list_each(op, &at->delegated, link) {
		if (op->seq <= near_delegs_done(at))
			continue;
		word = __atomic_load_n(&op->slot->word, __ATOMIC_RELAXED);
		if (near_deleg_state(word) == from)
			__atomic_compare_exchange_n(&op->slot->word, &word,
						    near_deleg_word(word, to),
						    false, __ATOMIC_ACQ_REL,
						    __ATOMIC_RELAXED);
	}
}

/*
 * Copies the data of a revoked operation, and ends the operation. False: no
 * data was copied, and op stays pending.
 */
static bool near_deleg_direct(struct near_port *port, struct near_rma_peer *at,
			      struct near_rma_op *op)
{
	uint64_t word = __atomic_load_n(&op->slot->word, __ATOMIC_RELAXED);
	int ret;

	op->sent = 0;
	ret = near_rma_direct(port, op);
	if (ret == -EAGAIN || ret == -EPERM) {
		op->sent = op->args.len;
		return false;
	}
	if (!ret && op->sent < op->args.len)
		/* incomplete, because the end of the region is not mapped */
		ret = -EFAULT;
	__atomic_store_n(&op->slot->word,
			 near_deleg_word(word, ret ? NEAR_DELEG_FAILED
						   : NEAR_DELEG_EXECUTED),
			 __ATOMIC_RELEASE);
	/*
	 * The target will call event() for op later, when it consumes the slot
	 * of op. The initiator gets no reply to this slot. So that a later
	 * NEAR_RMA_BEHIND nevertheless waits until the slot is consumed,
	 * near_tx_consumed() must treat the slot as that of a message.
	 */
	if (!ret && near_rma_notifies(op))
		at->peer->tx.messages = at->peer->tx.tail;
	near_rma_end(port, op, -ret);
	return true;
}

/*
 * Revokes the delegated operations to a peer and executes them in order, unless
 * the target has already started the first one. Stops at an operation that
 * cannot be copied now. Returns the number of executed operations.
 */
static int near_delegs_revoke(struct near_port *port, struct near_rma_peer *at)
{
	uint64_t first = near_deleg_first(at)->seq;
	uint32_t next_skip = at->next_skip;
	bool marked;
	int n = 0;

	if (near_deleg_at(at) >= first)
		return 0;
	near_delegs_change(at, NEAR_DELEG_OPEN, NEAR_DELEG_REVOKED);
	/*
	 * After the membarrier the target starts none of these operations any
	 * more. But it might still be executing the one that it has started
	 * last. near_deleg_at() returns the number of that operation.
	 */
	marked = near_port_barrier(port);
	while (marked && at->delegs && near_deleg_at(at) < first &&
	       near_deleg_direct(port, at, near_deleg_first(at)))
		n++;
	near_delegs_change(at, NEAR_DELEG_REVOKED, NEAR_DELEG_OPEN);
	if (n) {
		at->next_skip = next_skip;
		near_deleg_back_off(at);
		return n;
	}
	at->delegated_ns = duo_now_ns() + NEAR_DELEG_PAUSE;
	return 0;
}

/*
 * True if op is a write that the target has executed and to which it does not
 * reply: see near_deleg_no_reply(). done: value of near_ctl.done.
 */
static near_inline bool near_deleg_counted(const struct near_rma_op *op,
					   uint64_t done)
{
	const struct near_ctl *ctl = op->to->peer->tx.ctl;
	uint64_t rejected = __atomic_load_n(&ctl->rejected, __ATOMIC_RELAXED);

	return op->seq <= done && op->args.verb == NEAR_WRITE &&
	       !(rejected && op->seq >= rejected);
}

/*
 * Completes the first delegated operations in order. Stops at an operation that
 * the target has not finished, or to which the target replies. done: value of
 * near_ctl.done. Returns the number of completed operations.
 */
static near_inline int near_delegs_count(struct near_port *port,
					 struct near_rma_peer *at,
					 uint64_t done)
{
	struct near_rma_op *op;
	int n = 0;

	while (at->delegs) {
		op = near_deleg_first(at);
		if (!near_deleg_counted(op, done))
			break;
		near_rma_end(port, op, 0);
		n++;
	}
	return n;
}

void near_delegs_drained(struct near_port *port, struct near_peer *peer)
{
	struct near_rma_peer *at = peer->rma;
	struct near_rma_op *op, *next;

	near_list_each_safe(op, next, &at->delegated, link)
		if (near_deleg_counted(op, near_delegs_done(at)))
			near_rma_end(port, op, 0);
}

int near_delegs_step(struct near_port *port, struct near_rma_peer *at)
{
	uint64_t now;
	int n = 0;

	if (near_deleg_first(at)->args.verb == NEAR_WRITE) {
		at->counted = near_delegs_done(at);
		n = near_delegs_count(port, at, at->counted);
	}
	if (n || !at->delegs || near_polls_left(port))
		return n;
	now = duo_now_ns();
	if (!at->delegated_ns)
		at->delegated_ns = now;
	return now < at->delegated_ns + NEAR_DELEG_BACKOFF ?
	       0 : near_delegs_revoke(port, at);
}

int near_delegs_advanced(struct near_port *port)
{
	uint64_t done = __atomic_load_n(port->poll_word, __ATOMIC_ACQUIRE);
	struct near_rma_peer *at = port->rma->poll_peer;
	struct near_peer *peer;
	int n;

	if (done == port->poll_value)
		return 0;
	peer = at->peer;
	near_peer_hold(peer);
	at->counted = port->poll_value = done;
	n = near_delegs_count(port, at, done);
	/*
	 * If the target has finished the first operation, but its reply has not
	 * arrived yet, new values of this peer's near_ctl.done complete nothing
	 * until then. NEAR_WORK_DUE makes the next poll call near_rma_work(),
	 * which can select the near_ctl.done of another peer as poll word.
	 */
	if (at->delegs && near_deleg_first(at)->seq <= done)
		port->work |= NEAR_WORK_DUE;
	near_peer_unhold(port, peer);
	return n;
}
