/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory for the payload of unexpected messages: blocks of a power of two,
 * kept for the next one when they are released, up to a limit in bytes.
 */
#ifndef NEAR_MATCH_BLOCK_H
#define NEAR_MATCH_BLOCK_H

#include <stddef.h>

#define NEAR_BLOCK_SIZES 10	/* 64 bytes to 32 KiB */

struct near_block;

struct near_blocks {
	struct near_block *free[NEAR_BLOCK_SIZES];
	size_t used;		/* bytes that were given out */
	size_t limit;
};

void near_blocks_init(struct near_blocks *blocks, size_t limit);
/* All that were given out must be back. */
void near_blocks_fini(struct near_blocks *blocks);
/* NULL: the limit, or no memory, or more than the largest size. */
void *near_block_get(struct near_blocks *blocks, size_t len);
/* Whatever the limit: NULL is one of the others. It is not kept when put back. */
void *near_block_get_beyond(struct near_blocks *blocks, size_t len);
void near_block_put(struct near_blocks *blocks, void *block);

#endif /* NEAR_MATCH_BLOCK_H */
