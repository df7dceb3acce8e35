/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy after the fid of a fabric or domain. It is for providers that treat
 * each fid in hints as one of their own: efa of libfabric 2.4 and newer reads a
 * struct util_fabric or util_domain at ofi_duo's fid, and compares the name in
 * it (docs/upstream.md).
 *
 * The decoy has only pointers to a block, and the block has only pointers to
 * itself. So a chain of loads, however long, stays in the block. As text the
 * block is "", which is no provider's name: its address is a multiple of 256,
 * so its first byte in memory is 0. (On a big-endian machine, this is the top
 * byte of the address.) Cost: 256 bytes per object.
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
