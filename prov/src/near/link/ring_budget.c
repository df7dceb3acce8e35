/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "near/link/port.h"

/*
 * If a port has few peers and rx rings, near_budget_advertise() expects more
 * senders than these, so that later senders get memory, too.
 */
#define NEAR_BUDGET_FEW 8	/* least number of senders expected in all */
#define NEAR_BUDGET_NEXT 4	/* least number of senders expected to attach */

void near_budget_init(struct near_budget *budget, size_t bytes)
{
	size_t pages = bytes / near_page_size();
	size_t most = NEAR_SENDERS * near_tier_pages(NEAR_TIERS - 1);

	if (pages > most)
		pages = most;
	budget->pages_max = (uint32_t)pages;
	budget->growing = pages < NEAR_SENDERS ? (uint32_t)pages : NEAR_SENDERS;
}

static uint32_t near_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Returns the number of peers or of rx rings, the larger one, at least 1. */
static uint32_t near_budget_senders(const struct near_budget *budget)
{
	return near_max(near_max(budget->peers, budget->rings), 1);
}

/* Returns how many of these pages remain after one page per sender. */
static uint32_t near_budget_beyond(uint32_t pages, uint32_t senders)
{
	return pages > senders ? pages - senders : 0;
}

/*
 * Returns the index below which the number of rings without a sender is `free`.
 * The next `free` senders get these rings, because a sender takes the free ring
 * with the lowest index.
 */
static uint32_t near_budget_below(const struct near_port *port, uint32_t free)
{
	uint32_t i;

	for (i = 0; free && i < port->ring_count; i++)
		free -= !port->ring[i];
	return i + free;
}

/*
 * Advertises a ring size and the number of rings that may have it. Several
 * senders may attach before this port polls and advertises again. So the
 * advertised rings together must not exceed the budget.
 */
void near_budget_advertise(struct near_port *port)
{
	const struct near_budget *budget = &port->budget;
	uint32_t senders = near_budget_senders(budget), free, next, below = 0;
	uint32_t tier = near_tier_least();

	free = near_budget_beyond(budget->pages_max,
				  near_max(senders, NEAR_MANY_SENDERS));
	free -= free < budget->extra ? free : budget->extra;
	next = near_max(near_max(senders, NEAR_BUDGET_FEW) - budget->rings,
			NEAR_BUDGET_NEXT);
	if (free >= next) {
		tier = near_tier_fit(1 + free / next);
		below = near_budget_below(port, next);
	}
	__atomic_store_n(&port->segment->adv, below << NEAR_ADV_BELOW | tier,
			 __ATOMIC_RELAXED);
}

void near_budget_peers(struct near_port *port, const struct near_peer *peer,
		       int more)
{
	if (peer->own)
		return;
	port->budget.peers += (uint32_t)more;
	near_budget_advertise(port);
}

static uint32_t near_rx_ring_extra(const struct near_rx_ring *ring)
{
	return near_tier_pages(ring->tier) - 1;
}

void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more)
{
	port->budget.rings += (uint32_t)more;
	port->budget.extra += (uint32_t)more * near_rx_ring_extra(ring);
	near_budget_advertise(port);
}

/* Returns the least size class for messages of len bytes; NEAR_TIERS: none. */
static uint32_t near_tier_for(uint32_t len)
{
	uint32_t tier = near_tier_least();
	struct near_place place;

	while (near_place(NEAR_SENDERS, 0, tier, &place) &&
	       near_data_max(place.data) < len)
		tier++;
	return tier;
}

/*
 * Returns a new size class for the ring: the largest one, from `least` to the
 * even share of all pages, for which enough pages are left. If the even share
 * is below `least`, only `least` is possible. If no class is possible, returns
 * the ring's present class.
 */
static uint32_t near_budget_fit(const struct near_budget *budget,
				const struct near_rx_ring *ring, uint32_t least)
{
	uint32_t senders = near_budget_senders(budget);
	size_t pages = near_grown_pages(budget->pages_max, senders);
	uint32_t most = near_budget_beyond((uint32_t)pages, senders);
	uint32_t others = budget->extra - near_rx_ring_extra(ring), tier;

	for (tier = near_max(near_tier_fit(1 + most / senders), least);
	     tier >= least; tier--)
		if (others + near_tier_pages(tier) - 1 <= most)
			return tier;
	return ring->tier;
}

/* Returns the ring's size class after a resize. more: near_slot.resize.more. */
static uint32_t near_budget_grant(const struct near_port *port,
				  const struct near_rx_ring *ring,
				  uint32_t more)
{
	uint32_t least = near_max(near_tier_for(more), ring->tier + 1u);

	if (least >= NEAR_TIERS || ring->index >= port->budget.growing ||
	    ring->peer->draining)
		return ring->tier;
	return near_budget_fit(&port->budget, ring, least);
}

/*
 * Maps and allocates the pages that a ring needs for size class tier. False: no
 * memory is left. The allocation comes last, so that no error leaves memory
 * that the ring does not use.
 */
static bool near_rx_ring_extend(struct near_port *port,
				const struct near_rx_ring *ring, uint32_t tier)
{
	struct near_place from, to;

	near_place(port->budget.growing, ring->index, ring->tier, &from);
	near_place(port->budget.growing, ring->index, tier, &to);
	return to.size == from.size ||
	       (!near_ring_extend(ring->rx.ctl, to.size) &&
		!near_segment_reserve(port->fd, from.offset + from.size,
				      to.size - from.size));
}

void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more)
{
	uint32_t tier = near_budget_grant(port, ring, more);
	struct near_ctl *ctl = ring->rx.ctl;
	struct near_place place;

	if (!near_rx_ring_extend(port, ring, tier))
		tier = ring->tier;
	near_place(port->budget.growing, ring->index, tier, &place);
	near_rx_restart(&ring->rx, &place);
	port->budget.extra -= near_rx_ring_extra(ring);
	ring->tier = (uint8_t)tier;
	port->budget.extra += near_rx_ring_extra(ring);
	near_budget_advertise(port);
	/* message passing: pairs with the acquire in near_resize_answer() */
	__atomic_store_n(&ctl->size,
			 ++ring->resizes << NEAR_SIZE_RESIZES | tier,
			 __ATOMIC_RELEASE);
}
