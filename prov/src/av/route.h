/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Chooses the path of each send. Cost: one load. Exception: the first send to
 * an address takes the lock of the endpoint's group, and looks up the address
 * in the registry.
 */
#ifndef DUO_ROUTE_H
#define DUO_ROUTE_H

#include <rdma/fi_errno.h>

#include "obj/ep.h"

struct duo_route {
	struct fid_ep *ep; /* NULL: no route, see duo_route_error() */
	fi_addr_t addr; /* path core: fi_addr; path local: peer index */
	enum fi_duo_path path;
};

/* bits 2 and up of a route word: peer index plus 1 */
#define DUO_ROUTE_INDEX_SHIFT 2

static inline uint64_t duo_route_load(const duo_route_word *route,
				      fi_addr_t addr)
{
	return atomic_load_explicit(&route[addr], memory_order_acquire);
}

static inline enum duo_route_state duo_route_state(uint64_t word)
{
	return (enum duo_route_state) (word & 3);
}

/* True if the address has a peer index. Its path can be local or core. */
static inline bool duo_route_mapped(uint64_t word)
{
	return word >> DUO_ROUTE_INDEX_SHIFT;
}

static inline fi_addr_t duo_route_index(uint64_t word)
{
	return (word >> DUO_ROUTE_INDEX_SHIFT) - 1;
}

static inline uint64_t duo_route_word_of(enum duo_route_state state,
					 fi_addr_t index)
{
	return (index + 1) << DUO_ROUTE_INDEX_SHIFT | state;
}

/*
 * Returns the error for an address without a route:
 * - -FI_EOPBADSTATE: the endpoint is not enabled
 * - -FI_EINVAL: the address is not in the AV
 * - -FI_ECONNRESET: the process of the address has exited
 * - -FI_EHOSTUNREACH: the address is not local, and the core carries no data
 * - -FI_EAGAIN: the address has a route again, or there was no memory for one;
 *   the caller may retry
 */
int duo_route_error(struct duo_ep *ep, fi_addr_t addr);
/*
 * Returns the route of an address. If the path is undecided, chooses it first,
 * under the lock of the endpoint's group. In the result, ep is NULL if the
 * address has no route.
 */
struct duo_route duo_route_slow(struct duo_ep *ep, fi_addr_t addr);
/* Warns once that a call preceded fi_enable(). Returns -FI_EOPBADSTATE. */
int duo_ep_early(struct duo_ep *ep);

static inline struct duo_route duo_route(struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word;

	if (addr < ep->route_size) {
		word = duo_route_load(ep->route, addr);
		if (duo_route_state(word) == DUO_ROUTE_LOCAL &&
		    ep->path_ep[FI_DUO_LOCAL])
			return (struct duo_route) { ep->path_ep[FI_DUO_LOCAL],
						    duo_route_index(word),
						    FI_DUO_LOCAL };
		if (duo_route_state(word) >= DUO_ROUTE_CORE ||
		    (duo_route_state(word) && !ep->path_ep[FI_DUO_LOCAL]))
			return (struct duo_route) { ep->tx.core, addr,
						    FI_DUO_CORE };
	}
	return duo_route_slow(ep, addr);
}

/*
 * True if addr still has the local route `to`, which the caller has read before
 * it has taken the lock.
 */
static inline bool duo_route_still_local(const struct duo_ep *ep,
					 fi_addr_t addr,
					 const struct duo_route *to)
{
	uint64_t word = duo_route_load(ep->route, addr);

	return duo_route_state(word) == DUO_ROUTE_LOCAL &&
	       duo_route_index(word) == to->addr;
}

#endif /* DUO_ROUTE_H */
