/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Regions of memory that peers may read and write, found by their keys. The
 * owner has them in memory of its own, which alone decides what it does for
 * others, and a copy in a memfd, in which a peer looks before it reads or
 * writes by itself. The copy is written under a generation that is odd
 * meanwhile. The owner's calls are serialised with its ports'.
 */
#ifndef NEAR_RMA_TABLE_H
#define NEAR_RMA_TABLE_H

#include <assert.h>
#include <errno.h>
#include <sys/types.h>

#include "near/near.h"

static_assert(sizeof(struct near_region_entry) == 64, "one line an entry");

/* Memory for copies of device memory, for a peer each; see stage.h. */
#define NEAR_STAGES 256
#define NEAR_STAGE (2u << 20)
#define NEAR_STAGE_CHUNK (256u << 10)

/* In shared memory. */
struct near_table_head {
	uint32_t magic;
	uint32_t bits;		/* 1 << bits entries follow */
	uint64_t nonce;
	uint64_t generation;	/* odd: being changed */
} __attribute__((aligned(64)));

struct near_table {
	struct near_table_head *shared;
	struct near_region_entry *own;
	uint32_t bits;
	uint32_t count;
	int fd;
	uint64_t stages[NEAR_STAGES / 64];	/* in use, a bit each */
};

/* Where a stage is in the table's file. */
off_t near_table_stage(int index);
/* Takes a stage and its memory. Returns its index or -ENOSPC or -ENOMEM. */
int near_table_stage_get(struct near_table *table);
void near_table_stage_put(struct near_table *table, int index);

static inline uint32_t near_table_hash(uint64_t key, uint32_t bits)
{
	return (uint32_t)(key * 0x9e3779b97f4a7c15u >> (64 - bits));
}

const struct near_region_entry *
near_table_find_on(const struct near_table *table, uint64_t key);
/* NULL: no such key. Valid until the next change. */
static inline const struct near_region_entry *
near_table_find(const struct near_table *table, uint64_t key)
{
	const struct near_region_entry *home =
		&table->own[near_table_hash(key, table->bits)];

	return home->used && home->key == key ? home :
						near_table_find_on(table, key);
}

/*
 * The table of a peer, read-only. Whatever it says is checked, or is used as
 * an address in that peer only.
 */
struct near_table_view {
	const struct near_table_head *head;
	uint32_t bits;		/* so much of it is mapped */
	int fd;
	uint64_t generation;	/* in which known was found; odd: none yet */
	struct near_region_entry known;
};

/* Takes over fd, a descriptor of the peer's. */
int near_table_view_open(struct near_table_view **view, int fd,
			 uint64_t nonce);
void near_table_view_close(struct near_table_view *view);
/* Does the file have that stage? */
bool near_table_view_has(const struct near_table_view *view, int index);
/* 0; -EKEYREJECTED: no such key; -EAGAIN: it is being changed. */
int near_table_view_find(struct near_table_view *view, uint64_t key,
			 struct near_region_entry *entry);
/*
 * The entry, if it was the last that was found and the table has not changed;
 * NULL: near_table_view_find() is to look.
 */
static inline const struct near_region_entry *
near_table_view_known(const struct near_table_view *view, uint64_t key)
{
	return view->known.key == key &&
	       __atomic_load_n(&view->head->generation, __ATOMIC_ACQUIRE) ==
	       view->generation ? &view->known : NULL;
}

/*
 * Where the owner has the bytes [addr, addr + len) of the region. -EACCES:
 * they are not all in it, or not for this access.
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
