/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The lists of deferred and of blocked receives, and recalls of receives from
 * the core, the provider that ofi_duo wraps: docs/matching.md. post.h posts
 * receives to the core.
 * - A deferred receive is posted to the core later or never, because a local
 *   message may match it first.
 * - A due receive is a deferred receive that the next poll posts.
 * - A blocked receive must not be posted to the core before an earlier
 *   multi-receive buffer is used up or canceled.
 * - A recall takes a receive back from the core, by fi_cancel().
 *
 * Lock: the group's. Cost of a recall: an fi_cancel() and a read of the core's
 * CQ.
 */
#ifndef DUO_LAZY_H
#define DUO_LAZY_H

#include "obj/ep.h"

/*
 * Removes rx from the list of deferred or blocked receives, if it is in one. If
 * rx was blocked, it may have blocked others, so calls duo_lazy_unblock().
 */
void duo_lazy_drop(struct duo_rx *rx);
/*
 * Defers rx: inserts rx into the list of deferred receives. The list is in the
 * order of rx->seq, the posting order.
 */
void duo_lazy_insert(struct duo_rx *rx);
/*
 * If `lazy` is a deferred or blocked receive, inserts rx into the same list,
 * before `lazy`. Otherwise does nothing.
 */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx);
/* Makes rx a blocked receive, until duo_lazy_unblock(). */
void duo_lazy_block(struct duo_rx *rx);
/* Defers all blocked receives. A later post may block some again. */
void duo_lazy_unblock(struct duo_ep *ep);
/*
 * Defers the posted receives that name addr and that the core has not got. The
 * core has not got them because addr was a confirmed source: it had sent over
 * the local path, so no message of addr could arrive over the core.
 * Recalls later receives from the core first, which keeps the posting order:
 * docs/matching.md, "Proof", I1. Must be called when the process of addr has
 * exited, has been replaced or cannot be reached: another process may then get
 * the address, and send over the core.
 */
void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr);
/*
 * Recalls rx, which must not be in the posted queue. Returns true if rx is not
 * on the core any more. Returns false if the core has matched rx: the
 * completion that the core reports frees rx, or has already freed it.
 */
bool duo_lazy_recall(struct duo_rx *rx);

/* Counts rx as deferred. The caller must also insert rx into ep->lazy.list. */
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
	 * rx waits for a poll of one of the endpoint's CQs
	 * (duo_cq_flush_lazy()), so the threads that sleep on these CQs must
	 * wake up and poll
	 */
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

/*
 * Defers rx, which must be the latest posted receive: appends rx to the list of
 * deferred receives. lazy: DUO_LAZY_DUE or DUO_LAZY_WAITS.
 */
DUO_INLINE void duo_lazy_add(struct duo_ep *ep, struct duo_rx *rx,
			     enum duo_rx_lazy lazy)
{
	TAILQ_INSERT_TAIL(&ep->lazy.list, rx, lazy_link);
	duo_lazy_enlist(ep, rx, lazy);
}

#endif /* DUO_LAZY_H */
