/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <stdlib.h>

#include "near/link/pool.h"

void near_pool_init(struct near_pool *pool, size_t size, uint32_t limit)
{
	*pool = (struct near_pool) {
		.size = (size + 63) & ~(size_t)63,
		.limit = limit,
	};
}

void near_pool_fini(struct near_pool *pool)
{
	while (pool->chunks)
		free(pool->chunk[--pool->chunks]);
	free(pool->chunk);
	pool->chunk = NULL;
	pool->free = NULL;
}

int near_pool_grow(struct near_pool *pool)
{
	uint32_t first = pool->chunks * NEAR_POOL_CHUNK, i;
	struct near_pooled *obj;
	char **chunk, *memory;

	if (first >= pool->limit)
		return -EAGAIN;
	/* enlarge the array if `chunks` is 0 or a power of two */
	if (!(pool->chunks & (pool->chunks - 1))) {
		chunk = realloc(pool->chunk, 2 * ((size_t)pool->chunks + 1) *
				sizeof(*chunk));
		if (!chunk)
			return -ENOMEM;
		pool->chunk = chunk;
	}
	memory = aligned_alloc(64, pool->size * NEAR_POOL_CHUNK);
	if (!memory)
		return -ENOMEM;
	pool->chunk[pool->chunks++] = memory;
	for (i = NEAR_POOL_CHUNK; i-- > 0;) {
		obj = (struct near_pooled *)(memory + i * pool->size);
		obj->index = first + i;
		obj->use = 0;
		obj->next = pool->free;
		pool->free = obj;
	}
	return 0;
}
