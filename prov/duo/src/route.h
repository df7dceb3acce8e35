/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The path decision, the only one: fi_addr -> (endpoint, address). One array
 * load once an address is decided; deciding looks into the registry.
 */
#ifndef DUO_ROUTE_H
#define DUO_ROUTE_H

#include "duo.h"

struct duo_route {
	struct fid_ep *ep;	/* NULL: not an address of the AV */
	fi_addr_t addr;
	enum fi_duo_path path;
};

static inline uint64_t duo_route_load(const struct duo_av *av, fi_addr_t addr)
{
	return atomic_load_explicit(&av->route[addr], memory_order_acquire);
}

static inline enum duo_route_state duo_route_state(uint64_t word)
{
	return (enum duo_route_state) (word & 3);
}

/* Does shm know the peer, whichever way we send to it? */
static inline bool duo_route_mapped(uint64_t word)
{
	return word >> 2;
}

static inline fi_addr_t duo_route_shm_addr(uint64_t word)
{
	return (word >> 2) - 1;
}

static inline uint64_t duo_route_word_of(enum duo_route_state state,
					 fi_addr_t shm_addr)
{
	return (shm_addr + 1) << 2 | state;
}

static inline struct duo_route duo_route_core(const struct duo_ep *ep,
					      fi_addr_t addr)
{
	return (struct duo_route) { ep->path_ep[FI_DUO_CORE], addr,
				    FI_DUO_CORE };
}

struct duo_route duo_route_slow(struct duo_ep *ep, fi_addr_t addr);

static inline struct duo_route duo_route(struct duo_ep *ep, fi_addr_t addr)
{
	uint64_t word;

	if (addr < ep->route_size) {
		word = atomic_load_explicit(&ep->route[addr],
					    memory_order_acquire);
		if (duo_route_state(word) == DUO_ROUTE_SHM &&
		    ep->path_ep[FI_DUO_SHM])
			return (struct duo_route) { ep->path_ep[FI_DUO_SHM],
						    duo_route_shm_addr(word),
						    FI_DUO_SHM };
		if (duo_route_state(word) >= DUO_ROUTE_CORE ||
		    (word && !ep->path_ep[FI_DUO_SHM]))
			return duo_route_core(ep, addr);
	}
	return duo_route_slow(ep, addr);
}

#endif /* DUO_ROUTE_H */
