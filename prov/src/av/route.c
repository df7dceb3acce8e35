/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "av/map.h"
#include "av/route.h"
#include "base/log.h"

int duo_ep_early(struct duo_ep *ep)
{
	if (!atomic_exchange(&ep->opts.early_logged, true))
		DUO_WARN(EP_CTRL, "ep %p: a data transfer call before "
			 "fi_enable failed. Call fi_enable first\n",
			 (void *) ep);
	return -FI_EOPBADSTATE;
}

struct duo_route duo_route_slow(struct duo_ep *ep, fi_addr_t addr)
{
	const struct duo_route none = { .ep = NULL };

	if (!ep->route_size)
		duo_ep_early(ep);
	if (addr >= ep->route_size ||
	    duo_route_state(duo_route_load(ep->route, addr)) == DUO_ROUTE_NONE)
		return none;
	duo_group_lock(&ep->group);
	duo_map_decide(ep, addr);
	duo_unlock(&ep->group->lock);
	return duo_route_state(duo_route_load(ep->route, addr)) ==
	       DUO_ROUTE_UNDECIDED ? none : duo_route(ep, addr);
}

int duo_route_error(struct duo_ep *ep, fi_addr_t addr)
{
	enum duo_route_state state;
	enum fi_duo_reason reason;

	if (!duo_ep_enabled(ep))
		return -FI_EOPBADSTATE;
	if (addr >= ep->route_size || !ep->map ||
	    duo_route_state(duo_route_load(ep->route, addr)) == DUO_ROUTE_NONE)
		return -FI_EINVAL;
	duo_group_lock(&ep->group);
	reason = ep->map->reason[addr];
	state = duo_route_state(duo_route_load(ep->route, addr));
	duo_unlock(&ep->group->lock);
	if (reason == FI_DUO_EXITED)
		return -FI_ECONNRESET;
	/*
	 * If the core can carry data, an address has no route only while its
	 * reason is FI_DUO_EXITED. But after the caller found no route, another
	 * thread has found another process at the address, and has changed the
	 * reason. If the core carries no data, its routes are those of addresses
	 * that cannot be reached.
	 */
	return ep->core.carries_nothing && state == DUO_ROUTE_CORE ?
	       -FI_EHOSTUNREACH : -FI_EAGAIN;
}
