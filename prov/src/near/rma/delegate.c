/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small reads and writes. A target that polls does them sooner than two system
 * calls would, one that does not poll would never: so they are offered to it,
 * and what it has not taken after a while we withdraw, and do ourselves.
 *
 * The target pays for none of this: it says which offer it is at by a plain
 * store (near_ctl.doing), and looks at the slot again. We say in the slot that
 * it is withdrawn, have a barrier on all processors, and look which one the
 * target is at: one of the two has seen the other. The argument is in
 * docs/near/memory-ordering.md. Offers are numbered, on both sides, as they
 * come in the ring.
 *
 * Where offers to a peer are withdrawn, fewer and fewer are made.
 */

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"

#define NEAR_DELEG_WRITE 1024	/* bytes of a write; of a read a part's */
#define NEAR_DELEG_BACKOFF 3000	/* ns: twice what we would take ourselves */
#define NEAR_DELEG_PAUSE 100000	/* ns after a barrier for nothing */
#define NEAR_DELEG_LEAVE 100000000	/* ns, at most */
#define NEAR_DELEG_SKIP 16	/* not offered after a loss, at first */
#define NEAR_DELEG_SKIP_MAX 4096

static uint64_t near_deleg_word(uint64_t word, enum near_deleg deleg)
{
	return (word & ~((uint64_t)NEAR_DELEG_MASK << NEAR_WORD_FLAGS)) |
	       (uint64_t)deleg << NEAR_WORD_FLAGS;
}

/*
 * Errors have an answer of their own, and so has each write from then on: a
 * count says nothing of what is before it.
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

/* They were withdrawn. */
static void near_deleg_lost(struct near_rma_peer *at)
{
	at->skip = at->next_skip < NEAR_DELEG_SKIP ? NEAR_DELEG_SKIP
						   : at->next_skip;
	if (at->skip < NEAR_DELEG_SKIP_MAX)
		at->next_skip = 2 * at->skip;
}

/* What is copied for its sender fits into the operation, as an answer does. */
static bool near_deleg_small(const struct near_rma_peer *at,
			     const struct near_rma_args *args)
{
	size_t most = NEAR_RMA_PART;

	if (args->verb == NEAR_WRITE && !(args->flags & NEAR_RMA_COPY))
		most = NEAR_DELEG_WRITE;
	return args->len && args->len <= most &&
	       args->len <= near_frag_max(&at->peer->tx);
}

/* Nothing but offers is before it, so that those may be withdrawn in order. */
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

/* Claim last: what is posted cannot fail. */
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
	/* with none under way nothing that we do makes room */
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
 * All whose slots are in the ring still: one that the target is through with
 * may have been written to again, or given back. What it clears, because the ring has another
 * size, was open when it came to it, and is not found as it was.
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
 * From now on the target takes none. near_deleg_at() says which it is at: it
 * may be doing that, or about to find out that it may not. false: that cannot be
 * told, and they are to be given back.
 */
static bool near_delegs_hold(struct near_port *port, struct near_rma_peer *at)
{
	near_delegs_change(at, NEAR_DELEG_OPEN, NEAR_DELEG_REVOKED);
	return near_port_barrier(port);
}

/* One that is held; false: it cannot be done now. */
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
		ret = -EFAULT;	/* its memory ends before its region does */
	__atomic_store_n(&op->slot->word,
			 near_deleg_word(word, ret ? NEAR_DELEG_FAILED
						   : NEAR_DELEG_EXECUTED),
			 __ATOMIC_RELEASE);
	/* then the slot tells it, and nothing answers that */
	if (!ret && near_rma_told(op))
		at->peer->tx.messages = at->peer->tx.tail;
	near_rma_end(port, op, -ret);
	return true;
}

/* All of them, in order, or none if the target is at one. */
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
 * What the target has taken is done before what is called after this: that takes
 * the time of a copy. false: it is stopped there.
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

/* The count alone tells of its end: near_deleg_counts(). */
static near_inline bool near_deleg_counted(const struct near_rma_op *op,
					   uint64_t done)
{
	const struct near_ctl *ctl = op->to->peer->tx.ctl;
	uint64_t refused = __atomic_load_n(&ctl->refused, __ATOMIC_RELAXED);

	return op->number <= done && op->args.verb == NEAR_WRITE &&
	       !(refused && op->number >= refused);
}

/* What has an answer of its own, and all behind it, waits for that. */
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

int near_delegs_resized(struct near_port *port)
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
	/* no room for all, or it is read's turn */
	if (at->delegs && near_deleg_of(at->delegated.next)->number <= done)
		port->work |= NEAR_WORK_DUE;
	near_peer_unhold(port, peer);
	return n;
}
