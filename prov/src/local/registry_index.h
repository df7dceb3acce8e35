/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An index of the file names in the registry's directory. The directory is read
 * once for all lookups of one call, so that an address without a record costs
 * no system call. The directory may change afterwards. So the index returns
 * only "no" or "perhaps"; after "perhaps" duo_registry_lookup() decides.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: the names were not read, and each address may have a record. */
struct duo_registry_index {
	bool read;
	uint64_t *hash;		/* hashes in the file names, ascending */
	size_t count;
	size_t room;		/* allocated elements of hash */
};

/*
 * Reads the names, unless that would cost more than "lookups" lookups without
 * an index. The caller must call duo_registry_index_close().
 */
void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups);
void duo_registry_index_close(struct duo_registry_index *index);
/*
 * Returns false if the directory had no record with this duo_registry_key(),
 * and true if it may have one.
 */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

#endif /* DUO_REGISTRY_INDEX_H */
