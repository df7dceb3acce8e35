/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A table of memory regions, found by their keys. The owner checks requests
 * against a private table. A copy of this table is in a memfd, which peers map
 * to look up keys before they start operations. A seqlock protects the copy:
 * its generation is odd while the owner writes.
 *
 * The embedder must serialize calls for a table with calls for the ports that
 * use the table.
 */
#ifndef NEAR_RMA_TABLE_H
#define NEAR_RMA_TABLE_H

#include <assert.h>
#include <errno.h>
#include <sys/types.h>

#include "near/link/list.h"
#include "near/near.h"

static_assert(sizeof(struct near_region_entry) == 64, "one line an entry");

/*
 * Stages (stage.h) in the table's file: their number, bytes of a stage, and
 * bytes of a chunk. A port uses one stage for all its staged and lent
 * operations with one peer. Only the file of a table that was opened with
 * `staged` has space for stages.
 */
#define NEAR_STAGES 256
#define NEAR_STAGE (2u << 20)
#define NEAR_STAGE_CHUNK (256u << 10)

/* Number of exports; they lie between the table and the stages in the file. */
#define NEAR_EXPORTS 4096
static_assert(NEAR_EXPORTS * sizeof(struct near_export) +
	      2 * sizeof(struct near_region_entry) <= NEAR_STAGE, "they fit");

/* The head of the copy in shared memory. */
struct near_table_head {
	uint32_t magic;
	uint32_t bits;		/* 1 << bits entries follow */
	uint64_t nonce;
	uint64_t generation;	/* odd while the owner writes */
} __attribute__((aligned(64)));

struct near_table {
	struct near_table_head *shared;	/* the copy in the memfd */
	struct near_region_entry *own;	/* entries of the private table */
	uint32_t bits;
	uint32_t count;
	int fd;
	bool staged;		/* near_table_open(): with stages */
	/* bitmap of the stages in use */
	uint64_t stages[NEAR_STAGES / 64];
	/* bitmap of the exports in use */
	uint64_t exports[NEAR_EXPORTS / 64];
	/*
	 * lists of all near_mapped of this table, and of the near_mapping that
	 * near_table_unmapped() must still return to the embedder
	 */
	struct near_link mapped, unmapped;
	uint32_t unmapped_count;
	/* number of mappings that near_table_unmapped() has returned */
	uint64_t released;
};

/* Return the offset of a stage, or of an export, in a table's file, bytes. */
off_t near_table_stage(int index);
off_t near_table_export_at(uint32_t index);
/* Allocates a stage. Returns its index; -ENOSPC: all are in use; -ENOMEM. */
int near_table_stage_get(struct near_table *table);
void near_table_stage_put(struct near_table *table, int index);

static inline uint32_t near_table_hash(uint64_t key, uint32_t bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

/* Continues the search of near_table_find() after the first probe. */
const struct near_region_entry *
near_table_find_slow(const struct near_table *table, uint64_t key);
/* Returns the entry with this key, valid until the table changes, or NULL. */
static inline const struct near_region_entry *
near_table_find(const struct near_table *table, uint64_t key)
{
	const struct near_region_entry *home =
		&table->own[near_table_hash(key, table->bits)];

	return home->used && home->key == key ?
	       home : near_table_find_slow(table, key);
}

/*
 * A peer's table, mapped read-only. The peer may be faulty, so this process
 * checks the table's values before use. Addresses need no check, because they
 * are used in the peer's process, not in this one. (near_mapping_at() checks
 * addresses of mapped memory.)
 */
struct near_table_view {
	const struct near_table_head *head;
	uint32_t bits;		/* the number of mapped entries is 1 << bits */
	int fd;
	/* generation of `known`; odd: `known` is invalid */
	uint64_t generation;
	/* the entry that was found last */
	struct near_region_entry known;
};

/* Maps a peer's table. Takes over fd, and closes it after an error. */
int near_table_view_open(struct near_table_view **view, int fd,
			 uint64_t nonce);
void near_table_view_close(struct near_table_view *view);
/* True if the peer's file has a stage with this index. */
bool near_table_view_has(const struct near_table_view *view, int index);
/*
 * Copies the entry with this key. Returns
 * - 0
 * - -EKEYREJECTED: no such key
 * - -EAGAIN: mmap() failed, or in all attempts the owner was writing or the
 *   table was invalid
 */
int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry);
/*
 * Copies the export of an entry that near_table_view_find() has just found.
 * Returns 0; -EAGAIN: the region was removed in the meantime, or the table is
 * invalid.
 */
int near_table_view_export(struct near_table_view *view,
			   const struct near_region_entry *entry,
			   struct near_export *export);
/*
 * Returns the entry that was found last, if it has this key and the table has
 * not changed since then. NULL: call near_table_view_find().
 */
static inline const struct near_region_entry *
near_table_view_known(const struct near_table_view *view, uint64_t key)
{
	return view->known.key == key &&
	       __atomic_load_n(&view->head->generation, __ATOMIC_ACQUIRE) ==
	       view->generation ? &view->known : NULL;
}

/*
 * Checks an access to len bytes at addr, and stores their address in the
 * owner's process. Returns 0; -EACCES: the range is not within the region, or
 * the region does not grant the access.
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
