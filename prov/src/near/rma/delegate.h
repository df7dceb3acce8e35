/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small reads and writes that the target executes if it polls in time, else the
 * initiator: delegate.c. The inline part costs the target a store and a load.
 */
#ifndef NEAR_RMA_DELEGATE_H
#define NEAR_RMA_DELEGATE_H

#include "near/link/barrier.h"
#include "near/rma/state.h"

/*
 * State of a delegated operation, in the flags of its NEAR_KIND_RMA slot. Only
 * the initiator changes it.
 */
enum near_deleg {
	NEAR_DELEG_NONE, /* not delegated: the target executes it */
	NEAR_DELEG_OPEN,
	NEAR_DELEG_REVOKED,  /* only the initiator may execute it */
	NEAR_DELEG_EXECUTED, /* the initiator has executed it */
	NEAR_DELEG_FAILED,   /* the initiator's copy has failed */
};
#define NEAR_DELEG_SKIPPED 1	/* the target skips the slot */
#define NEAR_DELEG_ANSWERED 2	/* the same, but the target reports the event */
#define NEAR_DELEG_MASK 0xfu	/* of a slot's word, at NEAR_WORD_FLAGS */

static inline enum near_deleg near_deleg_state(uint64_t word)
{
	return word >> NEAR_WORD_FLAGS & NEAR_DELEG_MASK;
}

/* Registers the operation just posted in slot as the next delegated one. */
static near_inline void near_deleg_made(struct near_port *port,
					struct near_rma_peer *at,
					struct near_rma_op *op,
					struct near_slot *slot)
{
	op->slot = slot;
	op->number = ++at->delegated_last;
	op->delegated = true;
	at->delegs++;
	near_list_append(&at->delegated, &op->link);
	if (at->working)
		return;
	if (near_unlikely(!near_list_empty(&port->onesided_work))) {
		near_rma_wake(port, at);
		return;
	}
	/* no other work: a write waits for the count, a read for a slot */
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
	near_port_added(port, NEAR_WORK_WAITS);
	if (op->args.verb == NEAR_WRITE)
		near_rma_watch(port, at);
}

/* 0: posted; -EPERM: do not delegate it; or an error of near_rma(). */
int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args);
/* Removes an operation that was answered, revoked or has lost its peer. */
static inline void near_deleg_ended(struct near_rma_peer *at,
				    struct near_rma_op *op)
{
	near_list_remove(&op->link);
	op->delegated = false;
	at->delegs--;
	at->next_skip = 0;
	at->delegated_ns = 0;	/* its successor's wait begins */
}

/*
 * Completes operations that the target has executed, and revokes the others
 * after a timeout. Returns the number completed.
 */
int near_delegs_step(struct near_port *port, struct near_rma_peer *at);
/* The same for the peer whose count is at near_port.watch, if it changed. */
int near_delegs_advanced(struct near_port *port);
/*
 * Completes the writes that a failed target has counted as executed, also
 * behind other operations. False: the sink has no space, call again.
 */
bool near_delegs_drained(struct near_port *port, struct near_peer *peer);
/*
 * Executes all operations that the target has not started, when the port
 * closes, even if the sink has no space for their completions.
 */
void near_delegs_stop(struct near_port *port, struct near_rma_peer *at);
/* True if near_deleg_done() alone reports the end: no reply is sent. */
bool near_deleg_counts(struct near_rx_ring *ring, uint64_t word,
		       const struct near_rma_reply *reply);
/*
 * Counts an operation that was executed or rejected. Call it after the reply is
 * posted: the initiator may own the cache line, and the store then takes long.
 */
static near_inline void near_deleg_done(struct near_rx_ring *ring,
					uint64_t word)
{
	if (near_deleg_state(word) != NEAR_DELEG_NONE)
		__atomic_store_n(&ring->rx.ctl->done, ++ring->delegs,
				 __ATOMIC_RELEASE);
}

/*
 * Starts an operation at the target. 0: execute it next, nothing in between may
 * fail; -EAGAIN: its slot stays in the ring; or NEAR_DELEG_SKIPPED, _ANSWERED.
 * Store buffering: see delegate.c. The barrier, which membarrier reduces to one
 * of the compiler, pairs with near_port_barrier() of near_delegs_hold().
 */
static near_inline int near_deleg_execute(struct near_rx_ring *ring,
					  const struct near_slot *slot,
					  uint64_t word)
{
	enum near_deleg deleg = near_deleg_state(word);
	struct near_ctl *ctl = ring->rx.ctl;

	if (deleg == NEAR_DELEG_NONE)
		return 0;
	if (near_unlikely(deleg >= NEAR_DELEG_REVOKED)) {
		if (deleg == NEAR_DELEG_REVOKED && !ring->peer->dying)
			return -EAGAIN;
		near_deleg_done(ring, word);
		return deleg == NEAR_DELEG_EXECUTED ? NEAR_DELEG_ANSWERED
						    : NEAR_DELEG_SKIPPED;
	}
	__atomic_store_n(&ctl->doing, ring->delegs + 1, __ATOMIC_RELAXED);
	if (near_unlikely(!near_barrier_ready()))
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (near_likely(__atomic_load_n(&slot->word, __ATOMIC_ACQUIRE) == word))
		return 0;
	__atomic_store_n(&ctl->doing, ring->delegs, __ATOMIC_RELAXED);
	return -EAGAIN;
}

#endif /* NEAR_RMA_DELEGATE_H */
