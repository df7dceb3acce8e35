/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which addresses are local. av.c has the calls of the
 * application, av_core.c the AVs of the core behind one of ours, map.h what an
 * endpoint's local peer knows of them, route.h the decision that follows:
 * which path. docs/address-vectors.md has the rules.
 *
 * Cost: a send pays one load (route.h). Inserting looks each address up in the
 * registry, and a call with many reads its directory once (local/registry.h).
 * Memory: 16 bytes and the address for a fi_addr in use, 12 more for each
 * endpoint, 13 for one with a local side, which has 32 KiB for numbers, too.
 * Locks: the calls take the domain's lock, all the rest is under it, but for
 * the route words, which sends read without.
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

/* The rest is under the domain's lock. */
/* An endpoint with a map, published. */
void duo_av_add_ep(struct duo_av *av, struct duo_ep *ep);
void duo_av_del_ep(struct duo_av *av, struct duo_ep *ep);

/* av_core.c, likewise */
void *duo_av_reserve(size_t bytes);
int duo_core_av_open(struct duo_av *av, void *context);
int duo_core_av_close(struct duo_core_av *core);
/* Opens one for the endpoint, unless there is one yet that had none. */
int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags);
/* Inserts all addresses, when the core's endpoint is enabled. */
int duo_core_av_fill(struct duo_ep *ep);
/* After the core's endpoint has been closed. */
void duo_core_av_unbind(struct duo_ep *ep);
/*
 * The lead has returned these addresses: the others take them as well, and
 * they become ours. bytes: what was inserted, NULL if not at hand. Returns how
 * many some AV has refused; none has those now, and err[i] says why unless err
 * is NULL.
 */
size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err);
void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags);

#endif /* DUO_AV_H */
