/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A ring, and its ends in any state that satisfies their invariants. */
#ifndef RINGS_H
#define RINGS_H

#include <stdlib.h>

#include "hostile.h"
#include "near/link/place.c"
#undef memset
#define memset(to, byte, n) ({						\
	__CPROVER_assert(writable(to, n), "memset");			\
	(void)(byte);							\
})
#include "near/link/ring.c"
#undef memset

bool near_barrier_ready(void)
{
	return any(bool);
}

#ifndef RINGS_CLASS
#define RINGS_CLASS (any(bool) ? 0 : NEAR_TIERS - 1)
#endif

static struct near_place place;
static void *ring;

/*
 * Makes a ring of the size class RINGS_CLASS, by default the smallest or the
 * largest one.
 */
static inline void ring_made(void)
{
	near_page_assume(4096);
	near_place(NEAR_SENDERS, 0, RINGS_CLASS, &place);
	ring = malloc(place.size);
}

static inline bool in_slots(const struct near_slot *slot)
{
	size_t at = (size_t)((const char *)slot - (const char *)ring) -
		    sizeof(struct near_ctl);

	return __CPROVER_same_object(slot, ring) && at % NEAR_LINE == 0 &&
	       at / NEAR_LINE < place.slots;
}

static inline bool in_data(const uint8_t *data, size_t len)
{
	size_t first = place.size - place.data;
	size_t at = (size_t)(data - (const uint8_t *)ring);

	return __CPROVER_same_object(data, ring) && at >= first &&
	       at <= place.size && len <= place.size - at;
}

static inline bool tx_valid(const struct near_tx *tx)
{
	return tx->dtail - tx->dbase <= 2 * (uint64_t)tx->dsize &&
	       tx->dtail % NEAR_LINE == 0 && tx->dbase % NEAR_LINE == 0;
}

static inline void tx_any(struct near_tx *tx)
{
	near_tx_init(tx, ring, &place);
	check(tx_valid(tx) && in_slots(tx->slots) &&
	      in_slots(&tx->slots[tx->mask]) && in_data(tx->data, tx->dsize) &&
	      tx->eager_max <= tx->dsize && tx->medium_max <= tx->dsize);
	tx->tail = any(uint64_t);
	tx->head = any(uint64_t);
	tx->consumed = any(uint64_t);
	tx->messages = any(uint64_t);
	tx->quiet = any(uint64_t);
	tx->lap = any(uint16_t);
	tx->gated = any(uint8_t);
	tx->dtail = any(uint64_t);
	tx->dbase = any(uint64_t);
	tx->dhead = any(uint64_t);
	assume(tx_valid(tx));
}

static inline bool rx_valid(const struct near_rx *rx)
{
	return rx->dhead - rx->dbase <= rx->dsize &&
	       rx->dnext - rx->dbase <= rx->dsize &&
	       rx->dmax + NEAR_LINE <= rx->dsize &&
	       rx->dhead % NEAR_LINE == 0 && rx->dbase % NEAR_LINE == 0 &&
	       rx->next == &rx->slots[rx->head & rx->mask];
}

static inline void rx_any(struct near_rx *rx)
{
	near_rx_init(rx, ring, &place);
	check(rx_valid(rx) && in_slots(rx->slots) &&
	      in_slots(&rx->slots[rx->mask]) && in_data(rx->data, rx->dsize));
	rx->head = any(uint64_t);
	rx->next = &rx->slots[rx->head & rx->mask];
	rx->lap = any(uint16_t);
	rx->dhead = any(uint64_t);
	rx->dbase = any(uint64_t);
	rx->dpublished = any(uint64_t);
	rx->dnext = rx->dhead;
	assume(rx_valid(rx));
}

#endif /* RINGS_H */
