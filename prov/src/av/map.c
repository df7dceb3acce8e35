/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Looks up addresses in the registry, connects to local peers, and sets the
 * route of each address. Also chooses, for each peer, the fi_addr that its
 * messages report as their source. Needs the group's lock.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "av/route.h"
#include "base/log.h"
#include "base/proc.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/up.h"

/* flag in duo_map.id[]: the peer was a confirmed source and has exited */
#define DUO_MAP_CONFIRMED 1u
#define DUO_MAP_RETRY_MS 1
#define DUO_MAP_RETRY_MAX_MS 1000
#define DUO_MAP_COMPLETE 1 /* value of map->scanned: no more scans */

int duo_map_open(struct duo_ep *ep)
{
	struct duo_map *map = calloc(1, sizeof(*map));
	int i;

	if (!map)
		return -FI_ENOMEM;
	ep->map = map;
	for (i = 0; i < DUO_LOCAL_MAX; i++)
		map->addr_of_index[i] = FI_ADDR_UNSPEC;
	map->reason = duo_av_reserve(DUO_AV_MAX);
	map->id = duo_av_reserve(DUO_AV_MAX * sizeof(*map->id));
	if (map->reason && map->id)
		return 0;
	duo_map_close(ep);
	return -FI_ENOMEM;
}

void duo_map_close(struct duo_ep *ep)
{
	struct duo_map *map = ep->map;

	if (!map)
		return;
	ep->group->pending -= map->retry;
	if (map->reason)
		munmap(map->reason, DUO_AV_MAX);
	if (map->id)
		munmap(map->id, DUO_AV_MAX * sizeof(*map->id));
	free(map);
	ep->map = NULL;
}

static void duo_map_set(struct duo_ep *ep, fi_addr_t addr, uint64_t word,
			enum fi_duo_reason reason)
{
	if (duo_route_state(word) == DUO_ROUTE_CORE)
		duo_ep_use_core(ep);
	ep->map->reason[addr] = reason;
	if (reason == FI_DUO_UNDECIDED)
		ep->map->id[addr] = 0; /* a new process may get addr */
	atomic_store_explicit(&ep->route[addr], word, memory_order_release);
}

/* Returns an address whose route has this peer index; FI_ADDR_UNSPEC: none. */
static fi_addr_t duo_map_other_addr(const struct duo_ep *ep, fi_addr_t index)
{
	fi_addr_t addr;
	uint64_t word;

	for (addr = 0; addr < ep->av->high; addr++) {
		word = duo_route_load(ep->route, addr);
		if (duo_route_mapped(word) &&
		    duo_route_index(word) == index)
			return addr;
	}
	return FI_ADDR_UNSPEC;
}

/*
 * Must be called when the route of addr has lost this peer index. If the peer's
 * messages report addr, makes them report another fi_addr of the peer, or none.
 */
static void duo_map_pass_source(struct duo_ep *ep, fi_addr_t addr,
				fi_addr_t index)
{
	if (ep->map->addr_of_index[index] == addr)
		ep->map->addr_of_index[index] =
			duo_map_other_addr(ep, index);
}

/*
 * Frees the peer index of a former route, unless another address has it. Not
 * for polls, which may access the peer next.
 */
static void duo_map_release(struct duo_ep *ep, uint64_t word)
{
	const struct duo_transport *peer = ep->domain->peer;
	fi_addr_t index = duo_route_index(word);

	if (duo_route_mapped(word) && peer->unbind &&
	    ep->map->addr_of_index[index] == FI_ADDR_UNSPEC)
		peer->unbind(ep, index);
}

void duo_map_monitor(struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word = duo_route_load(ep->route, addr);

	if (duo_route_mapped(word) && ep->domain->peer->monitor)
		ep->domain->peer->monitor(ep, duo_route_index(word));
}

/*
 * Warns, once per endpoint, that the core carries the messages to a peer,
 * because near cannot keep the order that the application has requested.
 */
static void duo_map_no_order(struct duo_ep *ep, fi_addr_t addr)
{
	if (ep->map->no_order)
		return;
	ep->map->no_order = true;
	DUO_WARN(AV, "ep %p: FI_FENCE or an order between messages and RMA "
		 "(0x%" PRIx64 ") is in force, and fi_addr %" PRIu64 " "
		 "accepts no RMA over %s: the core %s carries the messages to "
		 "this peer and to similar ones. Use the same mr_mode, "
		 "iov_limit and data_progress in all processes, or request "
		 "less in fi_info\n", (void *) ep, ep->tx.order, addr,
		 ep->domain->peer->name, ep->domain->fabric->core_name);
}

/*
 * Stores a peer index in the route of addr. The path is local if reason is
 * FI_DUO_OK, unless it is core already. The peer's messages report addr if they
 * report no other fi_addr.
 */
static void duo_map_bind(struct duo_ep *ep, fi_addr_t addr, fi_addr_t index,
			 enum fi_duo_reason reason)
{
	struct duo_map *map = ep->map;
	enum duo_route_state state;
	uint64_t word;

	word = duo_route_load(ep->route, addr);
	state = duo_route_state(word);
	if (duo_route_mapped(word) && duo_route_index(word) == index)
		return;
	if (map->addr_of_index[index] == FI_ADDR_UNSPEC)
		map->addr_of_index[index] = addr;
	if (state == DUO_ROUTE_CORE) /* a decision for the core is permanent */
		duo_map_set(ep, addr, duo_route_word_of(state, index),
			    map->reason[addr]);
	else
		duo_map_set(ep, addr,
			    duo_route_word_of(reason == FI_DUO_OK ?
					      DUO_ROUTE_LOCAL : DUO_ROUTE_CORE,
					      index), reason);
	if (reason == FI_DUO_ORDER_UNSUPPORTED)
		duo_map_no_order(ep, addr);
	if (duo_route_mapped(word)) {	/* addr had another peer's index */
		duo_map_pass_source(ep, addr, duo_route_index(word));
		ep->up->moved(ep, addr);
	}
	if (ep->match[DUO_MSG].posted_count +
	    ep->match[DUO_TAGGED].posted_count)
		/* so posted receives that name addr end if the peer fails */
		duo_map_monitor(ep, addr);
	ep->up->known(ep, FI_ADDR_UNSPEC);
}

/*
 * Stores the address of the peer at the local transport in peer_name. Returns
 * FI_DUO_OK, or the reason why there is none.
 */
static enum fi_duo_reason duo_map_name(const struct duo_ep *ep, fi_addr_t addr,
				       const struct duo_registry_index *names,
				       char *peer_name)
{
	const struct duo_av_addr *core = duo_av_addr(ep->av, addr);

	if (!core || core->len > DUO_ADDR_MAX ||
	    !duo_registry_index_has(names, duo_registry_key(
		    &ep->publication, core->bytes, core->len)))
		return FI_DUO_NOT_REGISTERED;
	if (!ep->core.carries_nothing)
		return duo_registry_lookup(core->bytes, core->len,
					   &ep->publication, peer_name);
	memset(peer_name, 0, DUO_TRANSPORT_NAME_MAX);
	memcpy(peer_name, core->bytes, core->len);
	return FI_DUO_OK;
}

/*
 * Returns the id of a peer: a hash of its address at the local transport,
 * without the bit DUO_MAP_CONFIRMED.
 */
static uint64_t duo_map_id(const char *peer_name)
{
	return duo_registry_hash(peer_name, DUO_TRANSPORT_NAME_MAX) &
	       ~(uint64_t) DUO_MAP_CONFIRMED;
}

/* True if the last peer at addr has failed, and had this duo_map_id(). */
static bool duo_map_failed(const struct duo_map *map, fi_addr_t addr,
			   uint64_t id)
{
	return map->reason[addr] == FI_DUO_EXITED &&
	       (map->id[addr] & ~(uint64_t) DUO_MAP_CONFIRMED) == id;
}

static enum fi_duo_reason
duo_map_connect(struct duo_ep *ep, fi_addr_t addr,
		const struct duo_registry_index *names)
{
	char peer_name[DUO_TRANSPORT_NAME_MAX];
	enum fi_duo_reason reason;
	fi_addr_t index;
	uint64_t id;

	reason = duo_map_name(ep, addr, names, peer_name);
	if (reason == FI_DUO_RECORD_UNREADABLE)
		ep->map->failed = true;
	if (reason != FI_DUO_OK)
		return reason;
	id = duo_map_id(peer_name);
	if (duo_map_failed(ep->map, addr, id))
		return FI_DUO_EXITED;
	index = ep->domain->peer->connect(ep, peer_name, addr, &reason);
	if (index == FI_ADDR_NOTAVAIL)
		return reason;
	ep->map->id[addr] = id;
	duo_map_bind(ep, addr, index, reason);
	return FI_DUO_OK;
}

/*
 * Looks up an address. If it is local, sets its peer index and path. Otherwise
 * makes the core used, because messages from it arrive over the core. Returns
 * FI_DUO_OK, or the reason why it is not local.
 */
static enum fi_duo_reason
duo_map_look_up(struct duo_ep *ep, fi_addr_t addr,
		const struct duo_registry_index *names)
{
	enum fi_duo_reason reason = duo_map_connect(ep, addr, names);

	if (reason != FI_DUO_OK)
		duo_ep_use_core(ep);
	return reason;
}

void duo_map_decide(struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word = duo_route_load(ep->route, addr);
	enum fi_duo_reason reason;

	if (duo_route_state(word) != DUO_ROUTE_UNDECIDED)
		return;
	reason = duo_map_look_up(ep, addr, NULL);
	if (reason == FI_DUO_OK)
		return;
	if (reason == FI_DUO_EXITED || ep->map->reason[addr] == FI_DUO_EXITED)
		duo_map_set(ep, addr, DUO_ROUTE_UNDECIDED, FI_DUO_EXITED);
	else
		duo_map_set(ep, addr, DUO_ROUTE_CORE, reason);
}

/*
 * Removes the peer index of an address whose process has failed or cannot be
 * reached. The path becomes undecided, because another process may get the
 * address; in the provider near, where none ever does, core.
 */
static void duo_map_unbind(struct duo_ep *ep, fi_addr_t addr, bool exited)
{
	uint64_t word = duo_route_load(ep->route, addr);

	if (!duo_route_mapped(word))
		return;
	if (ep->core.carries_nothing)
		duo_map_set(ep, addr, DUO_ROUTE_CORE, FI_DUO_EXITED);
	else
		duo_map_set(ep, addr, DUO_ROUTE_UNDECIDED,
			    exited ? FI_DUO_EXITED : FI_DUO_UNDECIDED);
	if (exited) {
		ep->rx.peer_exited = true;
		if (duo_ep_confirmed(ep, duo_route_index(word)))
			ep->map->id[addr] |= DUO_MAP_CONFIRMED;
	}
	duo_map_pass_source(ep, addr, duo_route_index(word));
	ep->up->moved(ep, addr);
}

/*
 * Plans a further duo_map_scan() if map->failed is set, otherwise cancels a
 * planned one. The delay doubles each time, up to about 1 s.
 */
static void duo_map_plan(struct duo_ep *ep)
{
	struct duo_map *map = ep->map;

	ep->group->pending += map->failed - map->retry;
	map->retry = map->failed;
	if (map->retry)
		duo_ep_set_deferred(ep);
	if (!map->failed || !map->retry_after)
		map->retry_after = DUO_MAP_RETRY_MS;
	else if (map->retry_after < DUO_MAP_RETRY_MAX_MS)
		map->retry_after *= 2;
	map->retry_ms = duo_clock_coarse_ms() + map->retry_after;
}

void duo_map_peer_failed(struct duo_ep *ep, fi_addr_t index, bool exited)
{
	fi_addr_t addr;

	while ((addr = duo_map_other_addr(ep, index)) != FI_ADDR_UNSPEC)
		duo_map_unbind(ep, addr, exited);
	/* a scan looks up the addresses: another process may have them now */
	ep->map->scanned = 0;
	ep->map->failed = true;
	ep->map->retry_after = 0; /* several failures do not double the delay */
	duo_map_plan(ep);
}

bool duo_map_exited(const struct duo_ep *ep, fi_addr_t addr)
{
	return ep->rx.peer_exited && addr < ep->route_size &&
	       ep->map->reason[addr] == FI_DUO_EXITED &&
	       ep->map->id[addr] & DUO_MAP_CONFIRMED;
}

void duo_map_use_core(struct duo_ep *ep, fi_addr_t index)
{
	fi_addr_t addr;
	uint64_t word;

	for (addr = 0; addr < ep->av->high; addr++) {
		word = duo_route_load(ep->route, addr);
		if (duo_route_state(word) != DUO_ROUTE_LOCAL ||
		    duo_route_index(word) != index)
			continue;
		duo_map_set(ep, addr, duo_route_word_of(DUO_ROUTE_CORE, index),
			    FI_DUO_NOT_MAPPED);
		DUO_WARN(AV, "ep %p: fi_addr %" PRIu64 " is not reachable "
			 "over %s (see the warning above, or those of the "
			 "peer); the core %s carries its messages\n",
			 (void *) ep, addr, ep->domain->peer->name,
			 ep->domain->fabric->core_name);
	}
}

static void duo_map_note(struct duo_ep *ep, fi_addr_t addr,
			 const struct duo_registry_index *names)
{
	enum fi_duo_reason reason;
	uint64_t word;

	if (!duo_av_has(ep->av, addr))
		return;
	word = duo_route_load(ep->route, addr);
	reason = duo_map_look_up(ep, addr, names);
	if (reason == FI_DUO_RECORD_UNREADABLE || reason == FI_DUO_NOT_MAPPED)
		ep->map->scanned = 0;
	/* a bad or unreadable record may be that of the peer with this index */
	if (reason != FI_DUO_OK && reason != FI_DUO_BAD_RECORD &&
	    reason != FI_DUO_RECORD_UNREADABLE)
		duo_map_unbind(ep, addr, reason == FI_DUO_EXITED);
	/* a new process has the address of an exited one */
	if (reason != FI_DUO_EXITED && ep->map->reason[addr] == FI_DUO_EXITED &&
	    !ep->core.carries_nothing)
		duo_map_set(ep, addr, DUO_ROUTE_UNDECIDED, FI_DUO_UNDECIDED);
	duo_map_release(ep, word);
}

void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count)
{
	/*
	 * Each endpoint begins with another address: endpoints that start
	 * together must not all connect to one peer at once.
	 */
	size_t i, first = duo_registry_hash(ep->publication.peer_name,
					    DUO_TRANSPORT_NAME_MAX) % count;
	const struct duo_registry_index *names;
	struct duo_registry_index index;

	names = duo_registry_index_read(&index, ep->publication.dir, count);
	for (i = 0; i < count; i++)
		duo_map_note(ep, addr[(first + i) % count], names);
}

/* True if the peer at addr exists, so that it still has the address. */
static bool duo_map_same(const struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word = duo_route_load(ep->route, addr);

	return duo_route_mapped(word) &&
	       ep->domain->peer->exists(ep, duo_route_index(word));
}

/*
 * Includes the addresses of failed processes, because others may have them now,
 * and those with the path core: their processes may send over the local path.
 */
void duo_map_scan(struct duo_ep *ep)
{
	uint64_t state = ep->core.carries_nothing ?
			 DUO_MAP_COMPLETE :
			 duo_registry_state(ep->publication.dir);
	const struct duo_registry_index *names;
	struct duo_registry_index index;
	struct duo_map *map = ep->map;
	fi_addr_t addr;

	if (state && state == map->scanned)
		return;
	map->failed = false;
	names = duo_registry_index_read(&index, ep->publication.dir,
					ep->av->high);
	for (addr = 0; addr < ep->av->high; addr++) {
		if (!duo_av_has(ep->av, addr) || duo_map_same(ep, addr))
			continue;
		/*
		 * A planned scan, after a failure, is no reason to make the
		 * core used. For addresses that were never local, an earlier
		 * lookup has done so.
		 */
		if (map->retry)
			duo_map_connect(ep, addr, names);
		else
			duo_map_look_up(ep, addr, names);
	}
	map->scanned = map->failed ? 0 : state;
	duo_map_plan(ep);
}

void duo_map_forget(struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word = duo_route_load(ep->route, addr);

	duo_map_set(ep, addr, DUO_ROUTE_NONE, FI_DUO_UNDECIDED);
	if (duo_route_mapped(word))
		duo_map_pass_source(ep, addr, duo_route_index(word));
	ep->up->known(ep, addr);
	duo_map_release(ep, word);
}
