/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A pool of objects of one size, which never move. The id of an object is valid
 * from near_pool_get() to near_pool_put(). near_pool_find() checks ids, so a
 * caller may pass an id that a peer has sent.
 */
#ifndef NEAR_LINK_POOL_H
#define NEAR_LINK_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEAR_POOL_CHUNK 64	/* objects per allocation */
#define NEAR_POOL_UNLIMITED (1u << 31)	/* near_pool.limit: no limit */

/* The first member of each object. */
struct near_pooled {
	struct near_pooled *next;	/* next in the list of free objects */
	uint32_t index;
	uint32_t use;	/* number of gets and puts so far; odd: in use */
};

struct near_pool {
	struct near_pooled *free;
	char **chunk;
	uint32_t chunks;
	uint32_t limit;			/* limit of the number of objects */
	size_t size;			/* bytes of an object */
};

void near_pool_init(struct near_pool *pool, size_t size, uint32_t limit);
void near_pool_fini(struct near_pool *pool);
/* Allocates objects. Returns 0; -EAGAIN: limit reached; or -ENOMEM. */
int near_pool_grow(struct near_pool *pool);

/* True if near_pool_get() will succeed without an allocation. */
static inline bool near_pool_ready(const struct near_pool *pool)
{
	return pool->free;
}

/* Returns an object, which the caller must initialize; NULL: none. */
static inline void *near_pool_get(struct near_pool *pool)
{
	struct near_pooled *obj = pool->free;

	if (__builtin_expect(!obj, 0)) {
		if (near_pool_grow(pool))
			return NULL;
		obj = pool->free;
	}
	pool->free = obj->next;
	obj->use++;
	return obj;
}

static inline void near_pool_put(struct near_pool *pool, void *object)
{
	struct near_pooled *obj = object;

	obj->use++;
	obj->next = pool->free;
	pool->free = obj;
}

static inline uint64_t near_pool_id(const void *object)
{
	const struct near_pooled *obj = object;

	return (uint64_t)obj->use << 32 | obj->index;
}

/* Returns the object with this index, in use or free; NULL: no such index. */
static inline void *near_pool_at(const struct near_pool *pool, uint32_t index)
{
	if (index / NEAR_POOL_CHUNK >= pool->chunks)
		return NULL;
	return pool->chunk[index / NEAR_POOL_CHUNK] +
	       index % NEAR_POOL_CHUNK * pool->size;
}

/* Returns the object with this id; NULL: none. */
static inline void *near_pool_find(const struct near_pool *pool, uint64_t id)
{
	struct near_pooled *obj = near_pool_at(pool, (uint32_t)id);

	return obj && obj->use == id >> 32 && obj->use & 1 ? obj : NULL;
}

/* Returns the next object in use; NULL: none. *at: position, initially 0. */
static inline void *near_pool_next(const struct near_pool *pool, uint32_t *at)
{
	struct near_pooled *obj;

	while ((obj = near_pool_at(pool, (*at)++)))
		if (obj->use & 1)
			return obj;
	return NULL;
}

#endif /* NEAR_LINK_POOL_H */
