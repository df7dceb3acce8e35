/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Handles messages that match multi-receive buffers; see multi.h. */

#include <assert.h>
#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "core/when.h"
#include "rx/multi.h"
#include "rx/recv.h"

bool duo_multi_has_space(const struct duo_ep *ep, size_t left)
{
	return left && left >= ep->multi.min_space;
}

void duo_multi_close(struct duo_rx *owner)
{
	assert(owner->open);
	owner->open = false;
	owner->ep->multi.open--;
	duo_lazy_unblock(owner->ep);
}

void duo_multi_release(struct duo_rx *owner)
{
	struct duo_ep *ep = owner->ep;
	const struct fi_cq_tagged_entry released = {
		.op_context = owner->context,
		.flags = FI_MULTI_RECV,
	};

	assert(!owner->open);
	ep->rx.failed += owner->canceled;
	if (owner->canceled)
		duo_cq_push_own_err(ep->rx_cq, owner->context,
				    duo_rx_cq_flags(owner) | FI_MULTI_RECV,
				    0, FI_ADDR_UNSPEC, FI_ECANCELED);
	else
		duo_cq_push(ep->rx_cq, &released, FI_ADDR_NOTAVAIL);
	TAILQ_REMOVE(&ep->multi.buffers, owner, link);
	duo_rx_release(&ep->pool, owner);
}

void duo_multi_end(struct duo_rx *rx)
{
	if (!--rx->owner->refs)
		duo_multi_release(rx->owner);
}

void duo_multi_abort(struct duo_rx *rx)
{
	if (rx->owner->open)
		duo_multi_close(rx->owner);
	duo_multi_end(rx);
}

/*
 * Sets FI_MULTI_RECV in the last completion of a buffer: this flag returns the
 * buffer to the application. If the buffer was canceled, or its receives have
 * no completions, duo_multi_release() returns the buffer instead.
 */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src)
{
	struct duo_rx *owner = rx->owner;
	struct duo_ep *ep = rx->ep;

	entry->buf = rx->iov.iov_base;
	if (owner->wanted && owner->refs == 1 && !owner->canceled) {
		entry->flags |= FI_MULTI_RECV;
		duo_cq_push(ep->rx_cq, entry, src);
		TAILQ_REMOVE(&ep->multi.buffers, owner, link);
		duo_rx_release(&ep->pool, owner);
		return;
	}
	if (owner->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	duo_multi_end(rx);
}

struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf, size_t len,
			     void *desc)
{
	const struct iovec iov = { buf, len };
	struct duo_ep *ep = owner->ep;
	const struct duo_recv recv = {
		.kind = DUO_MSG,
		.iov = &iov,
		.desc = &desc,
		.count = 1,
		.want = duo_rx_want(owner),
		.context = owner->context,
		.flags = owner->flags,
		.multi = owner,
	};
	struct duo_rx *rx = duo_rx_alloc(&ep->pool);

	if (!rx)
		return NULL;
	duo_rx_become(rx, DUO_RX_READY);
	rx->addr = owner->addr;
	rx->tag = 0;
	duo_recv_fill(rx, &recv);
	owner->refs++;
	return rx;
}

/*
 * Cuts the sub-receive rx to a message of len bytes. Returns the next
 * remainder, which is in no queue yet. NULL: the buffer is closed. If it was
 * open, this function has closed it, because too little space or no receive
 * entry is left.
 */
static struct duo_rx *duo_multi_cut(struct duo_rx *rx, size_t len)
{
	struct duo_rx *owner = rx->owner, *rest = NULL;
	char *buf = rx->iov.iov_base;
	size_t left;

	if (len > rx->iov.iov_len)
		len = rx->iov.iov_len;
	left = rx->iov.iov_len - len;
	rx->iov.iov_len = len;
	if (!owner->open)
		return NULL;
	if (duo_multi_has_space(rx->ep, left))
		rest = duo_multi_sub(owner, buf + len, left, rx->desc);
	if (rest)
		rest->seq = rx->seq;
	else
		duo_multi_close(owner);
	return rest;
}

static bool duo_multi_take_back(struct duo_rx *rx, size_t msg_size)
{
	struct duo_match *match = &rx->ep->match[DUO_MSG];
	const struct duo_want want = duo_rx_want(rx);
	struct duo_rx *rest;

	duo_match_unpost(match, rx);
	if (!duo_lazy_recall(rx))
		return false;
	rest = duo_multi_cut(rx, msg_size);
	if (!rest)
		return true;
	duo_match_repost(match, rest);
	if (duo_recv_core_may(rx->ep, &want))
		duo_lazy_insert(rest);
	return true;
}

bool duo_multi_match(struct duo_rx *rx, size_t msg_size)
{
	struct duo_match *match = &rx->ep->match[DUO_MSG];
	struct duo_rx *rest;

	if (rx->on_core)
		return duo_multi_take_back(rx, msg_size);
	rest = duo_multi_cut(rx, msg_size);
	if (rest) {
		duo_match_post_before(match, rx, rest);
		duo_lazy_add_before(rx, rest);
	}
	duo_match_unpost(match, rx);
	duo_lazy_drop(rx);
	return true;
}

static bool duo_multi_overlap(const struct duo_rx *a, const struct duo_rx *b)
{
	const struct duo_want wants[] = { duo_rx_want(a), duo_rx_want(b) };

	return duo_want_overlap(&wants[0], &wants[1]);
}

/*
 * True if messages over the core may fill the buffer. Then later receives must
 * not be on the core: the buffer's next remainder is posted to the core after
 * them, so the core would match them first.
 */
static bool duo_multi_core_may(const struct duo_rx *owner)
{
	const struct duo_want want = duo_rx_want(owner);

	return !owner->local_only && duo_recv_core_may(owner->ep, &want);
}

bool duo_multi_blocks(const struct duo_rx *rx)
{
	const struct duo_ep *ep = rx->ep;
	const struct duo_rx *other;

	if (rx->kind != DUO_MSG)
		return false;
	TAILQ_FOREACH(other, &ep->multi.buffers, link) {
		if (other->open && other->seq < rx->seq &&
		    !(rx->multi && rx->owner == other) &&
		    duo_multi_overlap(other, rx) && duo_multi_core_may(other))
			return true;
	}
	/* the core must get an earlier blocked receive before rx */
	TAILQ_FOREACH(other, &ep->lazy.blocked, lazy_link) {
		if (other->seq < rx->seq && duo_multi_overlap(other, rx))
			return true;
	}
	return false;
}

static void duo_multi_defer(struct duo_rx *rx)
{
	duo_match_repost(&rx->ep->match[DUO_MSG], rx);
	duo_lazy_insert(rx);
}

void duo_multi_to_core(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	if (duo_lazy_precedes(rx) || duo_multi_blocks(rx)) {
		duo_multi_defer(rx);
	} else if (duo_lazy_post(rx)) {
		duo_multi_abort(rx);
		duo_rx_release(&ep->pool, rx);
	} else if (duo_recv_final(rx)) {
		duo_rx_become(rx, DUO_RX_CORE);
	} else {
		duo_match_repost(&ep->match[DUO_MSG], rx);
	}
}

/*
 * True if an unexpected message matches the remainder rx. This message arrived
 * while the core had the previous remainder, and must be received before later
 * messages. Only duo_multi_resume() may start to receive this message: this
 * function may run within a callback of the local transport, where no receive
 * may start.
 */
static bool duo_multi_awaited(const struct duo_rx *rx)
{
	const struct duo_want want = duo_rx_want(rx);

	return duo_match_unexp(&rx->ep->match[DUO_MSG], &want);
}

/*
 * True if the core must get no receives at the end of rx, because
 * - fi_close() is running, or
 * - this is a recall of rx: a local message may match the next remainder, or
 * - this is a recall by duo_lazy_readmit(), perhaps of another receive:
 *   duo_lazy_readmit() may still have to defer earlier receives
 */
static bool duo_multi_must_wait(const struct duo_rx *rx)
{
	return rx->ep->closing || rx->state == DUO_RX_CANCELING ||
	       rx->ep->lazy.readmitting;
}

static void duo_multi_post_remainder(struct duo_rx *rx, struct duo_rx *rest)
{
	struct duo_ep *ep = rx->ep;

	if (rx->state == DUO_RX_CORE && duo_multi_awaited(rest)) {
		TAILQ_INSERT_TAIL(&ep->multi.ready, rest, link);
		ep->group->pending++;
		duo_ep_set_deferred(ep);
		/* only polls post remainders, and those of either CQ do */
		duo_ep_wake_sleepers(ep);
	} else if (duo_multi_must_wait(rx)) {
		duo_multi_defer(rest);
	} else {
		duo_multi_to_core(rest);
	}
}

/* Posts the receives that the buffer of rx has blocked. */
static void duo_multi_post_blocked(const struct duo_rx *rx)
{
	if (!duo_multi_must_wait(rx))
		duo_lazy_flush(rx->ep);
}

void duo_multi_core_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			 fi_addr_t src)
{
	struct duo_rx *rest = duo_multi_cut(rx, entry->len);
	bool open;

	if (rest)
		duo_multi_post_remainder(rx, rest);
	/* reads `open` now, because duo_multi_done() may free the owner */
	open = rx->owner->open;
	duo_multi_done(rx, entry, src);
	if (!open)
		duo_multi_post_blocked(rx);
}

/*
 * Handles the core's error for the remainder rx. Closes the buffer, because the
 * core does not report how many bytes it has written.
 */
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry)
{
	struct duo_ep *ep = rx->ep;

	/*
	 * FI_ECANCELED: fi_close() of the core's endpoint has canceled rx. A
	 * receive that ofi_duo recalls does not get here (core/read.c).
	 */
	if (entry->err == FI_ECANCELED) {
		rx->owner->canceled = true;
	} else {
		ep->rx.failed++;
		duo_cq_push_err(ep->rx_cq, entry, FI_DUO_CORE);
	}
	duo_multi_abort(rx);
	duo_multi_post_blocked(rx);
}
