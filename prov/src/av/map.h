/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The local addresses of an endpoint. The local transport assigns an index to
 * each address that it can reach (connect() of struct duo_transport). The map
 * translates in both directions, and has the reason why other addresses are not
 * local. A map belongs to an endpoint, not to an AV: two endpoints connect only
 * if the local sides of both have free space.
 *
 * Under the domain's lock; sends read the route words without the lock.
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
	fi_addr_t addr_of_number[DUO_LOCAL_MAX];	/* by index */
	uint8_t *reason;		/* enum fi_duo_reason, by fi_addr */
	uint64_t scanned;		/* state of the registry at last scan */
	bool no_order;			/* the warning was logged */
	bool failed;			/* a record was unreadable */
	bool retry;			/* counted in domain->held */
	uint64_t retry_ms;		/* time of the next scan, monotonic */
	uint32_t retry_after;		/* delay before a scan, ms; doubles */
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/* Closes the map, after the local side. Idempotent. */
void duo_map_close(struct duo_ep *ep);

/* Looks inserted addresses up. Their processes may have changed. */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/* Chooses the path of an undecided address, permanently, for its first send. */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * Looks up addresses without an index in the registry. If a record was
 * unreadable, duo_arrival_resolve() repeats the scan later.
 */
void duo_map_scan(struct duo_ep *ep);
/* True if the repeated scan is due. */
bool duo_map_retry_due(const struct duo_map *map);
/* Monitors the peer at addr: its failure must end a receive that names it. */
void duo_map_watch(struct duo_ep *ep, fi_addr_t addr);
/* Handles the failure of near's peer with this index. */
void duo_map_gone(struct duo_ep *ep, fi_addr_t local);
/*
 * Routes a peer over the core: nothing was or can be sent to it locally. The
 * peer may still send locally.
 */
void duo_map_refuse(struct duo_ep *ep, fi_addr_t local);

/* Returns the fi_addr of an index, FI_ADDR_UNSPEC if there is none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t number)
{
	return number < DUO_LOCAL_MAX ? map->addr_of_number[number] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
