/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "local/guests.h"

/* NULL: the file has no list. */
static struct duo_guests *duo_guests_open(int fd, off_t list)
{
	const size_t size = list + sizeof(struct duo_guests);
	struct stat st;
	void *file;

	if (fstat(fd, &st) || (size_t) st.st_size < size)
		return NULL;
	file = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return NULL;
	return (struct duo_guests *) ((char *) file + list);
}

static void duo_guests_close(struct duo_guests *guests, off_t list)
{
	munmap((char *) guests - list, list + sizeof(*guests));
}

/* The place of a guest, refused or not, DUO_GUESTS_MAX if it has none. */
static int duo_guests_find(const struct duo_guests *guests, uint64_t name)
{
	int i;

	for (i = 0; i < DUO_GUESTS_MAX; i++) {
		if ((atomic_load(&guests->name[i]) & ~DUO_GUEST_REFUSED) ==
		    name)
			break;
	}
	return i;
}

/*
 * Both sides of a pair write the same name. They cannot both succeed: each
 * tries the first free place, and finds there what the other has written.
 */
static enum duo_guest duo_guests_add(struct duo_guests *guests, uint64_t name)
{
	uint64_t found;
	int i;

	if (duo_guests_find(guests, name) < DUO_GUESTS_MAX)
		return DUO_GUEST_KNOWN;
	for (i = 0; i < DUO_GUESTS_MAX; i++) {
		found = 0;
		if (atomic_compare_exchange_strong(&guests->name[i], &found,
						   name))
			return DUO_GUEST_NEW;
		if ((found & ~DUO_GUEST_REFUSED) == name)
			return DUO_GUEST_KNOWN;
	}
	return DUO_GUEST_FULL;
}

enum duo_guest duo_guest_join(int fd, off_t list, uint64_t name)
{
	struct duo_guests *guests = duo_guests_open(fd, list);
	enum duo_guest guest;

	if (!guests)
		return DUO_GUEST_FULL;
	guest = duo_guests_add(guests, name);
	duo_guests_close(guests, list);
	return guest;
}

void duo_guest_leave(int fd, off_t list, uint64_t name)
{
	struct duo_guests *guests = duo_guests_open(fd, list);
	int i;

	if (!guests)
		return;
	i = duo_guests_find(guests, name);
	if (i < DUO_GUESTS_MAX)
		atomic_store(&guests->name[i], 0);
	duo_guests_close(guests, list);
}

bool duo_guest_known(int fd, off_t list, uint64_t name)
{
	struct duo_guests *guests = duo_guests_open(fd, list);
	bool known;

	if (!guests)
		return false;
	known = duo_guests_find(guests, name) < DUO_GUESTS_MAX;
	duo_guests_close(guests, list);
	return known;
}

void duo_guest_refuse(int fd, off_t list, uint64_t name)
{
	struct duo_guests *guests = duo_guests_open(fd, list);
	uint64_t found = name;
	int i;

	if (!guests)
		return;
	i = duo_guests_find(guests, name);
	if (i < DUO_GUESTS_MAX)	/* unless it leaves meanwhile */
		atomic_compare_exchange_strong(&guests->name[i], &found,
					       name | DUO_GUEST_REFUSED);
	duo_guests_close(guests, list);
}

bool duo_guest_refused(int fd, off_t list, uint64_t name)
{
	struct duo_guests *guests = duo_guests_open(fd, list);
	bool refused;
	int i;

	if (!guests)
		return false;
	i = duo_guests_find(guests, name);
	refused = i < DUO_GUESTS_MAX &&
		  atomic_load(&guests->name[i]) & DUO_GUEST_REFUSED;
	duo_guests_close(guests, list);
	return refused;
}
