/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The lists of deferred and of blocked receives, and recalls (lazy.h). */

#include <assert.h>

#include "core/lazy.h"
#include "core/post.h"
#include "core/read.h"
#include "obj/up.h"

/* maximum of duo_ep_lazy.limit, in units of defer_polls */
#define DUO_LAZY_MAX 64

void duo_lazy_insert(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	duo_lazy_enlist(ep, rx, DUO_LAZY_WAITS);
	DUO_RX_INSERT(&ep->lazy.list, rx, lazy_link);
}

static void duo_lazy_unlist_blocked(struct duo_rx *rx)
{
	rx->lazy = DUO_LAZY_NONE;
	TAILQ_REMOVE(&rx->ep->lazy.blocked, rx, lazy_link);
}

void duo_lazy_drop(struct duo_rx *rx)
{
	if (rx->lazy == DUO_LAZY_BLOCKED) {
		duo_lazy_unlist_blocked(rx);
		duo_lazy_unblock(rx->ep);
	} else if (rx->lazy) {
		duo_lazy_unlist(rx->ep, rx);
	}
}

void duo_lazy_add_before(struct duo_rx *lazy, struct duo_rx *rx)
{
	if (!lazy->lazy)
		return;
	TAILQ_INSERT_BEFORE(lazy, rx, lazy_link);
	if (lazy->lazy == DUO_LAZY_BLOCKED) {
		rx->lazy = DUO_LAZY_BLOCKED;
		return;
	}
	duo_lazy_enlist(rx->ep, rx, lazy->lazy);
}

void duo_lazy_block(struct duo_rx *rx)
{
	duo_lazy_drop(rx);
	rx->lazy = DUO_LAZY_BLOCKED;
	TAILQ_INSERT_TAIL(&rx->ep->lazy.blocked, rx, lazy_link);
}

void duo_lazy_unblock(struct duo_ep *ep)
{
	struct duo_rx *rx;

	while ((rx = TAILQ_FIRST(&ep->lazy.blocked))) {
		duo_lazy_unlist_blocked(rx);
		duo_lazy_insert(rx);
	}
}

/*
 * Doubles the number of idle polls after which deferred receives are posted, up
 * to a maximum. The reason is a successful recall: it shows that the recalled
 * receive was on the core too early. If duo_lazy_expedite() has requested a
 * post at the next poll, withdraws this request.
 */
static void duo_lazy_backoff(struct duo_ep *ep)
{
	if (ep->lazy.limit < DUO_LAZY_MAX * duo_params.defer_polls)
		ep->lazy.limit *= 2;
	if (ep->lazy.aged_us == DUO_LONG_AGO)
		ep->lazy.aged_us = ep->rx_cq->clock_us;
}

bool duo_lazy_recall(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	assert(rx->state == DUO_RX_POSTED && rx->on_core);
	duo_rx_become(rx, DUO_RX_CANCELING);
	/*
	 * an entry in the core's CQ reports whether the core has canceled rx;
	 * the return value of fi_cancel() does not
	 */
	fi_cancel(&ep->path_ep[FI_DUO_CORE]->fid, &rx->core_ctx);
	while (rx->state == DUO_RX_CANCELING && duo_cq_poll_core(ep->rx_cq))
		;
	if (rx->state == DUO_RX_CANCELED) {
		rx->on_core = false;
		ep->stats.recall_ok++;
		duo_lazy_backoff(ep);
		return true;
	}
	if (rx->state == DUO_RX_CANCELING) {
		duo_rx_become(rx, DUO_RX_CORE);
		duo_cq_core_active(ep->rx_cq);
	}
	ep->stats.recall_lost++;
	return false;
}

/*
 * Returns the receive that was posted last among the receives that are on the
 * core and later than `seq`. NULL: there is none.
 */
static struct duo_rx *duo_lazy_last_on_core(const struct duo_match *match,
					    uint64_t seq)
{
	struct duo_rx *rx;

	TAILQ_FOREACH_REVERSE(rx, &match->posted, duo_rx_list, link) {
		if (rx->seq < seq)
			return NULL;
		if (rx->on_core)
			return rx;
	}
	return NULL;
}

/*
 * Recalls and defers all receives on the core that are later than `seq`. Begins
 * with the receive that was posted last. If an earlier one were recalled first,
 * the core could then match a message with a later receive, out of order.
 */
static void duo_lazy_recall_later(struct duo_ep *ep, enum duo_rx_kind kind,
				  uint64_t seq)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx;

	while ((rx = duo_lazy_last_on_core(match, seq))) {
		duo_match_unpost(match, rx);
		if (!duo_lazy_recall(rx))
			continue;
		duo_match_repost(match, rx);
		duo_lazy_insert(rx);
	}
}

/*
 * Recalls and defers the receives that were posted after the first open
 * multi-receive buffer that names addr. They may be on the core: while addr was
 * a confirmed source (it had sent over the local path), the buffer blocked no
 * later receive. From now on messages over the core can match the buffer, so
 * the buffer must block these receives again.
 */
static void duo_lazy_recall_unblocked(struct duo_ep *ep, fi_addr_t addr)
{
	const struct duo_rx *owner;

	TAILQ_FOREACH(owner, &ep->multi.buffers, link) {
		if (!owner->open || owner->addr != addr)
			continue;
		duo_lazy_recall_later(ep, DUO_MSG, owner->seq);
		return;	/* the recall may have freed `owner` */
	}
}

static bool duo_lazy_left_out(const struct duo_rx *rx, fi_addr_t addr)
{
	return rx->addr == addr && !rx->on_core && !rx->lazy;
}

static void duo_lazy_readmit_kind(struct duo_ep *ep, enum duo_rx_kind kind,
				  fi_addr_t addr)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &match->posted, link) {
		if (duo_lazy_left_out(rx, addr))
			break;
	}
	if (!rx)
		return;
	duo_lazy_recall_later(ep, kind, rx->seq);
	TAILQ_FOREACH(rx, &match->posted, link) {
		if (duo_lazy_left_out(rx, addr))
			duo_lazy_insert(rx);
	}
}

void duo_lazy_readmit(struct duo_ep *ep, fi_addr_t addr)
{
	if (ep->core.carries_nothing)
		return;
	ep->lazy.readmitting = true;
	duo_lazy_readmit_kind(ep, DUO_TAGGED, addr);
	/*
	 * with util_srx, an untagged receive that names a source cannot be
	 * recalled from the core
	 */
	if (!ep->core.util_srx) {
		duo_lazy_recall_unblocked(ep, addr);
		duo_lazy_readmit_kind(ep, DUO_MSG, addr);
	}
	ep->lazy.readmitting = false;
}
