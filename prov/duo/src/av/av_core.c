/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The core's AVs behind one of ours. As a rule that is one AV, and our
 * fi_addr are its own. efa of libfabric 2.0 and 2.1 binds an AV to one
 * endpoint and never to another; there each further endpoint of our AV gets
 * an AV of the core to itself. The first of the list, the lead, is inserted
 * into and looked up first, the others follow it.
 *
 * The fi_addr of the further ones are not ours: efa gives numbers to senders
 * that it does not know, and those of removed addresses to new ones. The
 * offset between the two is part of the route word, so a send pays nothing
 * for it, and fi_addr[] leads back from the source of a message.
 *
 * The caller holds the domain's lock.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "av/route.h"
#include "base/log.h"
#include "obj/domain.h"
#include "obj/ep.h"

void *duo_av_reserve(size_t bytes)
{
	void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static struct duo_core_av *duo_core_av_lead(const struct duo_av *av)
{
	return TAILQ_FIRST(&av->cores);
}

static bool duo_core_av_alone(const struct duo_av *av)
{
	return !TAILQ_NEXT(duo_core_av_lead(av), link);
}

static void duo_core_av_free(struct duo_core_av *core)
{
	if (core->fi_addr) {
		munmap(core->fi_addr, DUO_AV_MAX * sizeof(*core->fi_addr));
		munmap(core->route, DUO_AV_MAX * sizeof(*core->route));
	}
	free(core);
}

/* Opens the core's AV behind *core, which is freed if that fails. */
static int duo_core_av_open_fid(struct duo_core_av *core, void *context)
{
	struct fi_av_attr attr = core->av->core_attr;
	int ret;

	ret = fi_av_open(core->av->domain->path_domain[FI_DUO_CORE], &attr,
			 &core->av_fid, context);
	if (ret)
		duo_core_av_free(core);
	return ret;
}

int duo_core_av_open(struct duo_av *av, void *context)
{
	struct duo_core_av *core = calloc(1, sizeof(*core));
	int ret;

	if (!core)
		return -FI_ENOMEM;
	core->av = av;
	core->route = av->route;
	ret = duo_core_av_open_fid(core, context);
	if (ret)
		return ret;
	TAILQ_INSERT_TAIL(&av->cores, core, link);
	return 0;
}

/* Its fi_addr are its own from now on; nothing of it has changed otherwise. */
static int duo_core_av_part(struct duo_core_av *core)
{
	uint32_t *fi_addr = duo_av_reserve(DUO_AV_MAX * sizeof(*fi_addr));
	duo_route_word *route = fi_addr ?
				duo_av_reserve(DUO_AV_MAX * sizeof(*route)) :
				NULL;

	if (!route) {
		if (fi_addr)
			munmap(fi_addr, DUO_AV_MAX * sizeof(*fi_addr));
		return -FI_ENOMEM;
	}
	core->fi_addr = fi_addr;
	core->route = route;
	return 0;
}

/* One more; it is not in the list until it has all addresses. */
static int duo_core_av_open_further(struct duo_av *av,
				    struct duo_core_av **further)
{
	struct duo_core_av *core = calloc(1, sizeof(*core));
	int ret;

	if (!core)
		return -FI_ENOMEM;
	core->av = av;
	ret = duo_core_av_part(core);
	if (ret) {
		free(core);
		return ret;
	}
	ret = duo_core_av_open_fid(core, NULL);
	if (!ret)
		*further = core;
	return ret;
}

int duo_core_av_close(struct duo_core_av *core)
{
	int ret = fi_close(&core->av_fid->fid);

	if (!ret)
		duo_core_av_free(core);
	return ret;
}

static fi_addr_t duo_core_av_addr(const struct duo_core_av *core,
				  fi_addr_t addr)
{
	return core->fi_addr ? duo_route_core_addr(core->route, addr) : addr;
}

static bool duo_core_av_has(const struct duo_core_av *core, fi_addr_t addr)
{
	return core->fi_addr[duo_core_av_addr(core, addr)] == addr + 1;
}

/* The core has given core_addr to addr. */
static void duo_core_av_name(struct duo_core_av *core, fi_addr_t addr,
			     fi_addr_t core_addr)
{
	core->fi_addr[core_addr] = addr + 1;
	atomic_store_explicit(&core->route[addr],
			      duo_route_load(core->av->route, addr) |
			      duo_route_offset_of(addr, core_addr),
			      memory_order_release);
}

/* The offset stays: a receive that names the address may still be waiting,
 * and must not come to name another. */
static void duo_core_av_unname(struct duo_core_av *core, fi_addr_t addr)
{
	if (duo_core_av_has(core, addr))
		core->fi_addr[duo_core_av_addr(core, addr)] = 0;
}

static void duo_core_av_drop(struct duo_core_av *core, fi_addr_t addr)
{
	fi_addr_t core_addr = duo_core_av_addr(core, addr);
	int ret;

	if (core->fi_addr && !duo_core_av_has(core, addr))
		return;
	ret = fi_av_remove(core->av_fid, &core_addr, 1, 0);
	if (ret)
		DUO_WARN(AV, "av %p: the core keeps fi_addr %" PRIu64 " of "
			 "%" PRIu64 ": %s\n", (void *) core->av, core_addr,
			 addr, fi_strerror(-ret));
	if (core->fi_addr)
		duo_core_av_unname(core, addr);
}

/* Inserts an address of the lead into another one. */
static int duo_core_av_copy(struct duo_core_av *core, fi_addr_t addr)
{
	uint8_t bytes[DUO_ADDR_MAX];
	size_t len = sizeof(bytes);
	fi_addr_t core_addr = FI_ADDR_NOTAVAIL;
	int ret;

	ret = duo_av_core_addr(core->av, addr, bytes, &len);
	if (ret)
		return ret;
	ret = fi_av_insert(core->av_fid, bytes, 1, &core_addr, 0, NULL);
	if (ret != 1)
		return ret < 0 ? ret : -FI_EADDRNOTAVAIL;
	if (core_addr >= DUO_AV_MAX) {
		fi_av_remove(core->av_fid, &core_addr, 1, 0);
		return -FI_ENOSPC;
	}
	if (core->fi_addr[core_addr] && core->fi_addr[core_addr] != addr + 1)
		return -FI_EADDRINUSE;
	duo_core_av_name(core, addr, core_addr);
	return 0;
}

/* What the lead calls core_addr: a fi_addr it has, or a free one. */
static fi_addr_t duo_core_av_choose(const struct duo_core_av *lead,
				    fi_addr_t core_addr)
{
	fi_addr_t addr;

	if (!lead->fi_addr || core_addr >= DUO_AV_MAX)
		return core_addr;
	if (lead->fi_addr[core_addr])
		return lead->fi_addr[core_addr] - 1;
	if (duo_route_load(lead->av->route, core_addr) == DUO_ROUTE_NONE)
		return core_addr;
	for (addr = 0; addr < DUO_AV_MAX; addr++) {
		if (duo_route_load(lead->av->route, addr) == DUO_ROUTE_NONE)
			break;
	}
	return addr;
}

/*
 * The lead has taken an address as *addr: all others take it too and *addr
 * becomes ours; or none has it any more.
 */
static int duo_core_av_spread(struct duo_av *av, fi_addr_t *addr)
{
	struct duo_core_av *core, *lead = duo_core_av_lead(av);
	fi_addr_t ours = duo_core_av_choose(lead, *addr);
	int ret = -FI_ENOSPC;

	if (ours >= DUO_AV_MAX) {
		fi_av_remove(lead->av_fid, addr, 1, 0);
		return ret;
	}
	if (duo_route_load(av->route, ours) != DUO_ROUTE_NONE) {
		*addr = ours;	/* inserted once more */
		return 0;
	}
	if (lead->fi_addr)
		duo_core_av_name(lead, ours, *addr);
	core = lead;
	while ((core = TAILQ_NEXT(core, link))) {
		ret = duo_core_av_copy(core, ours);
		if (ret)
			goto drop;
	}
	*addr = ours;
	return 0;
drop:
	TAILQ_FOREACH_REVERSE(core, &av->cores, duo_core_av_list, link)
		duo_core_av_drop(core, ours);
	return ret;
}

size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr, size_t count,
			 int *err)
{
	size_t i, refused = 0;
	int ret;

	if (duo_core_av_alone(av) && !duo_core_av_lead(av)->fi_addr)
		return 0;	/* fi_addr are the core's */
	for (i = 0; i < count; i++) {
		if (addr[i] == FI_ADDR_NOTAVAIL)
			continue;
		ret = duo_core_av_spread(av, &addr[i]);
		if (!ret)
			continue;
		DUO_WARN(AV, "av %p: address %zu of %zu: not all of the "
			 "core's AVs take it: %s\n", (void *) av, i, count,
			 fi_strerror(-ret));
		addr[i] = FI_ADDR_NOTAVAIL;
		if (err)
			err[i] = -ret;
		refused++;
	}
	return refused;
}

int duo_core_av_lookup(const struct duo_av *av, fi_addr_t addr, void *buf,
		       size_t *len)
{
	const struct duo_core_av *lead = duo_core_av_lead(av);

	return fi_av_lookup(lead->av_fid, duo_core_av_addr(lead, addr), buf,
			    len);
}

int duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags)
{
	struct duo_core_av *lead = duo_core_av_lead(av);

	if (lead->fi_addr) {
		if (addr >= DUO_AV_MAX ||
		    duo_route_load(av->route, addr) == DUO_ROUTE_NONE)
			return -FI_EINVAL;
		addr = duo_core_av_addr(lead, addr);
	}
	return fi_av_remove(lead->av_fid, &addr, 1, flags);
}

void duo_core_av_forget(struct duo_av *av, fi_addr_t addr)
{
	struct duo_core_av *core = duo_core_av_lead(av);

	if (core->fi_addr)
		duo_core_av_unname(core, addr);
	while ((core = TAILQ_NEXT(core, link)))
		duo_core_av_drop(core, addr);
}

void duo_core_av_state(struct duo_av *av, fi_addr_t addr,
		       enum duo_route_state state)
{
	struct duo_core_av *core;

	atomic_store_explicit(&av->route[addr], state, memory_order_release);
	TAILQ_FOREACH(core, &av->cores, link) {
		if (core->fi_addr && duo_core_av_has(core, addr))
			duo_core_av_name(core, addr,
					 duo_core_av_addr(core, addr));
	}
}

/*
 * May an AV that has or had an endpoint take another? An endpoint of efa
 * cannot be bound any more once an AV has refused it, so one that nobody
 * needs is sent ahead. Without one, the bind itself will tell.
 */
static bool duo_core_av_shares(struct duo_core_av *lead,
			       const struct duo_ep *ep)
{
	struct duo_domain *domain = lead->av->domain;
	struct fid_ep *probe;
	int ret;

	if (ep->core.shares_avs)
		return true;
	if (domain->av_probed)
		return !domain->av_single;
	ret = fi_endpoint(domain->path_domain[FI_DUO_CORE], ep->info, &probe,
			  NULL);
	if (ret)
		return true;
	ret = fi_ep_bind(probe, &lead->av_fid->fid, 0);
	fi_close(&probe->fid);
	domain->av_probed = true;
	domain->av_single = ret == -FI_ENOSYS;
	return !domain->av_single;
}

/* The lead's addresses, into one that has just been opened. */
static int duo_core_av_replay(struct duo_core_av *core)
{
	struct duo_av *av = core->av;
	fi_addr_t addr;
	int ret = av->beyond ? -FI_ENOSPC : 0;

	for (addr = 0; !ret && addr < av->high; addr++) {
		if (duo_route_load(av->route, addr) != DUO_ROUTE_NONE)
			ret = duo_core_av_copy(core, addr);
	}
	return ret;
}

/*
 * One without endpoint goes, efa could not insert into it. The last one
 * stays: it has the addresses.
 */
static void duo_core_av_prune(struct duo_av *av)
{
	struct duo_core_av *core;
	int ret;

	TAILQ_FOREACH(core, &av->cores, link) {
		if (!core->eps)
			break;
	}
	if (!core || duo_core_av_alone(av))
		return;
	TAILQ_REMOVE(&av->cores, core, link);
	ret = duo_core_av_close(core);
	if (ret)
		DUO_WARN(AV, "av %p: the core does not close its AV: %s\n",
			 (void *) av, fi_strerror(-ret));
}

/*
 * An endpoint stays with what it is bound to, so after a failure it keeps
 * its AV, which is in no list, until it is closed.
 */
static int duo_core_av_bind_own(struct duo_av *av, struct duo_ep *ep,
				uint64_t flags)
{
	struct duo_core_av *core;
	int ret = duo_core_av_open_further(av, &core);

	if (ret)
		return ret;
	ret = fi_ep_bind(ep->path_ep[FI_DUO_CORE], &core->av_fid->fid, flags);
	if (ret) {
		duo_core_av_close(core);
		return ret;
	}
	core->used = true;
	core->eps = 1;
	ep->core_av = core;
	ret = duo_core_av_replay(core);
	if (ret) {
		DUO_WARN(EP_CTRL, "ep %p: its own AV of the core does not take "
			 "the addresses of av %p: %s\n", (void *) ep,
			 (void *) av, fi_strerror(-ret));
		core->av = NULL;
		return ret;
	}
	TAILQ_INSERT_TAIL(&av->cores, core, link);
	duo_core_av_prune(av);
	return 0;
}

int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags)
{
	struct duo_core_av *lead = duo_core_av_lead(av);
	int ret;

	if (lead->used && !duo_core_av_shares(lead, ep))
		return duo_core_av_bind_own(av, ep, flags);
	ret = fi_ep_bind(ep->path_ep[FI_DUO_CORE], &lead->av_fid->fid, flags);
	if (ret)
		return ret;
	lead->used = true;
	lead->eps++;
	ep->core_av = lead;
	return 0;
}

void duo_core_av_unbind(struct duo_ep *ep)
{
	struct duo_core_av *core = ep->core_av;

	ep->core_av = NULL;
	core->eps--;
	if (core->av)
		duo_core_av_prune(core->av);
	else
		duo_core_av_close(core);
}
