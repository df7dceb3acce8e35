/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An address vector, and the core's AVs behind it, one for each endpoint. av/
 * maintains them; all layers look up addresses here. Lock: the domain's; sends
 * read the route words without it. Cost of a fi_addr in use: 16 bytes, its
 * address, and 12 bytes for each endpoint.
 */
#ifndef DUO_OBJ_AV_H
#define DUO_OBJ_AV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/util.h"

#define DUO_LOCAL_MAX 4095	/* highest peer index that a route holds */
#define DUO_AV_MAX (1U << 20)	/* addresses of an AV */

struct duo_domain;
struct duo_ep;

/*
 * The route of a fi_addr: one word, read without a lock. Bits 0 and 1: the
 * state. The upper 12 bits: the local transport's index of the peer plus one;
 * 0: none. Between them: the core's fi_addr minus ofi_duo's, signed, usually 0
 * (av_core.c). The state changes only from UNDECIDED to CORE or LOCAL, and from
 * LOCAL to CORE before the first message, so messages to one peer keep their
 * order. The state is reset if the address is removed, or has a new process.
 */
enum duo_route_state {
	DUO_ROUTE_NONE,		/* not in the AV */
	DUO_ROUTE_UNDECIDED,	/* no send yet, no record found */
	DUO_ROUTE_CORE,
	DUO_ROUTE_LOCAL,
};

typedef _Atomic uint64_t duo_route_word;

/* An address; elements are indexed by ofi_duo's fi_addr. */
struct duo_av_addr {
	uint8_t *bytes;		/* NULL: the core's fi_av_lookup() fails */
	uint16_t len;		/* of bytes[] */
	bool used;
};

/* An AV of the core, for at most one endpoint; see av_core.c. */
struct duo_core_av {
	struct fid_av *av_fid;
	duo_route_word *route;		/* [DUO_AV_MAX], by ofi_duo's fi_addr */
	uint32_t *fi_addr;	/* by the core's fi_addr: ofi_duo's + 1, or 0 */
	enum {
		DUO_CORE_AV_NEW,	/* no endpoint yet */
		DUO_CORE_AV_BOUND,
		DUO_CORE_AV_LEFT,	/* its endpoint is closed */
	} state;
	bool listed;			/* in av->cores; has all addresses */
	TAILQ_ENTRY(duo_core_av) link;
};

struct duo_av {
	struct fid_av av_fid;
	struct duo_domain *domain;
	TAILQ_HEAD(, duo_core_av) cores;	/* listed ones; never empty */
	struct fi_av_attr core_attr;
	struct duo_av_addr *addrs;	/* [DUO_AV_MAX], by fi_addr */
	fi_addr_t high;			/* upper bound of fi_addr in use */
	LIST_HEAD(, duo_ep) local_eps;	/* endpoints with a local side */
	LIST_ENTRY(duo_av) link;	/* in domain->avs */
	atomic_int refs;
};

static inline struct duo_av *duo_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_av, av_fid);
}

/* Returns the lead: addresses are inserted into this AV of the core first. */
static inline struct fid_av *duo_av_core(const struct duo_av *av)
{
	return TAILQ_FIRST(&av->cores)->av_fid;
}

/* Translates the core's source address of a message to ofi_duo's fi_addr. */
static inline fi_addr_t duo_core_av_source(const struct duo_core_av *core,
					   fi_addr_t src)
{
	if (src < DUO_AV_MAX && core->fi_addr[src])
		return core->fi_addr[src] - 1;
	return src == FI_ADDR_UNSPEC ? src : FI_ADDR_NOTAVAIL;
}

/* True if addr is in the AV. */
static inline bool duo_av_has(const struct duo_av *av, fi_addr_t addr)
{
	return addr < DUO_AV_MAX && av->addrs[addr].used;
}

/* Returns the entry of addr; NULL: addr is not in the AV, or has no bytes. */
static inline const struct duo_av_addr *duo_av_addr(const struct duo_av *av,
						    fi_addr_t addr)
{
	return duo_av_has(av, addr) && av->addrs[addr].bytes ?
	       &av->addrs[addr] : NULL;
}

#endif /* DUO_OBJ_AV_H */
