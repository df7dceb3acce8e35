/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy behind the fid of a fabric or domain, for providers that treat each
 * fid in hints as their own. fi_getinfo() passes the hints to every provider,
 * so efa of libfabric 2.4 and newer gets ofi_duo's fids and reads a struct
 * util_fabric or util_domain behind them, then compares names:
 * docs/upstream.md.
 *
 * Each pointer in the decoy leads to a block of pointers to the block itself.
 * Every chain of loads therefore stays within the block, whatever the layout of
 * the structure that the reader expects. As text the block is "", because its
 * address is a multiple of 256 and on a little-endian machine its first byte is
 * 0; a big-endian one stores the address's top byte, 0, first. No provider has
 * such a name, so the reader rejects the hints.
 *
 * Cost: 256 bytes an object, nothing on the data path.
 */
#ifndef DUO_DECOY_H
#define DUO_DECOY_H

#include <stddef.h>

#define DUO_DECOY_WORDS 32

/* The member after the fid, with which the object begins. */
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
