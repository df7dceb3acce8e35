/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The states and the pool of receive entries (rx.h), and lists of the address
 * ranges of pools (ranges.h).
 */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "queue/rx.h"

#define TO(state) (1U << DUO_RX_##state)

const uint32_t duo_rx_next[DUO_RX_STATES] = {
	[DUO_RX_FREE] = TO(POSTED) | TO(CORE) | TO(PEEK) | TO(ARRIVING) |
			TO(OWNER) | TO(READY) | TO(MORE),
	/* receives */
	[DUO_RX_POSTED] =
		TO(LOCAL) | TO(CORE) | TO(CANCELING) | TO(RETIRED) | TO(FREE),
	[DUO_RX_LOCAL] = TO(FREE),
	[DUO_RX_CORE] = TO(RETIRED) | TO(FREE),
	[DUO_RX_CANCELING] = TO(CANCELED) | TO(CORE) | TO(RETIRED) | TO(FREE),
	[DUO_RX_CANCELED] = TO(LOCAL) | TO(POSTED) | TO(FREE),
	[DUO_RX_RETIRED] = TO(FREE),
	/* peeks */
	[DUO_RX_PEEK] = TO(CORE_CLAIMED) | TO(RETIRED) | TO(FREE),
	[DUO_RX_CORE_CLAIMED] = TO(CORE),
	/* local messages */
	[DUO_RX_ARRIVING] = TO(UNEXP) | TO(UNRESOLVED) | TO(FREE),
	[DUO_RX_UNEXP] = TO(LOCAL) | TO(UNRESOLVED) | TO(CLAIMED) | TO(FREE),
	[DUO_RX_UNRESOLVED] = TO(LOCAL) | TO(UNEXP) | TO(FREE),
	[DUO_RX_CLAIMED] = TO(LOCAL) | TO(FREE),
	/* multi-receive buffers; second entries (DUO_RX_MORE) */
	[DUO_RX_OWNER] = TO(FREE),
	[DUO_RX_READY] = TO(POSTED) | TO(CORE) | TO(FREE),
	[DUO_RX_MORE] = TO(FREE),
};

/* Makes space for `more` further ranges. Returns 0 or -FI_ENOMEM. */
static int duo_ranges_grow(struct duo_ranges *ranges, uint32_t more)
{
	struct duo_range *range = realloc(ranges->range,
					  (ranges->count + more) *
					  sizeof(*range));

	if (!range)
		return -FI_ENOMEM;
	ranges->range = range;
	return 0;
}

static void duo_ranges_insert(struct duo_ranges *ranges, struct duo_range new)
{
	struct duo_range *range = ranges->range;
	uint32_t i;

	for (i = ranges->count++; i && range[i - 1].base > new.base; i--)
		range[i] = range[i - 1];
	range[i] = new;
}

int duo_ranges_add(struct duo_ranges *ranges, const void *base, size_t size)
{
	const struct duo_range new = { (uintptr_t) base, size };
	int ret = duo_ranges_grow(ranges, 1);

	if (!ret)
		duo_ranges_insert(ranges, new);
	return ret;
}

int duo_ranges_merge(struct duo_ranges *to, struct duo_ranges *from)
{
	int ret = from->count ? duo_ranges_grow(to, from->count) : 0;

	if (ret)
		return ret;
	while (from->count)
		duo_ranges_insert(to, from->range[--from->count]);
	duo_ranges_fini(from);
	return 0;
}

void duo_ranges_remove(struct duo_ranges *ranges, const void *base)
{
	struct duo_range *range = ranges->range;

	while (range->base != (uintptr_t) base)
		range++;
	ranges->count--;
	memmove(range, range + 1, (ranges->range + ranges->count - range) *
		sizeof(*range));
}

void duo_ranges_fini(struct duo_ranges *ranges)
{
	free(ranges->range);
	*ranges = (struct duo_ranges) { 0 };
}

/*
 * Returns the number of entries in the range with this index. Each range has
 * twice as many as the previous one.
 */
static uint32_t duo_rx_range_count(uint32_t range)
{
	return DUO_RX_FIRST << range;
}

static size_t duo_rx_range_size(uint32_t range)
{
	return duo_rx_range_count(range) * sizeof(struct duo_rx);
}

void duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep)
{
	*pool = (struct duo_rx_pool) { .ep = ep };
	SLIST_INIT(&pool->free);
}

void duo_rx_pool_fini(struct duo_rx_pool *pool)
{
	struct duo_rx *rx, *end;

	while (pool->ranges) {
		rx = pool->range[--pool->ranges];
		end = rx + duo_rx_range_count(pool->ranges);
		if (pool->next >= rx && pool->next < end)
			end = pool->next;
		for (; rx < end; rx++) {
			if (rx->bounced)
				free(rx->bounce);
		}
		rx = pool->range[pool->ranges];
		duo_ranges_remove(pool->known, rx);
		munmap(rx, duo_rx_range_size(pool->ranges));
	}
	pool->capacity = 0;
	pool->next = pool->end = NULL;
}

static int duo_rx_pool_map(struct duo_rx_pool *pool)
{
	size_t size = duo_rx_range_size(pool->ranges);
	void *base;
	int ret;

	if (pool->ranges == DUO_RX_RANGES)
		return -FI_ENOMEM;
	base = mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		return -FI_ENOMEM;
	ret = duo_ranges_add(pool->known, base, size);
	if (ret) {
		munmap(base, size);
		return ret;
	}
	pool->next = pool->range[pool->ranges] = base;
	pool->end = pool->next + duo_rx_range_count(pool->ranges);
	pool->capacity += duo_rx_range_count(pool->ranges++);
	return 0;
}

/* Adds rx to the free list. rx must be an entry that was never used. */
static void duo_rx_pool_add(struct duo_rx_pool *pool, struct duo_rx *rx)
{
	rx->ep = pool->ep;
	SLIST_INSERT_HEAD(&pool->free, rx, free_link);
}

/*
 * Maps one more range, and puts the unused entries of the previous range into
 * the free list. Returns 0 or -FI_ENOMEM.
 */
static int duo_rx_pool_grow(struct duo_rx_pool *pool)
{
	struct duo_rx *rest = pool->next, *end = pool->end;
	int ret = duo_rx_pool_map(pool);

	if (ret && !pool->failed)
		DUO_WARN(EP_DATA, "ep %p: cannot allocate %u receive entries "
			 "in addition to %u: receives return -FI_EAGAIN, and "
			 "local senders wait. Raise the limit of address "
			 "space (ulimit -v), or provide more memory\n",
			 (void *) pool->ep, duo_rx_range_count(pool->ranges),
			 pool->capacity);
	pool->failed = ret;
	if (ret)
		return ret;
	for (; rest < end; rest++)
		duo_rx_pool_add(pool, rest);
	return 0;
}

bool duo_rx_pool_reserve(struct duo_rx_pool *pool, uint32_t count)
{
	return pool->capacity - pool->live >= count || !duo_rx_pool_grow(pool);
}

bool duo_rx_pool_refill(struct duo_rx_pool *pool)
{
	if (pool->next == pool->end && duo_rx_pool_grow(pool))
		return false;
	duo_rx_pool_add(pool, pool->next++);
	return true;
}

struct duo_rx_buffers *duo_rx_extend(struct duo_rx_pool *pool,
				     struct duo_rx *rx, size_t count)
{
	rx->more = duo_rx_alloc(pool);
	assert(rx->more && count > 1 && count <= DUO_IOV_LIMIT);
	duo_rx_become(rx->more, DUO_RX_MORE);
	rx->count = count;
	return &rx->more->buffers;
}

void duo_rx_strip(struct duo_rx_pool *pool, struct duo_rx *rx)
{
	if (rx->bounced)
		free(rx->bounce);
	if (rx->count > 1)
		duo_rx_release_plain(pool, rx->more);
	rx->bounced = false;
	rx->count = 0;
}
