/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The address ranges of all receive entries of a group, in ascending order.
 * ofi_duo uses them to find out whether the context of a completion of the core
 * is the address of a receive entry. Lock: the group's.
 */
#ifndef DUO_RANGES_H
#define DUO_RANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct duo_range {
	uintptr_t base;
	size_t size;		/* bytes */
};

struct duo_ranges {
	struct duo_range *range;
	uint32_t count;
};

/* Adds a range, which must overlap with no other. Returns 0 or -FI_ENOMEM. */
int duo_ranges_add(struct duo_ranges *ranges, const void *base, size_t size);
/*
 * Moves all ranges of `from` to `to`. Returns 0; -FI_ENOMEM: no range was
 * moved.
 */
int duo_ranges_merge(struct duo_ranges *to, struct duo_ranges *from);
/* Removes the range that begins at base. The range must be in the list. */
void duo_ranges_remove(struct duo_ranges *ranges, const void *base);
void duo_ranges_fini(struct duo_ranges *ranges);

/* True if one of the ranges contains the address `at`. */
static inline bool duo_ranges_have(const struct duo_ranges *ranges,
				   const void *at)
{
	const struct duo_range *range = ranges->range;
	uint32_t count = ranges->count, half;

	if (!count)
		return false;
	while (count > 1) {
		half = count / 2;
		if ((uintptr_t) at >= range[half].base)
			range += half;
		count -= half;
	}
	return (uintptr_t) at - range->base < range->size;
}

#endif /* DUO_RANGES_H */
