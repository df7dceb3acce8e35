/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues: progress.c polls both paths, which write into the ring
 * or straight into the reader's array; cq.c reads; wait.c is for who sleeps.
 * The calls take the domain's lock, the rest is under it.
 *
 * Cost: a read that finds nothing polls shared memory, and the core only
 * while it has something to do or shared memory has not (progress.c).
 */
#ifndef DUO_CQ_H
#define DUO_CQ_H

#include "obj/cq.h"
#include "obj/domain.h"

int duo_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **cq_fid, void *context);

/*
 * Where nobody reads completions: they are dropped. sleeps: somebody does, for
 * what they count.
 */
int duo_cq_open_hidden(struct duo_domain *domain, bool sleeps,
		       struct duo_cq **cq);

/*
 * cq.c: a read that looks at all there may be; the lock is held, and released.
 * What fi_cq_readfrom(3) returns.
 */
ssize_t duo_cq_read_all(struct duo_cq *cq, void *buf, size_t count,
			fi_addr_t *src);
ssize_t duo_cq_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *entry,
		       uint64_t flags);
ssize_t duo_cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
		     const void *cond, int timeout);
ssize_t duo_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			 fi_addr_t *src, const void *cond, int timeout);
const char *duo_cq_strerror(struct fid_cq *cq_fid, int prov_errno,
			    const void *err_data, char *buf, size_t len);

/* read.c, read_locked.c */
extern struct fi_ops_cq duo_cq_ops, duo_cq_ops_locked;

/* progress.c */
/* Has the core something to do? */
DUO_INLINE bool duo_cq_core_busy(const struct duo_cq *cq)
{
	return atomic_load_explicit(&cq->core_poll_budget,
				    memory_order_relaxed);
}

/* Is the core polled in every read? */
DUO_INLINE bool duo_cq_core_wanted(const struct duo_cq *cq)
{
	return cq->local_idle > cq->local_busy || duo_cq_core_busy(cq);
}

void duo_cq_progress(struct duo_cq *cq);
/* What a read returns that has polled and taken nothing; 0: it was to take none. */
ssize_t duo_cq_read_none(struct duo_cq *cq);
/* Nothing has come for many polls. Returns -FI_EAGAIN. */
ssize_t duo_cq_yield(struct duo_cq *cq);

/* wait.c */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj);
/* The core's CQ, opened with FI_WAIT_FD, has a descriptor: it is used. */
int duo_cq_wait_core(struct duo_cq *cq);
/* For those who have none. */
int duo_cq_wait_timer(struct duo_cq *cq);
struct duo_nap;
/* A step of a blocking read: until something may have come. */
void duo_cq_sleep(struct duo_cq *cq, struct duo_nap *nap);
int duo_cq_signal(struct fid_cq *cq_fid);
int duo_cq_control(struct fid *fid, int command, void *arg);
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count);
/* Under the domain's lock. -FI_EAGAIN: the core takes no receives now. */
int duo_cq_before_sleep(struct duo_cq *cq);

#endif /* DUO_CQ_H */
