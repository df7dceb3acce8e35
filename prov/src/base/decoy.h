/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy behind the fid of a fabric or domain, for providers that take each
 * fid in hints for their own: efa of libfabric 2.4 and newer reads a
 * util_fabric or util_domain there, and compares the name (docs/upstream.md).
 *
 * Each pointer points to a block of pointers to the block itself, so all chains
 * of loads stay there. As text the block is "": its address is a multiple of
 * 256, and its first byte is the lowest, or on big-endian machines the top
 * byte, 0 both. No provider has an empty name. Cost: 256 bytes per object.
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
