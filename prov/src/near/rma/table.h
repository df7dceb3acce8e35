/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A table of memory regions by their keys: docs/near/rma.md, *Regions*. */
#ifndef NEAR_RMA_TABLE_H
#define NEAR_RMA_TABLE_H

#include <assert.h>
#include <errno.h>
#include <sys/types.h>

#include "near/link/list.h"
#include "near/near.h"

static_assert(sizeof(struct near_region_entry) == 64, "one line an entry");

#define NEAR_STAGES 256			/* stages (stage.h) per table */
#define NEAR_STAGE (2u << 20)		/* size of a stage, bytes */
#define NEAR_STAGE_CHUNK (256u << 10)	/* size of a chunk of a stage, bytes */

/* limit of exports, which are between the table and the stages in the file */
#define NEAR_EXPORTS 4096
static_assert(NEAR_EXPORTS * sizeof(struct near_export) +
	      2 * sizeof(struct near_region_entry) <= NEAR_STAGE, "they fit");

/* The head of a table in shared memory; the entries follow. */
struct near_table_head {
	uint32_t magic;
	uint32_t bits;		/* the number of entries is 1 << bits */
	uint64_t nonce;
	uint64_t generation;	/* odd while the owner writes */
} __attribute__((aligned(64)));

struct near_table {
	struct near_table_head *shared;	/* copy for peers, in the memfd */
	struct near_region_entry *own;	/* entries of the private table */
	uint32_t bits;
	uint32_t count;
	int fd;
	bool staged;	/* the file can hold stages */
	uint64_t stages[NEAR_STAGES / 64];	/* bitmap of stages in use */
	uint64_t exports[NEAR_EXPORTS / 64];	/* bitmap of exports in use */
	struct near_link mapped;	/* list of near_mapped */
	struct near_link unmapped;	/* mappings for near_table_unmapped() */
	uint32_t unmapped_count;
	uint64_t released;	/* number of mappings taken from `unmapped` */
};

/* Returns the offset of a stage in the table's file, bytes. */
off_t near_table_stage(int index);
/* Returns the offset of an export in the table's file, bytes. */
off_t near_table_export_at(uint32_t index);
/* Allocates a stage. Returns its index; -ENOSPC: all are in use; -ENOMEM. */
int near_table_stage_get(struct near_table *table);
void near_table_stage_put(struct near_table *table, int index);

static inline uint32_t near_table_hash(uint64_t key, uint32_t bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

/* Slow path of near_table_find(): searches beyond the first place of a key. */
const struct near_region_entry *
near_table_find_slow(const struct near_table *table, uint64_t key);
/* Returns the entry with this key, valid until the table changes; or NULL. */
static inline const struct near_region_entry *
near_table_find(const struct near_table *table, uint64_t key)
{
	const struct near_region_entry *home =
		&table->own[near_table_hash(key, table->bits)];

	return home->used && home->key == key ?
	       home : near_table_find_slow(table, key);
}

/* A peer's table, mapped read-only. A faulty peer may store any values. */
struct near_table_view {
	const struct near_table_head *head;
	uint32_t bits;		/* the number of mapped entries is 1 << bits */
	int fd;
	uint64_t generation;	/* of the table, at `known`; odd: none */
	struct near_region_entry known;	/* the entry found last */
};

/* Maps a peer's table, which then owns fd; closes fd after an error. */
int near_table_view_open(struct near_table_view **view, int fd,
			 uint64_t nonce);
void near_table_view_close(struct near_table_view *view);
/* True if the index is valid, and the peer's file contains all stages. */
bool near_table_view_has(const struct near_table_view *view, int index);
/*
 * Copies the entry with this key to *entry. Returns 0; -EKEYREJECTED: no such
 * key; -EAGAIN: the table is not readable now.
 */
int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry);
/*
 * Copies the export of an entry from near_table_view_find(). Returns 0;
 * -EAGAIN: the region was removed, or the table is invalid.
 */
int near_table_view_export(struct near_table_view *view,
			   const struct near_region_entry *entry,
			   struct near_export *export);
/* Returns the entry found last, if it has this key and is valid; or NULL. */
static inline const struct near_region_entry *
near_table_view_known(const struct near_table_view *view, uint64_t key)
{
	return view->known.key == key &&
	       __atomic_load_n(&view->head->generation, __ATOMIC_ACQUIRE) ==
	       view->generation ? &view->known : NULL;
}

/*
 * Checks an access to the len bytes at addr. Stores in *memory their address in
 * the owner's process. Returns 0; -EACCES: outside the region, or no right.
 */
static inline int near_region_check(const struct near_region_entry *entry,
				    uint64_t addr, uint64_t len,
				    uint32_t access, uint64_t *memory)
{
	uint64_t offset = addr - entry->start;

	if ((entry->access & access) != access || addr < entry->start ||
	    offset > entry->len || len > entry->len - offset)
		return -EACCES;
	*memory = entry->memory + offset;
	return 0;
}

#endif /* NEAR_RMA_TABLE_H */
