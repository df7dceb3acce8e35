/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "av/map.h"
#include "av/route.h"
#include "base/log.h"

int duo_ep_early(struct duo_ep *ep)
{
	if (!atomic_exchange(&ep->told_early, true))
		DUO_WARN(EP_CTRL, "ep %p is not enabled: this data call fails, "
			 "and so do all others until fi_enable\n",
			 (void *) ep);
	return -FI_EOPBADSTATE;
}

/*
 * An address whose first send this is, one too large, none at all, or an
 * endpoint that is not enabled.
 */
struct duo_route duo_route_slow(struct duo_ep *ep, fi_addr_t addr)
{
	if (!ep->route_size)
		duo_ep_early(ep);
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
int duo_route_onesided_slow(struct duo_ep *ep, fi_addr_t addr,
			    fi_addr_t *core_addr)
{
	if (!ep->route_size)
		return duo_ep_early(ep);
	*core_addr = addr;
	return addr != FI_ADDR_UNSPEC && ep->av->beyond ? 0 : -FI_EINVAL;
}
