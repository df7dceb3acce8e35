/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The map of an endpoint: its local addresses. The local transport assigns a
 * peer index to each peer that it can reach. The map has the fi_addr of each
 * peer index, and the reason why an address is not local. The route words have
 * the peer index of each fi_addr. Lock: the group's.
 *
 * An address is local only if both local sides have space for one more peer. So
 * it can be local for one endpoint and not for another: each has its own map.
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
	/* fi_addr of each peer index; FI_ADDR_UNSPEC: none */
	fi_addr_t addr_of_index[DUO_LOCAL_MAX];
	/*
	 * enum fi_duo_reason, indexed by fi_addr. FI_DUO_EXITED: operations to
	 * the address fail. With duo_traits.peer_names, they fail for good;
	 * otherwise until
	 * - a record shows that another process has the address, or
	 * - the application inserts the address again, and the failed process
	 *   has no record any more
	 */
	uint8_t *reason;
	/*
	 * duo_map_id() of the last peer, indexed by fi_addr. Has the flag
	 * DUO_MAP_CONFIRMED if this peer has exited and was a confirmed source.
	 * 0 if the reason is FI_DUO_UNDECIDED.
	 */
	uint64_t *id;
	/* duo_registry_state() at the last scan; 0: scan again */
	uint64_t scanned;
	bool no_order;	/* duo_map_no_order() has logged its warning */
	/* a lookup or peer has failed: another scan is necessary */
	bool failed;
	bool retry;	/* a scan is planned; counted in group->pending */
	uint64_t retry_ms;	/* time of the planned scan, ms, monotonic */
	/* delay before the planned scan, ms; doubles each time */
	uint32_t retry_after;
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/* Closes the map if it is open. The local side must be closed. */
void duo_map_close(struct duo_ep *ep);

/* Looks up addresses that were just inserted, for the first time or again. */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
/* Removes an address from the map. */
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/*
 * Chooses the path of an undecided address, at the first send. The path holds
 * as long as the address has the same process, or until duo_map_use_core(). If
 * the process has exited, the address stays undecided.
 */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * Looks up all addresses without an existing peer, if the registry has changed
 * since the last scan. Plans another scan if a record cannot be read. Must be
 * called when the endpoint starts, and after a message whose source has no
 * fi_addr.
 */
void duo_map_scan(struct duo_ep *ep);
/* True if it is time for the planned scan. */
bool duo_map_retry_due(const struct duo_map *map);
/* Monitors the peer: receives that name addr end when the peer fails. */
void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr);
/*
 * Removes the routes to a failed peer and plans a scan. exited: its process has
 * exited, so its addresses get the reason FI_DUO_EXITED.
 */
void duo_map_peer_failed(struct duo_ep *ep, fi_addr_t index, bool exited);
/*
 * True if the process at addr was a confirmed source and has exited. Then a
 * receive from addr cannot complete.
 */
bool duo_map_exited(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages to this peer. Must be called before the
 * first message over the local path. The peer may still use the local path.
 */
void duo_map_use_core(struct duo_ep *ep, fi_addr_t index);

/* Returns the fi_addr of this peer index; FI_ADDR_UNSPEC: none. */
static inline fi_addr_t duo_map_peer(const struct duo_map *map,
				     fi_addr_t index)
{
	return index < DUO_LOCAL_MAX ? map->addr_of_index[index] :
					  FI_ADDR_UNSPEC;
}

#endif /* DUO_MAP_H */
