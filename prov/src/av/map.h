/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What the local peer of an endpoint knows of the addresses of its AV. It
 * gives those that it can reach a number each (connect() of struct duo_transport);
 * the map has both directions, and why others are not local. It belongs to
 * the endpoint, not to the AV: whether two meet depends on the room that the
 * local sides of both have left.
 *
 * All under the domain's lock, but for the words, which sends read without.
 */
#ifndef DUO_MAP_H
#define DUO_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#include "obj/av.h"

struct duo_ep;

struct duo_map {
	fi_addr_t addr_of_number[DUO_LOCAL_MAX];	/* by number */
	uint8_t *reason;		/* enum fi_duo_reason, by fi_addr */
	uint64_t scanned;		/* state of the registry at last scan */
	bool no_order;			/* true: the warning was logged */
	bool failed;			/* a look-up, for want of something */
	bool retry;			/* counted in domain->held */
	uint64_t retry_ms;		/* when, monotonic */
	uint32_t retry_after;		/* milliseconds, doubles */
};

/* An empty one. */
int duo_map_open(struct duo_ep *ep);
/* After the local side. Idempotent. */
void duo_map_close(struct duo_ep *ep);

/* Inserted anew, or once more: their processes may have changed. */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/* The first send to an undecided address: its path is settled for good. */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * Looks up in the registry whatever has no number yet. If something could
 * not be read, the scan is repeated later, from duo_arrival_resolve().
 */
void duo_map_scan(struct duo_ep *ep);
/* Is it time to? */
bool duo_map_retry_due(const struct duo_map *map);
/* A receive names addr: the death of a local process there is to end it. */
void duo_map_watch(struct duo_ep *ep, fi_addr_t addr);
/* near: the peer of this number has died. */
void duo_map_gone(struct duo_ep *ep, fi_addr_t local);
/*
 * Nothing has been sent to it, and nothing can be, though it may send: the
 * core carries it.
 */
void duo_map_refuse(struct duo_ep *ep, fi_addr_t local);

/* The fi_addr of a number, FI_ADDR_UNSPEC if there is none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t number)
{
	return number < DUO_LOCAL_MAX ? map->addr_of_number[number] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
