/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A ring from one sender (producer) to one receiver (consumer), in the
 * receiver's segment. It has slots of one cache line, and a data ring for
 * longer messages.
 *
 * Memory ordering: message passing (release, acquire) in both directions. A
 * slot's lap number shows the consumer that the slot is new. The heads, which
 * the consumer publishes each quarter of a ring, show the producer free space.
 * See docs/near/memory-ordering.md.
 *
 * Cost of a message: the slot's cache line is stored and loaded, and those of
 * the data if the message is longer than 48 bytes. No atomic read-modify-write.
 * Locks: none, each end belongs to one port.
 */
#ifndef NEAR_LINK_RING_H
#define NEAR_LINK_RING_H

#include "near/link/copy.h"
#include "near/link/shm.h"

#define NEAR_EAGER_MAX 8192	/* limit of eager messages, bytes */
#define NEAR_FANOUT_MAX 16384	/* eager limit in a fan-out: near_fanout() */

/* When the producer executes a fence after a slot: near_tx_need_doorbell(). */
enum near_fence {
	/* never: the consumer's membarrier is the barrier of both ends */
	NEAR_FENCE_NONE,
	/* until this process is registered for membarrier */
	NEAR_FENCE_UNREGISTERED,
	/* always: one of the two processes has no membarrier */
	NEAR_FENCE_ALWAYS,
};

/*
 * The producer's end. A resize resets the counters, which never wrap. Inline
 * messages use only the first cache line of this struct.
 */
struct near_tx {
	/* NULL: not connected; no slot is free */
	struct near_slot *slots;
	uint64_t tail;
	uint64_t head;	/* near_ctl.head when last loaded; see near_tx_gate() */
	/* slots known to be consumed; may exceed head: near_tx_consumed() */
	uint64_t consumed;
	struct near_ctl *ctl;
	uint32_t mask;
	uint16_t lap;
	uint8_t fence;			/* enum near_fence */
	uint8_t gated;			/* closed gates: NEAR_GATE_* */
	/* value of tail after the last slot that was not a message */
	uint64_t quiet;
	/* value of tail after the last message; valid if quiet equals tail */
	uint64_t messages;
	uint8_t *data;
	uint64_t dtail;
	uint64_t dbase;			/* dtail at offset 0 of the data ring */
	uint64_t dhead;			/* near_ctl.dhead when last loaded */
	uint32_t dsize;
	uint32_t eager_max;		/* eager limit of this ring, bytes */
	uint32_t fanout_max;		/* eager limit in a fan-out, bytes */
};

/* The consumer's end. */
struct near_rx {
	struct near_slot *next;		/* the next slot to consume */
	uint64_t head;
	uint32_t mask;
	uint32_t quarter;		/* mask / 4 */
	uint16_t lap;
	struct near_slot *slots;
	uint8_t *data;
	uint64_t dhead;
	uint64_t dbase;			/* dhead at offset 0 of the data ring */
	uint64_t dnext;	/* dhead after the current slot's data */
	uint64_t dpublished;
	uint32_t dsize;
	uint32_t dmax;			/* limit of a slot's data, bytes */
	struct near_ctl *ctl;
};

/*
 * Returns the limit of a message's length: 3/8 of the data ring. When all
 * earlier data is consumed, such a message finds space, although
 * - up to 3/8 before the ring's end may be unusable, because data does not wrap
 * - a consumed quarter may appear full, because the consumer publishes its head
 *   only each quarter
 */
static inline uint32_t near_data_max(uint32_t dsize)
{
	return dsize / 8 * 3 & ~(uint32_t)(NEAR_LINE - 1);
}

/* Initialize an end of a ring whose slots are all zero: laps start at 1. */
void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place);
void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place);

/* Executes a full fence; clears tx->fence once this process is registered. */
void near_tx_fence(struct near_tx *tx);

/*
 * Restart an end of an empty ring after a resize: the next slot is slot 0, in
 * lap 1. The consumer restarts when it consumes the RESIZE slot. The producer
 * restarts after the reply, and its closed gates stay closed.
 */
void near_tx_restart(struct near_tx *tx, const struct near_place *place);
void near_rx_restart(struct near_rx *rx, const struct near_place *place);

/* near_tx.gated: the gates. While one is closed, the ring appears full. */
#define NEAR_GATE_QUEUE 1u	/* near_tx_slot_past() ignores this gate */
#define NEAR_GATE_RESIZE 2u	/* until the receiver has resized the ring */
#define NEAR_GATE_FAILED 4u	/* never opened: the peer has failed */

/* Loads the consumer's head. True if a slot is free and no gate is closed. */
bool near_tx_reload(struct near_tx *tx);
/* Returns the next slot even if NEAR_GATE_QUEUE is closed; NULL: none. */
struct near_slot *near_tx_slot_past(struct near_tx *tx);

/* Initializes an end without a ring: no slot is ever free. */
static inline void near_tx_none(struct near_tx *tx)
{
	*tx = (struct near_tx) { .head = 1 };
}

/* Returns the next slot; NULL: full (or an invalid head), or a closed gate. */
static near_inline struct near_slot *near_tx_slot(struct near_tx *tx)
{
	if (near_unlikely(tx->tail - tx->head > tx->mask) &&
	    !near_tx_reload(tx))
		return NULL;
	return &tx->slots[tx->tail & tx->mask];
}

/*
 * Closes a gate. Fast paths test only tx->head, so this function sets tx->head
 * as for a full ring. near_tx_reload() does not load the consumer's head until
 * all gates are open.
 */
static inline void near_tx_gate(struct near_tx *tx, uint8_t why)
{
	tx->head = tx->tail - tx->mask - 1;
	tx->gated |= why;
}

/* Opens a gate. After the last, near_tx_slot() loads the consumer's head. */
static inline void near_tx_open_gate(struct near_tx *tx, uint8_t why)
{
	tx->gated &= (uint8_t)~why;
}

/*
 * True if the consumer is known to have consumed all messages; other slots do
 * not count. The consumer publishes its head only each quarter of a ring, but
 * replies raise tx->consumed earlier.
 */
static inline bool near_tx_consumed(struct near_tx *tx)
{
	uint64_t end = tx->quiet == tx->tail ? tx->messages : tx->tail;

	if (tx->consumed >= end)
		return true;
	if (__atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE) < end)
		return false;
	tx->consumed = end;
	return true;
}

/* Returns len rounded up to whole cache lines. */
static near_inline uint32_t near_lines(size_t len)
{
	return (uint32_t)(len + NEAR_LINE - 1) & ~(uint32_t)(NEAR_LINE - 1);
}

/*
 * Returns contiguous space for len <= dsize bytes in the data ring; NULL: none.
 * Stores in *end the dtail that the caller must set. Data that does not fit
 * before the data ring's end goes to the start, as near_rx_data() assumes.
 */
static near_inline uint8_t *near_tx_data(struct near_tx *tx, size_t len,
					 uint64_t *end)
{
	uint32_t at = (uint32_t)(tx->dtail - tx->dbase), need = near_lines(len);

	*end = tx->dtail + need;
	if (near_unlikely(at + need > tx->dsize)) {
		if (at > tx->dsize) {	/* space before the end was skipped */
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

/* Publishes a slot with its other fields set: stores word and lap number. */
static near_inline void near_tx_publish(struct near_tx *tx,
					struct near_slot *slot, uint64_t word)
{
	/* computed first: for the compiler, the store may change *tx */
	uint64_t tail = tx->tail + 1;
	bool lap = !(tail & tx->mask);

	/* message passing: pairs with the acquire in near_rx_ready() */
	__atomic_store_n(&slot->word, word | tx->lap, __ATOMIC_RELEASE);
	tx->tail = tail;
	if (near_unlikely(lap))
		tx->lap++;
}

/* Publishes a slot that is not a message: near_tx_consumed() ignores it. */
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
 * True if the producer must ring the doorbell after the slot just published.
 *
 * Memory ordering: store buffering. The producer stores the slot, then loads
 * the need-doorbell flag; the consumer stores the flag, then loads the slot.
 * The consumer's membarrier, in near_arm() and near_rx_rings_deactivate(),
 * orders both ends. With tx->fence set, the producer executes a fence here.
 */
static near_inline bool near_tx_need_doorbell(struct near_tx *tx)
{
	if (near_unlikely(tx->fence))
		near_tx_fence(tx);
	else
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED);
}

/* True if the slot needs no fence and no doorbell; else call near_notify(). */
static near_inline bool near_tx_polled(const struct near_tx *tx)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return !(tx->fence |
		 __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED));
}

/*
 * True if the next slot is published. Stores the slot and its word. The caller
 * must not load the word again, because a hostile sender may change it.
 */
static near_inline bool near_rx_ready(const struct near_rx *rx,
				      struct near_slot **slot, uint64_t *word)
{
	*slot = rx->next;
	*word = __atomic_load_n(&(*slot)->word, __ATOMIC_ACQUIRE);
	return (uint16_t)*word == rx->lap;
}

/* Returns the next slot if it is published, else NULL: see near_rx_ready(). */
static near_inline struct near_slot *near_rx_slot(const struct near_rx *rx,
						  uint64_t *word)
{
	struct near_slot *slot;

	return near_rx_ready(rx, &slot, word) ? slot : NULL;
}

/*
 * Returns the current slot's data; NULL: invalid length. Must be called for
 * each slot with data, in the order of the slots.
 */
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
 * Releases the current slot, which has no data. The last slot of a lap is also
 * the last one of a quarter, so the common case needs one test.
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

#define NEAR_RX_PREFETCH 8	/* limit of the prefetch distance, slots */

/*
 * After n > 1 messages in a row, prefetches a later slot, n or at most
 * NEAR_RX_PREFETCH slots ahead, because more messages are likely. If no message
 * follows, the prefetch takes a cache line from the sender, so there is none
 * after a single message.
 */
static near_inline void near_rx_prefetch(const struct near_rx *rx, int n)
{
	int ahead = n < NEAR_RX_PREFETCH ? n : NEAR_RX_PREFETCH;

	if (n > 1)
		__builtin_prefetch(&rx->slots[(rx->head + ahead) & rx->mask]);
}

/* Releases the slot and its data, up to rx->dnext. */
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
