/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>

#include "near/link/port.h"

/* minimum of the number of senders that a port expects */
#define NEAR_BUDGET_FEW 8
/* number of senders for each of which the budget keeps a page */
#define NEAR_BUDGET_MANY 63
#define NEAR_BUDGET_NEXT 4	/* least number of new senders expected */
#define NEAR_BUDGET_IDLE 5	/* checks without a message until idle */

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

/* Returns the number of senders: open rx rings, or peers if these are more. */
static uint32_t near_budget_senders(const struct near_budget *budget)
{
	return near_max(near_max(budget->peers, budget->rings), 1);
}

/* Returns the number of pages in the budget beyond one page for each sender. */
static uint32_t near_budget_beyond(const struct near_budget *budget,
				   uint32_t senders)
{
	return budget->pages_max > senders ? budget->pages_max - senders : 0;
}

/* Returns the size class of an even share of the budget. */
static uint32_t near_budget_share(const struct near_budget *budget)
{
	uint32_t senders = near_budget_senders(budget);

	return near_tier_fit(1 + near_budget_beyond(budget, senders) / senders);
}

/*
 * Returns the least index below which `free` rings are free. New senders take
 * the first free ring, so the next `free` senders attach below this index.
 */
static uint32_t near_budget_below(const struct near_port *port, uint32_t free)
{
	uint32_t i;

	for (i = 0; free && i < port->ring_count; i++)
		free -= !port->ring[i];
	return i + free;
}

/*
 * A port detects a new sender only after the sender has allocated its ring.
 * Until then further senders may use the same advertised size, so it must leave
 * memory for all senders that are expected next.
 */
void near_budget_advertise(struct near_port *port)
{
	const struct near_budget *budget = &port->budget;
	uint32_t senders = near_budget_senders(budget), free, next, below = 0;
	uint32_t tier = near_tier_least();

	free = near_budget_beyond(budget, near_max(senders, NEAR_BUDGET_MANY));
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

void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more)
{
	if (!memcmp(addr, &port->addr, sizeof(*addr)))
		return;
	port->budget.peers += (uint32_t)more;
	near_budget_advertise(port);
}

/* True if the sender is idle: no message for half a second. */
static bool near_rx_ring_idle(const struct near_rx_ring *ring)
{
	return ring->idle_checks >= NEAR_BUDGET_IDLE &&
	       ring->seen == ring->rx.head;
}

/* Returns the ring's pages beyond the first. */
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

/* Returns the least class for eager messages of len bytes; NEAR_TIERS: none. */
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
 * Returns the largest size class, from `least` up to the even share, for which
 * memory is free. Above the even share, only `least` itself is possible. If
 * memory is lacking, returns the ring's present class.
 */
static uint32_t near_budget_fit(const struct near_budget *budget,
				const struct near_rx_ring *ring, uint32_t least)
{
	uint32_t most = near_budget_beyond(budget, near_budget_senders(budget));
	uint32_t others = budget->extra - near_rx_ring_extra(ring), tier;

	for (tier = near_max(near_budget_share(budget), least); tier >= least;
	     tier--)
		if (others + near_tier_pages(tier) - 1 <= most)
			return tier;
	return ring->tier;
}

/*
 * Returns the size class after a shrink. An idle sender's ring gets the least
 * class, others the even share, but none more than its present class.
 */
static uint32_t near_budget_less(const struct near_budget *budget,
				 struct near_rx_ring *ring)
{
	uint32_t keeps = near_rx_ring_idle(ring) ? near_tier_least()
						 : near_budget_share(budget);

	ring->shrink_requested = ring->starved = false;
	return keeps < ring->tier ? keeps : ring->tier;
}

/*
 * Returns the size class of a resize. The ring shrinks if the receiver has
 * requested that. If the sender's request fails, sets ring->starved.
 */
static uint32_t near_budget_grant(struct near_port *port,
				  struct near_rx_ring *ring, uint32_t more)
{
	uint32_t least = near_max(near_tier_for(more), ring->tier + 1u), tier;
	const struct near_budget *budget = &port->budget;

	if (ring->shrink_requested || !(more || ring->starved))
		return near_budget_less(budget, ring);
	if (least >= NEAR_TIERS || ring->index >= budget->growing ||
	    ring->peer->draining)
		return ring->tier;
	tier = near_budget_fit(budget, ring, least);
	ring->starved = tier == ring->tier;
	return tier;
}

/* Counts checks since the last message. An idle sender is not starved. */
static void near_rx_ring_count_check(struct near_rx_ring *ring)
{
	if (ring->seen != ring->rx.head)
		ring->idle_checks = 0;
	else if (ring->idle_checks < NEAR_BUDGET_IDLE)
		ring->idle_checks++;
	ring->seen = ring->rx.head;
	ring->starved = ring->starved && !near_rx_ring_idle(ring);
}

/* Returns the pages that a starved ring lacks for its next class, else 0. */
static uint32_t near_rx_ring_need(const struct near_rx_ring *ring)
{
	return ring->starved ? near_tier_pages(ring->tier + 1u) -
				       near_tier_pages(ring->tier)
			     : 0;
}

/*
 * Requests a resize of a ring if it is larger than class keep, or if it is
 * starved and the free pages let it grow. Returns the number of pages that
 * remain free.
 */
static uint32_t near_rx_ring_balance(struct near_rx_ring *ring, uint32_t keep,
				     uint32_t free)
{
	uint32_t need = near_rx_ring_need(ring);

	if (ring->tier > keep)
		ring->shrink_requested = true;
	else if (need && need <= free)
		free -= need;
	else
		return free;
	__atomic_store_n(&ring->rx.ctl->resize, 1, __ATOMIC_RELAXED);
	return free;
}

/*
 * Shrinks no ring if enough pages are free for all starved rings. Otherwise
 * shrinks rings of idle senders to the least class. If a ring below the even
 * share is starved, shrinks larger rings to the even share.
 */
void near_budget_check(struct near_port *port)
{
	const struct near_budget *budget = &port->budget;
	uint32_t free = near_budget_beyond(budget, near_budget_senders(budget)),
		 i;
	uint32_t share = near_budget_share(budget), keep = NEAR_TIERS, need = 0;
	struct near_rx_ring *ring;
	bool enough;

	free -= free < budget->extra ? free : budget->extra;
	for (i = 0; i < port->ring_count; i++) {
		ring = port->ring[i];
		if (!ring)
			continue;
		near_rx_ring_count_check(ring);
		need += near_rx_ring_need(ring);
		if (ring->starved && ring->tier < share)
			keep = share;
	}
	enough = need <= free;
	for (i = 0; need && i < port->ring_count; i++) {
		ring = port->ring[i];
		if (ring)
			free = near_rx_ring_balance(ring,
						    enough ? NEAR_TIERS
						    : near_rx_ring_idle(ring)
							    ? near_tier_least()
							    : keep,
						    free);
	}
}

/* Allocates or frees pages up to size class tier. False: no memory. */
static bool near_rx_ring_remap(struct near_port *port,
			       const struct near_rx_ring *ring, uint32_t tier)
{
	struct near_place from, to;

	near_place(port->budget.growing, ring->index, ring->tier, &from);
	near_place(port->budget.growing, ring->index, tier, &to);
	if (to.size > from.size)
		return !near_segment_reserve(port->fd, from.offset + from.size,
					     to.size - from.size) &&
		       !near_ring_extend(ring->rx.ctl, to.size);
	if (to.size < from.size)
		near_segment_clear(port->fd, to.offset + to.size,
				   from.size - to.size);
	return true;
}

void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more)
{
	uint32_t tier = near_budget_grant(port, ring, more);
	struct near_ctl *ctl = ring->rx.ctl;
	struct near_place place;

	if (!near_rx_ring_remap(port, ring, tier))
		tier = ring->tier;
	near_place(port->budget.growing, ring->index, tier, &place);
	near_rx_restart(&ring->rx, &place);
	port->budget.extra -= near_rx_ring_extra(ring);
	ring->tier = (uint8_t)tier;
	port->budget.extra += near_rx_ring_extra(ring);
	near_budget_advertise(port);
	__atomic_store_n(&ctl->resize, 0, __ATOMIC_RELAXED);
	/* message passing, with near_resize_answer(): slots are zero */
	__atomic_store_n(&ctl->size,
			 ++ring->resizes << NEAR_SIZE_RESIZES | tier,
			 __ATOMIC_RELEASE);
}
