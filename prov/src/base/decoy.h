/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Words behind the fid of ofi_duo's fabrics and domains, which efa of libfabric
 * 2.4 and newer may read. If an application passes such a fid in the hints of
 * fi_getinfo(), efa takes the object for one of its own. It then loads a
 * pointer from a place behind the fid, and compares the string at this pointer
 * with a name (docs/upstream.md). The decoy makes this harmless: all its words
 * are valid pointers to an empty string. Cost: 256 bytes per object.
 *
 * These pointers all point to one constant block, whose words also point to the
 * block, in case efa follows a second pointer. The block begins with a byte 0,
 * so as a string it is empty: its first word is its own address, which is a
 * multiple of 256 and so has a low byte of 0. (On big-endian machines the first
 * byte is the high byte of the address, which is also 0.)
 */
#ifndef DUO_DECOY_H
#define DUO_DECOY_H

#include <stddef.h>

#define DUO_DECOY_WORDS 32

/* must be the second member of an object, directly behind the fid */
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
