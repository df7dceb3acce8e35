/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions, found by their keys. The owner checks requests against a
 * table in its private memory. A memfd has a copy, in which peers look up the
 * regions of single copies. The copy has a seqlock: its generation is odd
 * while the owner writes. The embedder serializes the owner's calls with those
 * of its ports.
 */
#ifndef NEAR_RMA_TABLE_H
#define NEAR_RMA_TABLE_H

#include <assert.h>
#include <errno.h>
#include <sys/types.h>

#include "near/near.h"

static_assert(sizeof(struct near_region_entry) == 64, "one line an entry");

/* Chunks for copies of device memory, NEAR_STAGE bytes a peer; see stage.h. */
#define NEAR_STAGES 256
#define NEAR_STAGE (2u << 20)
#define NEAR_STAGE_CHUNK (256u << 10)

/* In shared memory. */
struct near_table_head {
	uint32_t magic;
	uint32_t bits;		/* 1 << bits entries follow */
	uint64_t nonce;
	uint64_t generation;	/* odd while the owner writes */
} __attribute__((aligned(64)));

struct near_table {
	struct near_table_head *shared;
	struct near_region_entry *own;
	uint32_t bits;
	uint32_t count;
	int fd;
	uint64_t stages[NEAR_STAGES / 64];	/* bitmap of stages in use */
};

/* Returns the offset of a stage in the table's file. */
off_t near_table_stage(int index);
/* Allocates a stage. Returns its index, -ENOSPC or -ENOMEM. */
int near_table_stage_get(struct near_table *table);
void near_table_stage_put(struct near_table *table, int index);

static inline uint32_t near_table_hash(uint64_t key, uint32_t bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

const struct near_region_entry *
near_table_find_on(const struct near_table *table, uint64_t key);
/* Returns the entry, valid until the next change; NULL: no such key. */
static inline const struct near_region_entry *
near_table_find(const struct near_table *table, uint64_t key)
{
	const struct near_region_entry *home =
		&table->own[near_table_hash(key, table->bits)];

	return home->used && home->key == key ? home :
						near_table_find_on(table, key);
}

/*
 * A peer's table, mapped read-only. Its values are checked before use, or used
 * only as addresses in that peer.
 */
struct near_table_view {
	const struct near_table_head *head;
	uint32_t bits;		/* 1 << bits entries are mapped */
	int fd;
	uint64_t generation;	/* when known was read; odd: none */
	struct near_region_entry known;
};

/* Maps a peer's table. Takes ownership of fd. */
int near_table_view_open(struct near_table_view **view, int fd,
			 uint64_t nonce);
void near_table_view_close(struct near_table_view *view);
/* True if the file contains that stage. */
bool near_table_view_has(const struct near_table_view *view, int index);
/* Returns 0; -EKEYREJECTED: no such key; -EAGAIN: the owner is writing. */
int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry);
/*
 * Returns the entry if it is the one found last and the table has not changed
 * since. NULL: call near_table_view_find().
 */
static inline const struct near_region_entry *
near_table_view_known(const struct near_table_view *view, uint64_t key)
{
	return view->known.key == key &&
	       __atomic_load_n(&view->head->generation, __ATOMIC_ACQUIRE) ==
	       view->generation ? &view->known : NULL;
}

/*
 * Returns the owner's address of [addr, addr + len) in *memory. -EACCES: the
 * region does not contain the range, or does not grant this access.
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
