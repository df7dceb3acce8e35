/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Decides when deferred receives are posted to the core: docs/matching.md. A
 * post costs microseconds. If a local message then matches the receive, the
 * recall costs as much again. During local traffic, therefore, aging posts at
 * most two receives in each defer_us, on average, and one more after each
 * message of the core.
 */

#include "base/clock.h"
#include "core/lazy.h"
#include "core/read.h"

/* minimum number of polls between two reads of the clock */
#define DUO_CLOCK_MIN 4
/* us; if more time passes between two reads of the clock, polls are slow */
#define DUO_CLOCK_SLOW 4000
/* maximum number of polls between two reads of the clock */
#define DUO_CLOCK_MAX 64
/*
 * us; an unused core becomes used when receives have waited this long for local
 * messages
 */
#define DUO_UNUSED_US 1000000

/*
 * Reads the clock and sets the number of polls until the next read. If
 * DUO_CLOCK_SLOW or more has passed since the last read, the application polls
 * seldom; cq->slow counts how often in a row this was the case. If cq->slow is
 * above 1, duo_ep_flush_lazy() posts receives although fewer than lazy.limit
 * polls were idle.
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
 * Aging: posts the oldest receive every defer_us. Posts the whole list when
 * defer_us times the length of the list has passed. Without aging, receives
 * might never be posted: if local messages match receives as fast as the
 * application posts them, the local transport is never idle, and lazy.limit is
 * not reached. After a post, polls the core at once, before local messages can
 * cause recalls.
 *
 * If the core is unused, posts nothing, but calls duo_ep_use_core() when
 * receives have waited for DUO_UNUSED_US.
 */
static void duo_ep_age(struct duo_ep *ep, uint64_t now)
{
	int64_t wait = duo_params.defer_us;

	if (!ep->lazy.all_us)		/* first call: start both intervals */
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
	/* one poll of the core is enough, unless it has found a message */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
}

/* True if the endpoint has deferred receives, and is not closing. */
static bool duo_ep_waits(const struct duo_ep *ep)
{
	return ep->lazy.count && !ep->closing;
}

/*
 * True if the endpoint has receives that only aging posts: receives that are
 * not due, while the local transport is busy or the core is unused.
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
 * Posts deferred receives of all endpoints of the CQ. These include endpoints
 * that only send with this CQ: a send may wait until its peer continues, and
 * the peer may wait until a message from the peer matches a deferred receive of
 * the endpoint.
 */
void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_waits(ep))
			duo_ep_flush_lazy(cq, ep);
	}
}
