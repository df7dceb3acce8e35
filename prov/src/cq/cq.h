/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues and counters: docs/completions.md. Lock: the functions in
 * fi_ops_cq take the group's lock; all others on CQs need it.
 */
#ifndef DUO_CQ_H
#define DUO_CQ_H

#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/domain.h"

int duo_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **cq_fid, void *context);

/* Opens a hidden CQ (ep->own_cq). */
int duo_cq_open_hidden(struct duo_domain *domain, struct duo_cq **cq);

/* Executes fi_cq_readfrom() on the slow path. Releases the group's lock. */
ssize_t duo_cq_read_all(struct duo_cq *cq, void *buf, size_t count,
			fi_addr_t *src);
ssize_t duo_cq_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *entry,
		       uint64_t flags);
const char *duo_cq_strerror(struct fid_cq *cq_fid, int prov_errno,
			    const void *err_data, char *buf, size_t len);

/* read.c, read_locked.c, read_single.c */
extern struct fi_ops_cq duo_cq_ops, duo_cq_ops_locked, duo_cq_ops_single;

/* Puts a new CQ into its own group, or into the domain's. */
void duo_cq_group(struct duo_cq *cq);
/*
 * Closes the CQ's own group, if any. No endpoint may use the CQ. Needs the
 * domain's lock.
 */
void duo_cq_ungroup(struct duo_cq *cq);
/*
 * Moves the CQ and its endpoints to the domain's group. Needs all locks of the
 * domain. Returns 0; -FI_ENOMEM: nothing has changed.
 */
int duo_cq_join(struct duo_cq *cq);

/* True if the CQ's core poll budget is not used up. */
DUO_INLINE bool duo_cq_core_busy(const struct duo_cq *cq)
{
	return atomic_load_explicit(&cq->core_poll_budget,
				    memory_order_relaxed);
}

/*
 * True if each poll polls the core: the CQ has a core poll budget, or the last
 * local_busy + 1 polls found no local event.
 */
DUO_INLINE bool duo_cq_core_wanted(const struct duo_cq *cq)
{
	return cq->local_idle > cq->local_busy || duo_cq_core_busy(cq);
}

/* progress.c */
void duo_cq_progress(struct duo_cq *cq);
void duo_ep_progress(const struct duo_ep *ep);
/*
 * Returns the result of a read that has stored no entry. May yield the CPU.
 * - -FI_EAVAIL: an error must be read first
 * - 0: there are entries, but the read has requested none
 * - -FI_EAGAIN: there is no entry
 */
ssize_t duo_cq_read_none(struct duo_cq *cq);
/*
 * Yields the CPU if CPUs are oversubscribed and the last poll found no local
 * event: the sender of the next message may need this CPU. Returns -FI_EAGAIN.
 * Releases the group's lock during the yield. The caller must hold no other
 * lock.
 */
ssize_t duo_cq_yield(struct duo_cq *cq);

/* cntr.c */
int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context);
int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep,
		     uint64_t flags);
/* Binds the core's counters to the core's endpoint. Needs the domain's lock. */
int duo_cntr_bind_core(const struct duo_ep *ep);
/* Unbinds ep's counters; their values remain. Needs the domain's lock. */
void duo_cntr_unbind(struct duo_ep *ep);
/*
 * Executes fi_trywait() for a counter. Returns 0 if the application may sleep;
 * -FI_EAGAIN: the counter has changed since the previous fi_trywait().
 */
int duo_cntr_trywait(struct duo_cntr *cntr);

/* auto.c: with FI_PROGRESS_AUTO, a thread polls the endpoints of a domain. */
/* True if a domain opened with this info must have this thread. */
bool duo_auto_needed(const struct fi_info *info);
/* Starts the thread if it is needed. Returns 0 or an error, which is logged. */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends the thread, if any. The domain must have no endpoints. */
void duo_auto_stop(struct duo_domain *domain);

/* wait.c */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj);
/* Adds the core's CQ, opened with FI_WAIT_FD, to the wait object. */
int duo_cq_wait_core(struct duo_cq *cq);
/* Adds a timer to the wait object if a source of events cannot wake threads. */
int duo_cq_wait_timer(struct duo_cq *cq);
ssize_t duo_cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
		     const void *cond, int timeout);
ssize_t duo_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			 fi_addr_t *src, const void *cond, int timeout);
int duo_cq_signal(struct fid_cq *cq_fid);
int duo_cq_control(struct fid *fid, int command, void *arg);
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count);
/*
 * Posts all deferred receives to the core, because no poll does so during a
 * sleep. Returns 0; -FI_EAGAIN: the core has no space for all of them, or the
 * next poll must post remainders of multi-receive buffers.
 */
int duo_cq_before_sleep(struct duo_cq *cq);

#endif /* DUO_CQ_H */
