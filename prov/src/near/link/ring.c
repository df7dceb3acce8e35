/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>

#include "near/link/ring.h"

static struct near_slot *near_ring_slots(void *ring)
{
	return (struct near_slot *)((struct near_ctl *)ring + 1);
}

static uint8_t *near_ring_data(void *ring, const struct near_place *place)
{
	return (uint8_t *)(near_ring_slots(ring) + place->slots);
}

static uint32_t near_data_limit(uint32_t dsize, uint32_t max)
{
	uint32_t fits = near_data_max(dsize);

	return fits < max ? fits : max;
}

void near_tx_fence(struct near_tx *tx)
{
	if (tx->fence == NEAR_FENCE_UNREGISTERED && near_barrier_ready())
		tx->fence = NEAR_FENCE_NONE;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place)
{
	*tx = (struct near_tx){
		.slots = near_ring_slots(ring),
		.mask = place->slots - 1,
		.lap = 1,
		.data = near_ring_data(ring, place),
		.dsize = place->data,
		.eager_max = near_data_limit(place->data, NEAR_EAGER_MAX),
		.medium_max = near_data_limit(place->data, NEAR_MEDIUM_MAX),
		.ctl = ring,
	};
}

void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place)
{
	*rx = (struct near_rx){
		.next = near_ring_slots(ring),
		.slots = near_ring_slots(ring),
		.mask = place->slots - 1,
		.quarter = (place->slots - 1) / 4,
		.lap = 1,
		.data = near_ring_data(ring, place),
		.dsize = place->data,
		.dmax = near_data_limit(place->data, NEAR_MEDIUM_MAX),
		.ctl = ring,
	};
}

void near_tx_restart(struct near_tx *tx, const struct near_place *place)
{
	uint8_t gated = tx->gated;
	uint8_t fence = tx->fence;

	near_tx_init(tx, tx->ctl, place);
	tx->fence = fence;
	if (gated)
		near_tx_gate(tx, gated);
}

/*
 * Zeroes the slots, because an old word might have the number of the first lap.
 * The consumer starts one slot before slot 0, because the caller then releases
 * the RESIZE slot, which moves the consumer to slot 0.
 */
void near_rx_restart(struct near_rx *rx, const struct near_place *place)
{
	near_rx_init(rx, rx->ctl, place);
	memset(rx->slots, 0, place->slots * sizeof(*rx->slots));
	rx->next = &rx->slots[rx->mask];
	rx->head--;
	rx->lap--;
	__atomic_store_n(&rx->ctl->head, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rx->ctl->dhead, 0, __ATOMIC_RELAXED);
}

bool near_tx_reload(struct near_tx *tx)
{
	if (tx->gated || !tx->slots)
		return false;
	tx->head = __atomic_load_n(&tx->ctl->head, __ATOMIC_ACQUIRE);
	return tx->tail - tx->head <= tx->mask;
}

struct near_slot *near_tx_slot_past(struct near_tx *tx)
{
	if (!tx->gated)
		return near_tx_slot(tx);
	if (tx->gated & ~NEAR_GATE_QUEUE || !near_tx_free(tx))
		return NULL;
	return &tx->slots[tx->tail & tx->mask];
}
