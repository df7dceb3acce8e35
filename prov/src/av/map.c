/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Looks up addresses in the registry, connects to local peers, and sets the
 * route of each address. Also chooses, for each peer, the fi_addr that the
 * peer's messages report as their source. Lock: that of the endpoint's group.
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

/*
 * flag in duo_map.id[]: the last peer at the address has sent over the local
 * path (a confirmed source), and its process has exited
 */
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
		ep->map->id[addr] = 0; /* another process may get addr */
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
 * Must be called after this peer index was removed from the route of addr. If
 * the peer's messages have reported addr as their source, makes them report
 * another fi_addr of the same peer. If the peer has no other, they report none.
 */
static void duo_map_pass_source(struct duo_ep *ep, fi_addr_t addr,
				fi_addr_t index)
{
	if (ep->map->addr_of_index[index] == addr)
		ep->map->addr_of_index[index] =
			duo_map_other_addr(ep, index);
}

/*
 * Frees the peer index of the former route `word`, unless another address has
 * this index. Must not be called during a poll of the local transport, which
 * may still access the peer after the call.
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
 * Stores a peer index in the route of addr. If the path is already the core, it
 * stays the core. Otherwise it becomes local if reason is FI_DUO_OK, and the
 * core for any other reason. If the peer's messages report no fi_addr as their
 * source yet, they report addr from now on.
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
		/* if the peer fails, receives that name addr must end */
		duo_map_monitor(ep, addr);
	ep->up->known(ep, FI_ADDR_UNSPEC);
}

/*
 * Stores the peer's address at the local transport in peer_name. Returns
 * FI_DUO_OK, or the reason why the peer has no such address.
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

/*
 * True if `id` is the duo_map_id() of the last peer at addr, and this peer has
 * failed. The registry may still have the peer's record.
 */
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
	if (index == FI_ADDR_NOTAVAIL) {
		if (reason == FI_DUO_UNDECIDED)
			ep->map->failed = true;
		return reason;
	}
	ep->map->id[addr] = id;
	duo_map_bind(ep, addr, index, reason);
	return FI_DUO_OK;
}

/*
 * Looks up an address. If the address is local, sets its peer index and path.
 * Otherwise its messages arrive over the core, so polls of the endpoint's CQs
 * include the core from now on (duo_ep_use_core()). Returns FI_DUO_OK, or the
 * reason why the address is not local.
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
	if (reason == FI_DUO_OK || reason == FI_DUO_UNDECIDED)
		return;
	if (reason == FI_DUO_EXITED || ep->map->reason[addr] == FI_DUO_EXITED)
		duo_map_set(ep, addr, DUO_ROUTE_UNDECIDED, FI_DUO_EXITED);
	else
		duo_map_set(ep, addr, DUO_ROUTE_CORE, reason);
}

/*
 * Removes the peer index from the route of an address whose process has failed
 * or cannot be reached. The path becomes undecided, because another process may
 * get the address. In the provider near (carries_nothing), no other process
 * ever gets the address, so the path becomes the core, over which operations
 * fail.
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
 * If map->failed is set, plans another duo_map_scan(). Otherwise cancels the
 * planned scan, if there is one. The delay before the scan doubles with each
 * scan that fails, up to about 1 s.
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
	/*
	 * Another process may have the peer's addresses now. A scan must look
	 * them up, even if the registry has not changed.
	 */
	ep->map->scanned = 0;
	ep->map->failed = true;
	/* failures of several peers must not double the delay of the scan */
	ep->map->retry_after = 0;
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
	if (reason == FI_DUO_RECORD_UNREADABLE ||
	    reason == FI_DUO_NOT_MAPPED || reason == FI_DUO_UNDECIDED)
		ep->map->scanned = 0;
	/*
	 * If the record is bad or unreadable, it may be the record of the peer
	 * whose index the route has. The route then keeps this index.
	 */
	if (reason != FI_DUO_OK && reason != FI_DUO_BAD_RECORD &&
	    reason != FI_DUO_RECORD_UNREADABLE)
		duo_map_unbind(ep, addr, reason == FI_DUO_EXITED);
	/*
	 * While the reason is FI_DUO_EXITED, operations to the address fail. If
	 * the lookup has found another reason, the next send must choose the
	 * path again.
	 */
	if (reason != FI_DUO_EXITED && ep->map->reason[addr] == FI_DUO_EXITED &&
	    !ep->core.carries_nothing)
		duo_map_set(ep, addr, DUO_ROUTE_UNDECIDED, FI_DUO_UNDECIDED);
	duo_map_release(ep, word);
}

void duo_map_note_all(struct duo_ep *ep, const fi_addr_t *addr, size_t count)
{
	/*
	 * Each endpoint begins with another address, so that endpoints that
	 * start at the same time do not all connect to the same peer at once.
	 */
	size_t i, first = duo_registry_hash(ep->publication.peer_name,
					    DUO_TRANSPORT_NAME_MAX) % count;
	const struct duo_registry_index *names;
	struct duo_registry_index index;

	names = duo_registry_index_read(&index, ep->publication.dir, count);
	for (i = 0; i < count; i++)
		duo_map_note(ep, addr[(first + i) % count], names);
}

/*
 * True if addr has a peer index and this peer still exists. The peer then still
 * has the address, so a scan need not look up the address.
 */
static bool duo_map_same(const struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word = duo_route_load(ep->route, addr);

	return duo_route_mapped(word) &&
	       ep->domain->peer->exists(ep, duo_route_index(word));
}

/*
 * Also looks up the addresses of failed processes, because other processes may
 * have them now. Also looks up the addresses with the path core, because their
 * processes may nevertheless send to this endpoint over the local path.
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
		 * If an address is not local, duo_map_look_up() makes CQs poll
		 * the core from now on. A scan that was planned after the
		 * failure of a local peer must not have this effect. For an
		 * address that was never local, an earlier duo_map_look_up()
		 * has already had this effect.
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
