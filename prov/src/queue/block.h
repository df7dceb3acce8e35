/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory blocks for the payloads of unexpected messages. The number of blocks
 * has no limit: with a limit, correct MPI programs could hang. Lock: the
 * group's.
 */
#ifndef DUO_BLOCK_H
#define DUO_BLOCK_H

#include <stddef.h>

#define DUO_BLOCKS_KEEP (64 << 20)
#define DUO_BLOCK_MIN 64	/* size of the smallest blocks, bytes */
#define DUO_BLOCK_SIZES 10	/* powers of two, 64 bytes to 32 KiB */
#define DUO_BLOCK_MAX (DUO_BLOCK_MIN << (DUO_BLOCK_SIZES - 1))

struct duo_block;

struct duo_blocks {
	struct duo_block *free[DUO_BLOCK_SIZES];
	/* sum of the sizes of all blocks, in use or in `free`, bytes */
	size_t size;
	/*
	 * If `size` is above this threshold, bytes, duo_block_put() frees the
	 * block. Otherwise it keeps the block in `free`.
	 */
	size_t keep;
};

void duo_blocks_init(struct duo_blocks *blocks, size_t keep);
/* Frees the blocks in `free`. No block may be in use. */
void duo_blocks_fini(struct duo_blocks *blocks);
/* Returns a block for len bytes. NULL: no memory, or len is above 32 KiB. */
void *duo_block_get(struct duo_blocks *blocks, size_t len);
void duo_block_put(struct duo_blocks *blocks, void *block);

#endif /* DUO_BLOCK_H */
