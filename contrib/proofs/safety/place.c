/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Places of rings, for each number of growing rings, index, size class and page
 * size. Asserted:
 * - each ring begins where the previous ring ends;
 * - the last ring ends with the file;
 * - slots and data lie in their ring.
 *
 * Lines for ./run, which explains their keys:
 * C: near/link/place.c near_place near_segment_size near_tier_most
 * C: near/link/place.c near_tier_least near_rings_end
 * CBMC: --unwind 9 --object-bits 10
 * EDIT near/link/shm.h: s/NEAR_SENDERS 4096/NEAR_SENDERS 128/
 * MUTANT class-unchecked near/link/place.c: s/ \|\| tier > most//
 * MUTANT control-data-forgotten near/link/place.c: s/ - sizeof\(struct near_ctl\)//
 * MUTANT one-more-grows near/link/place.c: s/index < growing \? NEAR/index <= growing ? NEAR/
 * MUTANT head-not-whole near/link/place.c: s/near_whole_pages(\(sizeof\(struct near_segment\)\))/\1/
 */

#include "hostile.h"
#include "near/link/place.c"

static void places(uint32_t page)
{
	uint32_t growing = any(uint32_t), index = any(uint32_t);
	uint32_t tier = any(uint32_t);
	struct near_place place, next;

	near_page_assume(page);
	assume(growing <= NEAR_SENDERS && index < NEAR_SENDERS);
	if (!near_place(growing, index, tier, &place))
		return;
	near_place(growing, index + 1, near_tier_least(), &next);
	check(next.offset == place.offset + place.span);
	check(place.offset % page == 0 && place.size % page == 0);
	check(place.size <= place.span);
	check(place.slots >= 16 && !(place.slots & (place.slots - 1)));
	check(place.data % NEAR_LINE == 0 && place.data > NEAR_LINE);
	check(sizeof(struct near_ctl) +
		      place.slots * sizeof(struct near_slot) + place.data ==
	      place.size);
	if (index == 0)
		check(place.offset >= sizeof(struct near_segment));
	if (index + 1 == NEAR_SENDERS)
		check(next.offset == near_segment_size(growing));
}

int main(void)
{
	places(4096);
	places(16384);
	places(65536);
	return 0;
}
