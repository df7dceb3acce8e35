/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A counter, and who counts in it; cq/cntr.h says how. Under the domain's lock. */
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
 * Two may sleep for a counter in two ways: fi_cntr_wait, and a descriptor after
 * fi_trywait. What wakes one is not the other's, so each has its own.
 */
enum duo_cntr_waiter_kind { DUO_CNTR_CALL, DUO_CNTR_FD, DUO_CNTR_WAITER_KINDS };

struct duo_cntr_sleeper {
	struct duo_waiter waiter;	/* see cq/cntr_wait.c */
	atomic_bool asleep;		/* maybe: it is to be woken */
	uint64_t want;		/* good that wakes it; 0: whatever changes */
	uint64_t good, bad;	/* when it fell asleep */
};

struct duo_cntr {
	struct fid_cntr cntr_fid;
	struct duo_domain *domain;
	struct fid_cntr *path_cntr[FI_DUO_PATH_COUNT];
	struct fid_peer_cntr peer_cntr;	/* libfabric's shm counts here */
	uint64_t own[2];		/* what nothing below says; in error */
	uint64_t core_good;		/* as the core has last said */
	uint32_t core_skip;		/* reads since then */
	bool of_region;			/* the core counts there, too */
	struct duo_cntr_sleeper sleeper[DUO_CNTR_WAITER_KINDS];
	uint64_t seen_good, seen_bad;	/* by fi_trywait */
	atomic_int waiting;		/* threads in fi_cntr_wait */
	LIST_ENTRY(duo_cntr) sleeper_link;	/* in domain->sleepers */
	LIST_HEAD(, duo_cntr_bind) binds;
	atomic_int refs;
};

/* An endpoint counts some of its operations there. */
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

/* Does a counter of the endpoint count any of these? */
bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags);
/* Any thread, with or without the lock. */
void duo_cntr_wake(struct duo_cntr *cntr);
/* Something has come of an endpoint that is counted. Likewise. */
void duo_cntr_rouse(struct duo_ep *ep);
/* An operation of that kind over near has ended; err: 0, or in error. */
void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err);

#endif /* DUO_OBJ_CNTR_H */
