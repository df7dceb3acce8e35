/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which addresses are local. av.c has the application's
 * calls, av_core.c the core's AVs, map.h an endpoint's local addresses, route.h
 * the choice of a path. Rules: docs/address-vectors.md.
 *
 * Cost: one load per send (route.h); a registry lookup per inserted address.
 * Memory per fi_addr: 16 bytes and its address, 12 bytes per endpoint, 13 more
 * and 32 KiB in all per local side. Lock: the application's calls take the
 * domain's, others need it held; senders read route words without it.
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
 * All below need the domain's lock. duo_av_add_ep() adds an endpoint with
 * record and map, and looks up all addresses.
 */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);

/* av_core.c */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
/* Binds the lead to the endpoint if unused, else a new AV of the core. */
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* Inserts all addresses into ep's AV of the core, at the core's fi_enable(). */
int duo_core_av_fill(struct duo_ep *ep);
/* After the close of the core's endpoint. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * Inserts addresses that the lead has accepted into the core's other AVs.
 * addr[]: in: the lead's fi_addr, out: ofi_duo's. bytes: the addresses, or
 * NULL. A rejected address is removed from all; err[i] gets the error, unless
 * err is NULL. Returns the number rejected.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err);
void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);

#endif /* DUO_AV_H */
