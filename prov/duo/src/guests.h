/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The peers that shm holds for an endpoint, in the endpoint's file of the
 * registry: shm does not notice when it is full, so who wants to be one more
 * writes itself here first.
 *
 * A place that shm may have used is not given back. fi_av_remove of shm, 2.0
 * to 2.6, leaves the removed peer's state in our region, and whoever gets the
 * number next is taken for connected; of a peer that has not connected it
 * writes in front of that state. So shm's places are used up for good, also
 * by peers that have ended.
 */
#ifndef DUO_GUESTS_H
#define DUO_GUESTS_H

#include <stdint.h>
#include <sys/types.h>

#define DUO_GUESTS_MAX 250	/* of the 256 that shm holds */

/* As it is in the file; names by their hash. */
struct duo_guests {
	uint32_t count;
	uint32_t reserved;
	uint64_t name[DUO_GUESTS_MAX];
};

enum duo_guest {
	DUO_GUEST_KNOWN,	/* it was one before */
	DUO_GUEST_NEW,
	DUO_GUEST_FULL,		/* no place, or no list */
	DUO_GUEST_BUSY,		/* whoever writes the list has stopped */
};

/* Both under the file's flock, which they wait a second for. */
enum duo_guest duo_guest_join(int fd, off_t list, uint64_t name);
/* For a place that shm cannot have used. */
void duo_guest_leave(int fd, off_t list, uint64_t name);

#endif /* DUO_GUESTS_H */
