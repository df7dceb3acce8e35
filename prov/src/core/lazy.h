/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Deferred receives: a receive that a local message may match is in the list
 * ep->lazy.list, in posting order, before it is posted to the core. A receive
 * on the core can be recalled. lazy.c posts and recalls, lazy_when.c decides
 * when to post, when.h decides which receives to defer. docs/matching.md has
 * the reasons. Lock: the domain's.
 *
 * Cost: a post to the core takes some 330 instructions on efa; a recall is an
 * fi_cancel() on the core and a read of the core's CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "base/params.h"
#include "obj/ep.h"

/* lazy.c */
/*
 * Posts rx to the core. Returns 0 or the core's error; -FI_EAGAIN: the core
 * accepts no receive now.
 */
int duo_lazy_post(struct duo_rx *rx);
void duo_lazy_drop(struct duo_rx *rx);
/* Inserts rx into the list of deferred receives, in posting order. */
void duo_lazy_insert(struct duo_rx *rx);
/*
 * Inserts rx before the receive "lazy" into the list that "lazy" is in. Does
 * nothing if "lazy" is in no list.
 */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* Makes rx blocked until a multi-receive buffer is used up. */
void duo_lazy_block(struct duo_rx *rx);
void duo_lazy_unblock(struct duo_ep *ep);
/*
 * Defers the posted receives that name the source addr and that, until now,
 * only local messages could match. Called when another process may have the
 * address.
 */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
int duo_lazy_flush(struct duo_ep *ep);
/*
 * Posts the deferred receives up to the last one that is due. Returns 0 or
 * -FI_EAGAIN.
 */
int duo_lazy_flush_due(struct duo_ep *ep);
/*
 * duo_lazy_flush_once() posts all deferred receives, duo_lazy_flush_oldest()
 * only the first one that the core may match. Both return 0 or -FI_EAGAIN.
 * Neither renews the core poll budget, because the caller polls the core once.
 */
int duo_lazy_flush_once(struct duo_ep *ep);
int duo_lazy_flush_oldest(struct duo_ep *ep);
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/*
 * Recalls rx, which the caller must have removed from the posted queue. Returns
 * true if ofi_duo may match rx. Returns false if the core has matched rx.
 */
bool duo_lazy_recall(struct duo_rx *rx);

/*
 * lazy_when.c: post deferred receives. duo_cq_take_turns() is for aging: called
 * in polls that read the clock, before the local transport is polled.
 * duo_cq_flush_lazy() is called in each poll, after the poll of the local
 * transport.
 */
void duo_cq_take_turns(struct duo_cq *cq);
void duo_cq_flush_lazy(struct duo_cq *cq);

/*
 * Makes the next poll post the oldest deferred receive, because the core has
 * just delivered a message and may have another. If the local transport is
 * idle, the next poll posts all deferred receives anyway, and need not read the
 * clock.
 */
#define DUO_LONG_AGO (-(1ULL << 62))	/* us */
static inline void duo_lazy_hurry(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.turn_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->look_in = 0;
}

/*
 * Counts rx as deferred, with the event "lazy" that posts it. The caller must
 * insert rx into the list.
 */
DUO_INLINE void duo_lazy_enlist(struct duo_ep *ep, struct duo_rx *rx,
				enum duo_rx_lazy lazy)
{
	rx->lazy = lazy;
	ep->lazy.count++;
	ep->domain->lazy++;
	if (lazy == DUO_LAZY_DUE)
		ep->lazy.due++;
	else
		ep->domain->waits++;
	duo_ep_chore(ep);
	duo_cq_rouse(ep->rx_cq);	/* the sleeping thread must poll,
					 * because only a poll posts rx */
}

/* Appends rx to the list of deferred receives. */
DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
