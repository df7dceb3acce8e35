/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The names of the records, read once for many lookups. A lookup of an address
 * without a record then costs no system call. The index does not contain
 * records that are added after the names were read.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * If all fields are 0, no names of records were read: any address may have a
 * record.
 */
struct duo_registry_index {
	bool read;
	uint64_t *hash;		/* hashes in the records' names, ascending */
	size_t count;
	size_t capacity;	/* allocated elements of hash */
};

/*
 * Reads the records' names if at least DUO_INDEX_LOOKUPS lookups follow; for
 * fewer, this costs more than it saves. The caller must close the index.
 */
void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups);
void duo_registry_index_close(struct duo_registry_index *index);
/*
 * True if a record may have this key (duo_registry_key()). False if no record
 * had it when the names were read.
 */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

#endif /* DUO_REGISTRY_INDEX_H */
