/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An endpoint's map of local addresses: from the index that the local transport
 * assigns to a peer (connect() of struct duo_transport) to fi_addr, while route
 * words translate back; and the reason why others are not local. Not of an AV:
 * two endpoints connect only if both local sides have space. Lock: the
 * domain's; senders read route words without it.
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
	 * enum fi_duo_reason, by fi_addr. FI_DUO_DEAD: exited, operations fail
	 * until a record names another peer
	 */
	uint8_t *reason;
	uint64_t *id;	/* duo_map_id() of the last peer, indexed by fi_addr */
	uint64_t scanned;	/* state of the registry at the last scan */
	bool no_order;	/* the warning of duo_map_no_order() was logged */
	bool failed; /* the current scan could not read a record */
	bool retry;	/* a further scan is planned; counted in domain->held */
	uint64_t retry_ms;	/* time of the planned scan, ms, monotonic */
	uint32_t retry_after;	/* delay before the planned scan, ms; doubles */
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/* Closes the map, if open, after the local side. */
void duo_map_close(struct duo_ep *ep);

/* Looks up inserted addresses; a known one may be another process's now. */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/* Chooses an undecided address's path for good, at the first send to it. */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/* Looks up addresses without peer index; plans a retry if a read failed. */
void duo_map_scan(struct duo_ep *ep);
/* True if the time of the planned scan has come. */
bool duo_map_retry_due(const struct duo_map *map);
/* Monitors the peer at addr: its failure ends receives that name addr. */
void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr);
/* Removes routes to near's failed peer; with exited, reason FI_DUO_DEAD. */
void duo_map_gone(struct duo_ep *ep, fi_addr_t local, bool exited);
/* True if the process at addr, a confirmed source, exited: receives fail. */
bool duo_map_dead(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages to a peer to which no local message was
 * sent; it may still send local messages.
 */
void duo_map_use_core(struct duo_ep *ep, fi_addr_t local);

/* Returns the fi_addr of the peer with this index; FI_ADDR_UNSPEC: none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t number)
{
	return number < DUO_LOCAL_MAX ? map->addr_of_number[number] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
