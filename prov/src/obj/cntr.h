/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A counter and the endpoints that it counts: cq/cntr.h. Lock: the domain's. */
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

/*
 * One thread may sleep in fi_cntr_wait(), another on the counter's descriptor
 * after fi_trywait(). Each has a waiter: neither consumes the other's wakeup.
 */
enum duo_cntr_waiter_kind { DUO_CNTR_CALL, DUO_CNTR_FD, DUO_CNTR_WAITER_KINDS };

struct duo_cntr_sleeper {
	struct duo_waiter waiter;	/* see cq/cntr_wait.c */
	atomic_bool asleep;		/* true: changes must wake the thread */
	uint64_t want;		/* threshold; 0: any change wakes the thread */
	uint64_t good, bad;	/* counts when the thread fell asleep */
};

struct duo_cntr {
	struct fid_cntr cntr_fid;
	struct duo_domain *domain;
	struct fid_cntr *path_cntr[FI_DUO_PATH_COUNT];
	struct fid_peer_cntr peer_cntr;	/* incremented by libfabric's shm */
	uint64_t own[2];		/* addend of the value; [1]: errors */
	uint64_t core_good;		/* last value of the core's counter */
	uint32_t core_skip;	/* reads while the core was idle; wraps */
	bool of_region;			/* also bound to a memory region */
	struct duo_cntr_sleeper sleeper[DUO_CNTR_WAITER_KINDS];
	uint64_t seen_good, seen_bad;	/* counts at the last fi_trywait() */
	atomic_int waiting;		/* threads in fi_cntr_wait */
	LIST_ENTRY(duo_cntr) sleeper_link;	/* in domain->sleepers */
	LIST_HEAD(, duo_cntr_bind) binds;
	atomic_int refs;
};

/* Binding of a counter to an endpoint; flags: the operations to count. */
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
/* Wakes the threads that sleep on cntr. Any thread may call; lock optional. */
void duo_cntr_wake(struct duo_cntr *cntr);
/* Wakes the sleepers of all counters of ep, after one may have changed. */
void duo_cntr_rouse(struct duo_ep *ep);
/* Counts an RMA operation or atomic over near; err: nonzero if it failed. */
void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err);

#endif /* DUO_OBJ_CNTR_H */
