/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A hash table with linear probing, at most half full: see table.h. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "near/link/copy.h"
#include "near/link/segment.h"
#include "near/rma/table.h"

#define NEAR_TABLE_MAGIC 0x6c626174u	/* "tabl" */
#define NEAR_TABLE_MIN_BITS 5
#define NEAR_TABLE_MAX_BITS 18	/* a table of 16 MiB */
/* limit of entries that one search in a peer's table reads */
#define NEAR_TABLE_PROBES 4096
#define NEAR_TABLE_TRIES 64	/* limit of attempts to read a peer's table */

static size_t near_table_size(uint32_t bits)
{
	return sizeof(struct near_table_head) +
	       (sizeof(struct near_region_entry) << bits);
}

static struct near_region_entry *
near_table_shared(const struct near_table *table)
{
	return (struct near_region_entry *)(table->shared + 1);
}

off_t near_table_stage(int index)
{
	size_t first = near_table_size(NEAR_TABLE_MAX_BITS) / NEAR_STAGE + 1;

	return (off_t)(first + (size_t)index) * NEAR_STAGE;
}

int near_table_stage_get(struct near_table *table)
{
	int i;

	for (i = 0; i < NEAR_STAGES; i++) {
		if (table->stages[i / 64] >> i % 64 & 1)
			continue;
		if (near_segment_reserve(table->fd, (size_t)near_table_stage(i),
					 NEAR_STAGE))
			return -ENOMEM;
		table->stages[i / 64] |= 1ULL << i % 64;
		return i;
	}
	return -ENOSPC;
}

void near_table_stage_put(struct near_table *table, int index)
{
	near_segment_clear(table->fd, (size_t)near_table_stage(index),
			   NEAR_STAGE);
	table->stages[index / 64] &= ~(1ULL << index % 64);
}

off_t near_table_export_at(uint32_t index)
{
	return (off_t)(near_table_size(NEAR_TABLE_MAX_BITS) +
		       index * sizeof(struct near_export));
}

/*
 * Maps the table like a ring: its unused part is not accessible, so that
 * mlockall() and core dumps do not allocate memory for it.
 */
static int near_table_create(struct near_table *table, bool staged)
{
	const struct near_place place = {
		.span = near_table_size(NEAR_TABLE_MAX_BITS),
		.size = near_table_size(NEAR_TABLE_MIN_BITS),
	};
	uint64_t nonce;
	void *map;
	int ret;

	table->fd = near_segment_file(
		"near regions",
		staged ? (size_t)near_table_stage(NEAR_STAGES) : place.span,
		place.size);
	if (table->fd < 0)
		return table->fd;
	if (getrandom(&nonce, sizeof(nonce), 0) != sizeof(nonce))
		return -errno;
	ret = near_ring_map(table->fd, &place, &map);
	if (ret)
		return ret;
	table->shared = map;
	table->shared->bits = table->bits;
	table->shared->nonce = nonce;
	__atomic_store_n(&table->shared->magic, NEAR_TABLE_MAGIC,
			 __ATOMIC_RELEASE);
	return 0;
}

int near_table_open(struct near_table **table_out, bool staged)
{
	struct near_table *table = calloc(1, sizeof(*table));
	int ret;

	if (!table)
		return -ENOMEM;
	table->bits = NEAR_TABLE_MIN_BITS;
	table->own = calloc(1u << table->bits, sizeof(*table->own));
	table->fd = -1;
	table->staged = staged;
	near_list_init(&table->mapped);
	near_list_init(&table->unmapped);
	ret = table->own ? near_table_create(table, staged) : -ENOMEM;
	if (ret) {
		near_table_close(table);
		return ret;
	}
	*table_out = table;
	return 0;
}

void near_table_close(struct near_table *table)
{
	if (table->shared)
		munmap(table->shared, near_table_size(NEAR_TABLE_MAX_BITS));
	if (table->fd >= 0)
		close(table->fd);
	free(table->own);
	free(table);
}

/*
 * Begins a change, as the writer of a seqlock. The fence keeps stores to
 * entries behind the store of the odd generation. Partner: the fence in
 * near_table_view_find().
 */
static void near_table_begin(struct near_table *table)
{
	__atomic_store_n(&table->shared->generation,
			 table->shared->generation + 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/*
 * Ends a change. The release keeps stores to entries before the store of the
 * even generation. Partners: the acquire loads of the generation.
 */
static void near_table_end(struct near_table *table)
{
	__atomic_store_n(&table->shared->generation,
			 table->shared->generation + 1, __ATOMIC_RELEASE);
}

static void near_table_put(struct near_table *table, uint32_t at,
			   const struct near_region_entry *entry)
{
	table->own[at] = *entry;
	near_table_shared(table)[at] = *entry;
}

/* Returns the index of the entry with this key, or of the free entry for it. */
static uint32_t near_table_at(const struct near_table *table, uint64_t key)
{
	uint32_t mask = (1u << table->bits) - 1;
	uint32_t at = near_table_hash(key, table->bits);

	while (table->own[at].used && table->own[at].key != key)
		at = (at + 1) & mask;
	return at;
}

/* Doubles the table and inserts all entries anew. Returns 0 or -errno. */
static int near_table_grow(struct near_table *table)
{
	struct near_region_entry *old = table->own, *own;
	size_t size = near_table_size(table->bits + 1);
	uint32_t count = 1u << table->bits, i;

	if (table->bits == NEAR_TABLE_MAX_BITS)
		return -ENOSPC;
	/* a store to a part of the file without memory would raise SIGBUS */
	if (near_segment_reserve(table->fd, 0, size) ||
	    near_ring_extend(table->shared, size))
		return -ENOMEM;
	own = calloc(2 * (size_t)count, sizeof(*own));
	if (!own)
		return -ENOMEM;
	near_table_begin(table);
	table->own = own;
	table->bits++;
	memset(near_table_shared(table), 0, count * sizeof(*own));
	for (i = 0; i < count; i++)
		if (old[i].used)
			near_table_put(table, near_table_at(table, old[i].key),
				       &old[i]);
	table->shared->bits = table->bits;
	near_table_end(table);
	free(old);
	return 0;
}

int near_table_add(struct near_table *table,
		   const struct near_region_entry *entry)
{
	struct near_region_entry used = *entry;
	int ret;

	if (near_table_find(table, entry->key))
		return -ENOKEY;
	if (table->count >= 1u << (table->bits - 1)) {
		ret = near_table_grow(table);
		if (ret)
			return ret;
	}
	used.used = 1;
	used.export_id = 0;
	near_table_begin(table);
	near_table_put(table, near_table_at(table, entry->key), &used);
	near_table_end(table);
	table->count++;
	return 0;
}

/* Writes an export to the file. Returns its index, -ENOSPC or -ENOMEM. */
static int near_table_export_get(struct near_table *table,
				 const struct near_export *export)
{
	off_t at;
	int i;

	for (i = 0; i < NEAR_EXPORTS; i++) {
		if (table->exports[i / 64] >> i % 64 & 1)
			continue;
		at = near_table_export_at((uint32_t)i);
		if (near_segment_reserve(table->fd, (size_t)at,
					 sizeof(*export)) ||
		    pwrite(table->fd, export, sizeof(*export), at) !=
		    sizeof(*export))
			return -ENOMEM;
		table->exports[i / 64] |= 1ULL << i % 64;
		return i;
	}
	return -ENOSPC;
}

static void near_table_export_put(struct near_table *table, uint32_t index)
{
	table->exports[index / 64] &= ~(1ULL << index % 64);
}

int near_table_export(struct near_table *table, uint64_t key,
		      const struct near_export *export)
{
	uint32_t at = near_table_at(table, key);
	struct near_region_entry entry = table->own[at];
	int index;

	if (!entry.used || entry.export_id || !export->id)
		return -ENOENT;
	index = near_table_export_get(table, export);
	if (index < 0)
		return index;
	entry.export_id = export->id;
	entry.export_index = (uint32_t)index;
	near_table_begin(table);
	near_table_put(table, at, &entry);
	near_table_end(table);
	return 0;
}

/*
 * Removes an entry, which leaves a gap. A search stops at a gap, so the loop
 * moves later entries into the gap if their search begins at or before the gap.
 * The former place of a moved entry is the new gap.
 */
void near_table_remove(struct near_table *table, uint64_t key)
{
	static const struct near_region_entry none;
	uint32_t mask = (1u << table->bits) - 1;
	uint32_t gap = near_table_at(table, key), at = gap, home;

	if (!table->own[gap].used)
		return;
	if (table->own[gap].export_id)
		near_table_export_put(table, table->own[gap].export_index);
	near_table_begin(table);
	for (;;) {
		at = (at + 1) & mask;
		if (!table->own[at].used)
			break;
		home = near_table_hash(table->own[at].key, table->bits);
		if (((at - home) & mask) < ((at - gap) & mask))
			continue;
		near_table_put(table, gap, &table->own[at]);
		gap = at;
	}
	near_table_put(table, gap, &none);
	near_table_end(table);
	table->count--;
}

const struct near_region_entry *
near_table_find_slow(const struct near_table *table, uint64_t key)
{
	uint32_t at = near_table_at(table, key);

	return table->own[at].used ? &table->own[at] : NULL;
}

static int near_table_view_map(struct near_table_view *view, uint32_t bits)
{
	void *map = mmap(NULL, near_table_size(bits), PROT_READ, MAP_SHARED,
			 view->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	if (view->head)
		munmap((void *)view->head, near_table_size(view->bits));
	view->head = map;
	view->bits = bits;
	return 0;
}

int near_table_view_open(struct near_table_view **view_out, int fd,
			 uint64_t nonce)
{
	struct near_table_view *view = calloc(1, sizeof(*view));
	size_t size = 0;
	int ret;

	if (!view) {
		close(fd);
		return -ENOMEM;
	}
	view->fd = fd;
	view->generation = UINT64_MAX;
	ret = near_segment_check_file(view->fd, &size);
	if (!ret && size < near_table_size(NEAR_TABLE_MAX_BITS))
		ret = -ENOENT;
	if (!ret)
		ret = near_table_view_map(view, NEAR_TABLE_MIN_BITS);
	if (!ret && (__atomic_load_n(&view->head->magic, __ATOMIC_ACQUIRE) !=
		     NEAR_TABLE_MAGIC || view->head->nonce != nonce))
		ret = -ENOENT;
	if (ret) {
		near_table_view_close(view);
		return ret;
	}
	*view_out = view;
	return 0;
}

void near_table_view_close(struct near_table_view *view)
{
	if (view->head)
		munmap((void *)view->head, near_table_size(view->bits));
	close(view->fd);
	free(view);
}

bool near_table_view_has(const struct near_table_view *view, int index)
{
	struct stat st;

	return !fstat(view->fd, &st) && index < NEAR_STAGES &&
	       st.st_size >= near_table_stage(NEAR_STAGES);
}

/*
 * Makes one attempt of near_table_view_find(). If the generation changes during
 * the call, its result and *entry are invalid: the caller must check this.
 */
static int near_table_view_try(const struct near_table_view *view,
			       uint64_t key, struct near_region_entry *entry)
{
	const struct near_region_entry *all =
		(const struct near_region_entry *)(view->head + 1);
	uint32_t mask = (1u << view->bits) - 1, i;
	uint32_t at = near_table_hash(key, view->bits);

	for (i = 0; i <= mask && i < NEAR_TABLE_PROBES; i++) {
		memcpy(entry, &all[at], sizeof(*entry));
		if (!entry->used)
			break;
		if (entry->key == key)
			return 0;
		at = (at + 1) & mask;
	}
	return -EKEYREJECTED;
}

int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry)
{
	const struct near_region_entry *known =
		near_table_view_known(view, key);
	uint64_t before;
	uint32_t bits, tries;
	int ret;

	if (near_likely(known != NULL)) {
		*entry = *known;
		return 0;
	}
	for (tries = 0; tries < NEAR_TABLE_TRIES; tries++) {
		before = __atomic_load_n(&view->head->generation,
					 __ATOMIC_ACQUIRE);
		bits = __atomic_load_n(&view->head->bits, __ATOMIC_RELAXED);
		if (before & 1 || bits > NEAR_TABLE_MAX_BITS ||
		    bits < NEAR_TABLE_MIN_BITS)
			continue;
		if (near_unlikely(bits != view->bits)) {
			ret = near_table_view_map(view, bits);
			if (ret)
				return -EAGAIN;
			continue;
		}
		/*
		 * The fence keeps the loads of the entry before the next load
		 * of the generation. Partner: the fence in near_table_begin().
		 */
		ret = near_table_view_try(view, key, entry);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (near_unlikely(__atomic_load_n(&view->head->generation,
						  __ATOMIC_RELAXED) != before))
			continue;
		if (!ret) {
			view->known = *entry;
			view->generation = before;
		}
		return ret;
	}
	return -EAGAIN;
}

/*
 * Looks up the entry again after pread(). If the table still has the entry, the
 * export belongs to it, because the owner removes a region from the table
 * before it writes another export to the same place.
 */
int near_table_view_export(struct near_table_view *view,
			   const struct near_region_entry *entry,
			   struct near_export *export)
{
	struct near_region_entry now;
	int ret;

	if (entry->export_index >= NEAR_EXPORTS ||
	    pread(view->fd, export, sizeof(*export),
		  near_table_export_at(entry->export_index)) !=
	    sizeof(*export))
		return -EAGAIN;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	ret = near_table_view_find(view, entry->key, &now);
	return !ret && now.export_id == entry->export_id &&
	       now.export_index == entry->export_index &&
	       export->id == entry->export_id ? 0 : -EAGAIN;
}
