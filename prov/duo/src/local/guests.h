/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Who may reach an endpoint whose local side holds so many peers and no more
 * in its life: a list in the endpoint's file of the registry, where who wants
 * to be one more writes itself first. It is memory shared by all processes of
 * the host, and a place is taken with one compare-and-swap: there is no lock
 * that a process which has stopped could hold. Places are used up for good,
 * also by peers that have ended. Control path only: each call maps the file.
 *
 * A guest can be refused, for good: it keeps its place and can read there that
 * the endpoint will never answer it.
 */
#ifndef DUO_GUESTS_H
#define DUO_GUESTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define DUO_GUEST_REFUSED (1ULL << 63)	/* beside the name of a guest */

/* As it is in the file; names by 63 bits of their hash, 0: free. */
typedef _Atomic uint64_t duo_guest_place;

struct duo_guests {
	int fd;
	off_t at;		/* of the first place, a multiple of 8 */
	uint32_t places;
};

enum duo_guest {
	DUO_GUEST_KNOWN,	/* it was one before */
	DUO_GUEST_NEW,
	DUO_GUEST_FULL,		/* no place, or no list */
};

enum duo_guest duo_guest_join(const struct duo_guests *guests, uint64_t name);
/* For a place that cannot have been used. */
void duo_guest_leave(const struct duo_guests *guests, uint64_t name);
bool duo_guest_known(const struct duo_guests *guests, uint64_t name);
/* A guest that there is. */
void duo_guest_refuse(const struct duo_guests *guests, uint64_t name);
bool duo_guest_refused(const struct duo_guests *guests, uint64_t name);

#endif /* DUO_GUESTS_H */
