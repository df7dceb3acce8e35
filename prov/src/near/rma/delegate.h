/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small reads and writes that the target does if it polls, and we if not:
 * offer.c. The target's side is inline: it costs a store and a look.
 */
#ifndef NEAR_RMA_DELEGATE_H
#define NEAR_RMA_DELEGATE_H

#include "near/link/barrier.h"
#include "near/rma/state.h"

/*
 * The state is in the flags of a slot of NEAR_KIND_RMA. Only the
 * initiator changes it.
 */
enum near_deleg {
	NEAR_DELEG_NONE, /* only the target may do it */
	NEAR_DELEG_OPEN,
	NEAR_DELEG_REVOKED,  /* withdrawn: the initiator does it */
	NEAR_DELEG_EXECUTED, /* it has */
	NEAR_DELEG_FAILED,   /* it could not */
};
#define NEAR_DELEG_SKIPPED 1	/* the slot is to be passed over */
#define NEAR_DELEG_ANSWERED 2	/* so it is, but for what it tells */
#define NEAR_DELEG_MASK 0xfu	/* of a word, at NEAR_WORD_FLAGS */

static inline enum near_deleg near_deleg_state(uint64_t word)
{
	return word >> NEAR_WORD_FLAGS & NEAR_DELEG_MASK;
}

/* What is in the ring now is the next offer. */
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
	/* alone, it only waits: a read for a slot */
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
	near_port_added(port, NEAR_WORK_WAITS);
	if (op->args.verb == NEAR_WRITE)
		near_rma_watch(port, at);
}

/* 0: on its way; -EPERM: it is to go another way; or what near_rma() says. */
int near_rma_delegate(struct near_port *port, struct near_rma_peer *at,
		      const struct near_rma_args *args);
/* Answered, withdrawn, or the peer is gone. */
static inline void near_deleg_ended(struct near_rma_peer *at,
				    struct near_rma_op *op)
{
	near_list_remove(&op->link);
	op->delegated = false;
	at->delegs--;
	at->next_skip = 0;
	at->delegated_ns = 0;	/* the next one's time begins */
}

/*
 * How many have ended: those that the target says it has done, and those that
 * we have done ourselves, as they waited too long.
 */
int near_delegs_step(struct near_port *port, struct near_rma_peer *at);
/* What the port watches is the count of the only one that has offers. */
int near_delegs_resized(struct near_port *port);
/*
 * The target is gone: writes that it says it has done end well, wherever they
 * are among others. false: not all yet, the sink has no room.
 */
bool near_delegs_drained(struct near_port *port, struct near_peer *peer);
/*
 * When the port closes: does all that the target has not taken. Where there is
 * no room to tell of one, it is done all the same.
 */
void near_delegs_stop(struct near_port *port, struct near_rma_peer *at);
/* Is its end told by near_deleg_done() alone, and needs no answer? */
bool near_deleg_counts(struct near_rx_ring *ring, uint64_t word,
		       const struct near_rma_reply *reply);
/*
 * It was done, or refused, and answered if it is: only now, as the line may be
 * with the initiator, and take a while.
 */
static near_inline void near_deleg_done(struct near_rx_ring *ring,
					uint64_t word)
{
	if (near_deleg_state(word) != NEAR_DELEG_NONE)
		__atomic_store_n(&ring->rx.ctl->done, ++ring->delegs,
				 __ATOMIC_RELEASE);
}

/*
 * The target, of a request: 0: do it; -EAGAIN: it stays where it is. What was
 * taken is done next: nothing that may fail comes between.
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
