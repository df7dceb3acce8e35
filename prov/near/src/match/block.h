/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory for the payload of unexpected messages: blocks of a power of two.
 * Nothing but memory limits them: a limit would hang programs that MPI permits.
 * A released block is kept for the next message while no more than "keep" bytes
 * are in use, and is freed otherwise.
 */
#ifndef NEAR_MATCH_BLOCK_H
#define NEAR_MATCH_BLOCK_H

#include <stddef.h>

#define NEAR_BLOCKS_KEEP (64 << 20)
#define NEAR_BLOCK_SIZES 10	/* 64 bytes to 32 KiB */

struct near_block;

struct near_blocks {
	struct near_block *free[NEAR_BLOCK_SIZES];
	size_t used;		/* bytes that were given out */
	size_t keep;		/* bytes */
};

void near_blocks_init(struct near_blocks *blocks, size_t keep);
/* All that were given out must be back. */
void near_blocks_fini(struct near_blocks *blocks);
/* NULL: no memory, or more than the largest size. */
void *near_block_get(struct near_blocks *blocks, size_t len);
void near_block_put(struct near_blocks *blocks, void *block);

#endif /* NEAR_MATCH_BLOCK_H */
