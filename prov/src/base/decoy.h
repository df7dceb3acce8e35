/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Valid pointers after the fid of ofi_duo's fabrics and domains. efa since
 * libfabric 2.4 loads a pointer from there, and compares the text to which it
 * points with a name (docs/upstream.md). Cost: 256 bytes per object.
 *
 * Each word of the decoy and of the block points to the block. As text, the
 * block is "": its address is a multiple of 256, so its first byte is 0 (on
 * big-endian machines, too).
 */
#ifndef DUO_DECOY_H
#define DUO_DECOY_H

#include <stddef.h>

#define DUO_DECOY_WORDS 32

/* must directly follow the fid, the first member of an object */
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
