/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A counter and its bindings to endpoints. Its value is the sum of the counts
 * of several objects: docs/completions.md, "Counters". Lock: the domain's.
 */
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
	 * successes [0] and errors [1] that no other object counts. They are
	 * the sum of
	 * - RMA, atomics and remote accesses over near
	 * - operations over libfabric's shm
	 * - the counts of endpoints that have been closed
	 * - the changes that the application has made, such as by fi_cntr_add()
	 */
	uint64_t own[2];
	/* successes [0] and errors [1] when the core's counter was last read */
	uint64_t core[2];
	/*
	 * number of polls in which duo_cntr_core_due() had no other reason to
	 * read the core's counter; every core_poll_interval-th of them reads it
	 */
	uint32_t core_skip;
	/* the core's counter has been bound to an object of the core */
	bool on_core;
	struct duo_waiter waiter;	/* wait object */
	/* total successes [0] and errors [1] at the last fi_trywait() */
	uint64_t seen[2];
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

/*
 * True if a counter is bound to the endpoint with at least one of `flags`, the
 * kinds of operations of fi_ep_bind(3).
 */
bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags);
/*
 * Counts an operation over near in each counter that is bound to ep with
 * `flag`. If err is 0, counts a success, otherwise an error.
 */
void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err);

#endif /* DUO_OBJ_CNTR_H */
