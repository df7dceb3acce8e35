/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A counter and its bindings to endpoints. Lock: the domain's. */
#ifndef DUO_OBJ_CNTR_H
#define DUO_OBJ_CNTR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <rdma/fi_duo.h>

#include "base/compat.h"
#include "base/util.h"
#include "obj/waiter.h"

struct duo_domain;
struct duo_ep;

struct duo_cntr {
	struct fid_cntr cntr_fid;
	struct duo_domain *domain;
	struct fid_cntr *path_cntr[FI_DUO_PATH_COUNT];
	struct fid_peer_cntr peer_cntr;	/* libfabric's shm increments it */
	/*
	 * successes [0] and errors [1] of near's RMA, atomics and remote
	 * accesses, of shm and of closed endpoints; and the application's
	 * values
	 */
	uint64_t own[2];
	/* successes [0] and errors [1] when the core's counter was last read */
	uint64_t core[2];
	/* number of polls that duo_cntr_core_due() has counted */
	uint32_t core_skip;
	bool on_core;	/* the core's counter has been bound */
	struct duo_waiter waiter;	/* wait object */
	uint64_t seen[2];	/* values at the last fi_trywait(), as own[] */
	LIST_HEAD(, duo_cntr_bind) binds;
	atomic_int refs;
};

/* The binding of a counter to an endpoint, with the flags of fi_ep_bind(3). */
struct duo_cntr_bind {
	struct duo_cntr *cntr;
	struct duo_ep *ep;
	uint64_t flags;
	LIST_ENTRY(duo_cntr_bind) cntr_link;	/* in cntr->binds */
	LIST_ENTRY(duo_cntr_bind) ep_link;	/* in ep->cntrs */
};

static inline struct duo_cntr *duo_cntr_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_cntr, cntr_fid.fid);
}

/* True if a counter of the endpoint counts any of these operations. */
bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags);
/*
 * Counts an operation of near in each counter that is bound to ep with `flag`:
 * as a success if err is 0, else as an error.
 */
void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err);

#endif /* DUO_OBJ_CNTR_H */
