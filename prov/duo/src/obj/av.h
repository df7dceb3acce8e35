/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An address vector, and the core's behind it. av/ keeps them; all layers
 * look addresses up. What is written here is under the domain's lock, but
 * for the route words, which sends read without. Cost: 8 and 32 bytes a
 * fi_addr in use.
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
#include "local/registry_index.h"

#define DUO_LOCAL_MAX 4095	/* the largest number that a word has */
#define DUO_AV_MAX (1U << 20)	/* fi_addr beyond: the core carries it */

struct duo_domain;
struct duo_ep;

/*
 * How a fi_addr is reached: one word, read without a lock. The low two bits are
 * the state, the high twelve the number that the peer (peer/peer.h) has given
 * it plus one, 0 if it has none; between them is what the core's fi_addr has
 * more than ours, signed, 0 in most AVs (av_core.c). A state only ever changes
 * from UNDECIDED to CORE or LOCAL, and from LOCAL to CORE while nothing has
 * been sent, so messages to one peer keep their order; removing the address,
 * or inserting it again for another process, starts anew.
 */
enum duo_route_state {
	DUO_ROUTE_NONE,		/* not in the AV */
	DUO_ROUTE_UNDECIDED,	/* no send yet, no record found yet */
	DUO_ROUTE_CORE,
	DUO_ROUTE_LOCAL,
};

typedef _Atomic uint64_t duo_route_word;

/*
 * An address that the core does not look up, or had yet when it was removed;
 * len 0: neither.
 */
struct duo_kept_addr {
	uint8_t len;			/* bytes */
	uint8_t bytes[31];
};

/* An AV of the core, see av_core.c. */
struct duo_core_av {
	struct fid_av *av_fid;
	struct duo_av *av;		/* NULL: out of step, in no list */
	duo_route_word *route;		/* of its endpoints */
	uint32_t *fi_addr;	/* ours plus one, by the core's, 0: none;
				 * NULL: they are the same, route is the AV's */
	int eps;			/* bound to it */
	bool used;			/* it has had one */
	TAILQ_ENTRY(duo_core_av) link;
};
TAILQ_HEAD(duo_core_av_list, duo_core_av);

struct duo_av {
	struct fid_av av_fid;
	struct duo_domain *domain;
	struct duo_core_av_list cores;
	struct fi_av_attr core_attr;
	bool beyond;		/* it has a fi_addr from DUO_AV_MAX on */
	duo_route_word *route;		/* DUO_AV_MAX, by fi_addr; NONE or
					 * UNDECIDED: map.h has the rest */
	struct duo_kept_addr *kept;	/* likewise */
	fi_addr_t high;			/* all fi_addr in use are below */
	struct duo_registry_index index;
	LIST_HEAD(, duo_ep) local_eps;	/* with a local side */
	LIST_ENTRY(duo_av) link;	/* in domain->avs */
	atomic_int refs;
};

static inline struct duo_av *duo_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_av, av_fid);
}

/* The first AV of the core. */
static inline struct fid_av *duo_av_core(const struct duo_av *av)
{
	return TAILQ_FIRST(&av->cores)->av_fid;
}

/* The fi_addr of the source of a message that came over the core. */
static inline fi_addr_t duo_core_av_source(const struct duo_core_av *core,
					   fi_addr_t src)
{
	if (!core->fi_addr || src == FI_ADDR_UNSPEC)
		return src;
	if (src >= DUO_AV_MAX || !core->fi_addr[src])
		return FI_ADDR_NOTAVAIL;
	return core->fi_addr[src] - 1;
}

#endif /* DUO_OBJ_AV_H */
