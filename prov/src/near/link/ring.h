/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The pair of rings between one sender and one receiver, in the receiver's
 * region: slots of one cache line, and bytes for what does not fit into one.
 * Each side counts for itself; they share the sequence numbers in the slots
 * and the heads, which the consumer publishes every quarter of a ring.
 *
 * Costs the producer a store of one line and the consumer a load of it; no
 * atomic read-modify-write. No locks: one producer, one consumer.
 */
#ifndef NEAR_LINK_RING_H
#define NEAR_LINK_RING_H

#include "near/link/copy.h"
#include "near/link/shm.h"

#define NEAR_EAGER_MAX 8192	/* longest message that goes to the data ring */
#define NEAR_FANOUT_MAX 16384	/* that may: near_fanout() */

/* Does the producer fence after each slot? See near_tx_need_doorbell(). */
enum near_fence {
	NEAR_FENCE_NONE,	/* the consumer's membarrier does it for us */
	NEAR_FENCE_YET,		/* until ours has been registered */
	NEAR_FENCE_ALWAYS,	/* it is refused, here or there */
};

/* The producer's end. */
struct near_tx {
	struct near_slot *slots;	/* NULL: not connected, and full */
	uint64_t tail;
	uint64_t head;			/* as last read */
	uint64_t taken;			/* until there, see near_tx_taken() */
	uint64_t messages;		/* none from there until quiet */
	uint64_t quiet;
	uint32_t mask;
	uint16_t lap;
	uint8_t fence;			/* enum near_fence */
	uint8_t gated;			/* see near_tx_gate() */
	uint8_t *data;
	uint64_t dtail;
	uint64_t dbase;			/* where the data ring began again */
	uint64_t dhead;			/* as last read */
	uint32_t dsize;
	uint32_t eager_max;		/* longest message in the data ring, */
	uint32_t fanout_max;		/* if others get it too */
	struct near_ctl *ctl;
};

/* The consumer's. */
struct near_rx {
	struct near_slot *next;		/* slots[head & mask] */
	uint64_t head;
	uint32_t mask;
	uint32_t quarter;		/* mask / 4 */
	uint16_t lap;
	struct near_slot *slots;
	uint8_t *data;
	uint64_t dhead;
	uint64_t dbase;			/* where the data ring began again */
	uint64_t dnext;			/* dhead after the current slot */
	uint64_t dpublished;
	uint32_t dsize;
	uint32_t dmax;			/* bytes, of one message or piece */
	struct near_ctl *ctl;
};

/*
 * The longest message that a data ring of that size takes in one piece. The
 * consumer may keep a quarter of the ring unpublished, and as much as the
 * message itself may be lost at the end of the ring: 3/8 always fit.
 */
static inline uint32_t near_data_max(uint32_t dsize)
{
	return dsize / 8 * 3 & ~(uint32_t)(NEAR_LINE - 1);
}

/* Into a ring of zeros, at its start. */
void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place);
void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place);

/* Fences, and looks whether that is still needed. */
void near_tx_fence(struct near_tx *tx);

/*
 * The same ring in another size, empty. The consumer goes first, while it holds
 * the last slot of the old one; the producer's gates stay.
 */
void near_tx_restart(struct near_tx *tx, const struct near_place *place);
void near_rx_restart(struct near_rx *rx, const struct near_place *place);

/* near_tx.gated */
#define NEAR_GATE_QUEUE 1u	/* near_tx_slot_past() is let through */
#define NEAR_GATE_RESIZE 2u	/* nothing is: link/resize.c */
#define NEAR_GATE_DYING 4u	/* nothing is, nor ever will be */

/* Looks at the consumer's head. Whether a slot is free, and not gated. */
bool near_tx_reload(struct near_tx *tx);
struct near_slot *near_tx_slot_past(struct near_tx *tx);

/* Not connected: no slot is free, none will be. */
static inline void near_tx_none(struct near_tx *tx)
{
	*tx = (struct near_tx) { .head = 1 };
}

/* The next free slot, NULL: full, or gated. A hostile head reads as full. */
static near_inline struct near_slot *near_tx_slot(struct near_tx *tx)
{
	if (near_unlikely(tx->tail - tx->head > tx->mask) &&
	    !near_tx_reload(tx))
		return NULL;
	return &tx->slots[tx->tail & tx->mask];
}

/*
 * A gated ring looks full to near_tx_slot(): its head is a lap behind and is
 * not read. near_tx_slot_past() takes a slot all the same.
 */
static inline void near_tx_gate(struct near_tx *tx, uint8_t why)
{
	tx->head = tx->tail - tx->mask - 1;
	tx->gated |= why;
}

static inline void near_tx_open_gate(struct near_tx *tx, uint8_t why)
{
	tx->gated &= (uint8_t)~why;
}

/*
 * Has the consumer taken all messages? It says how far it is every quarter of a
 * ring only; an answer that comes from behind them sets taken.
 */
static inline bool near_tx_taken(struct near_tx *tx)
{
	uint64_t end = tx->quiet == tx->tail ? tx->messages : tx->tail;

	if (tx->taken >= end)
		return true;
	if (__atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE) < end)
		return false;
	tx->taken = end;
	return true;
}

static near_inline uint32_t near_lines(size_t len)
{
	return (uint32_t)(len + NEAR_LINE - 1) & ~(uint32_t)(NEAR_LINE - 1);
}

/*
 * Room for len bytes, at most dsize, in one piece; NULL: not now. Nothing is
 * taken before the caller sets dtail to *end. What does not fit at the end of
 * the ring goes to its start; the consumer comes to the same conclusion.
 */
static near_inline uint8_t *near_tx_data(struct near_tx *tx, size_t len,
					 uint64_t *end)
{
	uint32_t at = (uint32_t)(tx->dtail - tx->dbase), need = near_lines(len);

	*end = tx->dtail + need;
	if (near_unlikely(at + need > tx->dsize)) {
		if (at > tx->dsize) {	/* the last one went to the start */
			tx->dbase += tx->dsize;
			at -= tx->dsize;
		}
		if (at + need > tx->dsize) {
			*end += tx->dsize - at;
			at = 0;
		}
	}
	if (near_unlikely(*end - tx->dhead > tx->dsize)) {
		tx->dhead = __atomic_load_n(&tx->ctl->dhead, __ATOMIC_ACQUIRE);
		if (*end - tx->dhead > tx->dsize)
			return NULL;
	}
	return tx->data + at;
}

/* Publishes slot, with word's kind, flags, length and data. */
static near_inline void near_tx_publish(struct near_tx *tx,
					struct near_slot *slot, uint64_t word)
{
	uint64_t tail = tx->tail + 1;	/* slot might be it, to a compiler */
	bool lap = !(tail & tx->mask);

	/* pairs with the acquire of near_rx_slot() */
	__atomic_store_n(&slot->word, word | tx->lap, __ATOMIC_RELEASE);
	tx->tail = tail;
	if (near_unlikely(lap))
		tx->lap++;
}

/* A slot that is no message: nothing has to wait until it is taken. */
static near_inline void near_tx_publish_quiet(struct near_tx *tx,
					      struct near_slot *slot,
					      uint64_t word)
{
	if (near_unlikely(tx->quiet != tx->tail))
		tx->messages = tx->tail;
	near_tx_publish(tx, slot, word);
	tx->quiet = tx->tail;
}

/*
 * After near_tx_publish(): does the consumer want to be told? The store of the
 * slot must be visible before cold is read. Either the consumer's membarrier
 * sees to it (near_rx_rings_deactivate()), or we fence.
 */
static near_inline bool near_tx_need_doorbell(struct near_tx *tx)
{
	if (near_unlikely(tx->fence))
		near_tx_fence(tx);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED);
}

/*
 * The same as the last thing of a call: is there nothing more to be done? Else
 * it is left to who is jumped to, near_tell().
 */
static near_inline bool near_tx_told(const struct near_tx *tx)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return !(tx->fence |
		 __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED));
}

/* Whether the next slot is there; *word is the only read of its word. */
static near_inline bool near_rx_ready(const struct near_rx *rx,
				      struct near_slot **slot, uint64_t *word)
{
	*slot = rx->next;
	*word = __atomic_load_n(&(*slot)->word, __ATOMIC_ACQUIRE);
	return (uint16_t)*word == rx->lap;
}

static near_inline struct near_slot *near_rx_slot(const struct near_rx *rx,
						  uint64_t *word)
{
	struct near_slot *slot;

	return near_rx_ready(rx, &slot, word) ? slot : NULL;
}

/* The len bytes that belong to the current slot; NULL: no sender may say so. */
static near_inline const uint8_t *near_rx_data(struct near_rx *rx, size_t len)
{
	uint32_t at = (uint32_t)(rx->dhead - rx->dbase), need;

	if (near_unlikely(len > rx->dmax))
		return NULL;
	need = near_lines(len);
	if (near_unlikely(at + need > rx->dsize)) {
		rx->dhead = rx->dbase += rx->dsize;
		at = 0;
	}
	rx->dnext = rx->dhead + need;
	return rx->data + at;
}

/*
 * Done with the current slot, which has no data. What happens once in a lap
 * happens at the end of a quarter, so one look is enough.
 */
static near_inline void near_rx_release_slot(struct near_rx *rx)
{
	rx->next++;
	if (near_likely(++rx->head & rx->quarter))
		return;
	if (!(rx->head & rx->mask)) {
		rx->next = rx->slots;
		rx->lap++;
	}
	__atomic_store_n(&rx->ctl->head, rx->head, __ATOMIC_RELEASE);
}

#define NEAR_RX_AHEAD 8		/* slots, at most */

/*
 * After n messages in a row: more are likely, whose lines are with the sender
 * yet. The more have come, the further it is looked ahead: a line that the
 * sender has not written yet is taken from it, once in a row then.
 */
static near_inline void near_rx_ahead(const struct near_rx *rx, int n)
{
	int ahead = n < NEAR_RX_AHEAD ? n : NEAR_RX_AHEAD;

	if (n > 1)
		__builtin_prefetch(&rx->slots[(rx->head + ahead) & rx->mask]);
}

/* Done with the current slot and its data. */
static near_inline void near_rx_release(struct near_rx *rx)
{
	near_rx_release_slot(rx);
	rx->dhead = rx->dnext;
	if (near_unlikely(rx->dhead - rx->dpublished >= rx->dsize / 4)) {
		__atomic_store_n(&rx->ctl->dhead, rx->dhead, __ATOMIC_RELEASE);
		rx->dpublished = rx->dhead;
	}
}

#endif /* NEAR_LINK_RING_H */
