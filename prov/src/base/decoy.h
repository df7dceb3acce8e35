/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A decoy behind the fid of a fabric or domain, for providers that take each
 * fid in hints for one of their own. fi_getinfo() passes the hints to all
 * providers. efa of libfabric 2.4 and newer then reads a struct util_fabric or
 * util_domain behind ofi_duo's fid, and compares the name in it
 * (docs/upstream.md).
 *
 * Each pointer in the decoy points to a block of pointers, and these point to
 * the block itself. So each chain of loads stays within the block, whichever
 * structure the reader expects. Read as text, the block is "", because its
 * first byte is 0. On a little-endian machine it is the lowest byte of the
 * block's address, a multiple of 256; on a big-endian machine it is the top
 * byte, 0 in all addresses. No provider has an empty name, so the reader
 * rejects the hints.
 *
 * Cost: 256 bytes for each object; nothing on the data path.
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
