/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which of their addresses are local. av.c has the
 * application's calls, av_core.c the core's AVs, map.h the local addresses of
 * an endpoint, route.h the choice of a path. Rules: docs/address-vectors.md.
 *
 * Cost: one load for each send (route.h), and a lookup in the registry for each
 * inserted address. Memory for each fi_addr: 16 bytes and the address; for each
 * endpoint 12 bytes, or 25 with a local side. A local side takes 32 KiB more.
 * Lock: calls of the application take the domain's lock; all other functions
 * need it. Senders read the route words without it.
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
 * All functions below need the domain's lock. duo_av_add_ep() adds an endpoint
 * with a record and a map, and looks up all addresses.
 */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);

/* av_core.c */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
/* Binds the endpoint to the lead if this is unused, else to a new AV. */
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* Inserts all addresses into ep's AV of the core, when ep is enabled. */
int duo_core_av_fill(struct duo_ep *ep);
/* Unbinds ep's AV. The core's endpoint must be closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * Inserts addresses that the lead has accepted into the core's other AVs.
 * addr[]: has the lead's fi_addr, replaced by ofi_duo's. bytes: the addresses,
 * or NULL. If an AV rejects an address, removes it from all AVs, and sets
 * err[i] unless err is NULL. Returns the number of rejected addresses.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err);
void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);

#endif /* DUO_AV_H */
