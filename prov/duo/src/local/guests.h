/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The peers that an endpoint's shm may hold, in the endpoint's file of the
 * registry: shm does not notice when it is full, so who wants to be one more
 * writes itself here first. The list is memory shared by all processes of
 * the host, and a place is taken with one compare-and-swap: there is no lock
 * that a process which has stopped could hold.
 *
 * A place that shm may have used is not given back. fi_av_remove of shm, 2.0
 * to 2.6, leaves the removed peer's state in our region, and whoever gets the
 * number next is taken for connected; of a peer that has not connected it
 * writes in front of that state. So shm's places are used up for good, also
 * by peers that have ended.
 *
 * A guest whose region the endpoint cannot map is refused for good: shm never
 * answers it, and tells it nothing.
 */
#ifndef DUO_GUESTS_H
#define DUO_GUESTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DUO_GUESTS_MAX 250	/* of the 256 that shm holds */

#define DUO_GUEST_REFUSED (1ULL << 63)	/* beside the name of a guest */

/* As it is in the file; names by 63 bits of their hash, 0: free. */
struct duo_guests {
	_Atomic uint64_t name[DUO_GUESTS_MAX];
};

enum duo_guest {
	DUO_GUEST_KNOWN,	/* it was one before */
	DUO_GUEST_NEW,
	DUO_GUEST_FULL,		/* no place, or no list */
};

/* The list is at this offset of the file, a multiple of 8. */
enum duo_guest duo_guest_join(int fd, off_t list, uint64_t name);
/* For a place that shm cannot have used. */
void duo_guest_leave(int fd, off_t list, uint64_t name);
bool duo_guest_known(int fd, off_t list, uint64_t name);
/* A guest that there is. */
void duo_guest_refuse(int fd, off_t list, uint64_t name);
bool duo_guest_refused(int fd, off_t list, uint64_t name);

#endif /* DUO_GUESTS_H */
