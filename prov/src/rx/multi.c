/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Multi-receive buffers; see multi.h. */

#include <assert.h>
#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "core/post.h"
#include "rx/arrive.h"
#include "rx/multi.h"
#include "rx/recv.h"

/*
 * Closes the buffer, so that no further message matches it. Unblocks the
 * receives that the core must not get before the buffer is closed.
 */
static void duo_multi_close(struct duo_rx *owner)
{
	assert(owner->open);
	owner->open = false;
	owner->ep->multi.open--;
	duo_lazy_unblock(owner->ep);
}

static void duo_multi_free(struct duo_rx *owner)
{
	struct duo_ep *ep = owner->ep;

	assert(!owner->open);
	TAILQ_REMOVE(&ep->multi.buffers, owner, link);
	duo_rx_release(&ep->pool, owner);
}

/*
 * Returns a closed buffer to the application, after all its sub-receives have
 * ended. Reports a completion with FI_MULTI_RECV, or, if the buffer was
 * canceled, the error FI_ECANCELED. Frees owner.
 */
static void duo_multi_release(struct duo_rx *owner)
{
	struct duo_ep *ep = owner->ep;
	const struct fi_cq_tagged_entry released = {
		.op_context = owner->context,
		.flags = FI_MULTI_RECV,
	};

	ep->rx.failed += owner->canceled;
	if (owner->canceled)
		duo_cq_push_own_err(ep->rx_cq, owner->context,
				    duo_rx_cq_flags(owner) | FI_MULTI_RECV,
				    0, FI_ADDR_UNSPEC, FI_ECANCELED);
	else
		duo_cq_push(ep->rx_cq, &released, FI_ADDR_NOTAVAIL);
	duo_multi_free(owner);
}

void duo_multi_end(struct duo_rx *owner)
{
	if (!--owner->refs)
		duo_multi_release(owner);
}

void duo_multi_abort(struct duo_rx *owner)
{
	if (owner->open)
		duo_multi_close(owner);
	duo_multi_end(owner);
}

/*
 * If rx is the last sub-receive of the buffer, sets FI_MULTI_RECV in its
 * completion, which returns the buffer to the application. If the buffer was
 * canceled, or the application wants no completions of its receives,
 * duo_multi_release() returns the buffer instead, by an additional entry.
 */
void duo_multi_done(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
		    fi_addr_t src)
{
	struct duo_rx *owner = rx->owner;
	bool last = owner->wanted && owner->refs == 1 && !owner->canceled;

	entry->buf = rx->iov.iov_base;
	if (last)
		entry->flags |= FI_MULTI_RECV;
	if (owner->wanted)
		duo_cq_push(rx->ep->rx_cq, entry, src);
	if (last)
		duo_multi_free(owner);
	else
		duo_multi_end(owner);
}

/* Returns a new sub-receive of the buffer, in no queue. NULL: no free entry. */
static struct duo_rx *duo_multi_sub(struct duo_rx *owner, void *buf,
				    size_t len, void *desc)
{
	struct duo_rx *rx = duo_rx_alloc(&owner->ep->pool);

	if (!rx)
		return NULL;
	duo_rx_become(rx, DUO_RX_READY);
	rx->kind = DUO_MSG;
	/* duo_multi_done() tests owner->wanted, not rx->wanted */
	rx->wanted = DUO_RX_UNWANTED;
	rx->multi = true;
	rx->owner = owner;
	rx->want = owner->want;
	rx->context = owner->context;
	rx->flags = owner->flags;
	rx->count = 1;
	rx->iov = (struct iovec) { buf, len };
	rx->desc = desc;
	owner->refs++;
	return rx;
}

/*
 * Shortens the remainder rx to a message of len bytes. Returns the next
 * remainder, which has the space behind the message, and is in no queue. If too
 * little space is left, or no receive entry is free, closes the buffer. NULL:
 * the buffer is closed.
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
	if (left && left >= rx->ep->multi.min_space)
		rest = duo_multi_sub(owner, buf + len, left, rx->desc);
	if (rest)
		rest->seq = rx->seq;
	else
		duo_multi_close(owner);
	return rest;
}

/* True if messages over the core may fill the buffer. */
static bool duo_multi_core_may(const struct duo_rx *owner)
{
	return !owner->local_only &&
	       duo_recv_core_may(owner->ep, &owner->want);
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
		    duo_want_overlap(&other->want, &rx->want) &&
		    duo_multi_core_may(other))
			return true;
	}
	/* the core must get earlier blocked receives before rx */
	TAILQ_FOREACH(other, &ep->lazy.blocked, lazy_link) {
		if (other->seq < rx->seq &&
		    duo_want_overlap(&other->want, &rx->want))
			return true;
	}
	return false;
}

/*
 * Puts the remainder rx into the posted queue, in the place of its predecessor.
 * If messages over the core may fill the buffer, also defers rx: a later poll
 * posts it to the core. Otherwise the core never gets rx.
 */
static void duo_multi_defer(struct duo_rx *rx)
{
	duo_match_repost(&rx->ep->match[DUO_MSG], rx);
	if (duo_multi_core_may(rx->owner))
		duo_lazy_insert(rx);
}

/* Executes duo_multi_match() for a remainder that is posted to the core. */
static bool duo_multi_match_on_core(struct duo_rx *rx, size_t msg_size)
{
	struct duo_rx *rest;

	duo_match_unpost(&rx->ep->match[DUO_MSG], rx);
	if (!duo_lazy_recall(rx))
		return false;
	rest = duo_multi_cut(rx, msg_size);
	if (rest)
		duo_multi_defer(rest);
	return true;
}

bool duo_multi_match(struct duo_rx *rx, size_t msg_size)
{
	struct duo_match *match = &rx->ep->match[DUO_MSG];
	struct duo_rx *rest;

	if (rx->on_core)
		return duo_multi_match_on_core(rx, msg_size);
	rest = duo_multi_cut(rx, msg_size);
	/* rest takes the place of rx in each queue or list that contains rx */
	if (rest) {
		duo_match_post_before(match, rx, rest);
		duo_lazy_add_before(rx, rest);
	}
	duo_match_unpost(match, rx);
	duo_lazy_drop(rx);
	return true;
}

/*
 * Posts the remainder rx to the core. Defers rx instead if the core must first
 * get an earlier receive: one that duo_lazy_readmit() has deferred, or a buffer
 * that blocks rx. If the core rejects rx, closes the buffer and frees rx.
 */
static void duo_multi_to_core(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	if (duo_lazy_precedes(rx) || duo_multi_blocks(rx)) {
		duo_multi_defer(rx);
	} else if (duo_lazy_post(rx)) {
		duo_multi_abort(rx->owner);
		duo_rx_release(&ep->pool, rx);
	} else if (duo_recv_final(rx)) {
		duo_rx_become(rx, DUO_RX_CORE);
	} else {
		duo_match_repost(&ep->match[DUO_MSG], rx);
	}
}

/* True if an unexpected message matches the remainder rx. */
static bool duo_multi_awaited(const struct duo_rx *rx)
{
	return duo_match_unexp(&rx->ep->match[DUO_MSG], &rx->want);
}

/*
 * rx is a sub-receive that has just ended at the core. True if ofi_duo must not
 * post further receives to the core now, because
 * - fi_close() is running
 * - ofi_duo is recalling rx: the local message for which it does so may match
 *   the next remainder
 * - duo_lazy_readmit() is running: it may still insert earlier receives into
 *   the deferred list, and ofi_duo must post these to the core before others
 */
static bool duo_multi_must_wait(const struct duo_rx *rx)
{
	return rx->ep->closing || rx->state == DUO_RX_CANCELING ||
	       rx->ep->lazy.readmitting;
}

/*
 * Handles the next remainder, rest, after the core has completed rx: makes rest
 * ready, defers it, or posts it to the core.
 */
static void duo_multi_post_remainder(struct duo_rx *rx, struct duo_rx *rest)
{
	struct duo_ep *ep = rx->ep;

	if (rx->state == DUO_RX_CORE && duo_multi_awaited(rest)) {
		TAILQ_INSERT_TAIL(&ep->multi.ready, rest, link);
		ep->group->pending++;
		duo_ep_set_deferred(ep);
		/* wakes sleeping threads, because only polls post `rest` */
		duo_ep_wake_sleepers(ep);
	} else if (duo_multi_must_wait(rx)) {
		duo_multi_defer(rest);
	} else {
		duo_multi_to_core(rest);
	}
}

/*
 * Posts all deferred receives to the core, unless duo_multi_must_wait(rx). The
 * buffer of rx is closed, so the receives that it has blocked are now deferred.
 */
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
	open = rx->owner->open;	/* duo_multi_done() may free the owner */
	duo_multi_done(rx, entry, src);
	if (!open)
		duo_multi_post_blocked(rx);
}

/*
 * Closes the buffer, because its unused space is not known any more: the core
 * does not report the number of bytes that it has written.
 */
void duo_multi_core_failed(struct duo_rx *rx,
			   const struct fi_cq_err_entry *entry)
{
	struct duo_ep *ep = rx->ep;

	/*
	 * With FI_ECANCELED, fi_close() has canceled rx: after a recall by
	 * ofi_duo, duo_rx_core_failed() does not call this function.
	 */
	if (entry->err == FI_ECANCELED) {
		rx->owner->canceled = true;
	} else {
		ep->rx.failed++;
		duo_cq_push_err(ep->rx_cq, entry, FI_DUO_CORE);
	}
	duo_multi_abort(rx->owner);
	duo_multi_post_blocked(rx);
}

/*
 * Starts to receive the unexpected messages that match the remainder rx. rx
 * must be in no queue. Returns the remainder behind these messages, in no
 * queue. NULL: the buffer is closed, because too little space is left, or
 * because there was no memory.
 */
static struct duo_rx *duo_multi_start_all(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct duo_rx *msg, *rest;
	bool started;

	while (rx && (msg = duo_match_unexp(&ep->match[DUO_MSG], &rx->want))) {
		rest = duo_multi_cut(rx, msg->peer.msg_size);
		started = duo_arrival_adopt(msg, rx);
		rx = rest;
		if (!started && rx) {
			/*
			 * msg matches rx, but stays unexpected. No posted
			 * receive may match an unexpected message, so rx must
			 * not be posted.
			 */
			duo_multi_abort(rx->owner);
			duo_rx_release(&ep->pool, rx);
			return NULL;
		}
	}
	return rx;
}

static void duo_multi_unready(struct duo_rx *rx)
{
	TAILQ_REMOVE(&rx->ep->multi.ready, rx, link);
	rx->ep->group->pending--;
}

void duo_multi_resume(struct duo_ep *ep)
{
	struct duo_rx *rx;

	while ((rx = TAILQ_FIRST(&ep->multi.ready))) {
		duo_multi_unready(rx);
		rx = duo_multi_start_all(rx);
		if (rx)
			duo_multi_to_core(rx);
	}
}

static struct duo_rx *duo_multi_owner(struct duo_ep *ep,
				      const struct duo_recv *recv)
{
	struct duo_rx *owner = duo_rx_alloc(&ep->pool);

	if (!owner)
		return NULL;
	owner->kind = DUO_MSG;
	duo_rx_become(owner, DUO_RX_OWNER);
	owner->context = recv->context;
	owner->flags = recv->flags;
	owner->wanted = !(ep->rx.special & DUO_RX_SELECTIVE) ||
			recv->flags & FI_COMPLETION;
	owner->multi = false;
	owner->want = recv->want;
	owner->seq = ep->match[DUO_MSG].seq++;
	owner->refs = 0;
	owner->open = true;
	owner->canceled = false;
	/* a local message may match, and the core cannot cancel a receive */
	owner->local_only = duo_recv_final(owner) &&
			    duo_recv_when(ep, &owner->want) != DUO_RECV_NOW;
	TAILQ_INSERT_TAIL(&ep->multi.buffers, owner, link);
	ep->multi.open++;
	return owner;
}

ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *owner, *rx;
	int ret;

	owner = duo_multi_owner(ep, recv);
	if (!owner)
		return -FI_EAGAIN;
	rx = duo_multi_sub(owner, recv->iov->iov_base, recv->iov->iov_len,
			   recv->desc ? recv->desc[0] : NULL);
	if (rx && duo_multi_awaited(rx)) {
		rx = duo_multi_start_all(rx);
		if (rx && duo_recv_place(rx))
			duo_multi_abort(owner);
		return 0;
	}
	ret = rx ? duo_recv_place(rx) : -FI_EAGAIN;
	if (ret) {
		duo_multi_close(owner);
		duo_multi_free(owner);
	}
	return ret;
}

ssize_t duo_multi_cancel(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	bool on_core = rx->on_core;

	if (rx->state == DUO_RX_READY) {
		duo_multi_unready(rx);
	} else {
		duo_match_unpost(&ep->match[DUO_MSG], rx);
		duo_lazy_drop(rx);
	}
	rx->owner->canceled = true;
	duo_multi_close(rx->owner);
	if (on_core && !duo_lazy_recall(rx))
		/*
		 * The core has matched rx. The core's completion drops the
		 * reference of rx to the owner entry, and frees rx.
		 */
		return 0;
	duo_multi_end(rx->owner);
	duo_rx_release(&ep->pool, rx);
	if (on_core)
		duo_lazy_flush(ep);
	return 0;
}

ssize_t duo_multi_cancel_context(struct duo_ep *ep, void *context)
{
	struct duo_rx *owner, *rx;

	TAILQ_FOREACH(owner, &ep->multi.buffers, link) {
		if (owner->open && owner->context == context)
			break;
	}
	if (!owner)
		return -FI_ENOENT;
	TAILQ_FOREACH(rx, &ep->multi.ready, link) {
		if (rx->owner == owner)
			return duo_multi_cancel(rx);
	}
	if (duo_recv_final(owner))
		return -FI_ENOENT; /* the core cannot cancel the remainder */
	/*
	 * The core has already matched the remainder. The completion of the
	 * remainder drops the reference of the remainder to the owner entry.
	 */
	owner->canceled = true;
	duo_multi_close(owner);
	return 0;
}
