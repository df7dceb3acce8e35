/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The file names in the registry's directory, read once for all lookups of a
 * call, so that an address without a record costs no system call. The directory
 * may change afterwards: an address that is missing in the index may have a
 * record now.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All fields 0: the names were not read, and any address may have a record. */
struct duo_registry_index {
	bool read;
	uint64_t *hash;		/* hashes in the file names, ascending */
	size_t count;
	size_t capacity;	/* allocated elements of hash */
};

/*
 * Reads the names if at least DUO_INDEX_LOOKUPS lookups will follow. To read
 * them for fewer lookups would cost more than it saves. The caller must close
 * the index.
 */
void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups);
void duo_registry_index_close(struct duo_registry_index *index);
/* False: there was no record with this key. True: there may be one. */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

#endif /* DUO_REGISTRY_INDEX_H */
