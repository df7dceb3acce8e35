/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors: docs/address-vectors.md. av.c has the functions that the
 * application calls. map.h finds the addresses that are local to an endpoint.
 * route.h chooses the path of a send. Memory and locks: obj/av.h.
 *
 * Cost: one load for each send, and a registry lookup for each inserted
 * address. Each endpoint that can use the local transport has a map of 32 KiB.
 */
#ifndef DUO_AV_H
#define DUO_AV_H

#include <stddef.h>
#include <rdma/fi_domain.h>

#include "obj/av.h"

int duo_av_open(struct fid_domain *domain_fid, struct fi_av_attr *attr,
		struct fid_av **av_fid, void *context);
/*
 * Adds an endpoint to its AV, and allocates its route words. Takes all locks of
 * the domain. Returns 0 or -FI_ENOMEM.
 */
int duo_av_add_ep(struct duo_ep *ep);
/* Reverts duo_av_add_ep(). Needs all locks of the domain. */
void duo_av_del_ep(struct duo_ep *ep);

/*
 * Maps zeroed memory, which the caller must munmap(). The kernel allocates a
 * page at its first use. NULL: no memory.
 */
void *duo_av_reserve(size_t bytes);

#endif /* DUO_AV_H */
