/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "link/barrier.h"
#include "link/ring.h"

#define NEAR_EAGER_MAX 8192

static struct near_slot *near_ring_slots(void *ring)
{
	return (struct near_slot *)((struct near_ctl *)ring + 1);
}

static uint8_t *near_ring_data(void *ring, const struct near_place *place)
{
	return (uint8_t *)(near_ring_slots(ring) + place->slots);
}

/*
 * The consumer may keep a quarter of the data ring unpublished, and as much as
 * the message itself may be lost at the end of the ring: 3/8 always fit.
 */
static uint32_t near_eager_max(uint32_t dsize)
{
	uint32_t fits = dsize / 8 * 3;

	return fits < NEAR_EAGER_MAX ? fits : NEAR_EAGER_MAX;
}

void near_tx_fence(struct near_tx *tx)
{
	if (tx->fence == NEAR_FENCE_YET && near_barrier_ready())
		tx->fence = NEAR_FENCE_NONE;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void near_tx_init(struct near_tx *tx, void *ring,
		  const struct near_place *place)
{
	*tx = (struct near_tx) {
		.slots = near_ring_slots(ring),
		.mask = place->slots - 1,
		.lap = 1,
		.data = near_ring_data(ring, place),
		.dsize = place->data,
		.eager_max = near_eager_max(place->data),
		.ctl = ring,
	};
}

void near_rx_init(struct near_rx *rx, void *ring,
		  const struct near_place *place)
{
	*rx = (struct near_rx) {
		.slots = near_ring_slots(ring),
		.mask = place->slots - 1,
		.lap = 1,
		.data = near_ring_data(ring, place),
		.dsize = place->data,
		.ctl = ring,
	};
}
