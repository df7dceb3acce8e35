/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Delegated operations: see delegate.c. */
#ifndef NEAR_RMA_DELEGATE_H
#define NEAR_RMA_DELEGATE_H

#include "near/rma/state.h"

/* State of an operation in near_slot.word. Only the initiator changes it. */
enum near_deleg {
	NEAR_DELEG_NONE,	/* not delegated */
	NEAR_DELEG_OPEN,	/* the target may execute it */
	NEAR_DELEG_REVOKED,	/* only the initiator may execute it */
	NEAR_DELEG_EXECUTED,	/* the initiator has executed it */
	NEAR_DELEG_FAILED,	/* the initiator's copy has failed */
};
/* results of near_deleg_execute() */
#define NEAR_DELEG_SKIPPED 1
#define NEAR_DELEG_ANSWERED 2
#define NEAR_DELEG_MASK 0xfu	/* mask for near_slot.word >> NEAR_WORD_FLAGS */

static inline enum near_deleg near_deleg_state(uint64_t word)
{
	return word >> NEAR_WORD_FLAGS & NEAR_DELEG_MASK;
}

/* Adds op, just posted in `slot`, to the list of delegated operations. */
static near_inline void near_deleg_add(struct near_port *port,
				       struct near_rma_peer *at,
				       struct near_rma_op *op,
				       struct near_slot *slot)
{
	op->slot = slot;
	op->seq = ++at->delegated_last;
	op->delegated = true;
	at->delegs++;
	near_list_append(&at->delegated, &op->link);
	if (at->working)
		return;
	if (near_unlikely(!near_list_empty(&port->onesided_work))) {
		near_rma_add_work(port, at);
		return;
	}
	/* not NEAR_WORK_DUE: a reply or a new value of the poll word ends op */
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
	near_port_added(port, NEAR_WORK_WAITS);
	if (op->args.verb == NEAR_WRITE)
		near_rma_set_poll_word(port, at);
}

/*
 * Delegates an operation. Returns 0; -EPERM: the caller must execute it in
 * another way; -EAGAIN: poll and retry; or -ECONNRESET.
 */
int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args);
/* Removes an ended operation from the list near_rma_peer.delegated. */
static inline void near_deleg_ended(struct near_rma_peer *at,
				    struct near_rma_op *op)
{
	near_list_remove(&op->link);
	op->delegated = false;
	at->delegs--;
	at->next_skip = 0;
	at->delegated_ns = 0;
}

/*
 * Completes the delegated writes that the target has executed. If there are
 * none, this poll has a tick, and the first operation has waited for
 * NEAR_DELEG_BACKOFF, revokes and executes all of them. Returns the number of
 * ended operations. at->delegs must not be 0.
 */
int near_delegs_step(struct near_port *port, struct near_rma_peer *at);
/* Implements near_onesided.advanced(): completes delegated writes. */
int near_delegs_advanced(struct near_port *port);
/* Completes delegated writes that a peer executed before it failed. */
void near_delegs_drained(struct near_port *port, struct near_peer *peer);
/*
 * True if the target need not reply, because near_ctl.done will show the end of
 * the request. May store near_ctl.rejected, so the caller must call
 * near_deleg_done() afterwards (rma.md, *Rejected operations*).
 */
bool near_deleg_no_reply(struct near_rx_ring *ring, uint64_t word,
			 const struct near_rma_reply *reply);
/*
 * Counts a slot's operation as finished, if it is delegated. Must be called
 * after the reply is posted: the reply need not wait for this slow store.
 */
static near_inline void near_deleg_done(struct near_rx_ring *ring,
					uint64_t word)
{
	if (near_deleg_state(word) != NEAR_DELEG_NONE)
		__atomic_store_n(&ring->rx.ctl->done, ++ring->delegs,
				 __ATOMIC_RELEASE);
}

/*
 * Decides at the target which end executes the operation in a slot. Returns
 * - 0: the caller must execute the operation now, and must not postpone it
 * - -EAGAIN: the initiator has revoked it; the slot must stay in the ring
 * - NEAR_DELEG_SKIPPED: the initiator's copy, or the initiator itself, has
 *   failed after a revocation; the caller must skip the operation
 * - NEAR_DELEG_ANSWERED: the initiator has executed the operation; the caller
 *   must only call near_rma_report()
 *
 * Memory ordering: store buffering of near_ctl.doing and the slot's state, see
 * docs/near/memory-ordering.md. Partner: the membarrier of the initiator. The
 * target needs a fence only if its process is not registered for membarrier.
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
		if (deleg == NEAR_DELEG_REVOKED && !ring->peer->draining)
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
