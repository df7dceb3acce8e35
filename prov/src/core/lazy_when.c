/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Decides when deferred receives are posted to the core: docs/matching.md. A
 * post costs microseconds, and so does the recall if a local message then
 * matches the receive. So aging, during local traffic, posts on average at most
 * two receives in each defer_us, and one more after each message of the core.
 */

#include "base/clock.h"
#include "core/lazy.h"
#include "core/read.h"

/* minimum number of polls between two reads of the clock */
#define DUO_CLOCK_MIN 4
/* minimum time since the previous read of the clock for a slow read, us */
#define DUO_CLOCK_SLOW 4000
/* maximum number of polls between two reads of the clock */
#define DUO_CLOCK_MAX 64
/* time that receives wait before ofi_duo uses an unused core, us */
#define DUO_UNUSED_US 1000000

/*
 * Reads the clock and sets the number of polls until the next read. Counts
 * successive slow reads in cq->slow: reads at least DUO_CLOCK_SLOW after the
 * previous one. If cq->slow is above 1, the application polls seldom. Then
 * duo_ep_flush_lazy() posts all deferred receives at once, and does not wait
 * until the local transport is idle.
 */
static void duo_cq_read_clock(struct duo_cq *cq)
{
	uint64_t now = duo_clock_us();
	uint64_t passed = cq->clock_us ? now - cq->clock_us : 0;

	cq->slow = passed >= DUO_CLOCK_SLOW ? cq->slow + 1 : 0;
	if (passed >= duo_params.defer_us || cq->slow || !cq->clock_every)
		cq->clock_every = DUO_CLOCK_MIN;
	else if (passed < duo_params.defer_us / 2 &&
		 cq->clock_every < DUO_CLOCK_MAX)
		cq->clock_every *= 2;
	cq->clock_in = cq->clock_every;
	cq->clock_us = now;
}

static void duo_ep_flushed(struct duo_ep *ep, uint64_t now, int ret)
{
	if (ret)
		return;		/* the next poll posts the remaining receives */
	ep->lazy.aged_us = now;
	ep->lazy.all_us = now;
}

/*
 * Does the aging: posts the oldest deferred receive every defer_us. Posts the
 * whole list instead if (length of the list) * defer_us have passed since the
 * whole list was last posted. Without aging, the core would get no deferred
 * receive during continuous local traffic. Polls the core directly after a
 * post, before local messages can cause recalls.
 *
 * If the core is unused, posts nothing, but calls duo_ep_use_core() when
 * receives have waited for DUO_UNUSED_US.
 */
static void duo_ep_age(struct duo_ep *ep, uint64_t now)
{
	int64_t wait = duo_params.defer_us;

	if (!ep->lazy.all_us)	/* first call, or set to 0 in rx/recv.c */
		ep->lazy.aged_us = ep->lazy.all_us = now;
	if (duo_cq_core_unused(ep->rx_cq)) {
		if (now - ep->lazy.all_us >= DUO_UNUSED_US)
			duo_ep_use_core(ep);
		return;
	}
	if ((int64_t) (now - ep->lazy.aged_us) < wait)
		return;
	if ((int64_t) (now - ep->lazy.all_us) >= wait * ep->lazy.count) {
		duo_ep_flushed(ep, now, duo_lazy_flush_once(ep));
	} else {
		duo_lazy_flush_oldest(ep);
		ep->lazy.aged_us = now;
	}
	/* after a message of the core, the next CQ reads must poll the core */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
}

static bool duo_ep_waits(const struct duo_ep *ep)
{
	return ep->lazy.count && !ep->closing;
}

/*
 * True if the endpoint has deferred receives that are not due, and only aging
 * posts them in the current poll: the local transport is not idle, or the core
 * is unused.
 */
static bool duo_ep_needs_aging(const struct duo_cq *cq, const struct duo_ep *ep)
{
	return ep->lazy.count > ep->lazy.due && !ep->closing &&
	       (cq->local_idle < ep->lazy.limit || duo_cq_core_unused(cq));
}

void duo_cq_age(struct duo_cq *cq)
{
	struct duo_ep *ep;

	duo_cq_read_clock(cq);
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_needs_aging(cq, ep))
			duo_ep_age(ep, cq->clock_us);
	}
}

DUO_INLINE void duo_ep_flush_lazy(const struct duo_cq *cq, struct duo_ep *ep)
{
	if (ep->lazy.due)
		duo_lazy_flush_due(ep);
	if (ep->lazy.count && !duo_cq_core_unused(cq) &&
	    (cq->slow > 1 || cq->local_idle >= ep->lazy.limit))
		duo_ep_flushed(ep, cq->clock_us, duo_lazy_flush(ep));
}

/*
 * Also posts receives of endpoints that use this CQ only for sends. A thread
 * may poll only this CQ until a send ends. The send may wait for an action of
 * the peer, and the peer may act only after the post of such a receive.
 */
void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_waits(ep))
			duo_ep_flush_lazy(cq, ep);
	}
}
