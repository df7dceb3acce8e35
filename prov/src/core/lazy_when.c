/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Posts deferred receives to the core, and decides when: docs/matching.md. A
 * post costs microseconds, and so does the recall if a local message then
 * matches the receive. So aging, during local traffic, posts on average at most
 * two receives in each defer_us, and one more after each message of the core.
 */

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/proc.h"
#include "core/lazy.h"
#include "core/read.h"
#include "core/when.h"
#include "obj/fabric.h"
#include "obj/up.h"

/* maximum number of polls between two reads of the clock */
#define DUO_CLOCK_MAX 63
/* time that receives wait before ofi_duo uses an unused core, us */
#define DUO_UNUSED_US 1000000

/* Posts rx to the core. Does not renew the core poll budget. */
DUO_INLINE int duo_lazy_post_quiet(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct fid_ep *core = ep->path_ep[FI_DUO_CORE];
	const struct iovec *iov = duo_rx_iov(rx);
	void **desc = duo_rx_desc(rx);
	ssize_t ret;

	if (rx->kind == DUO_TAGGED && rx->count <= 1)
		ret = fi_trecv(core, iov->iov_base, iov->iov_len, *desc,
			       rx->addr, rx->tag, rx->ignore, &rx->core_ctx);
	else if (rx->kind == DUO_TAGGED)
		ret = fi_trecvv(core, iov, desc, rx->count, rx->addr, rx->tag,
				rx->ignore, &rx->core_ctx);
	else if (rx->count <= 1)
		ret = fi_recv(core, iov->iov_base, iov->iov_len, *desc,
			      rx->addr, &rx->core_ctx);
	else
		ret = fi_recvv(core, iov, desc, rx->count, rx->addr,
			       &rx->core_ctx);
	if (ret)
		return ret;
	rx->on_core = true;
	duo_ep_use_core(ep);
	ep->stats.core_posted++;
	return 0;
}

int duo_lazy_post(struct duo_rx *rx)
{
	int ret = duo_lazy_post_quiet(rx);

	if (!ret)
		duo_cq_core_active(rx->ep->rx_cq);
	return ret;
}

/*
 * Completes rx, which the core has rejected, with an error. The application's
 * receive call cannot report the error: it has already returned 0.
 */
static void duo_lazy_fail(struct duo_rx *rx, int err)
{
	const struct duo_ep *ep = rx->ep;

	DUO_WARN(EP_DATA, "ep %p: the core %s rejects a receive of %zu bytes "
		 "at %p: %s. If the source is local, request FI_DIRECTED_RECV "
		 "and name the source: then the core does not get the "
		 "receive\n", (const void *) ep,
		 ep->domain->fabric->core_name, duo_rx_iov(rx)->iov_len,
		 duo_rx_iov(rx)->iov_base, fi_strerror(err));
	duo_match_unpost(&rx->ep->match[rx->kind], rx);
	ep->up->rejected(rx, err);
}

DUO_INLINE void duo_lazy_posted(struct duo_rx *rx)
{
	if (rx->kind == DUO_TAGGED || !duo_recv_final(rx))
		return;
	duo_match_unpost(&rx->ep->match[rx->kind], rx);
	duo_rx_become(rx, DUO_RX_CORE);
}

/*
 * Posts the first deferred receive. If the receive must not be posted yet,
 * blocks it. If it must never be posted, removes it from the list. Returns 0;
 * -FI_EAGAIN: the core has no space, and the list is unchanged.
 */
DUO_INLINE int duo_lazy_flush_first(struct duo_ep *ep)
{
	struct duo_rx *rx = TAILQ_FIRST(&ep->lazy.list);
	int ret;

	/* false if the source has been confirmed since rx was deferred */
	if (!duo_recv_core_may(ep, &rx->want)) {
		duo_lazy_unlist(ep, rx);
		return 0;
	}
	if (ep->multi.open && ep->up->blocked(rx)) {
		duo_lazy_block(rx);
		return 0;
	}
	ret = duo_lazy_post_quiet(rx);
	if (ret == -FI_EAGAIN)
		return ret;
	ep->stats.deferred_posted += !ret && rx->lazy == DUO_LAZY_WAITS;
	duo_lazy_unlist(ep, rx);
	if (ret)
		duo_lazy_fail(rx, -ret);
	else
		duo_lazy_posted(rx);
	return 0;
}

/*
 * Posts the oldest receives until *count (lazy.count or lazy.due) is 0. Returns
 * 0; -FI_EAGAIN: the core has no space for more.
 */
DUO_INLINE int duo_lazy_flush_while(struct duo_ep *ep, const uint32_t *count)
{
	int ret = 0;

	while (!ret && *count)
		ret = duo_lazy_flush_first(ep);
	return ret;
}

/* duo_lazy_flush_while(), and renews the core poll budget after a post. */
DUO_INLINE int duo_lazy_flush_polled(struct duo_ep *ep, const uint32_t *count)
{
	uint64_t posted = ep->stats.core_posted;
	int ret = duo_lazy_flush_while(ep, count);

	if (ep->stats.core_posted != posted)
		duo_cq_core_active(ep->rx_cq);
	return ret;
}

int duo_lazy_flush(struct duo_ep *ep)
{
	return duo_lazy_flush_polled(ep, &ep->lazy.count);
}

/*
 * Posts the oldest deferred receive that the core may get. Does not renew the
 * core poll budget.
 */
static void duo_lazy_flush_oldest(struct duo_ep *ep)
{
	uint64_t posted = ep->stats.core_posted;
	int ret = 0;

	while (!ret && ep->lazy.count && ep->stats.core_posted == posted)
		ret = duo_lazy_flush_first(ep);
}

/*
 * Reads the clock and sets the number of polls until the next read: more if
 * polls are fast, 0 if defer_us have passed since the last read.
 */
static void duo_cq_read_clock(struct duo_cq *cq)
{
	uint64_t now = duo_clock_us();
	uint64_t passed = cq->clock_us ? now - cq->clock_us : 0;

	if (passed >= duo_params.defer_us)
		cq->clock_every = 0;
	else if (passed < duo_params.defer_us / 2 &&
		 cq->clock_every < DUO_CLOCK_MAX)
		cq->clock_every = 2 * cq->clock_every + 1;
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
 * Does the aging: docs/matching.md. Posts the oldest deferred receive every
 * defer_us; if the whole list was last posted (its length * defer_us) ago or
 * earlier, posts the whole list. Polls the core directly after a post, before
 * local messages can cause recalls. If the core is unused, only ends this state
 * when receives have waited for DUO_UNUSED_US.
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
		duo_ep_flushed(ep, now,
			       duo_lazy_flush_while(ep, &ep->lazy.count));
	} else {
		duo_lazy_flush_oldest(ep);
		ep->lazy.aged_us = now;
	}
	/* after a message of the core, the next CQ reads must poll the core */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
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
	duo_lazy_flush_polled(ep, &ep->lazy.due);
	if (ep->lazy.count && !duo_cq_core_unused(cq) &&
	    cq->local_idle >= ep->lazy.limit)
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
		if (ep->lazy.count && !ep->closing)
			duo_ep_flush_lazy(cq, ep);
	}
}
