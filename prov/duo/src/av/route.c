/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "av/map.h"
#include "av/route.h"

/*
 * An address whose first send this is, one too large, none at all, or an
 * endpoint that is not enabled.
 */
struct duo_route duo_route_slow(struct duo_ep *ep, fi_addr_t addr)
{
	if (!ep->route_size || addr == FI_ADDR_UNSPEC)
		return (struct duo_route) { .ep = NULL };
	if (addr >= DUO_AV_MAX && ep->av->beyond)
		return duo_route_core(ep, addr);
	if (addr >= DUO_AV_MAX ||
	    duo_route_state(duo_route_load(ep->route, addr)) ==
	    DUO_ROUTE_NONE)
		return (struct duo_route) { .ep = NULL };
	duo_lock(&ep->domain->lock);
	duo_map_decide(ep, addr);
	duo_unlock(&ep->domain->lock);
	return duo_route(ep, addr);
}

/* An address too large or none at all, or an endpoint that is not enabled. */
int duo_route_onesided_slow(const struct duo_ep *ep, fi_addr_t addr,
			    fi_addr_t *core_addr)
{
	if (!ep->route_size)
		return -FI_EOPBADSTATE;
	*core_addr = addr;
	return addr != FI_ADDR_UNSPEC && ep->av->beyond ? 0 : -FI_EINVAL;
}
