/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Valid pointers after the fid of ofi_duo's fabrics and domains. efa since
 * libfabric 2.4 needs them: it treats each fid in the hints as the start of a
 * util_fabric or util_domain. From the memory after the fid it loads a pointer
 * to a name, and compares the name (docs/upstream.md). Cost: 256 bytes per
 * object.
 *
 * Each word of the decoy points to a block. Each word of the block points to
 * the block, so a chain of loads stays in the block. Read as text, the block is
 * "": its address is a multiple of 256, so the first byte of each word is 0.
 * (On big-endian machines the first byte is the top byte, also 0.)
 */
#ifndef DUO_DECOY_H
#define DUO_DECOY_H

#include <stddef.h>

#define DUO_DECOY_WORDS 32

/* must directly follow the fid, the first member of the object */
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
