/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdbool.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "guests.h"

#define DUO_GUEST_WAIT_MS 1000

static bool duo_guests_lock(int fd)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	int waited;

	for (waited = 0; flock(fd, LOCK_EX | LOCK_NB); waited++) {
		if (waited == DUO_GUEST_WAIT_MS)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static bool duo_guests_read(int fd, off_t list, struct duo_guests *guests)
{
	return pread(fd, guests, sizeof(*guests), list) == sizeof(*guests) &&
	       guests->count <= DUO_GUESTS_MAX;
}

static bool duo_guests_write(int fd, off_t list,
			     const struct duo_guests *guests)
{
	return pwrite(fd, guests, sizeof(*guests), list) == sizeof(*guests);
}

/* The place of a guest, count if it has none. */
static uint32_t duo_guests_find(const struct duo_guests *guests,
				uint64_t name)
{
	uint32_t i;

	for (i = 0; i < guests->count; i++) {
		if (guests->name[i] == name)
			break;
	}
	return i;
}

static enum duo_guest duo_guests_add(int fd, off_t list, uint64_t name)
{
	struct duo_guests guests;

	if (!duo_guests_read(fd, list, &guests))
		return DUO_GUEST_FULL;
	if (duo_guests_find(&guests, name) < guests.count)
		return DUO_GUEST_KNOWN;
	if (guests.count == DUO_GUESTS_MAX)
		return DUO_GUEST_FULL;
	guests.name[guests.count++] = name;
	return duo_guests_write(fd, list, &guests) ? DUO_GUEST_NEW :
						     DUO_GUEST_FULL;
}

enum duo_guest duo_guest_join(int fd, off_t list, uint64_t name)
{
	enum duo_guest guest;

	if (!duo_guests_lock(fd))
		return DUO_GUEST_BUSY;
	guest = duo_guests_add(fd, list, name);
	flock(fd, LOCK_UN);
	return guest;
}

void duo_guest_leave(int fd, off_t list, uint64_t name)
{
	struct duo_guests guests;
	uint32_t i;

	if (!duo_guests_lock(fd))
		return;
	if (duo_guests_read(fd, list, &guests)) {
		i = duo_guests_find(&guests, name);
		if (i < guests.count) {
			guests.name[i] = guests.name[--guests.count];
			duo_guests_write(fd, list, &guests);
		}
	}
	flock(fd, LOCK_UN);
}
