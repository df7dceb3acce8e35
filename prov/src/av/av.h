/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which addresses are local. av.c has the calls of the
 * application, av_core.c the core's AVs that belong to one AV of ofi_duo, map.h
 * the local addresses of an endpoint, route.h the choice of the path.
 * docs/address-vectors.md has the rules.
 *
 * Cost: a send pays one load (route.h). Inserting looks each address up in the
 * registry; a call with many addresses reads the directory once (registry.h).
 * Memory: 16 bytes and the address per fi_addr in use, 12 more per endpoint, 13
 * per endpoint with a local side, which has 32 KiB for indexes, too. Locks: the
 * application's calls take the domain's lock, all others are under it. Only
 * sends read without the lock: the route words.
 */
#ifndef DUO_AV_H
#define DUO_AV_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "obj/av.h"

struct duo_domain;
struct duo_ep;

/* av.c */
int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context);

/* All below is under the domain's lock. Adds a published ep with its map. */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);

/* av_core.c */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
/* Binds a core AV to the endpoint: the first one if unused, or a new one. */
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* Inserts all addresses. To be called when the core's endpoint is enabled. */
int duo_core_av_fill(struct duo_ep *ep);
/* To be called after the core's endpoint was closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * Inserts addresses that the lead has returned into the other core AVs, and
 * replaces them by ofi_duo's. bytes: the inserted addresses; NULL: not
 * available. Returns the number of addresses that an AV has rejected: these are
 * removed from all AVs, with the error in err[i] unless err is NULL.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err);
void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);

#endif /* DUO_AV_H */
