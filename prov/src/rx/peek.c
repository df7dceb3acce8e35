/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_PEEK, FI_CLAIM and FI_DISCARD, fi_tagged(3). */

#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "core/post.h"
#include "obj/up.h"
#include "rx/recv.h"

/* Starts to discard the message rx, by a receive that has no buffer. */
static int duo_peek_discard(struct duo_rx *rx, void *context, uint64_t flags)
{
	const struct duo_recv nowhere = {
		.kind = rx->kind,
		.want = { .addr = rx->addr, .tag = rx->tag },
		.context = context,
		.flags = flags,
	};

	return duo_recv_start(rx, &nowhere);
}

/*
 * Completes a peek that has found the local message rx. If the call has
 * FI_DISCARD or FI_CLAIM, discards or claims rx.
 */
static ssize_t duo_peek_found(struct duo_ep *ep, struct duo_rx *rx,
			      const struct duo_recv *recv)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = recv->context,
		.flags = rx->peer.flags,
		.len = rx->peer.msg_size,
		.data = rx->peer.cq_data,
		.tag = rx->tag,
	};
	fi_addr_t src = rx->addr;
	int ret;

	/* with FI_DISCARD, only the peek has a completion, not the discard */
	if (recv->flags & FI_DISCARD) {
		ret = duo_peek_discard(rx, recv->context, FI_DISCARD);
		if (ret)
			return ret;
	} else if (recv->flags & FI_CLAIM) {
		duo_match_unqueue(&ep->match[rx->kind], rx);
		duo_rx_become(rx, DUO_RX_CLAIMED);
		rx->context = recv->context;
		TAILQ_INSERT_TAIL(&ep->rx.claimed, rx, link);
	}
	duo_cq_push(ep->rx_cq, &entry, src);
	return 0;
}

/*
 * Passes a peek, or the receive of a message that a peek has claimed, to the
 * core. In both cases passes source, tag and ignored bits of the call: even for
 * a claimed message, tcp compares them with those of the message.
 */
static ssize_t duo_peek_to_core(struct duo_ep *ep, struct duo_rx *rx,
				const struct duo_recv *recv)
{
	struct fi_msg_tagged msg = {
		.iov_count = recv->count,
		.addr = recv->want.addr,
		.tag = recv->want.tag,
		.ignore = recv->want.ignore,
		.context = &rx->core_ctx,
	};
	ssize_t ret;

	if (!duo_recv_reserve(ep, recv))
		return -FI_EAGAIN;
	duo_recv_fill(rx, recv);
	msg.msg_iov = duo_rx_iov(rx);
	msg.desc = duo_rx_desc(rx);
	ret = fi_trecvmsg(ep->path_ep[FI_DUO_CORE], &msg,
			  recv->flags | FI_COMPLETION);
	if (ret)
		return ret;
	duo_ep_use_core(ep);
	duo_cq_core_active(ep->rx_cq);
	return 0;
}

/*
 * Passes a peek to the core, in a new receive entry. First posts the deferred
 * receives if one of them could match the message that the peek would find.
 */
static ssize_t duo_peek_core(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *rx;
	ssize_t ret = duo_lazy_flush_overlap(ep, recv->kind, &recv->want);

	if (ret)
		return ret;
	rx = duo_rx_alloc(&ep->pool);
	if (!rx)
		return -FI_EAGAIN;
	duo_rx_become(rx, DUO_RX_PEEK);
	rx->want = recv->want;
	ret = duo_peek_to_core(ep, rx, recv);
	if (ret)
		duo_rx_release(&ep->pool, rx);
	return ret;
}

/*
 * True if the core must not get the peek yet, because it is unused, and the
 * peek names a local source. This ends DUO_UNUSED_US after the first such peek.
 * If the source of that peek is no longer a local one that has not sent yet,
 * this peek counts as the first one.
 */
static bool duo_peek_waits(struct duo_ep *ep, const struct duo_want *want)
{
	const struct duo_want first = { .addr = ep->lazy.peek_addr };
	uint64_t now;

	if (want->addr == FI_ADDR_UNSPEC || !duo_cq_core_unused(ep->rx_cq) ||
	    duo_recv_when(ep, want) != DUO_RECV_LATER)
		return false;
	now = duo_clock_us();
	if (!ep->lazy.peek_us ||
	    duo_recv_when(ep, &first) != DUO_RECV_LATER) {
		ep->lazy.peek_addr = want->addr;
		ep->lazy.peek_us = now;
	}
	return now - ep->lazy.peek_us < DUO_UNUSED_US;
}

/*
 * Executes a peek: docs/matching.md, "Peeks". Polls first, and searches the
 * unexpected local messages. If none matches, and a message over the core may
 * match, passes the peek to the core.
 */
ssize_t duo_recv_peek(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *rx;

	ep->up->progress(ep->rx_cq);
	rx = duo_match_unexp(&ep->match[recv->kind], &recv->want);
	if (rx)
		return duo_peek_found(ep, rx, recv);
	if (duo_recv_core_may(ep, &recv->want) &&
	    !duo_peek_waits(ep, &recv->want))
		return duo_peek_core(ep, recv);
	duo_cq_push_own_err(ep->rx_cq, recv->context, FI_RECV | FI_TAGGED,
			    recv->want.tag, FI_ADDR_UNSPEC, FI_ENOMSG);
	return 0;
}

/* Receives or discards a message that a peek has claimed at the core. */
static ssize_t duo_claim_core(struct duo_ep *ep, struct duo_rx *rx,
			      const struct duo_recv *recv)
{
	ssize_t ret = duo_peek_to_core(ep, rx, recv);

	if (ret)
		return ret;
	TAILQ_REMOVE(&ep->rx.claimed, rx, link);
	duo_rx_become(rx, DUO_RX_CORE);
	return 0;
}

/*
 * Receives or discards the message that a peek with this context has claimed.
 * Returns 0 or an error; -FI_EINVAL: there is no such message.
 */
ssize_t duo_recv_claim(struct duo_ep *ep, const struct duo_recv *recv)
{
	struct duo_rx *rx;

	TAILQ_FOREACH(rx, &ep->rx.claimed, link) {
		if (rx->context != recv->context)
			continue;
		if (rx->state == DUO_RX_CORE_CLAIMED)
			return duo_claim_core(ep, rx, recv);
		return recv->flags & FI_DISCARD ?
		       duo_peek_discard(rx, recv->context, recv->flags) :
		       duo_recv_start(rx, recv);
	}
	return -FI_EINVAL;
}
