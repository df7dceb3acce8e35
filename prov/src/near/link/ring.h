/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The two ends of a ring: the producer is the sender's end, and the consumer is
 * the receiver's end. A ring has slots, and a data ring for the bytes of longer
 * messages. A lap is one pass through all slots. A slot is new to the consumer
 * if it has the number of the current lap (docs/near/memory-ordering.md).
 */
#ifndef NEAR_LINK_RING_H
#define NEAR_LINK_RING_H

#include "near/link/copy.h"
#include "near/link/shm.h"

/*
 * Longest message that is always eager if the ring has space, and longest
 * medium message, bytes. Medium messages are eager, unless single copy has been
 * found to be fast (docs/near/protocol.md, *Medium messages*).
 */
#define NEAR_EAGER_MAX 8192
#define NEAR_MEDIUM_MAX 32768
/*
 * Number of medium messages to a peer from one trial to the next. A trial has
 * two messages, and the one before them is measured, too.
 */
#define NEAR_TRIAL 32

/*
 * barrier.c: the first call of a process begins to register this process for
 * membarrier(2). The registration may take 20 ms in a process with several
 * threads, so a short-lived thread executes it. False: there is no membarrier.
 */
bool near_barrier_begin(void);
/* True if this process is registered, so that membarrier acts on it. */
bool near_barrier_ready(void);
/*
 * Executes membarrier, which is a full barrier in all threads of all registered
 * processes. False: membarrier failed, so this barrier may be missing.
 */
bool near_barrier(void);

/* Whether the producer must execute a fence after each slot. */
enum near_fence {
	NEAR_FENCE_NONE,	/* no: the consumer's membarrier suffices */
	NEAR_FENCE_UNREGISTERED,	/* yes, until near_barrier_ready() */
	NEAR_FENCE_ALWAYS,	/* yes: one of the ends has no membarrier */
};

/*
 * The producer's end of a ring. The 64-bit counters never wrap; a resize resets
 * them. To send an inline message, the sender accesses only the first cache
 * line of this struct.
 */
struct near_tx {
	struct near_slot *slots;	/* NULL: not connected */
	uint64_t tail;		/* number of published slots */
	/*
	 * last loaded near_ctl.head; while a gate is closed, a value that makes
	 * the ring appear full
	 */
	uint64_t head;
	/* last known number of consumed slots: near_tx_consumed() */
	uint64_t consumed;
	struct near_ctl *ctl;
	uint32_t mask;
	uint16_t lap;
	uint8_t fence;			/* enum near_fence */
	uint8_t gated;		/* closed gates: NEAR_GATE_* bits */
	uint64_t quiet;	/* tail after the last near_tx_publish_quiet() */
	/*
	 * valid only if quiet == tail: tail after the last slot that was not
	 * published by near_tx_publish_quiet()
	 */
	uint64_t messages;
	uint8_t *data;
	uint64_t dtail;	/* bytes published, or skipped at the end of data[] */
	/*
	 * dtail at the start of the current pass through data[]. Exception:
	 * when near_tx_data() begins a new pass, dbase still belongs to the
	 * previous pass. The next near_tx_data() corrects dbase.
	 */
	uint64_t dbase;
	uint64_t dhead;			/* last loaded near_ctl.dhead */
	uint32_t dsize;
	uint32_t eager_max;		/* eager limit of this ring, bytes */
	/* longest medium message that can be eager in this ring, bytes */
	uint32_t medium_max;
};

/* The consumer's end of a ring. */
struct near_rx {
	struct near_slot *next;		/* the next slot to consume */
	uint64_t head;			/* number of consumed slots */
	uint32_t mask;
	/*
	 * bit mask, number of slots / 4 - 1: head & quarter is 0 only at the
	 * end of a quarter of a lap
	 */
	uint32_t quarter;
	uint16_t lap;
	struct near_slot *slots;
	uint8_t *data;
	uint64_t dhead;	/* bytes consumed, or skipped at the end of data[] */
	uint64_t dbase;	/* dhead at start of the current pass through data[] */
	uint64_t dnext;	/* value of dhead after near_rx_release() */
	uint64_t dpublished;	/* last stored near_ctl.dhead */
	uint32_t dsize;
	uint32_t dmax;	/* longest data of one slot in data[], bytes */
	struct near_ctl *ctl;
};

/*
 * Returns the length of the longest message for a data ring of dsize bytes.
 * docs/near/memory-ordering.md, *Heads*, has the reason for 3/8.
 */
static inline uint32_t near_data_max(uint32_t dsize)
{
	return dsize / 8 * 3 & ~(uint32_t)(NEAR_LINE - 1);
}

/* Initialize an end of a ring, at slot 0 of lap 1. All slots must be zero. */
void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place);
void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place);

/*
 * Executes a fence. Changes NEAR_FENCE_UNREGISTERED to NEAR_FENCE_NONE if this
 * process is registered for membarrier by now.
 */
void near_tx_fence(struct near_tx *tx);

/* Initializes the producer again, after a resize. Opens no gate. */
void near_tx_restart(struct near_tx *tx, const struct near_place *place);
/*
 * Initializes the consumer again for a resize, and zeroes all slots. The RESIZE
 * slot must still be the current slot. The caller then releases this slot.
 */
void near_rx_restart(struct near_rx *rx, const struct near_place *place);

/* Bits of near_tx.gated. While a bit is set, near_tx_slot() returns NULL. */
#define NEAR_GATE_QUEUE 1u	/* RMA operations are queued */
#define NEAR_GATE_RESIZE 2u	/* a resize is pending */
#define NEAR_GATE_FAILED 4u	/* the peer has failed; stays set */

/* Slow path of near_tx_slot(): loads near_ctl.head. True if a slot is free. */
bool near_tx_reload(struct near_tx *tx);
/* Returns the next free slot, even if NEAR_GATE_QUEUE is set; NULL: none. */
struct near_slot *near_tx_slot_past(struct near_tx *tx);

/* Loads near_ctl.head. True if a slot is free, even if a gate is closed. */
static near_inline bool near_tx_free(const struct near_tx *tx)
{
	return tx->tail - __atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE) <=
	       tx->mask;
}

/* Initializes tx for a peer that is not connected: no slot is ever free. */
static inline void near_tx_none(struct near_tx *tx)
{
	*tx = (struct near_tx) { .head = 1 };
}

/*
 * Returns the next free slot. NULL: the ring is full, a gate is closed, the
 * peer is not connected, or the peer has stored an invalid head.
 */
static near_inline struct near_slot *near_tx_slot(struct near_tx *tx)
{
	if (near_unlikely(tx->tail - tx->head > tx->mask) &&
	    !near_tx_reload(tx))
		return NULL;
	return &tx->slots[tx->tail & tx->mask];
}

/* Closes a gate: makes the ring appear full. Fast paths do not read `gated`. */
static inline void near_tx_gate(struct near_tx *tx, uint8_t gate)
{
	tx->head = tx->tail - tx->mask - 1;
	tx->gated |= gate;
}

/*
 * Opens a gate. The ring still appears full until the next near_tx_slot(),
 * which loads near_ctl.head if no other gate is closed.
 */
static inline void near_tx_open_gate(struct near_tx *tx, uint8_t gate)
{
	tx->gated &= (uint8_t)~gate;
}

/*
 * True if the consumer has consumed all slots, except slots that
 * near_tx_publish_quiet() published after the last other slot. tx->consumed may
 * exceed near_ctl.head: a reply shows that the peer has consumed the request,
 * even if the peer has not stored near_ctl.head since.
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
 * If the space before the end of the data ring is too short, skips this space,
 * and returns space at the start. near_rx_data() skips the same space. When the
 * caller publishes the slot, it must set tx->dtail to *end.
 */
static near_inline uint8_t *near_tx_data(struct near_tx *tx, size_t len,
					 uint64_t *end)
{
	uint32_t at = (uint32_t)(tx->dtail - tx->dbase), need = near_lines(len);

	*end = tx->dtail + need;
	if (near_unlikely(at + need > tx->dsize)) {
		/* if the last call began a new pass, correct dbase */
		if (at > tx->dsize) {
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

/* Publishes a slot: stores its word. All other fields must be set before. */
static near_inline void near_tx_publish(struct near_tx *tx,
					struct near_slot *slot, uint64_t word)
{
	/*
	 * The code reads *tx before the store, because after the store the
	 * compiler would have to load *tx again.
	 */
	uint64_t tail = tx->tail + 1;
	bool lap = !(tail & tx->mask);

	/* message passing: pairs with the acquire in near_rx_ready() */
	__atomic_store_n(&slot->word, word | tx->lap, __ATOMIC_RELEASE);
	tx->tail = tail;
	if (near_unlikely(lap))
		tx->lap++;
}

/* Publishes a slot, such as an ACK, that near_tx_consumed() ignores. */
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
 * Memory ordering: store buffering (memory-ordering.md, *Idle rings*). The
 * producer stores the slot, then loads need_doorbell. The consumer stores
 * need_doorbell, then loads the slot. Both ends are ordered by the consumer's
 * membarrier in near_arm() and near_rx_rings_deactivate(), or by fences.
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
 * True if the caller need not call near_notify() for the slot just published:
 * the consumer polls the ring, and the producer needs no fence.
 */
static near_inline bool near_tx_polled(const struct near_tx *tx)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return !(tx->fence |
		 __atomic_load_n(&tx->ctl->need_doorbell, __ATOMIC_RELAXED));
}

/*
 * True if the next slot is published. Stores the slot's address and word. The
 * caller must not load the word again, because a hostile sender may change it.
 */
static near_inline bool near_rx_ready(const struct near_rx *rx,
				      struct near_slot **slot, uint64_t *word)
{
	*slot = rx->next;
	*word = __atomic_load_n(&(*slot)->word, __ATOMIC_ACQUIRE);
	return (uint16_t)*word == rx->lap;
}

/* Returns the next slot if it is published, else NULL. */
static near_inline struct near_slot *near_rx_slot(const struct near_rx *rx,
						  uint64_t *word)
{
	struct near_slot *slot;

	return near_rx_ready(rx, &slot, word) ? slot : NULL;
}

/*
 * Returns the current slot's data; NULL: the length is invalid. Must be called
 * for each slot with data.
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
 * Releases the current slot, but not its data. Stores near_ctl.head only after
 * each quarter of a lap. The end of a lap is always the end of a quarter.
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
 * Prefetches a later slot if n > 1 slots were new in a row. If n is 1, the
 * sender might not have written the later slot yet. The prefetch would then
 * take the slot's cache line away from the sender.
 */
static near_inline void near_rx_prefetch(const struct near_rx *rx, int n)
{
	int ahead = n < NEAR_RX_PREFETCH ? n : NEAR_RX_PREFETCH;

	if (n > 1)
		__builtin_prefetch(&rx->slots[(rx->head + ahead) & rx->mask]);
}

/*
 * Releases the current slot and its data, up to rx->dnext. Stores
 * near_ctl.dhead each time that a quarter of the data ring has been released.
 */
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
