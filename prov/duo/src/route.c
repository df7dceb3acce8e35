/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "route.h"

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
	    duo_route_state(duo_route_load(ep->av->route, addr)) ==
	    DUO_ROUTE_NONE)
		return (struct duo_route) { .ep = NULL };
	duo_lock(&ep->domain->lock);
	duo_av_decide(ep->av, addr);
	duo_unlock(&ep->domain->lock);
	return duo_route(ep, addr);
}
