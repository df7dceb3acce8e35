/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Deferred receives. A receive that a local message may match is in the lazy
 * list, in posting order, before it is posted to the core. A receive on the
 * core can be recalled. lazy.c posts and recalls; lazy_when.c decides when to
 * post, when.h which receives to defer. docs/matching.md has the reasons. Under
 * the domain's lock.
 *
 * Cost: a post to the core is some 330 instructions on efa; a recall is the
 * core's fi_cancel and a read of its CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "base/params.h"
#include "obj/ep.h"

/* lazy.c */
/* Posts rx to the core. Returns 0, -FI_EAGAIN, or another error of the core. */
int duo_lazy_post(struct duo_rx *rx);
void duo_lazy_drop(struct duo_rx *rx);
/* Inserts rx in posting order. */
void duo_lazy_insert(struct duo_rx *rx);
/* Inserts rx before the receive lazy, if lazy is in a list. */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* Blocks rx until a multi-receive buffer is used up. */
void duo_lazy_block(struct duo_rx *rx);
void duo_lazy_unblock(struct duo_ep *ep);
/* Defers receives from addr that, until now, only local messages matched. */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
int duo_lazy_flush(struct duo_ep *ep);
/* Posts the list up to the last due receive. */
int duo_lazy_flush_due(struct duo_ep *ep);
/* Post all, or the first that the core may satisfy, without renewing the core
 * poll budget: the caller polls the core once. */
int duo_lazy_flush_once(struct duo_ep *ep);
int duo_lazy_flush_oldest(struct duo_ep *ep);
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/* Recalls rx, which is in no queue; false: the core has matched rx. */
bool duo_lazy_recall(struct duo_rx *rx);

/* lazy_when.c: post deferred receives. In a poll that reads the clock, for
 * aging, before the local transport is polled; in each poll, after it. */
void duo_cq_take_turns(struct duo_cq *cq);
void duo_cq_flush_lazy(struct duo_cq *cq);

/*
 * Lets the next poll post the oldest receive: the core has delivered, and may
 * deliver again. If the local transport is idle, that poll posts all receives
 * and does not read the clock.
 */
#define DUO_LONG_AGO (-(1ULL << 62))	/* microseconds */
static inline void duo_lazy_hurry(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.turn_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->look_in = 0;
}

/* Counts rx as deferred. The caller inserts it into the list. */
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
	duo_cq_rouse(ep->rx_cq);	/* only a poll posts it to the core */
}

/* Appends rx to the list. */
DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
