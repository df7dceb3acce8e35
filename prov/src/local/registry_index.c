/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "local/registry.h"
#include "local/registry_index.h"

#define DUO_INDEX_LOOKUPS 16	/* as many cost as much as reading it all */
#define DUO_INDEX_ROOM 256	/* to begin with */

static int duo_index_compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

static bool duo_index_add(struct duo_registry_index *index, uint64_t hash)
{
	size_t room = index->room ? 2 * index->room : DUO_INDEX_ROOM;
	uint64_t *grown;

	if (index->count == index->room) {
		grown = realloc(index->hash, room * sizeof(*grown));
		if (!grown)
			return false;
		index->hash = grown;
		index->room = room;
	}
	index->hash[index->count++] = hash;
	return true;
}

/* False: not all could be read. */
static bool duo_index_read(struct duo_registry_index *index, DIR *stream)
{
	struct dirent *entry;

	index->count = 0;
	while (errno = 0, (entry = readdir(stream))) {
		if (duo_registry_is_record(entry->d_name) &&
		    !duo_index_add(index, strtoull(entry->d_name, NULL, 16)))
			return false;
	}
	if (errno)
		return false;
	if (index->count)
		qsort(index->hash, index->count, sizeof(*index->hash),
		      duo_index_compare);
	return true;
}

/* Reads the directory as it is now. */
static bool duo_index_open(struct duo_registry_index *index, int dir)
{
	DIR *stream = duo_registry_list(dir);
	bool complete;

	if (!stream)
		return false;
	complete = duo_index_read(index, stream);
	closedir(stream);
	return complete;
}

/*
 * Reading pays for many look-ups: of one call, or as many that came one by
 * one since the directory has changed. A directory that is just changing
 * would have to be read again for the next call.
 */
bool duo_registry_index_update(struct duo_registry_index *index,
			       int dir, size_t lookups)
{
	uint64_t state, before = index->state;

	if (!before) {
		index->missed += lookups;
		if (index->missed < DUO_INDEX_LOOKUPS)
			return false;
		index->missed = 0;
	}
	state = duo_registry_state(dir);
	if (state && state == before)
		return true;
	index->state = 0;
	if (lookups < DUO_INDEX_LOOKUPS && (before || !state))
		return false;
	if (!duo_index_open(index, dir))
		return false;
	index->state = state;
	return true;
}

bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key)
{
	return index->count && bsearch(&key, index->hash, index->count,
				       sizeof(key), duo_index_compare);
}

void duo_registry_index_fini(struct duo_registry_index *index)
{
	free(index->hash);
	*index = (struct duo_registry_index) { 0 };
}
