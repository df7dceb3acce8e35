/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The map of an endpoint: its local addresses. The local transport assigns an
 * index to each peer that it can reach (connect() of struct duo_transport). The
 * map translates index to fi_addr; the route words translate the other way. For
 * each address that is not local, the map has the reason. A map belongs to an
 * endpoint, not to an AV, because two endpoints connect only if the local sides
 * of both have free space.
 *
 * Lock: the domain's. Senders read the route words without the lock.
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
	/* indexed by peer index; FI_ADDR_UNSPEC: none */
	fi_addr_t addr_of_number[DUO_LOCAL_MAX];
	/*
	 * enum fi_duo_reason, indexed by fi_addr. FI_DUO_DEAD: the process has
	 * exited, and operations fail until a record names another peer.
	 */
	uint8_t *reason;
	uint64_t *id;	/* duo_map_id() of the last peer, indexed by fi_addr */
	uint64_t scanned;	/* state of the registry at the last scan */
	bool no_order;	/* the warning of duo_map_no_order() was logged */
	bool failed;			/* the current scan has found a record
					 * that it could not read */
	bool retry;	/* a further scan is planned; counted in domain->held */
	uint64_t retry_ms;	/* time of the planned scan, ms, monotonic */
	uint32_t retry_after;	/* delay before the planned scan, ms; doubles */
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/*
 * Closes the map; does nothing if it is closed. The local side must have been
 * closed before.
 */
void duo_map_close(struct duo_ep *ep);

/*
 * Looks up addresses that have just been inserted. Such an address may have
 * been inserted before, and may belong to another process now.
 */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/*
 * Chooses the path of an undecided address, at the first send to it. The choice
 * is permanent.
 */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * Looks up all addresses that have no peer index in the registry. If a record
 * could not be read, duo_arrival_resolve() scans again later.
 */
void duo_map_scan(struct duo_ep *ep);
/* True if the time of the planned scan has come. */
bool duo_map_retry_due(const struct duo_map *map);
/*
 * Monitors the peer at addr, so that a failure of the peer ends the receives
 * that name addr.
 */
void duo_map_watch(struct duo_ep *ep, fi_addr_t addr);
/*
 * Removes the routes to near's peer with this index, which has failed. exited:
 * the peer's process has exited, so the addresses get the reason FI_DUO_DEAD.
 */
void duo_map_gone(struct duo_ep *ep, fi_addr_t local, bool exited);
/*
 * True if the process at addr has exited, and sent over the local path only, so
 * that a receive that names addr cannot complete.
 */
bool duo_map_dead(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages to the peer with this index. No message has
 * been sent to the peer over the local path. The peer itself may still send
 * over the local path.
 */
void duo_map_refuse(struct duo_ep *ep, fi_addr_t local);

/* Returns the fi_addr of the peer with this index; FI_ADDR_UNSPEC: none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t number)
{
	return number < DUO_LOCAL_MAX ? map->addr_of_number[number] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
