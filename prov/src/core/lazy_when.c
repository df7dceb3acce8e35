/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * When the lazy list goes to the core: docs/matching.md. Being there costs a
 * post and, if a local message comes, a recall, some microseconds in all. So
 * local traffic pays for two in each defer_us, and one after what the core
 * has delivered.
 */

#include "base/clock.h"
#include "core/lazy.h"
#include "core/read.h"

#define DUO_LOOK_MIN 4		/* polls; the application is slow if twice */
#define DUO_LOOK_SLOW 4000	/* in a row they take this, microseconds */
#define DUO_LOOK_MAX 64		/* polls between looks at one who is not */

/* Patience is counted in polls; who polls seldom shall not need it. */
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
 * Local messages may take receives out of the list as fast as they are put
 * in, so it is never idle and none grows old. All the same the oldest goes
 * every defer_us, and all of them after that time for each. What waits at
 * the core takes them at once: local messages, polled next, may take them back.
 */
static void duo_ep_take_turn(struct duo_ep *ep, uint64_t now)
{
	int64_t wait = duo_params.defer_us;

	if (!ep->lazy.all_us)		/* its time begins */
		ep->lazy.turn_us = ep->lazy.all_us = now;
	if ((int64_t) (now - ep->lazy.turn_us) < wait)
		return;
	if ((int64_t) (now - ep->lazy.all_us) >= wait * ep->lazy.count) {
		duo_ep_flushed(ep, now, duo_lazy_flush_once(ep));
	} else {
		duo_lazy_flush_oldest(ep);
		ep->lazy.turn_us = now;
	}
	/* once is enough, if nothing comes of it */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
}

/* Has it receives to be given to the core? */
static bool duo_ep_waits(const struct duo_ep *ep)
{
	return ep->lazy.count && !ep->closing;
}

/*
 * Those that are due go in each poll, and so do all beside an idle peer
 * (duo_ep_flush_lazy()): they need no turn.
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
 * Who polls the CQ of sends alone may wait for a completion that the peer
 * gives only when its own message has found a receive here.
 */
void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (duo_ep_waits(ep))
			duo_ep_flush_lazy(cq, ep);
	}
}
