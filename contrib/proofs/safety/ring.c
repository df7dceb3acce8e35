/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Both ends of a ring. Each function is called in any state that satisfies the
 * invariant, and must establish it again: so any number of laps is covered.
 * Pointers that it returns are valid for their length.
 *
 * C: near/link/ring.h near_tx_slot near_tx_data near_tx_publish near_tx_taken
 * C: near/link/ring.h near_tx_gate near_rx_ready near_rx_data near_rx_release
 * C: near/link/ring.h near_rx_release_slot near_data_max near_lines
 * C: near/link/ring.c near_tx_init near_rx_init near_tx_reload near_tx_restart
 * C: near/link/ring.c near_rx_restart near_tx_slot_past
 * CBMC: --unwind 9 --object-bits 10
 * MUTANT slot-unmasked near/link/ring.h: s/(near_tx_reload\(tx\)\)\n\t\treturn NULL;\n\treturn &tx->slots\[tx->tail) & tx->mask/\1/
 * MUTANT head-trusted near/link/ring.c: s/return tx->tail - head > tx->mask \? NULL :\n\t *&tx->slots\[tx->tail & tx->mask\]/return tx->tail > head + tx->mask ? NULL : \&tx->slots[tx->tail - head]/
 * MUTANT length-unchecked near/link/ring.h: s/len > rx->dmax/0/
 * MUTANT restart-forgotten near/link/ring.h: s/rx->dhead = rx->dbase \+= rx->dsize;\n\t\tat = 0;/rx->dhead = rx->dbase += rx->dsize;/
 * MUTANT data-not-restarted near/link/ring.h: s/\*end \+= tx->dsize - at;\n\t\t\tat = 0;/*end += tx->dsize - at;/
 * MUTANT base-kept near/link/ring.h: s/tx->dbase \+= tx->dsize;/;/
 * MUTANT lap-kept near/link/ring.h: s/rx->next = rx->slots;\n/\n/
 * MUTANT longest-too-long near/link/ring.c: s/return fits < max \? fits : max/return max/
 */

#include <stdlib.h>

#include "hostile.h"

#undef memset
#define memset(to, byte, n) ({						\
	__CPROVER_assert(writable(to, n), "memset");			\
	(void)(byte);							\
})
#include "near/link/ring.c"
#undef memset
#include "near/link/place.c"

bool near_barrier_ready(void)
{
	return any(bool);
}

static struct near_place place;
static void *ring;

/* A ring of the smallest or the largest class. */
static void ring_made(void)
{
	near_page_assume(4096);
	near_place(NEAR_SENDERS, 0, any(bool) ? 0 : NEAR_TIERS - 1, &place);
	ring = malloc(place.size);
}

static bool in_slots(const struct near_slot *slot)
{
	size_t at = (size_t)((const char *)slot - (const char *)ring) -
		    sizeof(struct near_ctl);

	return __CPROVER_same_object(slot, ring) && at % NEAR_LINE == 0 &&
	       at / NEAR_LINE < place.slots;
}

static bool in_data(const uint8_t *data, size_t len)
{
	size_t first = place.size - place.data;
	size_t at = (size_t)(data - (const uint8_t *)ring);

	return __CPROVER_same_object(data, ring) && at >= first &&
	       at <= place.size && len <= place.size - at;
}

static bool tx_valid(const struct near_tx *tx)
{
	return tx->dtail - tx->dbase <= 2 * (uint64_t)tx->dsize &&
	       tx->dtail % NEAR_LINE == 0 && tx->dbase % NEAR_LINE == 0;
}

static void tx_any(struct near_tx *tx)
{
	near_tx_init(tx, ring, &place);
	check(tx_valid(tx) && in_slots(tx->slots) &&
	      in_slots(&tx->slots[tx->mask]) && in_data(tx->data, tx->dsize) &&
	      tx->eager_max <= tx->dsize && tx->fanout_max <= tx->dsize);
	tx->tail = any(uint64_t);
	tx->head = any(uint64_t);
	tx->taken = any(uint64_t);
	tx->messages = any(uint64_t);
	tx->quiet = any(uint64_t);
	tx->lap = any(uint16_t);
	tx->gated = any(uint8_t);
	tx->dtail = any(uint64_t);
	tx->dbase = any(uint64_t);
	tx->dhead = any(uint64_t);
	assume(tx_valid(tx));
}

static void producer(void)
{
	struct near_slot *slot;
	struct near_tx tx;
	size_t len = any(size_t);
	uint8_t *data;
	uint64_t end;

	tx_any(&tx);
	assume(len <= tx.dsize);
	slot = any(bool) ? near_tx_slot(&tx) : near_tx_slot_past(&tx);
	near_tx_taken(&tx);
	if (!slot)
		return;
	check(in_slots(slot));
	data = near_tx_data(&tx, len, &end);
	if (data) {
		check(in_data(data, len));
		tx.dtail = end;
	}
	near_tx_publish_quiet(&tx, slot, any(uint64_t));
	near_tx_need_doorbell(&tx);
	check(tx_valid(&tx));
}

static void producer_restarts(void)
{
	struct near_tx tx;

	tx_any(&tx);
	ring_made();
	tx.ctl = ring;
	near_tx_restart(&tx, &place);
	check(tx_valid(&tx));
	check(!near_tx_slot(&tx) || in_slots(near_tx_slot(&tx)));
}

static bool rx_valid(const struct near_rx *rx)
{
	return rx->dhead - rx->dbase <= rx->dsize &&
	       rx->dnext - rx->dbase <= rx->dsize &&
	       rx->dmax + NEAR_LINE <= rx->dsize &&
	       rx->dhead % NEAR_LINE == 0 && rx->dbase % NEAR_LINE == 0 &&
	       rx->next == &rx->slots[rx->head & rx->mask];
}

static void rx_any(struct near_rx *rx)
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

static void consumer(void)
{
	size_t len = any(size_t);
	const uint8_t *data;
	struct near_rx rx;
	uint64_t word;

	rx_any(&rx);
	if (!near_rx_slot(&rx, &word))
		return;
	check(in_slots(near_rx_slot(&rx, &word) ? rx.next : rx.slots));
	if (any(bool)) {
		near_rx_release_slot(&rx);
	} else {
		data = near_rx_data(&rx, len);
		if (!data)
			return;
		check(in_data(data, len));
		near_rx_release(&rx);
	}
	check(rx_valid(&rx));
}

static void consumer_restarts(void)
{
	struct near_rx rx;

	rx_any(&rx);
	ring_made();
	rx.ctl = ring;
	near_rx_restart(&rx, &place);
	check(in_slots(rx.next));
	rx.dnext = rx.dhead;
	near_rx_release(&rx);
	check(rx_valid(&rx));
}

int main(void)
{
	ring_made();
	switch (any(int)) {
	case 0:
		producer();
		break;
	case 1:
		producer_restarts();
		break;
	case 2:
		consumer();
		break;
	default:
		consumer_restarts();
	}
	return 0;
}
