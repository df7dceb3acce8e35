/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The map of an endpoint. The local transport assigns an index to each peer;
 * the map has the fi_addr of each index. If the path to an address is not
 * local, the map also has the reason (enum fi_duo_reason). Each endpoint of an
 * AV has its own map, because an address is local only if both endpoints have
 * space for one more peer.
 *
 * Terms: The *local side* is the part of an endpoint that belongs to the local
 * transport. A *confirmed source* is a peer that has sent over the local path.
 *
 * Lock: that of the endpoint's group (obj/group.h).
 */
#ifndef DUO_MAP_H
#define DUO_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_duo.h>

#include "base/proc.h"
#include "obj/av.h"

struct duo_map {
	/* fi_addr, indexed by peer index; FI_ADDR_UNSPEC: none */
	fi_addr_t addr_of_index[DUO_LOCAL_MAX];
	/*
	 * enum fi_duo_reason, indexed by fi_addr. While the reason is
	 * FI_DUO_EXITED, operations to the address fail. The reason changes
	 * - if the registry has the record of another process for the address
	 * - if the application inserts the address again after the record of
	 *   the exited process was removed
	 *
	 * In the provider near (carries_nothing) neither happens.
	 */
	uint8_t *reason;
	/*
	 * duo_map_id() of the last peer, indexed by fi_addr. If this peer was a
	 * confirmed source and its process has exited, also has the bit
	 * DUO_MAP_CONFIRMED. 0 if the reason is FI_DUO_UNDECIDED.
	 */
	uint64_t *id;
	/*
	 * duo_registry_state() at the last duo_map_scan(); 0: the next call of
	 * duo_map_scan() looks up addresses even if the registry has not
	 * changed
	 */
	uint64_t scanned;
	bool no_order;	/* true: duo_map_no_order() has logged its warning */
	/* another scan is necessary, because a lookup or a peer has failed */
	bool failed;
	/* a scan is planned; group->pending counts it */
	bool retry;
	uint64_t retry_ms;	/* time of the planned scan, ms, monotonic */
	/* delay before the planned scan, ms; doubles if the scan fails again */
	uint32_t retry_after;
};

/* Opens an empty map. Returns 0 or -FI_ENOMEM. */
int duo_map_open(struct duo_ep *ep);
/* Closes the map if it is open. The caller must first close the local side. */
void duo_map_close(struct duo_ep *ep);

/*
 * Sets the routes of `count` > 0 addresses that the application has inserted.
 */
void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count);
/* Removes an address from the map, and its route. */
void duo_map_forget(struct duo_ep *ep, fi_addr_t addr);
/*
 * Chooses the path of an address whose path is undecided. The first send to the
 * address calls this function. If the process of the address has exited, the
 * path stays undecided. In the provider near, it also stays undecided if there
 * is no memory for a peer, and the caller must try again, because there is no
 * core that could carry the messages. After the choice, the path changes only
 * by duo_map_use_core(), or if the process of the address fails or is replaced.
 */
void duo_map_decide(struct duo_ep *ep, fi_addr_t addr);
/*
 * If the registry has changed since the last scan, looks up each address except
 * those whose peer still exists. The caller must call this function after
 * it has opened the local side, and after a message has arrived whose source
 * has no fi_addr.
 */
void duo_map_scan(struct duo_ep *ep);
/* True if a scan is planned, and its time has come. */
static inline bool duo_map_retry_due(const struct duo_map *map)
{
	return map->retry && duo_clock_coarse_ms() >= map->retry_ms;
}
/* Makes posted receives that name addr end in an error if its peer fails. */
void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr);
/*
 * Removes the routes to a failed peer, and plans a scan. exited: the peer's
 * process has exited. The peer's addresses then get the reason FI_DUO_EXITED.
 */
void duo_map_peer_failed(struct duo_ep *ep, fi_addr_t index, bool exited);
/* True if the process at addr was a confirmed source, and has exited. */
bool duo_map_exited(const struct duo_ep *ep, fi_addr_t addr);
/*
 * Makes the core carry all messages from this endpoint to the peer. Must be
 * called before the first message over the local path, to keep the order of
 * messages. The messages from the peer may still take the local path.
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
