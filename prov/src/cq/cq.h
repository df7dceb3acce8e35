/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues and counters: docs/completions.md. Lock: the functions in
 * fi_ops_cq take the group's lock, except duo_cq_signal(), which takes none.
 * The caller of any other function on a CQ must hold the group's lock, unless
 * the comment of the function names another lock.
 *
 * The *core* is the provider that ofi_duo wraps. The *core poll budget* of a CQ
 * is a number of reads: each of the next core_poll_budget reads polls the core.
 */
#ifndef DUO_CQ_H
#define DUO_CQ_H

#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/domain.h"

int duo_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **cq_fid, void *context);

/*
 * Opens a hidden CQ, for an endpoint to which the application has bound no CQ
 * for sends or no CQ for receives (ep->own_cq). Both paths need the CQ that is
 * missing. The application cannot read a hidden CQ, so ofi_duo drops its
 * entries.
 */
int duo_cq_open_hidden(struct duo_domain *domain, struct duo_cq **cq);

/*
 * Executes fi_cq_readfrom() on the slow path. Releases the group's lock, which
 * the caller must hold.
 */
ssize_t duo_cq_read_all(struct duo_cq *cq, void *buf, size_t count,
			fi_addr_t *src);
ssize_t duo_cq_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *entry,
		       uint64_t flags);
const char *duo_cq_strerror(struct fid_cq *cq_fid, int prov_errno,
			    const void *err_data, char *buf, size_t len);

/* read.c, read_locked.c, read_single.c */
extern struct fi_ops_cq duo_cq_ops, duo_cq_ops_locked, duo_cq_ops_single;

/*
 * Puts a new CQ into its own group, which has its own lock. If all objects of
 * the domain must have one lock (duo_domain_splits()), puts the CQ into the
 * domain's group instead. The caller must not hold the domain's lock.
 */
void duo_cq_group(struct duo_cq *cq);
/*
 * Closes the CQ's own group, if the CQ is in it. No endpoint may use the CQ.
 * The caller must hold the domain's lock.
 */
void duo_cq_ungroup(struct duo_cq *cq);
/*
 * Moves the CQ and its endpoints to the domain's group. The caller must hold
 * all locks of the domain. Returns 0; -FI_ENOMEM: nothing has changed.
 */
int duo_cq_join(struct duo_cq *cq);

/* True if the CQ's core poll budget is not used up. */
DUO_INLINE bool duo_cq_core_busy(const struct duo_cq *cq)
{
	return atomic_load_explicit(&cq->core_poll_budget,
				    memory_order_relaxed);
}

/*
 * True if each poll of the CQ must now poll the core, because the core poll
 * budget is not used up, or because more than local_busy polls in a row have
 * found no message or completion of the local transport.
 */
DUO_INLINE bool duo_cq_core_wanted(const struct duo_cq *cq)
{
	return cq->local_idle > cq->local_busy || duo_cq_core_busy(cq);
}

/* progress.c */
/* Polls the local transport and the core, each if its poll is due. */
void duo_cq_progress(struct duo_cq *cq);
/* Calls duo_cq_progress() for each CQ of the endpoint. */
void duo_ep_progress(const struct duo_ep *ep);
/*
 * Must be called by a read that has stored no entry. Returns the read's result:
 * - -FI_EAVAIL: the application must read an error first
 * - 0: there are entries, but the application has requested none
 * - -FI_EAGAIN: there is no entry
 * May call duo_cq_yield(), which releases the group's lock for a time.
 */
ssize_t duo_cq_read_none(struct duo_cq *cq);
/*
 * Yields the CPU if there are more processes than CPUs, and the last poll found
 * no message or completion of the local transport. The process that sends the
 * next message may need this CPU. Releases the group's lock during the yield;
 * the caller must hold no other lock. Returns -FI_EAGAIN.
 */
ssize_t duo_cq_yield(struct duo_cq *cq);

/* cntr.c */
int duo_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr_fid, void *context);
int duo_cntr_bind_ep(struct duo_cntr *cntr, struct duo_ep *ep,
		     uint64_t flags);
/*
 * Binds the core's counter of each counter of ep to the core's endpoint. The
 * caller must hold the domain's lock.
 */
int duo_cntr_bind_core(const struct duo_ep *ep);
/*
 * Unbinds all counters from ep. The counters keep their values. The caller must
 * hold the domain's lock.
 */
void duo_cntr_unbind(struct duo_ep *ep);
/*
 * Executes fi_trywait() for a counter. Takes the domain's lock. Returns 0 if
 * the application may sleep; -FI_EAGAIN: the counter has changed since the
 * previous fi_trywait(); or another error.
 */
int duo_cntr_trywait(struct duo_cntr *cntr);

/* auto.c: with FI_PROGRESS_AUTO, a thread polls the endpoints of a domain. */
/* True if a domain that is opened with this info must have such a thread. */
bool duo_auto_needed(const struct fi_info *info);
/*
 * Starts the domain's thread if duo_auto_needed() is true. Returns 0; or an
 * error, which this function has logged.
 */
int duo_auto_start(struct duo_domain *domain, const struct fi_info *info);
/* Ends the domain's thread if it has one. The domain must have no endpoints. */
void duo_auto_stop(struct duo_domain *domain);

/* wait.c */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj);
/* Adds the core's CQ, opened with FI_WAIT_FD, to the wait object. */
int duo_cq_wait_core(struct duo_cq *cq);
/*
 * Adds a timer to the CQ's wait object if the local transport or the core has
 * no file descriptor that wakes a sleeping thread.
 */
int duo_cq_wait_timer(struct duo_cq *cq);
ssize_t duo_cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
		     const void *cond, int timeout);
ssize_t duo_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			 fi_addr_t *src, const void *cond, int timeout);
int duo_cq_signal(struct fid_cq *cq_fid);
int duo_cq_control(struct fid *fid, int command, void *arg);
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count);
/*
 * Posts all deferred receives to the core: while a thread sleeps, it does not
 * poll, so no poll posts them. Returns 0. -FI_EAGAIN: the thread must poll
 * instead of sleeping, for one of these reasons:
 * - The core has no space for all these receives.
 * - The unused space of a multi-receive buffer is not posted yet, and the next
 *   poll must post it.
 */
int duo_cq_before_sleep(struct duo_cq *cq);

#endif /* DUO_CQ_H */
