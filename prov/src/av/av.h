/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Address vectors, and which of their addresses are local. av.c has the
 * application's calls, map.h the local addresses of an endpoint, route.h the
 * choice of a path. docs/address-vectors.md has the rules.
 *
 * Cost: one load for each send (route.h), and a lookup in the registry for each
 * inserted address. Memory for each fi_addr: the bytes of the address and 16
 * more, and for each endpoint 8 bytes, or 17 if the endpoint has a local side.
 * A local side takes 32 KiB more.
 *
 * Lock: the application's calls take all locks of the domain. Senders read the
 * route words without a lock.
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
 * Adds an endpoint, with a route word for each address. Returns 0 or
 * -FI_ENOMEM. duo_av_add_ep() takes all locks of the domain; the caller of
 * duo_av_del_ep() must hold them.
 */
int duo_av_add_ep(struct duo_ep *ep);
void duo_av_del_ep(struct duo_ep *ep);

/* Maps zeroed memory, whose pages are allocated when they are first used. */
void *duo_av_reserve(size_t bytes);

#endif /* DUO_AV_H */
