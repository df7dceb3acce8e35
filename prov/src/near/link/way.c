/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "near/link/way.h"

static unsigned int near_way_size(size_t len)
{
	unsigned int size = 63 - __builtin_clzll(len / NEAR_WAY_MIN | 1);

	return size < NEAR_WAY_SIZES ? size : NEAR_WAY_SIZES - 1;
}

/* What is not known yet costs nothing, so that it is tried. */
static uint64_t near_way_expect(const struct near_way_cost *cost)
{
	if (cost->begun < NEAR_WAY_TRIES)
		return 0;
	return cost->known ? cost->cost : UINT64_MAX;
}

enum near_way near_way_choose(const struct near_ways *ways, size_t len,
			      unsigned int allowed)
{
	const struct near_way_cost *cost = ways->cost[near_way_size(len)];
	enum near_way way, best = NEAR_WAYS;

	for (way = 0; way < NEAR_WAYS; way++) {
		if (!(allowed & NEAR_WAY_BIT(way)))
			continue;
		if (best == NEAR_WAYS ||
		    near_way_expect(&cost[way]) < near_way_expect(&cost[best]))
			best = way;
	}
	return best;
}

bool near_way_known(const struct near_ways *ways, enum near_way way,
		    size_t len)
{
	return ways->cost[near_way_size(len)][way].begun >= NEAR_WAY_TRIES;
}

void near_way_begin(struct near_ways *ways, enum near_way way, size_t len)
{
	struct near_way_cost *cost = &ways->cost[near_way_size(len)][way];

	if (cost->begun < NEAR_WAY_TRIES)
		cost->begun++;
}

bool near_way_reads(struct near_ways *ways, size_t len)
{
	uint8_t *untimed = &ways->untimed[near_way_size(len)];

	if (!*untimed)
		return false;
	--*untimed;
	return true;
}

void near_way_reads_on(struct near_ways *ways, size_t len)
{
	ways->untimed[near_way_size(len)] = NEAR_WAY_UNTIMED;
}

/*
 * Of the tries the least counts: all that disturbs adds, and what looks good is
 * looked at longer. From then on it is the mean, which the least would hide: a
 * way that is fast now and then is not fast. A sample far off, of a process that
 * did not run, counts as twice the mean.
 */
void near_way_learn(struct near_ways *ways, enum near_way way, size_t len,
		    uint64_t ns)
{
	struct near_way_cost *cost = &ways->cost[near_way_size(len)][way];
	uint64_t sample = ((ns << 20) + len - 1) / len + 1;

	if (cost->known < NEAR_WAY_TRIES) {
		if (!cost->known++ || sample < cost->cost)
			cost->cost = sample;
		return;
	}
	cost->known += cost->known < UINT32_MAX;
	if (sample > 2 * cost->cost)
		sample = 2 * cost->cost;
	cost->cost += sample / NEAR_WAY_MEMORY - cost->cost / NEAR_WAY_MEMORY;
}
