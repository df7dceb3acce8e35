/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Posts receives to the core, and chooses the times for deferred ones:
 * docs/matching.md, "Posting a receive to the core".
 */

#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/proc.h"
#include "core/lazy.h"
#include "core/post.h"
#include "core/read.h"
#include "obj/fabric.h"
#include "obj/up.h"

/* maximum number of polls between two reads of the clock */
#define DUO_CLOCK_MAX 63

/*
 * Posts rx to the core. Does not renew the core poll budget, which makes the
 * next reads of the CQ poll the core. Therefore the caller must call
 * duo_cq_core_active(), or poll the core itself, after its last post.
 */
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
 * Ends rx with the core's error. The application's receive call cannot return
 * the error, because this call has already returned 0.
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
 * Removes the first receive from the list of deferred receives. Posts it to the
 * core, or makes it a blocked receive. If no message over the core can match it
 * any more, does neither. Returns 0; -FI_EAGAIN: the core has no space, and the
 * list is unchanged. After any other error of the core, ends the receive with
 * this error.
 */
DUO_INLINE int duo_lazy_flush_first(struct duo_ep *ep)
{
	struct duo_rx *rx = TAILQ_FIRST(&ep->lazy.list);
	int ret;

	/*
	 * the source of rx was not confirmed when rx was deferred, but has sent
	 * over the local path since then
	 */
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
 * Posts deferred receives, the oldest first, until *count (lazy.count or
 * lazy.due) is 0. Returns 0; -FI_EAGAIN: the core has no space for more.
 */
DUO_INLINE int duo_lazy_flush_while(struct duo_ep *ep, const uint32_t *count)
{
	int ret = 0;

	while (!ret && *count)
		ret = duo_lazy_flush_first(ep);
	return ret;
}

/*
 * Posts receives by duo_lazy_flush_while(). If at least one was posted, also
 * renews the core poll budget, so that the next reads of the CQ poll the core.
 */
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

/* True if a deferred receive earlier than `seq` overlaps with *want. */
static bool duo_lazy_overlaps(const struct duo_ep *ep, enum duo_rx_kind kind,
			      const struct duo_want *want, uint64_t seq)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &ep->lazy.list, lazy_link) {
		if (rx->kind == kind && rx->seq < seq &&
		    duo_want_overlap(&rx->want, want))
			return true;
	}
	return false;
}

bool duo_lazy_precedes(const struct duo_rx *rx)
{
	return duo_lazy_overlaps(rx->ep, rx->kind, &rx->want, rx->seq);
}

int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want)
{
	return duo_lazy_overlaps(ep, kind, want, UINT64_MAX) ?
	       duo_lazy_flush(ep) : 0;
}

/*
 * Posts the oldest deferred receive that may be posted to the core. Removes
 * those before it from the list: they are blocked, or the core never gets them.
 */
static void duo_lazy_flush_oldest(struct duo_ep *ep)
{
	uint64_t posted = ep->stats.core_posted;
	int ret = 0;

	while (!ret && ep->lazy.count && ep->stats.core_posted == posted)
		ret = duo_lazy_flush_first(ep);
}

/*
 * Reads the clock, and sets the number of polls until the next read: 0 if polls
 * are slow, and up to DUO_CLOCK_MAX if they are fast.
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
 * Posts deferred receives of ep during local traffic, so that no message waits
 * at the core without end: docs/matching.md, "Aging".
 * - After each interval of defer_us, posts the oldest receive.
 * - If n receives are deferred, and ofi_duo last posted all deferred receives
 *   at least n intervals ago, posts all of them.
 * - After a post, polls the core at once. Otherwise local messages might match
 *   the posted receives first, and cause recalls.
 * - While the core is unused, posts nothing. After DUO_UNUSED_US, makes the
 *   core used.
 */
static void duo_ep_age(struct duo_ep *ep, uint64_t now)
{
	int64_t wait = duo_params.defer_us;

	if (!ep->lazy.all_us)	/* first call, or restarted in rx/recv.c */
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
	/*
	 * if the core had entries, it may soon have more: the next reads of the
	 * CQ must poll it
	 */
	if (duo_cq_poll_core(ep->rx_cq))
		duo_cq_core_active(ep->rx_cq);
}

/*
 * True if only aging can post deferred receives of the endpoint in this poll,
 * because the local transport is not idle, or the core is unused.
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
 * Also posts the receives of endpoints that only send with this CQ, because a
 * thread may poll only this CQ until a send ends. The send might end only after
 * the peer has read its own CQ. And the peer might read this CQ only after one
 * of its messages, sent over the core, has matched one of these receives.
 */
void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (ep->lazy.count && !ep->closing)
			duo_ep_flush_lazy(cq, ep);
	}
}
