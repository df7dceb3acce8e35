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

/* cq.c, short.c: what fi_cq_readfrom(3) returns */
ssize_t duo_cq_read_long(struct duo_cq *cq, void *buf, size_t count,
			 fi_addr_t *src);
ssize_t duo_cq_read(struct fid_cq *cq_fid, void *buf, size_t count);
ssize_t duo_cq_readfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			fi_addr_t *src);

/* progress.c */
/* Do messages wait for their source, or receives for the core? */
DUO_HOT bool duo_cq_minds(const struct duo_cq *cq)
{
	return cq->domain->held | cq->domain->lazy;
}

/* Has the core something to do? */
DUO_HOT bool duo_cq_core_busy(const struct duo_cq *cq)
{
	return atomic_load_explicit(&cq->core_credit, memory_order_relaxed);
}

/* Is the core polled in every read? */
#define DUO_LOCAL_BUSY 256	/* polls; idle for longer: it is not busy */
DUO_HOT bool duo_cq_core_wanted(const struct duo_cq *cq)
{
	return cq->local_idle > DUO_LOCAL_BUSY || duo_cq_core_busy(cq);
}

void duo_cq_progress(struct duo_cq *cq);
/*
 * The same for a caller who reads, with nothing waiting: what is found goes
 * straight into his array, cq->sink, which may have entries already. What
 * fi_cq_readfrom(3) returns.
 */
ssize_t duo_cq_read_fresh(struct duo_cq *cq);
/* Nothing has come for many polls. Returns -FI_EAGAIN. */
ssize_t duo_cq_yield(struct duo_cq *cq);

/*
 * short.c: short reads are counted as polls of the port and of the peer before
 * the next long one polls, which is one of them; where none is left it is said
 * how many there may be until something else is due. Where cq->quick is set.
 */
void duo_short_settle(struct duo_cq *cq);
void duo_short_give(struct duo_cq *cq);

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

/* waitset.c */
struct duo_fabric;
int duo_waitset_open(struct fid_fabric *fabric_fid, struct fi_wait_attr *attr,
		     struct fid_wait **set_fid);
/*
 * A CQ or counter with that descriptor is in the set, until it leaves. -FI_EINVAL:
 * there is no such set of that fabric.
 */
int duo_waitset_join(struct fid_wait *set_fid, struct duo_fabric *fabric,
		     struct fid *fid, int fd);
/*
 * Taken before the domain's lock: nobody looks at members until it is given
 * back. NULL: there is no set.
 */
void duo_waitset_lock(struct fid_wait *set_fid);
void duo_waitset_unlock(struct fid_wait *set_fid);
/* With the set locked. */
void duo_waitset_leave(struct fid_wait *set_fid, const struct fid *fid);
int duo_waitset_trywait(struct fid *fid);
/* What is in a set has a descriptor. */
static inline enum fi_wait_obj duo_wait_obj(enum fi_wait_obj obj)
{
	return obj == FI_WAIT_SET ? FI_WAIT_FD : obj;
}

/* poll.c */
int duo_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr,
		  struct fid_poll **poll_fid);
/* Under the lock: the CQ or counter goes, and leaves the sets that it is in. */
void duo_poll_forget(struct duo_domain *domain, const struct fid *fid);

#endif /* DUO_CQ_H */
