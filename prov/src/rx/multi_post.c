/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Posts and cancels multi-receive buffers; see multi.h. */

#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "core/when.h"
#include "rx/arrive.h"
#include "rx/multi.h"
#include "rx/recv.h"

/*
 * Starts to receive the unexpected messages that match the remainder rx, which
 * must be in no queue. Returns the next remainder; NULL: the buffer is closed,
 * because too little space is left, or because there was no memory.
 */
static struct duo_rx *duo_multi_start_all(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	const struct duo_want want = duo_rx_want(rx);
	struct duo_rx *msg, *rest;
	bool started;

	while (rx && (msg = duo_match_unexp(&ep->match[DUO_MSG], &want))) {
		rest = duo_multi_cut(rx, msg->peer.msg_size);
		started = duo_arrival_adopt(msg, rx);
		rx = rest;
		if (!started && rx) {
			/* msg stays unexpected, so rx must not be posted */
			duo_multi_abort(rx->owner);
			duo_rx_release(&ep->pool, rx);
			return NULL;
		}
	}
	return rx;
}

void duo_multi_resume(struct duo_ep *ep)
{
	struct duo_rx *rx;

	while ((rx = TAILQ_FIRST(&ep->multi.ready))) {
		TAILQ_REMOVE(&ep->multi.ready, rx, link);
		ep->group->pending--;
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

ssize_t duo_multi_recv(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *owner, *rx;
	int ret = duo_multi_check(ep, recv);

	if (ret)
		return ret;
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
		/* the core has matched rx: rx's end drops its reference */
		return 0;
	duo_multi_end(rx->owner);
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
	duo_multi_end(rx->owner);
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
	/* the core has matched the remainder; its end drops its reference */
	duo_multi_cancel_owner(owner);
	return 0;
}
