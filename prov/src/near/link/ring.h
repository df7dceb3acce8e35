/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A ring between one sender and one receiver, in the receiver's segment: slots
 * of one cache line, and a data ring for longer messages. Each side has its own
 * counters. They share the lap numbers in the slots, and the heads, which the
 * consumer publishes every quarter of a ring. Both are message passing
 * (release, acquire): docs/near/memory-ordering.md.
 *
 * Cost: the producer stores one line, the consumer loads it; no atomic
 * read-modify-write. No locks: one producer, one consumer.
 */
#ifndef NEAR_LINK_RING_H
#define NEAR_LINK_RING_H

#include "near/link/copy.h"
#include "near/link/shm.h"

#define NEAR_EAGER_MAX 8192	/* bytes of an eager message, at most */
#define NEAR_FANOUT_MAX 16384	/* the same in a fan-out: near_fanout() */

/* Fences of the producer after each slot: near_tx_need_doorbell(). */
enum near_fence {
	NEAR_FENCE_NONE,	/* the consumer's membarrier replaces fences */
	NEAR_FENCE_YET,		/* fence until this process is registered */
	NEAR_FENCE_ALWAYS,	/* no membarrier in one of the processes */
};

/* The producer's end. */
struct near_tx {
	struct near_slot *slots;	/* NULL: not connected, and full */
	uint64_t tail;
	uint64_t head;			/* as last read */
	uint64_t taken;			/* consumed slots: near_tx_taken() */
	uint64_t messages;		/* no messages from here to quiet */
	uint64_t quiet;			/* tail after a slot without message */
	uint32_t mask;
	uint16_t lap;
	uint8_t fence;			/* enum near_fence */
	uint8_t gated;			/* see near_tx_gate() */
	uint8_t *data;
	uint64_t dtail;
	uint64_t dbase;			/* dtail at the last restart */
	uint64_t dhead;			/* as last read */
	uint32_t dsize;
	uint32_t eager_max;		/* eager limit, bytes */
	uint32_t fanout_max;		/* the same in a fan-out */
	struct near_ctl *ctl;
};

/* The consumer's end. */
struct near_rx {
	struct near_slot *next;		/* slots[head & mask] */
	uint64_t head;
	uint32_t mask;
	uint32_t quarter;		/* mask / 4 */
	uint16_t lap;
	struct near_slot *slots;
	uint8_t *data;
	uint64_t dhead;
	uint64_t dbase;			/* dhead at the last restart */
	uint64_t dnext;			/* dhead after the current slot */
	uint64_t dpublished;
	uint32_t dsize;
	uint32_t dmax;			/* longest message or fragment, bytes */
	struct near_ctl *ctl;
};

/*
 * Returns the longest message that fits into a data ring of that size, bytes. A
 * consumed quarter of the ring may be unpublished, and a gap as long as the
 * message may be lost at the end of the ring: so 3/8 of it always fit.
 */
static inline uint32_t near_data_max(uint32_t dsize)
{
	return dsize / 8 * 3 & ~(uint32_t)(NEAR_LINE - 1);
}

/* Initializes an end at the start of a ring, which must be all zeros. */
void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place);
void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place);

/* Executes a full fence, and checks whether later slots need one. */
void near_tx_fence(struct near_tx *tx);

/*
 * Restarts an end of a resized ring, which is empty. The consumer restarts
 * first, in the RESIZE slot of the old ring; the producer keeps its gates.
 */
void near_tx_restart(struct near_tx *tx, const struct near_place *place);
void near_rx_restart(struct near_rx *rx, const struct near_place *place);

/* near_tx.gated */
#define NEAR_GATE_QUEUE 1u	/* open to near_tx_slot_past() only */
#define NEAR_GATE_RESIZE 2u	/* closed for a resize: link/resize.c */
#define NEAR_GATE_DYING 4u	/* closed for good */

/* Reads the consumer's head. True if a slot is free and no gate is closed. */
bool near_tx_reload(struct near_tx *tx);
struct near_slot *near_tx_slot_past(struct near_tx *tx);

/* Initializes an end without a ring: it is always full. */
static inline void near_tx_none(struct near_tx *tx)
{
	*tx = (struct near_tx) { .head = 1 };
}

/* Returns the next slot; NULL: full, or gated. A hostile head reads as full. */
static near_inline struct near_slot *near_tx_slot(struct near_tx *tx)
{
	if (near_unlikely(tx->tail - tx->head > tx->mask) &&
	    !near_tx_reload(tx))
		return NULL;
	return &tx->slots[tx->tail & tx->mask];
}

/*
 * Closes a gate: the ring appears full to near_tx_slot(), since tx->head is set
 * a lap behind and not read again. near_tx_slot_past() reads the real head.
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
 * True if the consumer is known to have consumed all messages. The head is
 * published every quarter of a ring only; a reply to a later slot sets taken.
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
 * Returns contiguous space for len <= dsize bytes; NULL: none now. The caller
 * allocates it by setting dtail to *end. A message that does not fit before the
 * end of the ring goes to its start; near_rx_data() computes the same.
 */
static near_inline uint8_t *near_tx_data(struct near_tx *tx, size_t len,
					 uint64_t *end)
{
	uint32_t at = (uint32_t)(tx->dtail - tx->dbase), need = near_lines(len);

	*end = tx->dtail + need;
	if (near_unlikely(at + need > tx->dsize)) {
		if (at > tx->dsize) {	/* the last message was at the start */
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

/* Publishes slot with the kind, flags, length and data of word. */
static near_inline void near_tx_publish(struct near_tx *tx,
					struct near_slot *slot, uint64_t word)
{
	uint64_t tail = tx->tail + 1;	/* before the store, which may alias */
	bool lap = !(tail & tx->mask);

	/* pairs with the acquire of near_rx_slot() */
	__atomic_store_n(&slot->word, word | tx->lap, __ATOMIC_RELEASE);
	tx->tail = tail;
	if (near_unlikely(lap))
		tx->lap++;
}

/* Publishes a slot without a message, which near_tx_taken() ignores. */
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
 * True if the producer must ring the doorbell; called after near_tx_publish().
 * Store buffering: the load of the flag must not pass the store of the slot.
 * The barrier between them is the consumer's membarrier, in near_arm() and
 * near_rx_rings_deactivate(), or the fence here.
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
 * True if the slot needs neither fence nor doorbell. Otherwise the caller must
 * call near_tell(), as a tail call.
 */
static near_inline bool near_tx_told(const struct near_tx *tx)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return !(tx->fence |
		 __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED));
}

/* True if the next slot is published. *word is the only load of its word. */
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

/* Returns the current slot's len bytes; NULL: len is invalid. */
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
 * Releases the current slot, which has no data. A lap ends where a quarter
 * ends, so the common case has one test.
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
 * Prefetches after n messages in a row: more are likely, in lines that the
 * sender's CPU owns. The distance grows with n: at most once in a row the
 * prefetch takes a line from the sender before the sender has written it.
 */
static near_inline void near_rx_ahead(const struct near_rx *rx, int n)
{
	int ahead = n < NEAR_RX_AHEAD ? n : NEAR_RX_AHEAD;

	if (n > 1)
		__builtin_prefetch(&rx->slots[(rx->head + ahead) & rx->mask]);
}

/* Releases the current slot and its data. */
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
