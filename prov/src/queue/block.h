/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory blocks for payloads of unexpected messages. Their number has no limit:
 * with a limit, correct MPI programs could hang. Lock: the group's.
 */
#ifndef DUO_BLOCK_H
#define DUO_BLOCK_H

#include <stddef.h>

#define DUO_BLOCKS_KEEP (64 << 20)
#define DUO_BLOCK_SIZES 10	/* powers of two, 64 bytes to 32 KiB */

struct duo_block;

struct duo_blocks {
	struct duo_block *free[DUO_BLOCK_SIZES];
	size_t size;	/* sum of the sizes of used and kept blocks, bytes */
	/* threshold of `size`, bytes; above it, duo_block_put() frees blocks */
	size_t keep;
};

void duo_blocks_init(struct duo_blocks *blocks, size_t keep);
/* Frees the kept blocks; the caller must have returned all others. */
void duo_blocks_fini(struct duo_blocks *blocks);
/* Returns a block for len bytes. NULL: no memory, or len is above 32 KiB. */
void *duo_block_get(struct duo_blocks *blocks, size_t len);
void duo_block_put(struct duo_blocks *blocks, void *block);

#endif /* DUO_BLOCK_H */
