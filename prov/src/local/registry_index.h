/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Which addresses have a record at all: the names in the registry's
 * directory, read in one go, so that the many that have none cost no system
 * call each. It says "perhaps" or "no", duo_registry_lookup() has the rest.
 * It is for the look-ups of one call: the directory changes.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: not read, each address may have a record. */
struct duo_registry_index {
	bool read;
	uint64_t *hash;		/* of addresses, ascending */
	size_t count;
	size_t room;
};

/* Reads the names, if as many look-ups as follow are worth it. */
void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups);
void duo_registry_index_close(struct duo_registry_index *index);
/* False: the directory had no record with this duo_registry_key(). */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);

#endif /* DUO_REGISTRY_INDEX_H */
