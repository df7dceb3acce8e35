/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The map of an endpoint: its local addresses. The local transport assigns a
 * peer index to each peer that it can reach (duo_transport.connect()). The map
 * has the fi_addr of each peer index; the route words have the peer index of
 * each fi_addr. For each address that is not local, the map has the reason.
 * Each endpoint has its own map, because an address may be local for one
 * endpoint and not for another: two endpoints connect only if both local sides
 * have space for one more peer. Lock: the group's. Senders read the route words
 * without a lock.
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
	/*
	 * the fi_addr of each peer, indexed by peer index; FI_ADDR_UNSPEC: none
	 */
	fi_addr_t addr_of_index[DUO_LOCAL_MAX];
	/*
	 * enum fi_duo_reason, indexed by fi_addr. While it is FI_DUO_EXITED,
	 * operations to the address fail. This ends
	 * - when a record shows that another process has the address
	 * - when the application inserts the address again and the failed
	 *   process has no record any more
	 * - never, if duo_traits.peer_names is set
	 */
	uint8_t *reason;
	/*
	 * indexed by fi_addr: duo_map_id() of the last peer at the address, and
	 * perhaps the flag DUO_MAP_CONFIRMED; 0 if the reason is
	 * FI_DUO_UNDECIDED
	 */
	uint64_t *id;
	/* duo_registry_state() at the last scan; 0: the next scan must run */
	uint64_t scanned;
	bool no_order;	/* the warning of duo_map_no_order() was logged */
	/* another scan is necessary: a lookup or a peer has failed */
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

/*
 * Looks up addresses that were just inserted. An address may have been inserted
 * before and may now belong to another process.
 */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/*
 * Chooses the path of an undecided address, at the first send to it. The choice
 * holds as long as the address belongs to the same process, unless
 * duo_map_use_core() changes it. If the process of the address has exited, the
 * address stays undecided.
 */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * Looks up all addresses without a live peer. Plans another scan if a record
 * cannot be read.
 */
void duo_map_scan(struct duo_ep *ep);
/* True if it is time for the planned scan. */
bool duo_map_retry_due(const struct duo_map *map);
/*
 * Makes the local transport monitor the peer at addr, so that receives that
 * name addr end when the peer fails.
 */
void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr);
/*
 * Removes the routes to a failed peer, and plans a scan. exited: the peer's
 * process has exited; the peer's addresses get the reason FI_DUO_EXITED.
 */
void duo_map_peer_failed(struct duo_ep *ep, fi_addr_t index, bool exited);
/*
 * True if the process at addr was a confirmed source and has exited. Then a
 * receive from addr cannot complete.
 */
bool duo_map_exited(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages to the peer with this index. Must be called
 * before the first message to the peer over the local path. The peer may still
 * send over the local path.
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
