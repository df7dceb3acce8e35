/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A core that rests. With the first address that efa takes, and with its first
 * poll, it fills 35 MB of pools: 10 to 20 ms of page faults in each rank of a
 * job. While all that an endpoint knows is local, nobody needs them: addresses
 * wait here, the core's CQ is not read, and receives that name a local source
 * stay in the lazy list. Whatever needs the core ends that for good, and so does
 * time: a stranger may have sent to us. docs/overview.md has the rules.
 *
 * One AV and one endpoint of a domain, the first that is enabled. Under the
 * domain's lock. Cost: a load where the core is polled or gets a receive.
 */
#ifndef DUO_REST_H
#define DUO_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <rdma/fi_domain.h>

#include "base/util.h"
#include "obj/av.h"
#include "obj/domain.h"

struct duo_ep;

/* An endpoint of the domain has its local side, or has none: does the core
 * begin to rest, or is it over? */
void duo_rest_enabled(struct duo_ep *ep);
/* It is about to be closed, and the core's has been: what its AV keeps is for
 * those to come. efa's takes nothing without an endpoint. */
void duo_rest_closing(const struct duo_ep *ep);
void duo_rest_closed(const struct duo_ep *ep);
/* An endpoint has been bound to the AV. */
void duo_rest_bound(struct duo_av *av);
/* The AV has been closed. */
void duo_rest_forget(const struct duo_av *av);

/* All of them, or false: they are the core's. */
bool duo_rest_insert(struct duo_av *av, const void *addr, size_t count,
		     fi_addr_t *fi_addr);
/* Of an AV whose core rests, -FI_EINVAL: it does not have it. *len is the room
 * on entry. */
int duo_rest_lookup(const struct duo_av *av, fi_addr_t addr, void *buf,
		    size_t *len);
int duo_rest_remove(struct duo_av *av, fi_addr_t addr);

/* For the inlines: there is a rest. */
void duo_rest_over(struct duo_domain *domain);
bool duo_rest_lasts(struct duo_domain *domain, uint32_t idle);
bool duo_rest_is_of(const struct duo_av *av);

/* The core is needed: now it has all addresses, if their endpoint is open. */
static inline void duo_rest_end(struct duo_domain *domain)
{
	if (__builtin_expect(domain->rest != NULL, false))
		duo_rest_over(domain);
}

/* Does it rest, and is it not time to end that? idle: polls since the last
 * local event of who asks. */
DUO_HOT bool duo_rests(struct duo_domain *domain, uint32_t idle)
{
	return __builtin_expect(domain->rest != NULL, false) &&
	       duo_rest_lasts(domain, idle);
}

static inline bool duo_rest_of(const struct duo_av *av)
{
	return av->domain->rest && duo_rest_is_of(av);
}

#endif /* DUO_REST_H */
