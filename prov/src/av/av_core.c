/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The core's AVs for one AV of ofi_duo: one for each endpoint, because efa of
 * libfabric 2.0 and 2.1 binds an AV only once. All have the same addresses.
 * Each address is inserted first into the lead, the first AV. The other AVs get
 * the bytes that the lead returns for it.
 *
 * These AVs may assign different fi_addr to an address, because efa assigns
 * some to unknown senders and reuses others. The route word has the core's
 * fi_addr minus ofi_duo's; core->fi_addr[] translates back. Lock: the domain's.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/route.h"
#include "base/log.h"
#include "obj/domain.h"
#include "obj/ep.h"

#define DUO_CORE_ADDR_MAX 1024	/* longest address of a core, bytes */

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

static void duo_core_av_free(struct duo_core_av *core)
{
	if (core->fi_addr)
		munmap(core->fi_addr, DUO_AV_MAX * sizeof(*core->fi_addr));
	if (core->route)
		munmap(core->route, DUO_AV_MAX * sizeof(*core->route));
	free(core);
}

/* Opens an empty AV of the core, in no list. Returns 0 or an error. */
static int duo_core_av_open_one(struct duo_av *av, void *context,
				struct duo_core_av **opened)
{
	struct duo_core_av *core = calloc(1, sizeof(*core));
	struct fi_av_attr attr = av->core_attr;
	int ret = -FI_ENOMEM;

	if (!core)
		return ret;
	core->fi_addr = duo_av_reserve(DUO_AV_MAX * sizeof(*core->fi_addr));
	core->route = duo_av_reserve(DUO_AV_MAX * sizeof(*core->route));
	if (core->fi_addr && core->route)
		ret = fi_av_open(av->domain->path_domain[FI_DUO_CORE], &attr,
				 &core->av_fid, context);
	if (ret)
		duo_core_av_free(core);
	else
		*opened = core;
	return ret;
}

static void duo_core_av_list(struct duo_av *av, struct duo_core_av *core)
{
	TAILQ_INSERT_TAIL(&av->cores, core, link);
	core->listed = true;
}

int duo_core_av_open(struct duo_av *av, void *context)
{
	struct duo_core_av *core;
	int ret = duo_core_av_open_one(av, context, &core);

	if (!ret)
		duo_core_av_list(av, core);
	return ret;
}

int duo_core_av_close(struct duo_core_av *core)
{
	int ret = fi_close(&core->av_fid->fid);

	if (!ret)
		duo_core_av_free(core);
	return ret;
}

/* Stores core_addr as the core's fi_addr for ofi_duo's addr. */
static void duo_core_av_name(struct duo_core_av *core, fi_addr_t addr,
			     fi_addr_t core_addr)
{
	core->fi_addr[core_addr] = addr + 1;
	atomic_store_explicit(&core->route[addr], DUO_ROUTE_UNDECIDED |
			      duo_route_offset_of(addr, core_addr),
			      memory_order_release);
}

/*
 * Removes addr from the AV. Keeps the offset in the route word: with another
 * offset, a posted receive with the source addr would get another source.
 */
static void duo_core_av_drop(struct duo_core_av *core, fi_addr_t addr,
			     uint64_t flags)
{
	uint64_t word = duo_route_load(core->route, addr);
	fi_addr_t core_addr = duo_route_to_core(addr, word);
	int ret;

	if (core->fi_addr[core_addr] != addr + 1)
		return;
	core->fi_addr[core_addr] = 0;
	atomic_store_explicit(&core->route[addr], duo_route_offset(word),
			      memory_order_release);
	ret = fi_av_remove(core->av_fid, &core_addr, 1, flags);
	if (ret)
		DUO_WARN(AV, "av %p: the core cannot remove its fi_addr %"
			 PRIu64 ", of fi_addr %" PRIu64 ": %s\n",
			 (void *) core->av_fid, core_addr, addr,
			 fi_strerror(-ret));
}

/* Inserts one address into an AV other than the lead. */
static int duo_core_av_copy(struct duo_core_av *core,
			    const struct duo_av_addr *from, fi_addr_t addr)
{
	fi_addr_t core_addr = FI_ADDR_NOTAVAIL;
	int ret;

	if (!from->bytes)
		return -FI_EADDRNOTAVAIL;
	ret = fi_av_insert(core->av_fid, from->bytes, 1, &core_addr, 0, NULL);
	if (ret != 1)
		return ret < 0 ? ret : -FI_EADDRNOTAVAIL;
	if (core_addr >= DUO_AV_MAX) {
		fi_av_remove(core->av_fid, &core_addr, 1, 0);
		return -FI_ENOSPC;
	}
	if (core->fi_addr[core_addr])
		return -FI_EADDRINUSE;
	duo_core_av_name(core, addr, core_addr);
	return 0;
}

/*
 * Chooses ofi_duo's fi_addr for an address: core_addr if it is free, else the
 * lowest free one.
 */
static fi_addr_t duo_core_av_choose(const struct duo_av *av,
				    fi_addr_t core_addr)
{
	fi_addr_t addr = core_addr;

	if (duo_av_has(av, addr)) {
		for (addr = 0; duo_av_has(av, addr); addr++)
			;
	}
	return addr;
}

/*
 * Stores the bytes of an address: those that the lead returns for core_addr,
 * else those of the insert (ofi_rxd returns none before the first message). If
 * there are neither, only the lead has the address. Returns 0 or -FI_ENOMEM.
 */
static int duo_core_av_keep(struct duo_av *av, struct duo_av_addr *to,
			    fi_addr_t core_addr, const void *bytes)
{
	uint8_t buf[DUO_CORE_ADDR_MAX];
	size_t len = sizeof(buf);

	if (!fi_av_lookup(duo_av_core(av), core_addr, buf, &len))
		bytes = buf;
	else
		len = av->domain->addr_len;
	if (!bytes || !len || len > sizeof(buf))
		return 0;
	to->bytes = malloc(len);
	if (!to->bytes)
		return -FI_ENOMEM;
	memcpy(to->bytes, bytes, len);
	to->len = len;
	return 0;
}

void duo_core_av_remove(struct duo_av *av, fi_addr_t addr, uint64_t flags)
{
	struct duo_av_addr *entry = &av->addrs[addr];
	struct duo_core_av *core;

	TAILQ_FOREACH(core, &av->cores, link)
		duo_core_av_drop(core, addr, flags);
	free(entry->bytes);
	*entry = (struct duo_av_addr) { 0 };
}

/*
 * Assigns ofi_duo's addr to a new address, whose fi_addr in the lead is
 * core_addr. Inserts the address into all other AVs. If one of them rejects it,
 * removes it from all AVs. Returns 0 or an error.
 */
static int duo_core_av_add(struct duo_av *av, fi_addr_t core_addr,
			   fi_addr_t addr, const void *bytes)
{
	struct duo_core_av *core = duo_core_av_lead(av);
	int ret;

	duo_core_av_name(core, addr, core_addr);
	ret = duo_core_av_keep(av, &av->addrs[addr], core_addr, bytes);
	while (!ret && (core = TAILQ_NEXT(core, link)))
		ret = duo_core_av_copy(core, &av->addrs[addr], addr);
	if (ret) {
		duo_core_av_remove(av, addr, 0);
		return ret;
	}
	av->addrs[addr].used = true;
	if (addr >= av->high)
		av->high = addr + 1;
	return 0;
}

/* Replaces *addr, the lead's fi_addr, by ofi_duo's. Returns 0 or an error. */
static int duo_core_av_take(struct duo_av *av, fi_addr_t *addr,
			    const void *bytes)
{
	struct duo_core_av *lead = duo_core_av_lead(av);
	fi_addr_t ours, core_addr = *addr;
	int ret;

	if (core_addr < DUO_AV_MAX && lead->fi_addr[core_addr]) {
		*addr = lead->fi_addr[core_addr] - 1;	/* the address was
							 * inserted before */
		return 0;
	}
	ours = core_addr < DUO_AV_MAX ? duo_core_av_choose(av, core_addr) :
					DUO_AV_MAX;
	if (ours >= DUO_AV_MAX) {
		fi_av_remove(lead->av_fid, &core_addr, 1, 0);
		return -FI_ENOSPC;
	}
	ret = duo_core_av_add(av, core_addr, ours, bytes);
	if (!ret)
		*addr = ours;
	return ret;
}

size_t duo_core_av_admit(struct duo_av *av, fi_addr_t *addr,
			 const void *bytes, size_t count, int *err)
{
	const char *next = bytes;
	size_t i, rejected = 0;
	int ret;

	for (i = 0; i < count; i++, next += av->domain->addr_len) {
		if (addr[i] == FI_ADDR_NOTAVAIL)
			continue;
		ret = duo_core_av_take(av, &addr[i], bytes ? next : NULL);
		if (!ret)
			continue;
		DUO_WARN(AV, "av %p: address %zu of %zu was not inserted, "
			 "because one of the core's AVs rejected it: %s\n",
			 (void *) av, i, count, fi_strerror(-ret));
		addr[i] = FI_ADDR_NOTAVAIL;
		if (err)
			err[i] = -ret;
		rejected++;
	}
	return rejected;
}

/* Closes an AV of the core to which no endpoint is bound. */
static void duo_core_av_discard(struct duo_av *av, struct duo_core_av *core)
{
	int ret;

	if (core->listed)
		TAILQ_REMOVE(&av->cores, core, link);
	ret = duo_core_av_close(core);
	if (ret)
		DUO_WARN(AV, "av %p: cannot close the core's AV: %s\n",
			 (void *) av, fi_strerror(-ret));
}

int duo_core_av_bind(struct duo_av *av, struct duo_ep *ep, uint64_t flags)
{
	struct duo_core_av *core = duo_core_av_lead(av);
	int ret;

	if (core->state != DUO_CORE_AV_NEW || av->high) {
		ret = duo_core_av_open_one(av, NULL, &core);
		if (ret)
			return ret;
	}
	ret = fi_ep_bind(ep->path_ep[FI_DUO_CORE], &core->av_fid->fid, flags);
	if (!ret) {
		core->state = DUO_CORE_AV_BOUND;
		ep->core_av = core;
	} else if (!core->listed) {
		duo_core_av_discard(av, core);
	}
	return ret;
}

/*
 * Adds an AV that has all addresses to av->cores. Closes the lead if no
 * endpoint is bound to it: efa inserts addresses only for an AV's endpoint.
 */
static void duo_core_av_join(struct duo_av *av, struct duo_core_av *core)
{
	struct duo_core_av *lead = duo_core_av_lead(av);

	duo_core_av_list(av, core);
	if (lead->state != DUO_CORE_AV_BOUND)
		duo_core_av_discard(av, lead);
}

/* Inserts all addresses into an AV of the core. After an error, it has none. */
static int duo_core_av_copy_all(struct duo_av *av, struct duo_core_av *core)
{
	fi_addr_t addr;
	int ret = 0;

	for (addr = 0; !ret && addr < av->high; addr++) {
		if (duo_av_has(av, addr) && av->addrs[addr].bytes)
			ret = duo_core_av_copy(core, &av->addrs[addr], addr);
	}
	while (ret && addr--)
		duo_core_av_drop(core, addr, 0);
	return ret;
}

int duo_core_av_fill(struct duo_ep *ep)
{
	struct duo_core_av *core = ep->core_av;
	int ret;

	if (core->listed)
		return 0;
	ret = duo_core_av_copy_all(ep->av, core);
	if (!ret)
		duo_core_av_join(ep->av, core);
	else
		DUO_WARN(EP_CTRL, "ep %p: the core's AV of this endpoint "
			 "rejected an address of av %p: %s\n", (void *) ep,
			 (void *) ep->av, fi_strerror(-ret));
	return ret;
}

void duo_core_av_unbind(struct duo_ep *ep)
{
	struct duo_core_av *core = ep->core_av;
	bool last = core->listed && core == duo_core_av_lead(ep->av) &&
		    !TAILQ_NEXT(core, link);

	ep->core_av = NULL;
	core->state = DUO_CORE_AV_LEFT;
	if (!last)
		duo_core_av_discard(ep->av, core);
}
