/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An address vector, and those of the core, one for each endpoint. av/ keeps
 * them; all layers look addresses up. What is written here is under the
 * domain's lock, but for the route words, which sends read without. Cost: 16
 * bytes and the address for a fi_addr in use, 12 for each endpoint.
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

#define DUO_LOCAL_MAX 4095	/* the largest number that a word has */
#define DUO_AV_MAX (1U << 20)	/* addresses of an AV */

struct duo_domain;
struct duo_ep;

/*
 * How a fi_addr is reached: one word, read without a lock. The low two bits are
 * the state, the high twelve the number that the peer (transport/transport.h) has given
 * it plus one, 0 if it has none; between them is what the core's fi_addr has
 * more than ours, signed, mostly 0 (av_core.c). A state only ever changes from
 * UNDECIDED to CORE or LOCAL, and from LOCAL to CORE while nothing has been
 * sent, so messages to one peer keep their order; removing the address, or
 * inserting it again for another process, starts anew.
 */
enum duo_route_state {
	DUO_ROUTE_NONE,		/* not in the AV */
	DUO_ROUTE_UNDECIDED,	/* no send yet, no record found yet */
	DUO_ROUTE_CORE,
	DUO_ROUTE_LOCAL,
};

typedef _Atomic uint64_t duo_route_word;

/* An address by our fi_addr. */
struct duo_av_addr {
	uint8_t *bytes;		/* NULL: the core does not look it up */
	uint16_t len;		/* bytes */
	bool used;
};

/* An AV of the core, which serves one endpoint at most; see av_core.c. */
struct duo_core_av {
	struct fid_av *av_fid;
	duo_route_word *route;		/* DUO_AV_MAX, by our fi_addr */
	uint32_t *fi_addr;		/* ours plus one, by the core's; 0: none */
	enum {
		DUO_CORE_AV_NEW,	/* no endpoint yet */
		DUO_CORE_AV_BOUND,
		DUO_CORE_AV_LEFT,	/* its endpoint is closed */
	} state;
	bool listed;			/* it has all addresses of our AV */
	TAILQ_ENTRY(duo_core_av) link;
};

struct duo_av {
	struct fid_av av_fid;
	struct duo_domain *domain;
	TAILQ_HEAD(, duo_core_av) cores;	/* listed; never empty */
	struct fi_av_attr core_attr;
	struct duo_av_addr *addrs;	/* DUO_AV_MAX, by fi_addr */
	fi_addr_t high;			/* all fi_addr in use are below */
	LIST_HEAD(, duo_ep) local_eps;	/* with a local side */
	LIST_ENTRY(duo_av) link;	/* in domain->avs */
	atomic_int refs;
};

static inline struct duo_av *duo_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_av, av_fid);
}

/* The first AV of the core, which addresses are inserted into first. */
static inline struct fid_av *duo_av_core(const struct duo_av *av)
{
	return TAILQ_FIRST(&av->cores)->av_fid;
}

/* The fi_addr of the source of a message that came over the core. */
static inline fi_addr_t duo_core_av_source(const struct duo_core_av *core,
					   fi_addr_t src)
{
	if (src < DUO_AV_MAX && core->fi_addr[src])
		return core->fi_addr[src] - 1;
	return src == FI_ADDR_UNSPEC ? src : FI_ADDR_NOTAVAIL;
}

/* Is it in the AV? */
static inline bool duo_av_has(const struct duo_av *av, fi_addr_t addr)
{
	return addr < DUO_AV_MAX && av->addrs[addr].used;
}

/* The bytes of an address; NULL: it is not in the AV, or has none. */
static inline const struct duo_av_addr *duo_av_addr(const struct duo_av *av,
						    fi_addr_t addr)
{
	return duo_av_has(av, addr) && av->addrs[addr].bytes ?
	       &av->addrs[addr] : NULL;
}

#endif /* DUO_OBJ_AV_H */
