/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stddef.h>
#include <unistd.h>

#include "near/link/shm.h"

static const struct near_tier {
	uint16_t pages;		/* size in pages of NEAR_PAGE bytes */
	uint16_t slots;		/* number of slots, a power of two */
} near_tiers[NEAR_TIERS] = {
	{ 1, 16 },
	{ 2, 32 },
	{ 4, 64 },
	{ 8, 64 },
	{ 16, 128 },
	{ 21, 256 },
	{ 42, 256 },
	{ 84, 512 },
};

static size_t near_page_assumed;	/* page size set by a test; 0: none */

size_t near_page_size(void)
{
	return near_page_assumed ? near_page_assumed :
				   (size_t)sysconf(_SC_PAGESIZE);
}

void near_page_assume(size_t bytes)
{
	near_page_assumed = bytes;
}

static size_t near_whole_pages(size_t bytes)
{
	size_t page = near_page_size();

	return (bytes + page - 1) / page * page;
}

static size_t near_tier_size(uint32_t tier)
{
	return near_whole_pages((size_t)near_tiers[tier].pages * NEAR_PAGE);
}

uint32_t near_tier_least(void)
{
	uint32_t tier = 0;

	while (tier + 1 < NEAR_TIERS &&
	       near_tier_size(tier + 1) == near_tier_size(0))
		tier++;
	return tier;
}

uint32_t near_tier_pages(uint32_t tier)
{
	return (uint32_t)(near_tier_size(tier) / near_page_size());
}

uint32_t near_tier_fit(size_t pages)
{
	uint32_t tier = NEAR_TIERS - 1, least = near_tier_least();

	while (tier > least && near_tier_pages(tier) > pages)
		tier--;
	return tier;
}

uint32_t near_tier_most(uint32_t growing, uint32_t index)
{
	return index < growing ? NEAR_TIERS - 1 : near_tier_least();
}

/* Returns the offset of ring `index`: the end of the rings before it. */
static size_t near_rings_end(uint32_t growing, uint32_t index)
{
	size_t grow = index < growing ? index : growing;

	return near_whole_pages(sizeof(struct near_segment)) +
	       grow * near_tier_size(NEAR_TIERS - 1) +
	       (index - grow) * near_page_size();
}

bool near_place(uint32_t growing, uint32_t index, uint32_t tier,
		struct near_place *place)
{
	uint32_t most = near_tier_most(growing, index);

	if (tier < near_tier_least() || tier > most)
		return false;
	place->offset = near_rings_end(growing, index);
	place->span = near_tier_size(most);
	place->size = near_tier_size(tier);
	place->slots = near_tiers[tier].slots;
	place->data = (uint32_t)(place->size - sizeof(struct near_ctl) -
				 place->slots * sizeof(struct near_slot));
	place->tier = tier;
	return true;
}

size_t near_segment_size(uint32_t growing)
{
	return near_rings_end(growing, NEAR_SENDERS);
}

size_t near_grown_pages(size_t pages, uint32_t senders)
{
	return senders < NEAR_MANY_SENDERS ? pages :
	       pages * senders / NEAR_MANY_SENDERS;
}

size_t near_memory(size_t budget, uint32_t senders)
{
	size_t most = (size_t)senders * near_tier_size(NEAR_TIERS - 1);
	size_t least = (size_t)senders * near_page_size();

	if (budget < most)
		budget = near_grown_pages(budget / near_page_size(), senders) *
			 near_page_size();
	if (budget > most)
		budget = most;
	if (budget < least)
		budget = least;
	return near_whole_pages(offsetof(struct near_segment, claim) +
				(senders / NEAR_CLAIMS_PER_PAGE + 1) *
					NEAR_PAGE) +
	       budget;
}
