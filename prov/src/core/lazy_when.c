/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Times at which the lazy list is posted to the core: docs/matching.md. Each
 * receive costs a post and, if a local message matches it, a recall, some
 * microseconds in all. Local traffic pays for two such receives per defer_us,
 * and for one after each message of the core.
 */

#include "base/clock.h"
#include "core/lazy.h"
#include "core/read.h"

#define DUO_LOOK_MIN 4		/* least polls per read of the clock */
#define DUO_LOOK_SLOW 4000	/* us between two reads: polls are slow */
#define DUO_LOOK_MAX 64		/* most polls per read of the clock */

/* After two slow reads in a row, duo_ep_flush_lazy() ignores lazy.limit. */
static void duo_cq_look_at_clock(struct duo_cq *cq)
{
	uint64_t now = duo_clock_us();
	uint64_t passed = cq->look_us ? now - cq->look_us : 0;

	cq->slow = passed >= DUO_LOOK_SLOW ? cq->slow + 1 : 0;
	if (passed >= duo_params.defer_us || cq->slow || !cq->look_every)
		cq->look_every = DUO_LOOK_MIN;
	else if (passed < duo_params.defer_us / 2 &&
		 cq->look_every < DUO_LOOK_MAX)
		cq->look_every *= 2;
	cq->look_in = cq->look_every;
	cq->look_us = now;
}

static void duo_ep_flushed(struct duo_ep *ep, uint64_t now, int ret)
{
	if (ret)
		return;		/* the next poll goes on */
	ep->lazy.turn_us = now;
	ep->lazy.all_us = now;
}

/*
 * Aging: local messages may match receives as fast as the application posts
 * them, and the transport is never idle. So the oldest receive is posted every
 * defer_us, and all are after defer_us multiplied by their number. The core is
 * polled at once, as the local messages, polled next, may recall receives.
 */
static void duo_ep_take_turn(struct duo_ep *ep, uint64_t now)
{
	int64_t wait = duo_params.defer_us;

	if (!ep->lazy.all_us)		/* the first time */
		ep->lazy.turn_us = ep->lazy.all_us = now;
	if ((int64_t) (now - ep->lazy.turn_us) < wait)
		return;
	if ((int64_t) (now - ep->lazy.all_us) >= wait * ep->lazy.count) {
		duo_ep_flushed(ep, now, duo_lazy_flush_once(ep));
	} else {
		duo_lazy_flush_oldest(ep);
		ep->lazy.turn_us = now;
	}
	/* once is enough if the core has no message */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
}

/* True if ep has deferred receives. */
static bool duo_ep_waits(const struct duo_ep *ep)
{
	return ep->lazy.count && !ep->closing;
}

/*
 * True if ep has receives for aging. duo_ep_flush_lazy() posts due receives in
 * each poll, and all if the transport is idle.
 */
static bool duo_ep_wants_turn(const struct duo_cq *cq, const struct duo_ep *ep)
{
	return ep->lazy.count > ep->lazy.due && !ep->closing &&
	       cq->local_idle < ep->lazy.limit;
}

void duo_cq_take_turns(struct duo_cq *cq)
{
	struct duo_ep *ep;

	duo_cq_look_at_clock(cq);
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_wants_turn(cq, ep))
			duo_ep_take_turn(ep, cq->look_us);
	}
}

DUO_INLINE void duo_ep_flush_lazy(const struct duo_cq *cq, struct duo_ep *ep)
{
	if (ep->lazy.due)
		duo_lazy_flush_due(ep);
	if (ep->lazy.count &&
	    (cq->slow > 1 || cq->local_idle >= ep->lazy.limit))
		duo_ep_flushed(ep, cq->look_us, duo_lazy_flush(ep));
}

/*
 * Called for polls of a send-only CQ, too: a send may complete only after the
 * peer has sent a message that matches a receive here.
 */
void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_waits(ep))
			duo_ep_flush_lazy(cq, ep);
	}
}
