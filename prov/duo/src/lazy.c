/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receives and the core. A receive that a local sender may satisfy is not
 * posted to the core at once but waits in the lazy list, in posting order.
 * A receive that is on the core can be recalled: fi_cancel is synchronous
 * on every core we serve, so after draining the core's CQ either a cancelled
 * entry has come back, and the receive is ours, or the core has matched it.
 * The caller holds the domain's lock. docs/matching.md has the proof sketch.
 */

#include <assert.h>
#include <rdma/fi_errno.h>

#include "multi.h"
#include "route.h"

#define DUO_SPENT_MAX 1024
#define DUO_LAZY_MAX 64		/* times lazy_polls: lazy_limit's bound */

int duo_lazy_post(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct fid_ep *core = ep->path_ep[FI_DUO_CORE];
	fi_addr_t addr = duo_route_core_addr(ep->route, rx->peer.addr);
	void *buf = rx->iov[0].iov_base;
	ssize_t ret;

	if (rx->kind == DUO_TAGGED && rx->count <= 1)
		ret = fi_trecv(core, buf, rx->size, rx->desc[0], addr,
			       rx->peer.tag, rx->ignore, &rx->core_ctx);
	else if (rx->kind == DUO_TAGGED)
		ret = fi_trecvv(core, rx->iov, rx->desc, rx->count, addr,
				rx->peer.tag, rx->ignore,
				&rx->core_ctx);
	else if (rx->count <= 1)
		ret = fi_recv(core, buf, rx->size, rx->desc[0], addr,
			      &rx->core_ctx);
	else
		ret = fi_recvv(core, rx->iov, rx->desc, rx->count, addr,
			       &rx->core_ctx);
	if (ret)
		return ret;
	rx->on_core = true;
	ep->stats.core_posted++;
	duo_cq_core_active(ep->rx_cq);
	return 0;
}

void duo_lazy_add(struct duo_rx *rx, enum duo_rx_lazy lazy)
{
	rx->lazy = lazy;
	rx->ep->due_count += lazy == DUO_LAZY_DUE;
	TAILQ_INSERT_TAIL(&rx->ep->lazy, rx, lazy_link);
	rx->ep->lazy_count++;
	rx->ep->domain->lazy++;
}

DUO_HOT void duo_lazy_unlist(struct duo_ep *ep, struct duo_rx *rx)
{
	if (rx == TAILQ_FIRST(&ep->lazy))
		ep->lazy_age = 0;
	ep->due_count -= rx->lazy == DUO_LAZY_DUE;
	rx->lazy = DUO_LAZY_NONE;
	TAILQ_REMOVE(&ep->lazy, rx, lazy_link);
	ep->lazy_count--;
	ep->domain->lazy--;
}

void duo_lazy_drop(struct duo_rx *rx)
{
	if (rx->lazy == DUO_LAZY_BEHIND) {
		rx->lazy = DUO_LAZY_NONE;
		TAILQ_REMOVE(&rx->ep->behind, rx, lazy_link);
	} else if (rx->lazy) {
		duo_lazy_unlist(rx->ep, rx);
	}
}

/* In posting order; seq orders the receives of a kind. */
void duo_lazy_insert(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct duo_rx *later;

	TAILQ_FOREACH(later, &ep->lazy, lazy_link) {
		if (later->kind == rx->kind && later->seq > rx->seq)
			break;
	}
	rx->lazy = DUO_LAZY_WAITS;
	ep->lazy_count++;
	ep->domain->lazy++;
	if (later)
		TAILQ_INSERT_BEFORE(later, rx, lazy_link);
	else
		TAILQ_INSERT_TAIL(&ep->lazy, rx, lazy_link);
}

/* So the list's age stays: a buffer under constant use grows old as well. */
void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx)
{
	if (!lazy->lazy)
		return;
	TAILQ_INSERT_BEFORE(lazy, rx, lazy_link);
	rx->lazy = lazy->lazy;
	if (rx->lazy == DUO_LAZY_BEHIND)
		return;
	rx->ep->lazy_count++;
	rx->ep->domain->lazy++;
}

void duo_lazy_block(struct duo_rx *rx)
{
	duo_lazy_drop(rx);
	rx->lazy = DUO_LAZY_BEHIND;
	TAILQ_INSERT_TAIL(&rx->ep->behind, rx, lazy_link);
}

void duo_lazy_unblock(struct duo_ep *ep)
{
	struct duo_rx *rx;

	while ((rx = TAILQ_FIRST(&ep->behind))) {
		duo_lazy_drop(rx);
		duo_lazy_insert(rx);
	}
}

void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr)
{
	struct duo_rx *rx;
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++) {
		if (kind == DUO_MSG && ep->util_srx)
			continue;	/* it could not be taken back */
		TAILQ_FOREACH(rx, &ep->match[kind].posted, link) {
			if (rx->peer.addr == addr && !rx->on_core && !rx->lazy)
				duo_lazy_insert(rx);
		}
	}
}

/* Its call has returned success, so its failure is a completion. */
static void duo_lazy_fail(struct duo_rx *rx, int err)
{
	struct duo_ep *ep = rx->ep;

	duo_cq_push_rx_err(ep->rx_cq, rx, err);
	duo_match_unpost(&ep->match[rx->kind], rx);
	if (rx->multi)
		duo_multi_abort(rx);
	duo_rx_release(&ep->pool, rx);
}

DUO_HOT void duo_lazy_posted(struct duo_rx *rx)
{
	if (rx->kind == DUO_TAGGED || !duo_recv_final(rx))
		return;
	duo_match_unpost(&rx->ep->match[rx->kind], rx);
	rx->state = DUO_RX_CORE;
}

/* The first of the list. -FI_EAGAIN: the core takes no more now. */
DUO_HOT int duo_lazy_flush_first(struct duo_ep *ep)
{
	struct duo_rx *rx = TAILQ_FIRST(&ep->lazy);
	int ret;

	if (ep->multi_open && duo_multi_blocks(rx)) {
		duo_lazy_block(rx);
		return 0;
	}
	ret = duo_lazy_post(rx);
	if (ret == -FI_EAGAIN)
		return ret;
	ep->stats.lazy_posted += !ret && rx->lazy == DUO_LAZY_WAITS;
	duo_lazy_unlist(ep, rx);
	if (ret)
		duo_lazy_fail(rx, -ret);
	else
		duo_lazy_posted(rx);
	return 0;
}

/* Posts all that waits, in order. -FI_EAGAIN: the core takes no more now. */
int duo_lazy_flush(struct duo_ep *ep)
{
	int ret = 0;

	while (!ret && ep->lazy_count)
		ret = duo_lazy_flush_first(ep);
	return ret;
}

int duo_lazy_flush_due(struct duo_ep *ep)
{
	int ret = 0;

	while (!ret && ep->due_count)
		ret = duo_lazy_flush_first(ep);
	return ret;
}

/*
 * Before a receive or a peek for *want goes to the core: whatever waits and
 * could take the same message must be there first.
 */
int duo_lazy_flush_overlap(struct duo_ep *ep, enum duo_rx_kind kind,
			   const struct duo_want *want)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &ep->lazy, lazy_link) {
		struct duo_want waiting = duo_rx_want(rx);

		if (rx->kind == kind && duo_want_overlap(&waiting, want))
			return duo_lazy_flush(ep);
	}
	return 0;
}

/* An any-source receive should wait longer if shm keeps on serving them. */
static void duo_lazy_backoff(struct duo_ep *ep)
{
	if (ep->lazy_limit < DUO_LAZY_MAX * duo_params.lazy_polls)
		ep->lazy_limit *= 2;
}

/*
 * rx is unposted and on the core; shm has a message for it. True: it is
 * ours again. False: the core has matched it; its completion has come (rx is
 * released) or will come.
 */
bool duo_lazy_recall(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	assert(rx->state == DUO_RX_POSTED && rx->on_core);
	rx->state = DUO_RX_CANCELING;
	/* what it returns says nothing, fi_cancel(3) */
	fi_cancel(&ep->path_ep[FI_DUO_CORE]->fid, &rx->core_ctx);
	while (rx->state == DUO_RX_CANCELING && duo_cq_poll_core(ep->rx_cq))
		;
	if (rx->state == DUO_RX_CANCELED) {
		rx->on_core = false;
		ep->stats.arb_won++;
		duo_lazy_backoff(ep);
		return true;
	}
	if (rx->state == DUO_RX_CANCELING)
		rx->state = DUO_RX_CORE;
	ep->stats.arb_lost++;
	return false;
}

/* The core is done with rx: a receive that it matched, or a peek. */
static void duo_lazy_retire(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	if (rx->state == DUO_RX_POSTED)
		duo_match_unpost(&ep->match[rx->kind], rx);
	duo_rx_release(&ep->pool, rx);
}

/*
 * efa reports the end of a truncated receive of many packets twice. So the
 * entry is not used again until DUO_SPENT_MAX others are, and what comes for
 * it meanwhile is dropped.
 */
static void duo_lazy_spend(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct duo_rx *oldest;

	if (rx->state == DUO_RX_POSTED)
		duo_match_unpost(&ep->match[rx->kind], rx);
	rx->state = DUO_RX_SPENT;
	TAILQ_INSERT_TAIL(&ep->spent, rx, link);
	if (++ep->spent_count <= DUO_SPENT_MAX)
		return;
	oldest = TAILQ_FIRST(&ep->spent);
	TAILQ_REMOVE(&ep->spent, oldest, link);
	ep->spent_count--;
	duo_rx_release(&ep->pool, oldest);
}

static bool duo_lazy_stale(const struct duo_rx *rx)
{
	return rx->state == DUO_RX_SPENT || rx->state == DUO_RX_FREE;
}

static void duo_lazy_peek_done(struct duo_rx *rx,
			       const struct fi_cq_tagged_entry *entry,
			       fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	/* util_srx reports a peek without its source */
	if (ep->util_srx)
		src = rx->peer.addr;
	duo_cq_push(ep->rx_cq, entry, src);
	if ((rx->flags & (FI_CLAIM | FI_DISCARD)) != FI_CLAIM) {
		duo_rx_release(&ep->pool, rx);
		return;
	}
	rx->state = DUO_RX_CORE_CLAIMED;
	TAILQ_INSERT_TAIL(&ep->claimed, rx, link);
}

void duo_lazy_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (duo_lazy_stale(rx))
		return;
	src = duo_core_av_source(ep->core_av, src);
	entry->op_context = rx->context;
	if (rx->state == DUO_RX_PEEK) {
		duo_lazy_peek_done(rx, entry, src);
		return;
	}
	if (!(rx->flags & FI_DISCARD))
		duo_ep_count_core(ep, entry->len);
	duo_lazy_hurry(ep);
	if (rx->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	else if (rx->multi)
		duo_multi_core_done(rx, entry, src);
	duo_lazy_retire(rx);
}

void duo_lazy_core_failed(struct duo_rx *rx,
			  const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry out = *entry;
	struct duo_ep *ep = rx->ep;

	if (duo_lazy_stale(rx))
		return;
	if (rx->state == DUO_RX_CANCELING && entry->err == FI_ECANCELED) {
		rx->state = DUO_RX_CANCELED;
		return;
	}
	out.op_context = rx->context;
	out.flags = duo_rx_cq_flags(rx) | (entry->flags & FI_REMOTE_CQ_DATA);
	if (rx->state == DUO_RX_PEEK)
		out.tag = rx->peer.tag;
	/* efa says how long the message was; len is what has been placed */
	if (entry->err == FI_ETRUNC && out.len > rx->size)
		out.len = rx->size;
	if (rx->multi)
		duo_multi_core_failed(rx, &out);
	else
		duo_cq_push_err(ep->rx_cq, &out, FI_DUO_CORE);
	if (entry->err == FI_ETRUNC)
		duo_lazy_spend(rx);
	else
		duo_lazy_retire(rx);
}
