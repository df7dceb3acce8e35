/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and the paths to their addresses. av.c has the application's
 * calls. map.h finds the local addresses of an endpoint. route.h chooses the
 * path of a send. docs/address-vectors.md has the rules.
 *
 * Cost: one load for each send (route.h), and a lookup in the registry for each
 * inserted address. Memory:
 * - for each fi_addr: the address itself and 16 bytes
 * - for each fi_addr in each endpoint: 8 bytes, or 17 if the endpoint has a
 *   local side
 * - for each local side: 32 KiB
 *
 * Locks: inserts and removals take all locks of the domain. The other calls of
 * an AV take at most the lock of the domain's group. Senders read the route
 * words without a lock.
 */
#ifndef DUO_AV_H
#define DUO_AV_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "obj/av.h"

struct duo_domain;
struct duo_ep;

int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context);
/*
 * duo_av_add_ep() adds an endpoint to its AV, and allocates the endpoint's
 * route words. It takes all locks of the domain, and returns 0 or -FI_ENOMEM.
 * duo_av_del_ep() reverts this; its caller must hold all locks of the domain.
 */
int duo_av_add_ep(struct duo_ep *ep);
void duo_av_del_ep(struct duo_ep *ep);

/*
 * Maps zeroed memory. The kernel allocates each page when it is first used. The
 * caller releases the memory by munmap(). NULL: no memory.
 */
void *duo_av_reserve(size_t bytes);

#endif /* DUO_AV_H */
