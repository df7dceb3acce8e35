/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "match/block.h"

#define NEAR_BLOCK_MIN 64

struct near_block {
	struct near_block *next;
	uint64_t class;
	uint8_t bytes[];
};

static size_t near_block_size(uint64_t class)
{
	return (size_t)NEAR_BLOCK_MIN << class;
}

void near_blocks_init(struct near_blocks *blocks, size_t keep)
{
	*blocks = (struct near_blocks) { .keep = keep };
}

void near_blocks_fini(struct near_blocks *blocks)
{
	struct near_block *block;
	int class;

	for (class = 0; class < NEAR_BLOCK_SIZES; class++) {
		while ((block = blocks->free[class])) {
			blocks->free[class] = block->next;
			free(block);
		}
	}
}

void *near_block_get(struct near_blocks *blocks, size_t len)
{
	struct near_block *block;
	uint64_t class = 0;

	while (near_block_size(class) < len)
		if (++class == NEAR_BLOCK_SIZES)
			return NULL;
	block = blocks->free[class];
	if (block)
		blocks->free[class] = block->next;
	else
		block = malloc(sizeof(*block) + near_block_size(class));
	if (!block)
		return NULL;
	block->class = class;
	blocks->used += near_block_size(class);
	return block->bytes;
}

void near_block_put(struct near_blocks *blocks, void *bytes)
{
	struct near_block *block = (struct near_block *)
		((char *)bytes - offsetof(struct near_block, bytes));
	bool keep = blocks->used <= blocks->keep;

	blocks->used -= near_block_size(block->class);
	if (!keep) {
		free(block);
		return;
	}
	block->next = blocks->free[block->class];
	blocks->free[block->class] = block;
}
