/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/proc.h"
#include "local/registry.h"
#include "local/registry_index.h"

/* number of lookups that together cost as much as reading the names */
#define DUO_INDEX_LOOKUPS 16
#define DUO_INDEX_FIRST 256

static int duo_index_compare(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

	return left < right ? -1 : left > right;
}

static bool duo_index_add(struct duo_registry_index *index, uint64_t hash)
{
	size_t capacity = index->capacity ? 2 * index->capacity :
					    DUO_INDEX_FIRST;
	uint64_t *grown;

	if (index->count == index->capacity) {
		grown = realloc(index->hash, capacity * sizeof(*grown));
		if (!grown)
			return false;
		index->hash = grown;
		index->capacity = capacity;
	}
	index->hash[index->count++] = hash;
	return true;
}

/* Reads all records' names, sorts their hashes. False: not all were read. */
static bool duo_index_read(struct duo_registry_index *index, DIR *stream)
{
	struct dirent *entry;

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

void duo_registry_index_open(struct duo_registry_index *index, int dir,
			     size_t lookups)
{
	DIR *stream = NULL;

	*index = (struct duo_registry_index) { 0 };
	if (dir >= 0 && lookups >= DUO_INDEX_LOOKUPS)
		stream = duo_dir_list(dir);
	if (!stream)
		return;
	index->read = duo_index_read(index, stream);
	closedir(stream);
}

void duo_registry_index_close(struct duo_registry_index *index)
{
	free(index->hash);
}

bool duo_registry_index_has(const struct duo_registry_index *index,
			    uint64_t key)
{
	return !index->read ||
	       (index->count && bsearch(&key, index->hash, index->count,
					sizeof(key), duo_index_compare));
}
