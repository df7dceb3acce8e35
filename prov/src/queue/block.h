/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory for the payload of unexpected messages: blocks of a power of two.
 * Only memory limits these: another limit would hang programs that MPI permits.
 * A released block is kept for the next message if at most "keep" bytes are in
 * use, and freed otherwise.
 */
#ifndef DUO_BLOCK_H
#define DUO_BLOCK_H

#include <stddef.h>

#define DUO_BLOCKS_KEEP (64 << 20)
#define DUO_BLOCK_SIZES 10	/* 64 bytes to 32 KiB */

struct duo_block;

struct duo_blocks {
	struct duo_block *free[DUO_BLOCK_SIZES];
	size_t used;		/* bytes in use */
	size_t keep;		/* bytes in use above which blocks are freed */
};

void duo_blocks_init(struct duo_blocks *blocks, size_t keep);
/* Frees the kept blocks. The caller has put all blocks back. */
void duo_blocks_fini(struct duo_blocks *blocks);
/* Returns len bytes or more; NULL: no memory, or len is above 32 KiB. */
void *duo_block_get(struct duo_blocks *blocks, size_t len);
void duo_block_put(struct duo_blocks *blocks, void *block);

#endif /* DUO_BLOCK_H */
