/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "local/guests.h"

static size_t duo_guests_size(const struct duo_guests *guests)
{
	return guests->at + guests->places * sizeof(duo_guest_place);
}

/* NULL: the file has no list. */
static duo_guest_place *duo_guests_open(const struct duo_guests *guests)
{
	const size_t size = duo_guests_size(guests);
	struct stat st;
	void *file;

	if (fstat(guests->fd, &st) || (size_t) st.st_size < size)
		return NULL;
	file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
		    guests->fd, 0);
	if (file == MAP_FAILED)
		return NULL;
	return (duo_guest_place *) ((char *) file + guests->at);
}

static void duo_guests_close(const struct duo_guests *guests,
			     duo_guest_place *list)
{
	munmap((char *) list - guests->at, duo_guests_size(guests));
}

/* The place of a guest, refused or not; the number of places: it has none. */
static uint32_t duo_guests_find(const struct duo_guests *guests,
				duo_guest_place *list, uint64_t name)
{
	uint32_t i;

	for (i = 0; i < guests->places; i++) {
		if ((atomic_load(&list[i]) & ~DUO_GUEST_REFUSED) == name)
			break;
	}
	return i;
}

/*
 * Both sides of a pair write the same name. They cannot both succeed: each
 * tries the first free place, and finds there what the other has written.
 */
static enum duo_guest duo_guests_add(const struct duo_guests *guests,
				     duo_guest_place *list, uint64_t name)
{
	uint64_t found;
	uint32_t i;

	if (duo_guests_find(guests, list, name) < guests->places)
		return DUO_GUEST_KNOWN;
	for (i = 0; i < guests->places; i++) {
		found = 0;
		if (atomic_compare_exchange_strong(&list[i], &found, name))
			return DUO_GUEST_NEW;
		if ((found & ~DUO_GUEST_REFUSED) == name)
			return DUO_GUEST_KNOWN;
	}
	return DUO_GUEST_FULL;
}

enum duo_guest duo_guest_join(const struct duo_guests *guests, uint64_t name)
{
	duo_guest_place *list = duo_guests_open(guests);
	enum duo_guest guest;

	if (!list)
		return DUO_GUEST_FULL;
	guest = duo_guests_add(guests, list, name);
	duo_guests_close(guests, list);
	return guest;
}

void duo_guest_leave(const struct duo_guests *guests, uint64_t name)
{
	duo_guest_place *list = duo_guests_open(guests);
	uint32_t i;

	if (!list)
		return;
	i = duo_guests_find(guests, list, name);
	if (i < guests->places)
		atomic_store(&list[i], 0);
	duo_guests_close(guests, list);
}

bool duo_guest_known(const struct duo_guests *guests, uint64_t name)
{
	duo_guest_place *list = duo_guests_open(guests);
	bool known;

	if (!list)
		return false;
	known = duo_guests_find(guests, list, name) < guests->places;
	duo_guests_close(guests, list);
	return known;
}

void duo_guest_refuse(const struct duo_guests *guests, uint64_t name)
{
	duo_guest_place *list = duo_guests_open(guests);
	uint64_t found = name;
	uint32_t i;

	if (!list)
		return;
	i = duo_guests_find(guests, list, name);
	if (i < guests->places)	/* unless it leaves meanwhile */
		atomic_compare_exchange_strong(&list[i], &found,
					       name | DUO_GUEST_REFUSED);
	duo_guests_close(guests, list);
}

bool duo_guest_refused(const struct duo_guests *guests, uint64_t name)
{
	duo_guest_place *list = duo_guests_open(guests);
	bool refused;
	uint32_t i;

	if (!list)
		return false;
	i = duo_guests_find(guests, list, name);
	refused = i < guests->places &&
		  atomic_load(&list[i]) & DUO_GUEST_REFUSED;
	duo_guests_close(guests, list);
	return refused;
}
