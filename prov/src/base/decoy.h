/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy after the fid of a fabric or domain, for providers that take each fid
 * in hints for their own. efa of libfabric 2.4 and newer reads a struct
 * util_fabric or util_domain at ofi_duo's fid, and compares the name in it
 * (docs/upstream.md).
 *
 * Each pointer in the decoy points to a block of pointers to the block itself,
 * so each chain of loads stays in the block. As text, the block is "", which no
 * provider has as its name. The block's address is a multiple of 256, so its
 * first byte in memory is 0 on a little-endian machine; on a big-endian one,
 * the top byte is 0. Cost: 256 bytes per object.
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
