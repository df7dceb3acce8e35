/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy: words after the fid of ofi_duo's fabrics and domains. It protects
 * against a provider that takes each fid in the hints for its own fid. efa
 * of libfabric 2.4 and newer does so: it reads a struct util_fabric or
 * util_domain at ofi_duo's fid, loads the pointer to a name from this struct,
 * and compares the name (docs/upstream.md).
 *
 * Each word of the decoy is a pointer to a block, and each word of the block is
 * a pointer to the block itself. So a chain of loads, however long, stays in
 * the block. Read as text, the block is "", which is no provider's name: the
 * address of the block is a multiple of 256, so the lowest byte of each pointer
 * in the block is 0, and this byte comes first in memory. (On a big-endian
 * machine the top byte comes first, and is 0, too.) Cost: 256 bytes per object.
 */
#ifndef DUO_DECOY_H
#define DUO_DECOY_H

#include <stddef.h>

#define DUO_DECOY_WORDS 32

/* Must directly follow the fid, the first member of the object. */
struct duo_decoy {
	const void *word[DUO_DECOY_WORDS];
};

static inline void duo_decoy_set(struct duo_decoy *decoy)
{
	static const void *const block[DUO_DECOY_WORDS]
		__attribute__((aligned(256))) = {
		[0 ... DUO_DECOY_WORDS - 1] = block,
	};
	size_t i;

	for (i = 0; i < DUO_DECOY_WORDS; i++)
		decoy->word[i] = block;
}

#endif /* DUO_DECOY_H */
