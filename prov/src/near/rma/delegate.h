/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated operations: small writes and reads that the target executes, unless
 * the initiator revokes them, that is, takes them back and executes them itself
 * (docs/near/rma.md).
 */
#ifndef NEAR_RMA_DELEGATE_H
#define NEAR_RMA_DELEGATE_H

#include "near/rma/state.h"

/*
 * State of an operation, in the word of its slot (near_slot.word). Only the
 * initiator changes the state.
 */
enum near_deleg {
	NEAR_DELEG_NONE,	/* not a delegated operation */
	NEAR_DELEG_OPEN,	/* the target may execute the operation */
	NEAR_DELEG_REVOKED,	/* only the initiator may execute it */
	NEAR_DELEG_EXECUTED,	/* the initiator has executed it */
	NEAR_DELEG_FAILED,	/* the initiator's copy has failed */
};
/* results of near_deleg_execute(), explained there */
#define NEAR_DELEG_SKIPPED 1
#define NEAR_DELEG_ANSWERED 2
#define NEAR_DELEG_MASK 0xfu	/* mask for near_slot.word >> NEAR_WORD_FLAGS */

static inline enum near_deleg near_deleg_state(uint64_t word)
{
	return word >> NEAR_WORD_FLAGS & NEAR_DELEG_MASK;
}

/*
 * Adds op to the list of the peer's delegated operations. Must be called just
 * after the request of op was posted in `slot`.
 */
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
	/*
	 * The list was empty, so polls have no other one-sided operation to
	 * continue. op itself only waits: a reply ends a read, and a new value
	 * of the poll word ends a write. So the bit is NEAR_WORK_WAITS. With
	 * NEAR_WORK_DUE, the next poll would continue op.
	 */
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
	near_port_added(port, NEAR_WORK_WAITS);
	if (op->args.verb == NEAR_WRITE)
		near_rma_set_poll_word(port, at);
}

/*
 * Delegates an operation. Returns
 * - 0: the operation is delegated
 * - -EPERM: the caller must copy or queue the operation instead
 * - -EAGAIN: poll and retry
 * - -ECONNRESET: the peer has failed
 */
int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args);

/* Removes an operation that ends from the list near_rma_peer.delegated. */
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
 * Continues the delegated operations to a peer, in a poll. at->delegs must not
 * be 0. Completes the writes that the target has executed. Revokes and executes
 * all delegated operations if
 * - this call has completed no write,
 * - the poll is one with a tick (near_port_tick()), and
 * - the first operation has waited for NEAR_DELEG_BACKOFF.
 *
 * Returns the number of operations that have ended.
 */
int near_delegs_step(struct near_port *port, struct near_rma_peer *at);
/*
 * Implements near_onesided.advanced(): if the poll word has changed, completes
 * the delegated writes that the target has executed.
 */
int near_delegs_advanced(struct near_port *port);
/* Completes the delegated writes that a peer has executed before it failed. */
void near_delegs_drained(struct near_port *port, struct near_peer *peer);
/*
 * True if the target need not reply to a request, because near_ctl.done will
 * show to the initiator that the operation has ended. If this is the first
 * rejected operation of the ring, stores its number in near_ctl.rejected. The
 * caller must call near_deleg_done() afterwards. So an initiator that loads the
 * new value of near_ctl.done also loads near_ctl.rejected (rma.md, *Rejected
 * operations*).
 */
bool near_deleg_no_reply(struct near_rx_ring *ring, uint64_t word,
			 const struct near_rma_reply *reply);
/*
 * If the operation in a slot is delegated, counts it as finished. Must be
 * called after the target has executed, rejected or skipped the operation. If
 * the operation has a reply, the caller should post the reply first. That order
 * is only for speed: the store to near_ctl.done is slow and would delay the
 * reply.
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
 * - -EAGAIN: the initiator has revoked the operation and is executing it; the
 *   slot must stay in the ring
 * - NEAR_DELEG_SKIPPED: the initiator has revoked the operation, and then its
 *   copy or the initiator itself has failed; the caller must skip the operation
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
