/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * An address vector (AV). An address has the same fi_addr as in the AV of the
 * core, the provider that ofi_duo wraps.
 *
 * Locks: to read an AV, a thread needs the lock of any one group of the domain
 * (obj/group.h). To change an AV, a thread needs all locks of the domain
 * (duo_domain_lock()). Senders read route words without a lock.
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

#define DUO_LOCAL_MAX 4095	/* maximum number of local peers per endpoint */
#define DUO_AV_MAX (1U << 20)	/* maximum number of addresses in an AV */

struct duo_domain;
struct duo_ep;

/*
 * The route of a fi_addr: one word (docs/objects.md, "Routes"). Bits 0 and 1:
 * the state. Upper bits: the peer index plus 1; 0: none.
 */
enum duo_route_state {
	DUO_ROUTE_NONE,		/* the address is not in the AV */
	/*
	 * The next send to the address chooses the path; in the provider near,
	 * a receive that names the address does so, too. None has chosen one
	 * yet, or near had no memory for a peer, or ofi_duo has removed the
	 * peer index from the route, because the peer has failed or another
	 * process has the address.
	 */
	DUO_ROUTE_UNDECIDED,
	DUO_ROUTE_CORE,
	DUO_ROUTE_LOCAL,
};

typedef _Atomic uint64_t duo_route_word;

/* An address in an AV. Its index in duo_av.addrs[] is its fi_addr. */
struct duo_av_addr {
	/* bytes of the address at the core; NULL: not stored, duo_av_keep() */
	uint8_t *bytes;
	uint16_t len;		/* length of bytes[] */
	bool used;
};

struct duo_av {
	struct fid_av av_fid;
	struct duo_domain *domain;
	struct fid_av *core;	/* the core's AV, of type FI_AV_TABLE */
	struct duo_av_addr *addrs;	/* [DUO_AV_MAX], indexed by fi_addr */
	fi_addr_t high;	/* all fi_addr in use are below this one */
	LIST_HEAD(, duo_ep) eps;	/* enabled endpoints with this AV */
	LIST_ENTRY(duo_av) link;	/* in domain->avs */
	atomic_int refs;
};

static inline struct duo_av *duo_av_of(struct fid_av *av_fid)
{
	return duo_container_of(av_fid, struct duo_av, av_fid);
}

/* True if addr is in the AV. */
static inline bool duo_av_has(const struct duo_av *av, fi_addr_t addr)
{
	return addr < DUO_AV_MAX && av->addrs[addr].used;
}

/* Returns addr's entry. NULL: addr is not in the AV, or has no bytes[]. */
static inline const struct duo_av_addr *duo_av_addr(const struct duo_av *av,
						    fi_addr_t addr)
{
	return duo_av_has(av, addr) && av->addrs[addr].bytes ?
	       &av->addrs[addr] : NULL;
}

#endif /* DUO_OBJ_AV_H */
