/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which of their addresses are local. av.c has the
 * application's calls. av_core.c maintains the core's AVs that belong to one AV
 * of ofi_duo. map.h has the local addresses of an endpoint, route.h the choice
 * of a path. docs/address-vectors.md has the rules.
 *
 * Cost: one load for each send (route.h). Each inserted address is looked up in
 * the registry; a call with many addresses reads the directory once
 * (registry.h). Memory for each fi_addr in use: 16 bytes and the bytes of its
 * address, 12 bytes for each endpoint, and 13 bytes for each endpoint with a
 * local side, which takes 32 KiB for peer indexes as well. Lock: the
 * application's calls take the domain's lock, all other functions must be
 * called with the lock held. Only senders read the route words without the
 * lock.
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

/*
 * All functions below must be called with the domain's lock held.
 * duo_av_add_ep() adds an endpoint that has a record and a map, and looks up
 * all addresses.
 */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);

/* av_core.c */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
/*
 * Binds an AV of the core to the endpoint: the lead if it is unused, else a new
 * AV. Returns 0 or a negative error.
 */
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/*
 * Inserts all addresses into the endpoint's AV of the core. Must be called when
 * the core's endpoint is enabled. Returns 0 or a negative error.
 */
int duo_core_av_fill(struct duo_ep *ep);
/* Must be called after the core's endpoint was closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * Inserts addresses, which the lead has already accepted, into the other AVs of
 * the core. addr[]: the lead's fi_addr, which the function replaces by
 * ofi_duo's. bytes: the addresses themselves; NULL: not available. If an AV
 * rejects an address, the address is removed from all AVs, and err[i] is set to
 * the error unless err is NULL. Returns the number of rejected addresses.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err);
void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);

#endif /* DUO_AV_H */
