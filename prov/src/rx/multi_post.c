/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Posts and cancels multi-receive buffers; see multi.h. */

#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "core/when.h"
#include "rx/multi.h"
#include "rx/recv.h"

/*
 * Starts to receive the unexpected message msg into the remainder rx, which
 * must be in no queue. Returns
 * - 0: rx has the remaining space, and is the next remainder
 * - 1: no space is left. The caller must free rx, but not call duo_multi_end(),
 *   because msg has taken over the reference of rx to the owner
 * - an error: nothing has changed
 */
static int duo_multi_start(struct duo_rx *rx, struct duo_rx *msg)
{
	struct duo_rx *owner = rx->owner;
	size_t len = duo_min(msg->peer.msg_size, rx->iov.iov_len);
	bool last = !duo_multi_has_space(rx->ep, rx->iov.iov_len - len);
	const struct iovec iov = { rx->iov.iov_base, len };
	const struct duo_recv recv = {
		.kind = DUO_MSG,
		.iov = &iov,
		.desc = &rx->desc,
		.count = 1,
		.want = duo_rx_want(rx),
		.context = rx->context,
		.flags = rx->flags,
		.multi = owner,
	};
	int ret;

	/* duo_recv_start() reads refs and open if it completes msg */
	owner->refs += !last;
	owner->open = !last;
	ret = duo_recv_start(msg, &recv);
	if (ret) {
		owner->refs -= !last;
		owner->open = true;
		return ret;
	}
	rx->iov.iov_base = (char *) rx->iov.iov_base + len;
	rx->iov.iov_len -= len;
	if (last) {
		rx->ep->multi.open--;
		duo_lazy_unblock(rx->ep);
	}
	return last;
}

/*
 * Calls duo_multi_start() for the unexpected messages that match rx, while the
 * calls return 0. Returns the last call's result; 0 if no message matches. Sets
 * *started if a call has started to receive a message.
 */
static int duo_multi_start_all(struct duo_rx *rx, bool *started)
{
	struct duo_match *match = &rx->ep->match[DUO_MSG];
	const struct duo_want want = duo_rx_want(rx);
	struct duo_rx *msg;
	int ret = 0;

	while (!ret && (msg = duo_match_unexp(match, &want))) {
		ret = duo_multi_start(rx, msg);
		if (ret >= 0)
			*started = true;
	}
	return ret;
}

void duo_multi_resume(struct duo_ep *ep)
{
	struct duo_rx *rx;
	bool started;
	int ret;

	while ((rx = TAILQ_FIRST(&ep->multi.ready))) {
		TAILQ_REMOVE(&ep->multi.ready, rx, link);
		ep->group->pending--;
		ret = duo_multi_start_all(rx, &started);
		if (!ret) {
			duo_multi_to_core(rx);
			continue;
		}
		if (ret < 0)	/* no memory, but near returns -FI_EAGAIN */
			duo_recv_fail(rx, FI_ENOMEM);
		else
			duo_rx_release(&ep->pool, rx);
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
	owner->addr = recv->want.addr;
	owner->tag = recv->want.tag;
	owner->ignore = recv->want.ignore;
	owner->seq = ep->match[DUO_MSG].seq++;
	owner->refs = 0;
	owner->open = true;
	owner->canceled = false;
	owner->local_only = duo_recv_local_only(owner);
	TAILQ_INSERT_TAIL(&ep->multi.buffers, owner, link);
	ep->multi.open++;
	return owner;
}

static int duo_multi_check(const struct duo_ep *ep,
			   const struct duo_recv *recv)
{
	if (recv->kind != DUO_MSG || !(ep->caps & FI_MULTI_RECV))
		return -FI_EBADFLAGS;
	if (recv->count != 1)
		return -FI_EINVAL;
	return 0;
}

/*
 * Closes a new buffer whose remainder could not be posted because of the error
 * ret. started: a message has already been received into the buffer, or is
 * being received.
 * - If so, returns 0. The end of the last such message releases the buffer.
 * - Otherwise frees the owner entry and returns ret.
 */
static ssize_t duo_multi_not_posted(struct duo_rx *owner, bool started, int ret)
{
	duo_multi_close(owner);
	if (!started) {
		TAILQ_REMOVE(&owner->ep->multi.buffers, owner, link);
		duo_rx_release(&owner->ep->pool, owner);
		return ret;
	}
	if (!--owner->refs)
		duo_multi_release(owner);
	return 0;
}

ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *owner, *rx;
	bool started = false;
	int ret = duo_multi_check(ep, recv);

	if (ret)
		return ret;
	owner = duo_multi_owner(ep, recv);
	if (!owner)
		return -FI_EAGAIN;
	rx = duo_multi_sub(owner, recv->iov->iov_base, recv->iov->iov_len,
			   recv->desc ? recv->desc[0] : NULL);
	if (!rx)
		return duo_multi_not_posted(owner, false, -FI_EAGAIN);
	ret = duo_multi_start_all(rx, &started);
	if (ret)
		duo_rx_release(&ep->pool, rx);
	else
		ret = duo_recv_place(rx);
	return ret < 0 ? duo_multi_not_posted(owner, started, ret) : 0;
}

static void duo_multi_cancel_owner(struct duo_rx *owner)
{
	owner->canceled = true;
	duo_multi_close(owner);
}

ssize_t duo_multi_cancel(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	bool on_core = rx->on_core;

	duo_match_unpost(&ep->match[DUO_MSG], rx);
	duo_lazy_drop(rx);
	duo_multi_cancel_owner(rx->owner);
	if (on_core && !duo_lazy_recall(rx))
		/* the core has matched rx: rx's end calls duo_multi_end() */
		return 0;
	duo_multi_end(rx);
	duo_rx_release(&ep->pool, rx);
	if (on_core)
		duo_lazy_flush(ep);
	return 0;
}

static void duo_multi_cancel_ready(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	TAILQ_REMOVE(&ep->multi.ready, rx, link);
	ep->group->pending--;
	duo_multi_cancel_owner(rx->owner);
	duo_multi_end(rx);
	duo_rx_release(&ep->pool, rx);
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
		if (rx->owner == owner) {
			duo_multi_cancel_ready(rx);
			return 0;
		}
	}
	if (duo_recv_final(owner))
		return -FI_ENOENT; /* the core cannot cancel the remainder */
	/* the core has matched the remainder; its end calls duo_multi_end() */
	duo_multi_cancel_owner(owner);
	return 0;
}
