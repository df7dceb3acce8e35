/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An index of the names in the registry's directory, read once for the lookups
 * of one call, so that an address without a record costs no system call. The
 * result is "perhaps" or "no"; the directory can change. duo_registry_lookup()
 * decides.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All 0: not read, each address might have a record. */
struct duo_registry_index {
	bool read;
	uint64_t *hash;		/* hashes of addresses, ascending */
	size_t count;
	size_t room;		/* allocated elements */
};

/* Reads the names if there are enough lookups to be worth it. */
void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups);
void duo_registry_index_close(struct duo_registry_index *index);
/* False: the directory had no record with this duo_registry_key(). */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

#endif /* DUO_REGISTRY_INDEX_H */
