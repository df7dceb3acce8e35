/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which addresses are local. av.c has the calls of the
 * application, av_note.c what follows from them for the endpoints, av_core.c
 * the AVs of the core behind one of ours, map.h what an endpoint's local peer
 * knows of them, route.h the decision that follows: which path. Our fi_addr
 * are the core's. docs/overview.md has the rules.
 *
 * Cost: a send pays one load (route.h). Inserting looks each address up in the
 * registry, and a call with many reads its directory once (local/registry.h).
 * Memory: 40 bytes a fi_addr in use, 9 more for each endpoint with a local
 * side; 32 KiB an endpoint for numbers.
 * Locks: the calls take the domain's lock, all the rest is under it, but for
 * the route words, which sends read without.
 */
#ifndef DUO_AV_H
#define DUO_AV_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "local/registry_index.h"
#include "obj/av.h"

struct duo_domain;
struct duo_ep;

/* av.c */
int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context);

/* av_note.c, under the domain's lock */
/* Addresses that the core has taken; bytes are theirs, NULL if not at hand. */
void duo_av_note_all(struct duo_av *av, const fi_addr_t *addr,
		     const void *bytes, size_t count);
void duo_av_forget(struct duo_av *av, fi_addr_t addr);
/* The core's bytes of an address; *len is the room on entry. */
int duo_av_core_addr(const struct duo_av *av, fi_addr_t addr, void *buf,
		     size_t *len);
/* The registry's, for so many look-ups; NULL: each must ask for itself. */
const struct duo_registry_index *duo_av_index(struct duo_av *av,
					      size_t lookups);
/* An endpoint with a map, published. */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);
/* Before and after the local endpoint of this name is closed. */
void duo_av_local_leaves(struct duo_domain *domain, const char *peer_name);
void duo_av_local_left(struct duo_domain *domain, const char *peer_name);

/* av_core.c, likewise */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* After the core's endpoint has been closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * The first AV of the core has returned these addresses: the others take
 * them as well, and they become ours. Returns how many of them some AV has
 * refused; none has those now, and err[i] says why unless it is NULL.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr, size_t count,
			 int *err);
int duo_core_av_lookup(const struct duo_av *av, fi_addr_t addr, void *buf,
		       size_t *len);
/* From the first AV; if it has none left of it, forget for the others. */
int duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);
void duo_core_av_forget(struct duo_av *av, fi_addr_t addr);
/* Is the address in the AV? For the endpoints of all AVs of the core. */
void duo_core_av_state(struct duo_av *av, fi_addr_t addr,
		       enum duo_route_state state);

#endif /* DUO_AV_H */
