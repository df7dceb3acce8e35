/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The map of an endpoint: its local addresses. The local transport assigns an
 * index to each peer that it can reach (duo_transport.connect()). The map has
 * the fi_addr of each index; the route words have the index of each fi_addr.
 * For other addresses the map has the reason why they are not local. Endpoints
 * do not share a map: two endpoints connect only if both local sides have space
 * for a peer. Lock: the group's. Senders read the route words without it.
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
	fi_addr_t addr_of_index[DUO_LOCAL_MAX];
	/*
	 * enum fi_duo_reason, by fi_addr. FI_DUO_EXITED: operations fail until
	 * a record names another peer
	 */
	uint8_t *reason;
	uint64_t *id;	/* duo_map_id() of the last peer, indexed by fi_addr */
	uint64_t scanned;	/* state of the registry at the last scan */
	bool no_order;	/* the warning of duo_map_no_order() was logged */
	bool failed; /* the current scan could not read a record */
	bool retry;	/* a scan is planned; counted in group->pending */
	uint64_t retry_ms;	/* time of the planned scan, ms, monotonic */
	uint32_t retry_after;	/* delay before the planned scan, ms; doubles */
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/* Closes the map if it is open. The local side must be closed. */
void duo_map_close(struct duo_ep *ep);

/*
 * Looks up addresses that were just inserted. An address may have been inserted
 * before and may now belong to another process.
 */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/* Chooses the path of an undecided address at the first send. This is final. */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/* Looks up addresses that have no peer index; plans a retry if a read fails. */
void duo_map_scan(struct duo_ep *ep);
/* True if it is time for the planned scan. */
bool duo_map_retry_due(const struct duo_map *map);
/* Monitors the peer at addr: its failure ends receives that name addr. */
void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr);
/*
 * Removes the routes to the failed peer of near with this index. exited: the
 * peer's addresses get the reason FI_DUO_EXITED.
 */
void duo_map_peer_failed(struct duo_ep *ep, fi_addr_t index, bool exited);
/*
 * True if the process at addr was a confirmed source and has exited. Then a
 * receive from addr cannot complete.
 */
bool duo_map_exited(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages to the peer with this index. None must have
 * been sent over the local path. The peer itself may still use that path.
 */
void duo_map_use_core(struct duo_ep *ep, fi_addr_t index);

/* Returns the fi_addr of the peer with this index; FI_ADDR_UNSPEC: none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t index)
{
	return index < DUO_LOCAL_MAX ? map->addr_of_index[index] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
