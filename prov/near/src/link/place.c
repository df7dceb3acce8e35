/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How large rings are, and where they lie: one after the other, each with the
 * room that its largest size takes. Room that is not in use takes no memory.
 */

#include <stddef.h>

#include "link/shm.h"

static const struct near_tier {
	uint16_t pages;
	uint16_t slots;		/* a power of two; the rest is data */
} near_tiers[NEAR_TIERS] = {
	{ 1, 16 },
	{ 2, 32 },
	{ 4, 64 },
	{ 8, 64 },
	{ 16, 128 },
	{ 21, 256 },
	{ 42, 256 },
	{ NEAR_TIER_PAGES, 512 },
};

uint32_t near_tier_pages(uint32_t tier)
{
	return near_tiers[tier].pages;
}

uint32_t near_tier_fit(size_t pages)
{
	uint32_t tier = NEAR_TIERS - 1;

	while (tier && near_tiers[tier].pages > pages)
		tier--;
	return tier;
}

uint32_t near_tier_most(uint32_t growing, uint32_t index)
{
	return index < growing ? NEAR_TIERS - 1 : 0;
}

bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place)
{
	bool grows = index < growing;
	size_t before = index;

	if (tier > near_tier_most(growing, index))
		return false;
	before += (size_t)(grows ? index : growing) * (NEAR_TIER_PAGES - 1);
	place->offset = sizeof(struct near_region) + before * NEAR_PAGE;
	place->span = (size_t)(grows ? NEAR_TIER_PAGES : 1) * NEAR_PAGE;
	place->size = (size_t)near_tiers[tier].pages * NEAR_PAGE;
	place->slots = near_tiers[tier].slots;
	place->data = (uint32_t)(place->size - sizeof(struct near_ctl) -
				 place->slots * sizeof(struct near_slot));
	place->tier = tier;
	return true;
}

size_t near_region_size(uint32_t growing)
{
	return sizeof(struct near_region) + NEAR_PAGE *
	       (NEAR_SENDERS + (size_t)growing * (NEAR_TIER_PAGES - 1));
}

size_t near_memory(size_t budget, uint32_t senders)
{
	size_t most = (size_t)senders * NEAR_TIER_PAGES * NEAR_PAGE;
	size_t least = (size_t)senders * NEAR_PAGE;

	budget -= budget % NEAR_PAGE;
	if (budget > most)
		budget = most;
	if (budget < least)
		budget = least;
	return offsetof(struct near_region, claim) +
	       (senders / NEAR_CLAIMS_PER_PAGE + 1) * NEAR_PAGE + budget;
}
