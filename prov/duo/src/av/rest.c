/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "av/map.h"
#include "av/rest.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/params.h"
#include "obj/ep.h"
#include "obj/fabric.h"

#define DUO_REST_MAX 512	/* addresses: more than ranks of a host */
#define DUO_REST_IDLE 4096	/* polls: somebody is waited for */
#define DUO_REST_BUSY 2		/* times as long while nobody is */

struct duo_rest {
	struct duo_av *av;
	struct duo_core_av *core;	/* that will take them */
	bool open;		/* their endpoint, without which it cannot */
	uint64_t until_ms;	/* monotonic; UINT64_MAX: no endpoint */
	uint64_t at_last_ms;	/* though local messages come; likewise */
	size_t len;		/* bytes of an address */
	fi_addr_t count;	/* fi_addr are those below */
	bool gone[DUO_REST_MAX];	/* removed */
	uint8_t addr[];
};

static uint8_t *duo_rest_addr(struct duo_rest *rest, fi_addr_t addr)
{
	return rest->addr + addr * rest->len;
}

bool duo_rest_is_of(const struct duo_av *av)
{
	return av->domain->rest->av == av;
}

static void duo_rest_free(struct duo_domain *domain)
{
	free(domain->rest);
	domain->rest = NULL;
}

void duo_rest_forget(const struct duo_av *av)
{
	if (duo_rest_of(av))
		duo_rest_free(av->domain);
}

/*
 * Messages alone, completions by CQs alone, to local peers alone: so all ways
 * to the core are known, and each looks whether it rests.
 */
static bool duo_rest_may(const struct duo_ep *ep)
{
	const struct duo_av *av = ep->av;

	return ep->core.slow_start && duo_params.core_rest &&
	       !ep->domain->started && ep->map &&
	       !(ep->caps & (FI_RMA | FI_ATOMIC | FI_HMEM)) &&
	       LIST_EMPTY(&ep->cntrs) && !av->high && !av->beyond &&
	       atomic_load(&av->refs) == 1 && !ep->core_av->fi_addr;
}

/* Without memory for it the core does not rest. */
static void duo_rest_begin(const struct duo_ep *ep)
{
	struct duo_rest *rest;
	uint8_t addr[DUO_ADDR_MAX];
	size_t len = sizeof(addr);

	if (fi_getname(&ep->path_ep[FI_DUO_CORE]->fid, addr, &len))
		return;
	rest = calloc(1, sizeof(*rest) + DUO_REST_MAX * len);
	if (!rest)
		return;
	rest->av = ep->av;
	rest->core = ep->core_av;
	rest->open = true;
	rest->len = len;
	rest->until_ms = duo_clock_coarse_ms() + duo_params.core_rest;
	rest->at_last_ms = rest->until_ms +
			   (DUO_REST_BUSY - 1) * duo_params.core_rest;
	ep->domain->rest = rest;
}

void duo_rest_enabled(struct duo_ep *ep)
{
	struct duo_domain *domain = ep->domain;

	if (duo_rest_may(ep))
		duo_rest_begin(ep);
	else
		duo_rest_end(domain);
	if (domain->rest && !domain->rest->open)	/* this one is polled */
		domain->rest->until_ms = domain->rest->at_last_ms = 0;
	domain->started = true;
}

void duo_rest_closing(const struct duo_ep *ep)
{
	struct duo_rest *rest = ep->domain->rest;

	if (ep->enabled && duo_rest_of(ep->av))
		rest->until_ms = rest->at_last_ms = UINT64_MAX;
}

void duo_rest_closed(const struct duo_ep *ep)
{
	if (ep->enabled && duo_rest_of(ep->av))
		ep->domain->rest->open = false;
}

/*
 * Of a call with another one the core says what it takes. Without an endpoint
 * there is nobody to ask.
 */
static bool duo_rest_all_local(const struct duo_rest *rest,
			       const uint8_t *bytes, size_t count)
{
	const struct duo_ep *ep = LIST_FIRST(&rest->av->local_eps);
	char peer_name[DUO_PEER_NAME_MAX];
	size_t i;

	if (!ep)
		return !rest->open;
	for (i = 0; i < count; i++) {
		if (duo_registry_lookup(bytes + i * rest->len, rest->len,
					&ep->publication, peer_name) !=
		    FI_DUO_REGISTERED)
			return false;
	}
	return true;
}

/* As the core an address that is there has its number already. */
static fi_addr_t duo_rest_insert_one(struct duo_rest *rest, const void *bytes)
{
	fi_addr_t addr;

	for (addr = 0; addr < rest->count; addr++) {
		if (!rest->gone[addr] &&
		    !memcmp(duo_rest_addr(rest, addr), bytes, rest->len))
			return addr;
	}
	memcpy(duo_rest_addr(rest, addr), bytes, rest->len);
	rest->count++;
	return addr;
}

bool duo_rest_insert(struct duo_av *av, const void *addr, size_t count,
		     fi_addr_t *fi_addr)
{
	struct duo_rest *rest = av->domain->rest;
	const uint8_t *bytes = addr;
	size_t i;

	if (!duo_rest_of(av) || count > DUO_REST_MAX - rest->count ||
	    !duo_rest_all_local(rest, bytes, count))
		return false;
	for (i = 0; i < count; i++)
		fi_addr[i] = duo_rest_insert_one(rest, bytes + i * rest->len);
	return true;
}

static bool duo_rest_has(const struct duo_rest *rest, fi_addr_t addr)
{
	return addr < rest->count && !rest->gone[addr];
}

int duo_rest_lookup(const struct duo_av *av, fi_addr_t addr, void *buf,
		    size_t *len)
{
	struct duo_rest *rest = av->domain->rest;

	if (!duo_rest_has(rest, addr))
		return -FI_EINVAL;
	memcpy(buf, duo_rest_addr(rest, addr),
	       rest->len < *len ? rest->len : *len);
	*len = rest->len;
	return 0;
}

/* Its number is not given again: the bytes may be in use yet. */
int duo_rest_remove(struct duo_av *av, fi_addr_t addr)
{
	struct duo_rest *rest = av->domain->rest;

	if (!duo_rest_has(rest, addr))
		return -FI_EINVAL;
	rest->gone[addr] = true;
	return 0;
}

/*
 * fi_av_insert has returned success long ago. Who is reached over shared memory
 * needs no core, if it can be written down that it has none.
 */
static void duo_rest_refused(struct duo_rest *rest, fi_addr_t addr, bool keep,
			     int err)
{
	struct duo_ep *ep = LIST_FIRST(&rest->av->local_eps);

	keep = keep && ep && duo_map_only_local(ep, addr);
	DUO_WARN(AV, "av %p: the core %s does not take fi_addr %" PRIu64 ", "
		 "which was inserted while it rested: %s; %s. With "
		 "FI_OFI_DUO_CORE_REST=0 fi_av_insert says so\n",
		 (void *) rest->av, rest->av->domain->fabric->core_name, addr,
		 fi_strerror(err), keep ? "it is reached locally alone" :
					  "it is removed");
	if (!keep)
		duo_av_drop(rest->av, addr);
}

/* The core's number, FI_ADDR_NOTAVAIL: it has none for it. */
static fi_addr_t duo_rest_give(struct duo_rest *rest, fi_addr_t addr)
{
	fi_addr_t core_addr = FI_ADDR_NOTAVAIL;
	int ret;

	if (rest->gone[addr])
		return FI_ADDR_NOTAVAIL;
	ret = fi_av_insert(rest->core->av_fid, duo_rest_addr(rest, addr), 1,
			   &core_addr, 0, NULL);
	if (ret == 1 && core_addr < DUO_AV_MAX)
		return core_addr;
	if (ret == 1)
		fi_av_remove(rest->core->av_fid, &core_addr, 1, 0);
	duo_rest_refused(rest, addr, true, ret == 1 ? FI_ENOSPC :
					   ret < 0 ? -ret : FI_EADDRNOTAVAIL);
	return FI_ADDR_NOTAVAIL;
}

/* Numbers that differ from ours, and no memory to write that down. */
static void duo_rest_take_back(struct duo_rest *rest, fi_addr_t *core_addr,
			       int err)
{
	fi_addr_t addr;

	for (addr = 0; addr < rest->count; addr++) {
		if (core_addr[addr] == addr || rest->gone[addr])
			continue;
		if (core_addr[addr] != FI_ADDR_NOTAVAIL)
			fi_av_remove(rest->core->av_fid, &core_addr[addr], 1,
				     0);
		duo_rest_refused(rest, addr, false, err);
	}
}

/*
 * The core numbers them in the order of their insertion, as we have, unless
 * some have been removed or are refused.
 */
static void duo_rest_give_all(struct duo_domain *domain)
{
	struct duo_rest *rest = domain->rest;
	fi_addr_t addr, core_addr[DUO_REST_MAX];
	bool same = true;
	int ret;

	domain->rest = NULL;
	for (addr = 0; addr < rest->count; addr++) {
		core_addr[addr] = duo_rest_give(rest, addr);
		same = same && (core_addr[addr] == addr || rest->gone[addr]);
	}
	ret = same ? 0 : duo_core_av_renumber(rest->av, core_addr,
					      rest->count);
	if (ret)
		duo_rest_take_back(rest, core_addr, -ret);
	free(rest);
}

void duo_rest_over(struct duo_domain *domain)
{
	if (domain->rest->open)
		duo_rest_give_all(domain);
}

/* To the AV that they wait for, or to one that has taken its place and them. */
void duo_rest_bound(struct duo_av *av)
{
	if (!duo_rest_of(av))
		return;
	if (av->domain->rest->core == TAILQ_FIRST(&av->cores))
		duo_rest_give_all(av->domain);
	else
		duo_rest_free(av->domain);
}

/*
 * To end it takes milliseconds: better when there is time, and the others have
 * it too, than amid their messages.
 */
bool duo_rest_lasts(struct duo_domain *domain, uint32_t idle)
{
	const struct duo_rest *rest = domain->rest;

	if (duo_clock_coarse_ms() < (idle < DUO_REST_IDLE ? rest->at_last_ms :
							    rest->until_ms))
		return true;
	duo_rest_over(domain);
	return false;
}
