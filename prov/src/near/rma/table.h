/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A table of memory regions by their keys: docs/near/rma.md, *Regions*. The
 * owner has a private table, and a copy of it in a file that peers map.
 */
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

/* limit of exports; in the file they are between the table and the stages */
#define NEAR_EXPORTS 4096
static_assert(NEAR_EXPORTS * sizeof(struct near_export) +
	      2 * sizeof(struct near_region_entry) <= NEAR_STAGE, "they fit");

/* The head of a table in shared memory; the entries follow. */
struct near_table_head {
	uint32_t magic;
	uint32_t bits;		/* the number of entries is 1 << bits */
	uint64_t nonce;
	/* raised before and after each change; odd during a change */
	uint64_t generation;
} __attribute__((aligned(64)));

struct near_table {
	struct near_table_head *shared;	/* the copy for peers, in the file */
	struct near_region_entry *own;	/* entries of the private table */
	uint32_t bits;
	uint32_t count;
	int fd;		/* the file, a memfd */
	bool staged;	/* the file has space for stages */
	uint64_t stages[NEAR_STAGES / 64];	/* bitmap of stages in use */
	uint64_t exports[NEAR_EXPORTS / 64];	/* bitmap of exports in use */
	/* list of the near_mapped of all peers with mappings */
	struct near_link mapped;
	/* dropped mappings, which near_table_unmapped() returns */
	struct near_link unmapped;
	uint32_t unmapped_count;	/* length of the list `unmapped` */
	/* number of mappings that near_table_unmapped() has returned so far */
	uint64_t released;
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

/* Slow path of near_table_find(): searches all places that a key may have. */
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
	/* generation of the table when `known` was read; odd: none was read */
	uint64_t generation;
	struct near_region_entry known;	/* copy of the entry found last */
};

/*
 * Maps a peer's table from the file fd. The view owns fd. After an error, fd is
 * closed. Returns 0 or -errno; -ENOENT: not the table with this nonce.
 */
int near_table_view_open(struct near_table_view **view, int fd,
			 uint64_t nonce);
void near_table_view_close(struct near_table_view *view);
/* True if a stage with this index can be mapped from the peer's file. */
bool near_table_view_has(const struct near_table_view *view, int index);
/*
 * Copies the entry with this key to *entry. Returns 0; -EKEYREJECTED: no such
 * key; -EAGAIN: the table is not readable now.
 */
int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry);
/*
 * Copies the export of a region to *export. entry: from near_table_view_find().
 * Returns 0; -EAGAIN: the region was removed, or the table is invalid.
 */
int near_table_view_export(struct near_table_view *view,
			   const struct near_region_entry *entry,
			   struct near_export *export);
/*
 * Returns the entry that was found last, if it has this key and the table has
 * not changed since then; else NULL.
 */
static inline const struct near_region_entry *
near_table_view_known(const struct near_table_view *view, uint64_t key)
{
	return view->known.key == key &&
	       __atomic_load_n(&view->head->generation, __ATOMIC_ACQUIRE) ==
	       view->generation ? &view->known : NULL;
}

/*
 * Checks an access to the len bytes at the RMA address addr. Stores in *memory
 * their address in the owner's process. Returns 0; -EACCES: not all bytes are
 * in the region, or the region does not grant this access.
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
