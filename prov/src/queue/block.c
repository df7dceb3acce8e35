/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdint.h>
#include <stdlib.h>

#include "queue/block.h"

struct duo_block {
	struct duo_block *next;
	uint64_t class;
	uint8_t bytes[];
};

static size_t duo_block_size(uint64_t class)
{
	return (size_t)DUO_BLOCK_MIN << class;
}

void duo_blocks_init(struct duo_blocks *blocks, size_t keep)
{
	*blocks = (struct duo_blocks) { .keep = keep };
}

void duo_blocks_fini(struct duo_blocks *blocks)
{
	struct duo_block *block;
	int class;

	for (class = 0; class < DUO_BLOCK_SIZES; class++) {
		while ((block = blocks->free[class])) {
			blocks->free[class] = block->next;
			free(block);
		}
	}
}

void *duo_block_get(struct duo_blocks *blocks, size_t len)
{
	struct duo_block *block;
	uint64_t class = 0;

	while (duo_block_size(class) < len)
		if (++class == DUO_BLOCK_SIZES)
			return NULL;
	block = blocks->free[class];
	if (block) {
		blocks->free[class] = block->next;
		return block->bytes;
	}
	block = malloc(sizeof(*block) + duo_block_size(class));
	if (!block)
		return NULL;
	block->class = class;
	blocks->size += duo_block_size(class);
	return block->bytes;
}

void duo_block_put(struct duo_blocks *blocks, void *bytes)
{
	struct duo_block *block = (struct duo_block *)
		((char *)bytes - offsetof(struct duo_block, bytes));

	if (blocks->size > blocks->keep) {
		blocks->size -= duo_block_size(block->class);
		free(block);
		return;
	}
	block->next = blocks->free[block->class];
	blocks->free[block->class] = block;
}
