/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The receiver's end of a resize, with any length in the RESIZE slot, and the
 * division of the port's memory. Asserted:
 * - a ring gets no more pages than are free;
 * - a ring uses only bytes that are allocated and mapped;
 * - a resize does not change the pages of another ring;
 * - the loops over size classes end.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/ring_budget.c near_rx_ring_resize near_rx_ring_extend
 * C: near/link/ring_budget.c near_budget_grant near_budget_fit near_tier_for
 * C: near/link/ring_budget.c near_budget_beyond
 * C: near/link/ring_budget.c near_budget_advertise near_budget_below
 * C: near/link/ring_budget.c near_budget_rx_ring near_rx_ring_extra
 * CBMC: --unwind 10 --object-bits 10
 * LONG: 7 s of CPU time
 * MUTANT class-kept near/link/ring_budget.c: s/< len\)\n\t\ttier\+\+;/< len)\n\t\t;/
 * MUTANT class-unchecked near/link/ring_budget.c: s/least >= NEAR_TIERS \|\| //
 * MUTANT fixed-ring-grows near/link/ring_budget.c: s/ring->index >= port->budget.growing \|\|//
 * MUTANT more-than-free near/link/ring_budget.c: s/if \(others \+ near_tier_pages\(tier\) - 1 <= most\)/if (1)/
 * MUTANT not-allocated near/link/ring_budget.c: s/ &&\s+!near_seg[^;]+/)/
 * MUTANT not-mapped near/link/ring_budget.c: s/!near_ring_extend\([^&]*&&//
 * MUTANT failure-ignored near/link/ring_budget.c: s/if \(!near_rx_ring_extend\(port, ring, tier\)\)\n\t\ttier = ring->tier;/near_rx_ring_extend(port, ring, tier);/
 * MUTANT old-pages-counted near/link/ring_budget.c: s/port->budget.extra -= near_rx_ring_extra\(ring\);//
 */

#include "rings.h"

/* pages of rings that have grown: any number, as CBMC is slow with products */
static size_t grown;
#define near_grown_pages(pages, senders) grown

#include "near/link/ring_budget.c"

#define RINGS 2

static struct near_port port;
static struct near_segment segment;
/* not an array: CBMC is faster if the offset of each object is 0 */
static struct near_rx_ring mine, other;
static struct near_rx_ring *rings[RINGS];
static struct near_peer peer;
/* bytes of the ring "mine" that are allocated, and that may be accessed */
static size_t allocated, extended;

int near_segment_reserve(int fd, size_t offset, size_t size)
{
	near_place(port.budget.growing, mine.index, mine.tier, &place);
	check(offset == place.offset + place.size);
	check(size <= place.span - place.size);
	if (any(bool))
		return -ENOMEM;
	allocated = place.size + size;
	return 0;
}

int near_ring_extend(void *memory, size_t size)
{
	near_place(port.budget.growing, mine.index, mine.tier, &place);
	check(memory == ring && size <= place.span);
	if (any(bool))
		return -ENOMEM;
	if (size > extended)
		extended = size;
	return 0;
}

static void ring_any(struct near_rx_ring *of, uint32_t index)
{
	of->index = any(uint32_t);
	assume(of->index < NEAR_SENDERS);
	of->tier = any(uint8_t);
	assume(of->tier <= near_tier_most(port.budget.growing, of->index));
	of->peer = &peer;
	rings[index] = of;
}

static void budget_any(void)
{
	struct near_budget *budget = &port.budget;

	near_budget_init(budget, any(size_t));
	check(budget->growing <= NEAR_SENDERS);
	budget->peers = any(uint32_t);
	budget->rings = any(uint32_t);
	budget->extra = any(uint32_t);
	assume(budget->peers <= NEAR_SENDERS && budget->rings <= NEAR_SENDERS);
	grown = any(size_t);
	assume(grown <= NEAR_SENDERS * near_tier_pages(NEAR_TIERS - 1));
}

static void resizes(void)
{
	const struct near_budget *budget = &port.budget;
	uint32_t old = mine.tier, extra = budget->extra, free;

	near_rx_ring_resize(&port, &mine, any(uint32_t));
	check(near_place(budget->growing, mine.index, mine.tier, &place));
	check(place.size <= allocated && place.size <= extended);
	check(in_slots(mine.rx.slots) && in_slots(&mine.rx.slots[mine.rx.mask]));
	check(in_data(mine.rx.data, mine.rx.dsize));
	check(budget->extra + near_tier_pages(old) ==
	      extra + near_tier_pages(mine.tier));
	free = near_budget_beyond((uint32_t)grown,
				  near_budget_senders(budget));
	check(mine.tier >= old && (mine.tier == old || budget->extra <= free));
	near_rx_release(&mine.rx);
	check(rx_valid(&mine.rx));
}

int main(void)
{
	near_page_assume(4096);
	port.segment = &segment;
	port.ring = rings;
	port.ring_count = RINGS;
	budget_any();
	ring_any(&mine, 0);
	near_place(port.budget.growing, mine.index, mine.tier, &place);
	ring = malloc(place.span);
	allocated = extended = place.size;
	near_rx_init(&mine.rx, ring, &place);
	/* the ring's additional pages count in the budget's extra pages */
	assume(port.budget.extra >= near_tier_pages(mine.tier) - 1 &&
	       port.budget.extra < UINT32_MAX / 2);
	if (any(bool))
		ring_any(&other, 1);
	resizes();
	check(segment.adv >> NEAR_ADV_BELOW <= NEAR_SENDERS + RINGS);
	return 0;
}
