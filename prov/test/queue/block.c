/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* queue/block.h: memory blocks for unexpected messages */

#include "queue/block.h"
#include "unit.h"

#define COUNT 64		/* blocks of a size */
#define SMALLEST 64		/* bytes */
#define LARGEST (32 << 10)

static struct duo_blocks blocks;

/* Takes COUNT blocks of len bytes, then puts them back. */
static void use(size_t len)
{
	void *block[COUNT];
	int i;

	for (i = 0; i < COUNT; i++) {
		block[i] = duo_block_get(&blocks, len);
		ck_assert_ptr_nonnull(block[i]);
		memset(block[i], i, len);
	}
	for (i = 0; i < COUNT; i++)
		duo_block_put(&blocks, block[i]);
}

/* Returns the sum of the sizes of all free blocks, bytes. */
static size_t kept(void)
{
	size_t len = SMALLEST, sum = 0;
	void **block;
	int class;

	for (class = 0; class < DUO_BLOCK_SIZES; class++, len *= 2)
		for (block = (void **)blocks.free[class]; block; block = *block)
			sum += len;
	return sum;
}

UNIT_CASE("blocks", NULL, NULL);

UNIT_TEST(longest_block_is_limited)
{
	duo_blocks_init(&blocks, 0);
	ck_assert_ptr_null(duo_block_get(&blocks, LARGEST + 1));
	use(LARGEST);
	ck_assert_uint_eq(kept(), 0);
	duo_blocks_fini(&blocks);
}

/* The limit applies to the sum of the blocks of all sizes, not to each size. */
UNIT_TEST(kept_blocks_are_limited)
{
	size_t len, keep = COUNT * LARGEST;

	duo_blocks_init(&blocks, keep);
	use(LARGEST);
	ck_assert_uint_eq(kept(), keep);
	for (len = SMALLEST; len < LARGEST; len *= 2)
		use(len);
	ck_assert_uint_le(kept(), keep);
	ck_assert_uint_eq(kept(), blocks.size);
	duo_blocks_fini(&blocks);
}
