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
	return near_max(near_max(room->peers, room->lanes), 1);
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

	for (i = 0; free && i < port->lane_count; i++)
		free -= !port->lane[i];
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
	next = near_max(near_max(senders, NEAR_ROOM_FEW) - room->lanes,
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
static bool near_lane_silent(const struct near_lane *lane)
{
	return lane->silent >= NEAR_ROOM_SILENT && lane->seen == lane->rx.head;
}

static uint32_t near_lane_extra(const struct near_lane *lane)
{
	return near_tier_pages(lane->tier) - 1;
}

void near_room_lane(struct near_port *port, const struct near_lane *lane,
		    int more)
{
	port->room.lanes += (uint32_t)more;
	port->room.extra += (uint32_t)more * near_lane_extra(lane);
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
			      const struct near_lane *lane, uint32_t least)
{
	uint32_t most = near_room_beyond(room, near_room_senders(room));
	uint32_t others = room->extra - near_lane_extra(lane), tier;

	for (tier = near_max(near_room_share(room), least); tier >= least;
	     tier--)
		if (others + near_tier_pages(tier) - 1 <= most)
			return tier;
	return lane->tier;
}

/* What it was asked to give back it does, whatever it asks for itself. */
static uint32_t near_room_less(const struct near_room *room,
			       struct near_lane *lane)
{
	uint32_t keeps = near_lane_silent(lane) ? near_tier_least() :
						  near_room_share(room);

	lane->gives = lane->lacks = false;
	return keeps < lane->tier ? keeps : lane->tier;
}

/* More than it has, or just that; less if it was asked to. */
static uint32_t near_room_grant(struct near_port *port, struct near_lane *lane,
				uint32_t more)
{
	uint32_t least = near_max(near_tier_for(more), lane->tier + 1u), tier;
	const struct near_room *room = &port->room;

	if (lane->gives || !(more || lane->lacks))
		return near_room_less(room, lane);
	if (least >= NEAR_TIERS || lane->index >= room->growing ||
	    lane->peer->dying)
		return lane->tier;
	tier = near_room_fit(room, lane, least);
	lane->lacks = tier == lane->tier;
	return tier;
}

static void near_lane_look(struct near_lane *lane)
{
	if (lane->seen != lane->rx.head)
		lane->silent = 0;
	else if (lane->silent < NEAR_ROOM_SILENT)
		lane->silent++;
	lane->seen = lane->rx.head;
	lane->lacks = lane->lacks && !near_lane_silent(lane);
}

/* Pages that it lacks: those to its next size. */
static uint32_t near_lane_need(const struct near_lane *lane)
{
	return lane->lacks ? near_tier_pages(lane->tier + 1u) -
			     near_tier_pages(lane->tier) : 0;
}

/*
 * Somebody lacks room; so many pages are free. Returns what it leaves of them: it
 * is called to move, when its sender comes to it, if it has more than it may keep,
 * or lacks what there is now.
 */
static uint32_t near_lane_balance(struct near_lane *lane, uint32_t keep,
				  uint32_t free)
{
	uint32_t need = near_lane_need(lane);

	if (lane->tier > keep)
		lane->gives = true;
	else if (need && need <= free)
		free -= need;
	else
		return free;
	__atomic_store_n(&lane->rx.ctl->resize, 1, __ATOMIC_RELAXED);
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
	struct near_lane *lane;
	bool enough;

	free -= free < room->extra ? free : room->extra;
	for (i = 0; i < port->lane_count; i++) {
		lane = port->lane[i];
		if (!lane)
			continue;
		near_lane_look(lane);
		need += near_lane_need(lane);
		if (lane->lacks && lane->tier < share)
			keep = share;
	}
	enough = need <= free;
	for (i = 0; need && i < port->lane_count; i++) {
		lane = port->lane[i];
		if (lane)
			free = near_lane_balance(lane, enough ? NEAR_TIERS :
						 near_lane_silent(lane) ?
						 near_tier_least() : keep,
						 free);
	}
}

/* The memory between the two sizes; false: there is none. */
static bool near_lane_remap(struct near_port *port,
			    const struct near_lane *lane, uint32_t tier)
{
	struct near_place from, to;

	near_place(port->room.growing, lane->index, lane->tier, &from);
	near_place(port->room.growing, lane->index, tier, &to);
	if (to.size > from.size)
		return !near_region_reserve(port->fd, from.offset + from.size,
					    to.size - from.size) &&
		       !near_ring_extend(lane->rx.ctl, to.size);
	if (to.size < from.size)
		near_region_clear(port->fd, to.offset + to.size,
				  from.size - to.size);
	return true;
}

void near_lane_resize(struct near_port *port, struct near_lane *lane,
		      uint32_t more)
{
	uint32_t tier = near_room_grant(port, lane, more);
	struct near_ctl *ctl = lane->rx.ctl;
	struct near_place place;

	if (!near_lane_remap(port, lane, tier))
		tier = lane->tier;
	near_place(port->room.growing, lane->index, tier, &place);
	near_rx_restart(&lane->rx, &place);
	port->room.extra -= near_lane_extra(lane);
	lane->tier = (uint8_t)tier;
	port->room.extra += near_lane_extra(lane);
	near_room_advertise(port);
	__atomic_store_n(&ctl->resize, 0, __ATOMIC_RELAXED);
	/* the sender, when it sees this, has a ring of zeros */
	__atomic_store_n(&ctl->size,
			 ++lane->resizes << NEAR_SIZE_RESIZES | tier,
			 __ATOMIC_RELEASE);
}
