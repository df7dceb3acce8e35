/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Deferred receives. A receive that a local message may match waits in
 * ep->lazy.list, in posting order, before ofi_duo posts it to the core. From
 * the core, ofi_duo can recall a receive by fi_cancel(). when.h decides which
 * receives to defer, lazy_when.c when to post them. See docs/matching.md. Lock:
 * the group's.
 *
 * Cost on efa: 330 instructions for a post; a recall is an fi_cancel() and a
 * read of the core's CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "base/params.h"
#include "obj/ep.h"

/*
 * Posts rx to the core. Returns 0; -FI_EAGAIN: the core accepts no receive now;
 * or another error of the core.
 */
int duo_lazy_post(struct duo_rx *rx);
/* Removes rx from the list of deferred or blocked receives, if rx is in one. */
void duo_lazy_drop(struct duo_rx *rx);
/* Inserts rx into the list of deferred receives, at the place of rx->seq. */
void duo_lazy_insert(struct duo_rx *rx);
/*
 * Inserts rx directly before `lazy`, into the list (deferred or blocked
 * receives) that contains `lazy`. Does nothing if `lazy` is in neither list.
 */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/*
 * duo_lazy_block() makes rx a blocked receive, until the multi-receive buffer
 * that blocks it is used up or canceled. duo_lazy_unblock() makes all blocked
 * receives deferred; duo_lazy_flush_first() blocks them again if another buffer
 * still blocks them.
 */
void duo_lazy_block(struct duo_rx *rx);
void duo_lazy_unblock(struct duo_ep *ep);
/*
 * Defers the posted receives that name addr. Must be called when the process of
 * addr has exited, has been replaced or cannot be reached. Until then, only
 * local messages could match these receives, so they were neither deferred nor
 * on the core. Now a message over the core may match them. Later receives that
 * are on the core already are recalled and deferred, so that the core gets all
 * receives in posting order.
 */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
/* Posts all deferred receives. -FI_EAGAIN: some remain in the list. */
int duo_lazy_flush(struct duo_ep *ep);
/* Posts deferred receives up to the last due one. Returns 0 or -FI_EAGAIN. */
int duo_lazy_flush_due(struct duo_ep *ep);
/*
 * duo_lazy_flush_once() posts all deferred receives. duo_lazy_flush_oldest()
 * posts the oldest receive that may go to the core: it removes receives before
 * this one from the list if their source is confirmed, and blocks them if a
 * multi-receive buffer blocks them. Both return 0 or -FI_EAGAIN. They do not
 * renew the core poll budget: their caller, duo_ep_age(), polls the core once
 * itself.
 */
int duo_lazy_flush_once(struct duo_ep *ep);
int duo_lazy_flush_oldest(struct duo_ep *ep);
/*
 * Must be called before a receive or peek for *want is posted to the core. If a
 * deferred receive overlaps with *want (one message could match both), posts
 * the whole list first, because the core must have the deferred receive before
 * the new one. Returns 0 or -FI_EAGAIN.
 */
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/*
 * Recalls rx, which must not be in the posted queue. False: the core has
 * matched rx, and its completion will free rx.
 */
bool duo_lazy_recall(struct duo_rx *rx);

/*
 * lazy_when.c. Both functions post deferred receives, and duo_cq_progress()
 * calls both. It calls duo_cq_age() before it polls the local transport, but
 * only in polls that read the clock; duo_cq_flush_lazy() in each poll, after it
 * has polled the local transport.
 */
void duo_cq_age(struct duo_cq *cq);
void duo_cq_flush_lazy(struct duo_cq *cq);

/*
 * Makes the next poll post the oldest deferred receive, or all of them if the
 * local transport is idle. Must be called when the core has delivered a
 * message, because another message may follow.
 */
#define DUO_LONG_AGO (-(1ULL << 62))	/* before all times, us */
static inline void duo_lazy_expedite(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.aged_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->clock_in = 0;
}

/*
 * Marks and counts rx as deferred. lazy: the event after which rx is posted to
 * the core. The caller must insert rx into ep->lazy.list.
 */
DUO_INLINE void duo_lazy_enlist(struct duo_ep *ep, struct duo_rx *rx,
				enum duo_rx_lazy lazy)
{
	rx->lazy = lazy;
	ep->lazy.count++;
	ep->group->lazy++;
	if (lazy == DUO_LAZY_DUE)
		ep->lazy.due++;
	else
		ep->group->waits++;
	duo_ep_set_deferred(ep);
	/*
	 * a sleeping thread must wake, because only polls post rx to the core
	 */
	duo_cq_wake_sleeper(ep->rx_cq);
}

/* Appends rx to the list of deferred receives. */
DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
