/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Deferred receives: docs/matching.md. when.h decides which receives to defer,
 * lazy_when.c when to post them. Lock: the group's.
 *
 * Cost on efa: 330 instructions for a post; a recall is an fi_cancel() and a
 * read of the core's CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "base/params.h"
#include "obj/ep.h"

/* Posts rx to the core. Returns 0 or the core's error. */
int duo_lazy_post(struct duo_rx *rx);
/*
 * Removes rx from the list of deferred or blocked receives, if it is in one. If
 * rx was blocked, defers the receives that only rx has blocked.
 */
void duo_lazy_drop(struct duo_rx *rx);
/* Defers rx: inserts rx into the list, ordered by rx->seq. */
void duo_lazy_insert(struct duo_rx *rx);
/*
 * Inserts rx directly before `lazy` in the list that `lazy` is in: the deferred
 * or the blocked receives. No effect if `lazy` is in neither.
 */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* Makes rx a blocked receive, until duo_lazy_unblock(). */
void duo_lazy_block(struct duo_rx *rx);
/*
 * Defers all blocked receives. When ofi_duo posts the deferred receives, those
 * that a multi-receive buffer still blocks become blocked again.
 */
void duo_lazy_unblock(struct duo_ep *ep);
/*
 * Must be called when the process of addr has exited, has been replaced or
 * cannot be reached: now the core may deliver messages from addr. Finds the
 * left-out receives: posted receives that name addr and are neither on the core
 * nor deferred. First recalls and defers the receives on the core that were
 * posted after the oldest left-out one, or after an open multi-receive buffer
 * that names addr. Then defers the left-out ones. So the core gets all these
 * receives in posting order, and the buffer blocks receives again.
 */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
/* Posts all deferred receives. Returns 0; -FI_EAGAIN: some remain. */
int duo_lazy_flush(struct duo_ep *ep);
/*
 * Must be called before a receive or peek for *want is posted to the core.
 * Posts all deferred receives if one of them overlaps with *want (one message
 * could match both), to keep the posting order. Returns 0; -FI_EAGAIN: some
 * deferred receives remain, so the caller must not post.
 */
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want);
/*
 * True if an earlier deferred receive overlaps with rx. The core must get this
 * receive first.
 */
bool duo_lazy_precedes(const struct duo_rx *rx);
/*
 * Recalls rx, which must not be in the posted queue. True: rx is not on the
 * core any more. False: the core has matched rx. Then the core's completion
 * will free rx, or has already freed it.
 */
bool duo_lazy_recall(struct duo_rx *rx);

/* Reads the clock, and posts receives by aging. Must precede the local poll. */
void duo_cq_age(struct duo_cq *cq);
/*
 * Posts due receives, or all deferred receives if the local transport is idle.
 * Must be called after the local poll.
 */
void duo_cq_flush_lazy(struct duo_cq *cq);

/*
 * Makes the next poll post the oldest deferred receive, or all if the local
 * transport is idle. Must be called after each message from the core, because
 * the core may have more messages.
 */
#define DUO_LONG_AGO (-(1ULL << 62))	/* earlier than any clock time, us */
static inline void duo_lazy_expedite(struct duo_ep *ep)
{
	ep->lazy.limit = duo_params.defer_polls;
	ep->lazy.aged_us = DUO_LONG_AGO;
	if (ep->rx_cq->local_idle < ep->lazy.limit)
		ep->rx_cq->clock_in = 0;
}

/* Counts rx as deferred. The caller inserts rx into ep->lazy.list. */
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
	/* only polls of these CQs post rx: duo_cq_flush_lazy() */
	duo_ep_wake_sleepers(ep);
}

/* Undoes duo_lazy_enlist(), and removes rx from ep->lazy.list. */
DUO_INLINE void duo_lazy_unlist(struct duo_ep *ep, struct duo_rx *rx)
{
	ep->lazy.count--;
	ep->group->lazy--;
	if (rx->lazy == DUO_LAZY_DUE)
		ep->lazy.due--;
	else
		ep->group->waits--;
	rx->lazy = DUO_LAZY_NONE;
	TAILQ_REMOVE(&ep->lazy.list, rx, lazy_link);
}

DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
