/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>

#include "near/link/port.h"

#define NEAR_ROOM_FEW 8		/* senders that a port always expects */
#define NEAR_ROOM_MANY 63	/* to whom a page at least is left */
#define NEAR_ROOM_NEXT 4	/* newcomers that share what is left */
#define NEAR_ROOM_SILENT 5	/* looks without a message: it needs no room */

void near_room_init(struct near_room *room, size_t bytes)
{
	size_t pages = bytes / near_page_size();
	size_t most = NEAR_SENDERS * near_tier_pages(NEAR_TIERS - 1);

	if (pages > most)
		pages = most;
	room->budget = (uint32_t)pages;
	room->growing = pages < NEAR_SENDERS ? (uint32_t)pages : NEAR_SENDERS;
}

static uint32_t near_max(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* All that send to us, or will. */
static uint32_t near_room_senders(const struct near_room *room)
{
	return near_max(near_max(room->peers, room->rings), 1);
}

/* Pages beyond one for each of so many. */
static uint32_t near_room_beyond(const struct near_room *room,
				 uint32_t senders)
{
	return room->budget > senders ? room->budget - senders : 0;
}

/* An even share of all that there is. */
static uint32_t near_room_share(const struct near_room *room)
{
	uint32_t senders = near_room_senders(room);

	return near_tier_fit(1 + near_room_beyond(room, senders) / senders);
}

/* Below which ring so many are free. */
static uint32_t near_room_below(const struct near_port *port, uint32_t free)
{
	uint32_t i;

	for (i = 0; free && i < port->ring_count; i++)
		free -= !port->ring[i];
	return i + free;
}

/*
 * What newcomers take before we hear of them, they take by this: all that are
 * known to be missing may do so at once.
 */
void near_room_advertise(struct near_port *port)
{
	const struct near_room *room = &port->room;
	uint32_t senders = near_room_senders(room), free, next, below = 0;
	uint32_t tier = near_tier_least();

	free = near_room_beyond(room, near_max(senders, NEAR_ROOM_MANY));
	free -= free < room->extra ? free : room->extra;
	next = near_max(near_max(senders, NEAR_ROOM_FEW) - room->rings,
			NEAR_ROOM_NEXT);
	if (free >= next) {
		tier = near_tier_fit(1 + free / next);
		below = near_room_below(port, next);
	}
	__atomic_store_n(&port->region->adv, below << NEAR_ADV_BELOW | tier,
			 __ATOMIC_RELAXED);
}

void near_room_peers(struct near_port *port, const struct near_addr *addr,
		     int more)
{
	if (!memcmp(addr, &port->addr, sizeof(*addr)))
		return;
	port->room.peers += (uint32_t)more;
	near_room_advertise(port);
}

/* Not a word for so long that it is not in a pause between two. */
static bool near_rx_ring_idle(const struct near_rx_ring *ring)
{
	return ring->silent >= NEAR_ROOM_SILENT && ring->seen == ring->rx.head;
}

static uint32_t near_rx_ring_extra(const struct near_rx_ring *ring)
{
	return near_tier_pages(ring->tier) - 1;
}

void near_room_rx_ring(struct near_port *port, const struct near_rx_ring *ring,
		       int more)
{
	port->room.rings += (uint32_t)more;
	port->room.extra += (uint32_t)more * near_rx_ring_extra(ring);
	near_room_advertise(port);
}

/* The smallest that takes a message of that length in one piece. */
static uint32_t near_tier_for(uint32_t len)
{
	uint32_t tier = near_tier_least();
	struct near_place place;

	while (near_place(NEAR_SENDERS, 0, tier, &place) &&
	       near_data_max(place.data) < len)
		tier++;
	return tier;
}

/* Its even share, or that size at least, where there is room; else its own. */
static uint32_t near_room_fit(const struct near_room *room,
			      const struct near_rx_ring *ring, uint32_t least)
{
	uint32_t most = near_room_beyond(room, near_room_senders(room));
	uint32_t others = room->extra - near_rx_ring_extra(ring), tier;

	for (tier = near_max(near_room_share(room), least); tier >= least;
	     tier--)
		if (others + near_tier_pages(tier) - 1 <= most)
			return tier;
	return ring->tier;
}

/* What it was asked to give back it does, whatever it asks for itself. */
static uint32_t near_room_less(const struct near_room *room,
			       struct near_rx_ring *ring)
{
	uint32_t keeps = near_rx_ring_idle(ring) ? near_tier_least()
						 : near_room_share(room);

	ring->gives = ring->lacks = false;
	return keeps < ring->tier ? keeps : ring->tier;
}

/* More than it has, or just that; less if it was asked to. */
static uint32_t near_room_grant(struct near_port *port,
				struct near_rx_ring *ring, uint32_t more)
{
	uint32_t least = near_max(near_tier_for(more), ring->tier + 1u), tier;
	const struct near_room *room = &port->room;

	if (ring->gives || !(more || ring->lacks))
		return near_room_less(room, ring);
	if (least >= NEAR_TIERS || ring->index >= room->growing ||
	    ring->peer->dying)
		return ring->tier;
	tier = near_room_fit(room, ring, least);
	ring->lacks = tier == ring->tier;
	return tier;
}

static void near_rx_ring_look(struct near_rx_ring *ring)
{
	if (ring->seen != ring->rx.head)
		ring->silent = 0;
	else if (ring->silent < NEAR_ROOM_SILENT)
		ring->silent++;
	ring->seen = ring->rx.head;
	ring->lacks = ring->lacks && !near_rx_ring_idle(ring);
}

/* Pages that it lacks: those to its next size. */
static uint32_t near_rx_ring_need(const struct near_rx_ring *ring)
{
	return ring->lacks ? near_tier_pages(ring->tier + 1u) -
				     near_tier_pages(ring->tier)
			   : 0;
}

/*
 * Somebody lacks room; so many pages are free. Returns what it leaves of them: it
 * is called to move, when its sender comes to it, if it has more than it may keep,
 * or lacks what there is now.
 */
static uint32_t near_rx_ring_balance(struct near_rx_ring *ring, uint32_t keep,
				     uint32_t free)
{
	uint32_t need = near_rx_ring_need(ring);

	if (ring->tier > keep)
		ring->gives = true;
	else if (need && need <= free)
		free -= need;
	else
		return free;
	__atomic_store_n(&ring->rx.ctl->resize, 1, __ATOMIC_RELAXED);
	return free;
}

/*
 * All may keep what they have where only more than an even share is lacked, and
 * where there is room for what is lacked.
 */
void near_room_look(struct near_port *port)
{
	const struct near_room *room = &port->room;
	uint32_t free = near_room_beyond(room, near_room_senders(room)), i;
	uint32_t share = near_room_share(room), keep = NEAR_TIERS, need = 0;
	struct near_rx_ring *ring;
	bool enough;

	free -= free < room->extra ? free : room->extra;
	for (i = 0; i < port->ring_count; i++) {
		ring = port->ring[i];
		if (!ring)
			continue;
		near_rx_ring_look(ring);
		need += near_rx_ring_need(ring);
		if (ring->lacks && ring->tier < share)
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

/* The memory between the two sizes; false: there is none. */
static bool near_rx_ring_remap(struct near_port *port,
			       const struct near_rx_ring *ring, uint32_t tier)
{
	struct near_place from, to;

	near_place(port->room.growing, ring->index, ring->tier, &from);
	near_place(port->room.growing, ring->index, tier, &to);
	if (to.size > from.size)
		return !near_region_reserve(port->fd, from.offset + from.size,
					    to.size - from.size) &&
		       !near_ring_extend(ring->rx.ctl, to.size);
	if (to.size < from.size)
		near_region_clear(port->fd, to.offset + to.size,
				  from.size - to.size);
	return true;
}

void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more)
{
	uint32_t tier = near_room_grant(port, ring, more);
	struct near_ctl *ctl = ring->rx.ctl;
	struct near_place place;

	if (!near_rx_ring_remap(port, ring, tier))
		tier = ring->tier;
	near_place(port->room.growing, ring->index, tier, &place);
	near_rx_restart(&ring->rx, &place);
	port->room.extra -= near_rx_ring_extra(ring);
	ring->tier = (uint8_t)tier;
	port->room.extra += near_rx_ring_extra(ring);
	near_room_advertise(port);
	__atomic_store_n(&ctl->resize, 0, __ATOMIC_RELAXED);
	/* the sender, when it sees this, has a ring of zeros */
	__atomic_store_n(&ctl->size,
			 ++ring->resizes << NEAR_SIZE_RESIZES | tier,
			 __ATOMIC_RELEASE);
}
