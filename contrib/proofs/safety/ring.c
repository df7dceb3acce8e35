/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Both ends of a ring. Each function is called in any state that satisfies the
 * ring's invariant, and must leave a state that satisfies it again: so any
 * number of laps is covered. Pointers that the functions return are valid for
 * their length.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/ring.h near_tx_slot near_tx_data near_tx_publish near_tx_free
 * C: near/link/ring.h near_tx_gate near_rx_ready near_rx_data near_rx_release
 * C: near/link/ring.h near_rx_release_slot near_data_max near_lines
 * C: near/link/ring.h near_tx_consumed
 * C: near/link/ring.c near_tx_init near_rx_init near_tx_reload near_tx_restart
 * C: near/link/ring.c near_rx_restart near_tx_slot_past
 * CBMC: --unwind 9 --object-bits 10
 * MUTANT slot-unmasked near/link/ring.h: \
 *   s/(near_tx_reload\(tx\)\)\n\t\treturn NULL;\n\treturn \
 *   &tx->slots\[tx->tail) & tx->mask/\1/
 * MUTANT past-unmasked near/link/ring.c: \
 *   s/return &tx->slots\[tx->tail & tx->mask\]/return \&tx->slots[tx->tail]/
 * MUTANT length-unchecked near/link/ring.h: s/len > rx->dmax/0/
 * MUTANT restart-forgotten near/link/ring.h: \
 *   s/rx->dhead = rx->dbase \+= rx->dsize;\n\t\tat = 0;/\
 *   rx->dhead = rx->dbase += rx->dsize;/
 * MUTANT data-not-restarted near/link/ring.h: \
 *   s/\*end \+= tx->dsize - at;\n\t\t\tat = 0;/*end += tx->dsize - at;/
 * MUTANT base-kept near/link/ring.h: s/tx->dbase \+= tx->dsize;/;/
 * MUTANT lap-kept near/link/ring.h: s/rx->next = rx->slots;\n/\n/
 * MUTANT longest-too-long near/link/ring.c: \
 *   s/return fits < max \? fits : max/return max/
 */

#include "rings.h"

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
	near_tx_consumed(&tx);
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
