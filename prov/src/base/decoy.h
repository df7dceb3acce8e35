/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy behind the fid of a fabric or domain, for providers that take each
 * fid in hints for one of their own. efa of libfabric 2.4 and newer reads a
 * struct util_fabric or util_domain behind ofi_duo's fid, and compares the name
 * in it (docs/upstream.md).
 *
 * Each pointer in the decoy points to a block of pointers, which point to the
 * block itself, so that each chain of loads stays within the block. Read as
 * text the block is "", because its address is a multiple of 256: the first
 * byte, lowest on a little-endian machine, is 0, as is the top byte on a
 * big-endian one. No provider has an empty name. Cost: 256 bytes per object.
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
