/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated operations. A target that polls executes a small read or write
 * faster than two system calls of the initiator; a target that does not poll
 * never does. After a timeout the initiator revokes such operations and
 * executes them itself.
 *
 * Store buffering decides which of them does. The target stores the operation's
 * number in near_ctl.doing and loads the slot again. The initiator marks the
 * slot revoked, has a barrier on all CPUs, and loads doing. At least one sees
 * the other's store, and the target pays for a plain store only. Both number
 * the operations in the order of the ring. Proof: docs/near/memory-ordering.md.
 *
 * After revoked operations fewer are delegated to that peer.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"

#define NEAR_DELEG_WRITE 1024	/* bytes of a write; a read: NEAR_RMA_PART */
#define NEAR_DELEG_BACKOFF 3000	/* ns, twice the time of a single copy */
#define NEAR_DELEG_PAUSE 100000	/* ns after a barrier without effect */
#define NEAR_DELEG_LEAVE 100000000	/* ns, limit of the wait when closing */
#define NEAR_DELEG_SKIP 16	/* operations not delegated after a revoke */
#define NEAR_DELEG_SKIP_MAX 4096

static uint64_t near_deleg_word(uint64_t word, enum near_deleg deleg)
{
	return (word & ~((uint64_t)NEAR_DELEG_MASK << NEAR_WORD_FLAGS)) |
	       (uint64_t)deleg << NEAR_WORD_FLAGS;
}

/*
 * A rejected operation has a reply, and so has each write after it: the count
 * of operations done includes the rejected one.
 */
bool near_deleg_counts(struct near_rx_ring *ring, uint64_t word,
		       const struct near_rma_reply *reply)
{
	if (near_deleg_state(word) == NEAR_DELEG_NONE)
		return false;
	if (near_unlikely(reply->err && !ring->refused)) {
		ring->refused = true;
		__atomic_store_n(&ring->rx.ctl->refused, ring->delegs + 1,
				 __ATOMIC_RELAXED);
	}
	return reply->verb == NEAR_WRITE && !ring->refused;
}

/* Increases the backoff after operations were revoked. */
static void near_deleg_lost(struct near_rma_peer *at)
{
	at->skip = at->next_skip < NEAR_DELEG_SKIP ? NEAR_DELEG_SKIP
						   : at->next_skip;
	if (at->skip < NEAR_DELEG_SKIP_MAX)
		at->next_skip = 2 * at->skip;
}

/* True if copied data and replies fit into the operation's object. */
static bool near_deleg_small(const struct near_rma_peer *at,
			     const struct near_rma_args *args)
{
	size_t most = NEAR_RMA_PART;

	if (args->verb == NEAR_WRITE && !(args->flags & NEAR_RMA_COPY))
		most = NEAR_DELEG_WRITE;
	return args->len && args->len <= most &&
	       args->len <= near_frag_max(&at->peer->tx);
}

/* True if only delegated operations are pending: these are revoked in order. */
static bool near_deleg_wanted(struct near_port *port, struct near_rma_peer *at,
			      const struct near_rma_args *args)
{
	if (port->fence || !near_deleg_small(at, args) ||
	    args->flags & (NEAR_RMA_FENCE | NEAR_RMA_HOLD) ||
	    at->unanswered != at->delegs || !near_list_empty(&at->queue) ||
	    !near_rma_direct_can(port, at, args) || near_rma_behind(at, args))
		return false;
	if (!at->skip)
		return true;
	at->skip--;
	return false;
}

/* Posts last: a posted operation cannot fail. */
static int near_deleg_post(struct near_port *port, struct near_rma_peer *at,
			   struct near_rma_op *op)
{
	struct near_tx *tx = &at->peer->tx;
	uint64_t tail = tx->tail;
	int ret;

	ret = near_rma_part(port, op, op->args.len, NEAR_DELEG_OPEN);
	if (ret)
		return ret;
	near_rma_begun(at, op);
	near_deleg_made(port, at, op, &tx->slots[tail & tx->mask]);
	return 0;
}

int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args)
{
	struct near_rma_op *op;
	int ret;

	if (!near_deleg_wanted(port, at, args))
		return -EPERM;
	if (at->expect >= NEAR_RMA_EXPECT)
		return -EAGAIN;
	op = near_rma_op(port, at, args);
	ret = op ? near_deleg_post(port, at, op) : -EAGAIN;
	if (ret && op) {
		free(op->copy);
		near_pool_put(&port->rma->ops, op);
	}
	/* without pending operations no reply frees space */
	if (ret == -EAGAIN && !at->unanswered) {
		near_deleg_lost(at);
		return -EPERM;
	}
	return ret;
}

static uint64_t near_deleg_at(const struct near_rma_peer *at)
{
	return __atomic_load_n(&at->peer->tx.ctl->doing, __ATOMIC_ACQUIRE);
}

static uint64_t near_delegs_done(const struct near_rma_peer *at)
{
	return __atomic_load_n(&at->peer->tx.ctl->done, __ATOMIC_ACQUIRE);
}

static struct near_rma_op *near_deleg_of(struct near_link *link)
{
	return near_container(link, struct near_rma_op, link);
}

/*
 * Changes the state of all slots still in the ring. A slot that the target has
 * executed may have been reused or freed. If the target clears a slot for a
 * resize, the slot was open before, so the exchange fails.
 */
static void near_delegs_change(struct near_rma_peer *at, enum near_deleg from,
			       enum near_deleg to)
{
	struct near_rma_op *op;
	struct near_link *link;
	uint64_t word;

	for (link = at->delegated.next; link != &at->delegated;
	     link = link->next) {
		op = near_deleg_of(link);
		if (op->number <= near_delegs_done(at))
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
 * Revokes all: the target starts none from now on, but may be executing
 * operation near_deleg_at(), or about to find it revoked. The barrier pairs
 * with that of near_deleg_execute(). False: the barrier failed, so the
 * caller must reopen them.
 */
static bool near_delegs_hold(struct near_port *port, struct near_rma_peer *at)
{
	near_delegs_change(at, NEAR_DELEG_OPEN, NEAR_DELEG_REVOKED);
	return near_port_barrier(port);
}

/* Executes a revoked operation; false: not possible now. */
static bool near_deleg_do(struct near_port *port, struct near_rma_peer *at,
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
		ret = -EFAULT;	/* memory of the region is not mapped */
	__atomic_store_n(&op->slot->word,
			 near_deleg_word(word, ret ? NEAR_DELEG_FAILED
						   : NEAR_DELEG_EXECUTED),
			 __ATOMIC_RELEASE);
	/* the slot carries the event, and gets no reply */
	if (!ret && near_rma_told(op))
		at->peer->tx.messages = at->peer->tx.tail;
	near_rma_end(port, op, -ret);
	return true;
}

/* Revokes all and executes them in order; none if the target executes one. */
static int near_delegs_revoke(struct near_port *port, struct near_rma_peer *at)
{
	uint64_t first = near_deleg_of(at->delegated.next)->number;
	uint32_t next_skip = at->next_skip;
	bool held;
	int n = 0;

	if (near_deleg_at(at) >= first)
		return 0;
	held = near_delegs_hold(port, at);
	while (held && at->delegs && port->sink->room(port->ctx) &&
	       near_deleg_at(at) < first &&
	       near_deleg_do(port, at, near_deleg_of(at->delegated.next)))
		n++;
	near_delegs_change(at, NEAR_DELEG_REVOKED, NEAR_DELEG_OPEN);
	if (n) {
		at->next_skip = next_skip;
		near_deleg_lost(at);
		return n;
	}
	at->delegated_ns = duo_now_ns() + NEAR_DELEG_PAUSE;
	return 0;
}

/*
 * Waits, for about the time of a copy, until the target has executed the
 * operation it has started, so that it precedes later calls. False: timeout.
 */
static bool near_deleg_wait(const struct near_rma_peer *at, uint64_t *doing)
{
	uint64_t end = duo_now_ns() + NEAR_DELEG_LEAVE;

	while ((*doing = near_deleg_at(at)) > near_delegs_done(at)) {
		if (duo_now_ns() >= end)
			return false;
		sched_yield();
	}
	return true;
}

void near_delegs_stop(struct near_port *port, struct near_rma_peer *at)
{
	struct near_link *link, *next;
	struct near_rma_op *op;
	uint64_t doing;
	bool stopped;

	if (!at->delegs)
		return;
	stopped = !near_delegs_hold(port, at) || !near_deleg_wait(at, &doing);
	for (link = at->delegated.next; link != &at->delegated && !stopped;
	     link = next) {
		next = link->next;
		op = near_deleg_of(link);
		if (op->number <= doing)
			continue;
		if (!port->sink->room(port->ctx))
			op->args.about = 0;
		if (!near_deleg_do(port, at, op))
			break;
	}
	near_delegs_change(at, NEAR_DELEG_REVOKED, NEAR_DELEG_OPEN);
}

/* True if the count alone completes the operation: near_deleg_counts(). */
static near_inline bool near_deleg_counted(const struct near_rma_op *op,
					   uint64_t done)
{
	const struct near_ctl *ctl = op->to->peer->tx.ctl;
	uint64_t refused = __atomic_load_n(&ctl->refused, __ATOMIC_RELAXED);

	return op->number <= done && op->args.verb == NEAR_WRITE &&
	       !(refused && op->number >= refused);
}

/* Completes operations up to the first that waits for a reply. */
static near_inline int near_delegs_count(struct near_port *port,
					 struct near_rma_peer *at,
					 uint64_t done)
{
	struct near_rma_op *op;
	int n = 0;

	while (at->delegs && port->sink->room(port->ctx)) {
		op = near_deleg_of(at->delegated.next);
		if (!near_deleg_counted(op, done))
			break;
		near_rma_end(port, op, 0);
		n++;
	}
	return n;
}

bool near_delegs_drained(struct near_port *port, struct near_peer *peer)
{
	struct near_rma_peer *at = peer->rma;
	struct near_link *link, *next;
	struct near_rma_op *op;

	for (link = at->delegated.next; link != &at->delegated; link = next) {
		next = link->next;
		op = near_deleg_of(link);
		if (!near_deleg_counted(op, near_delegs_done(at)))
			continue;
		if (!port->sink->room(port->ctx))
			return false;
		near_rma_end(port, op, 0);
	}
	return true;
}

static int near_delegs_due(struct near_port *port, struct near_rma_peer *at)
{
	uint64_t now = duo_now_ns();

	if (!at->delegated_ns)
		at->delegated_ns = now;
	if (now < at->delegated_ns + NEAR_DELEG_BACKOFF)
		return 0;
	return near_delegs_revoke(port, at);
}

int near_delegs_step(struct near_port *port, struct near_rma_peer *at)
{
	const struct near_rma_op *first = near_deleg_of(at->delegated.next);
	int n = 0;

	if (first->args.verb == NEAR_WRITE) {
		at->counted = near_delegs_done(at);
		n = near_delegs_count(port, at, at->counted);
	}
	if (at->delegs && !n && !near_polls_left(port))
		return near_delegs_due(port, at);
	return n;
}

int near_delegs_advanced(struct near_port *port)
{
	uint64_t done = __atomic_load_n(port->watch, __ATOMIC_ACQUIRE);
	struct near_rma_peer *at = port->rma->watched;
	struct near_peer *peer;
	int n;

	if (done == port->watched)
		return 0;
	peer = at->peer;
	near_peer_hold(peer);
	at->counted = port->watched = done;
	n = near_delegs_count(port, at, done);
	/* the sink has no space, or a read is the first */
	if (at->delegs && near_deleg_of(at->delegated.next)->number <= done)
		port->work |= NEAR_WORK_DUE;
	near_peer_unhold(port, peer);
	return n;
}
