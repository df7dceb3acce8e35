/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Which addresses have a record at all: the names in the registry's
 * directory, read in one go, so that the many that have none cost no system
 * call each. It says "perhaps" or "no", duo_registry_lookup() has the rest.
 */
#ifndef DUO_REGISTRY_INDEX_H
#define DUO_REGISTRY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All zero: nothing read yet. */
struct duo_registry_index {
	uint64_t state;		/* duo_registry_state() before; 0: none */
	uint64_t *hash;		/* of addresses, ascending */
	size_t count;
	size_t room;
	size_t missed;		/* look-ups since there was a state */
};

/*
 * Makes it true for now, with so many look-ups to follow at once. False: to
 * look each up by itself is cheaper, or the only way.
 */
bool duo_registry_index_update(struct duo_registry_index *index,
			       int dir, size_t lookups);
/* False: the directory had no record with this duo_registry_key(). */
bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key);
void duo_registry_index_fini(struct duo_registry_index *index);

#endif /* DUO_REGISTRY_INDEX_H */
