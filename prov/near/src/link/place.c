/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * How large each ring is. A port's first senders get large ones: two ranks
 * want bandwidth and message rate. The more there are the less each gets: with
 * NEAR_MEMORY 192 ranks all to all stay below 256 MiB, 64 below 64 MiB.
 */

#include "link/shm.h"

static const struct near_tier {
	uint32_t slots;
	uint32_t data;
} near_tiers[NEAR_TIERS] = {
	{ 256, 64 << 10 },
	{ 64, 16 << 10 },
	{ 16, 2 << 10 },
};

static size_t near_tier_size(unsigned int tier)
{
	size_t size = sizeof(struct near_ctl) + near_tiers[tier].data +
		      near_tiers[tier].slots * sizeof(struct near_slot);

	return (size + NEAR_PAGE - 1) & ~(size_t)(NEAR_PAGE - 1);
}

/* A little more than half for the large ones. */
void near_rings_fit(struct near_rings *rings, size_t bytes)
{
	size_t large = bytes / 16 * 9 / near_tier_size(0), medium;

	if (large > NEAR_SENDERS / 2)
		large = NEAR_SENDERS / 2;
	medium = (bytes - large * near_tier_size(0)) / near_tier_size(1);
	if (medium > NEAR_SENDERS / 2)
		medium = NEAR_SENDERS / 2;
	rings->large = (uint32_t)large;
	rings->medium = (uint32_t)medium;
}

bool near_rings_valid(const struct near_rings *rings)
{
	return rings->large <= NEAR_SENDERS &&
	       rings->medium <= NEAR_SENDERS - rings->large;
}

void near_place(const struct near_rings *rings, uint32_t index,
		struct near_place *place)
{
	const uint32_t count[] = { rings->large, rings->medium };
	size_t offset = sizeof(struct near_region);
	unsigned int tier = 0;

	while (tier < NEAR_TIERS - 1 && index >= count[tier]) {
		index -= count[tier];
		offset += count[tier] * near_tier_size(tier);
		tier++;
	}
	place->size = near_tier_size(tier);
	place->offset = offset + index * place->size;
	place->slots = near_tiers[tier].slots;
	place->data = near_tiers[tier].data;
	place->tier = tier;
}

size_t near_region_size(const struct near_rings *rings)
{
	struct near_place last;

	near_place(rings, NEAR_SENDERS - 1, &last);
	return last.offset + last.size;
}
