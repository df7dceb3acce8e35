/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Unexpected and unresolved local messages, and the slow paths of arrive.h. */

#include <assert.h>
#include <rdma/fi_errno.h>

#include "av/map.h"
#include "rx/arrive.h"
#include "rx/recv.h"

void duo_arrival_confirm_new(struct duo_ep *ep, fi_addr_t index)
{
	ep->confirmed[index / 64] |= 1ULL << index % 64;
	duo_lazy_unblock(ep);
}

/* Makes the new message rx unresolved. Polls then try to match it. */
static void duo_arrival_hold(struct duo_rx *rx)
{
	duo_rx_become(rx, DUO_RX_UNRESOLVED);
	TAILQ_INSERT_TAIL(&rx->ep->rx.unresolved, rx, link);
	rx->ep->group->pending++;
	duo_ep_set_deferred(rx->ep);
}

struct duo_rx *duo_arrival_match_any(struct duo_ep *ep, enum duo_rx_kind kind,
				     fi_addr_t addr, uint64_t tag, size_t size)
{
	struct duo_match *match = &ep->match[kind];
	struct duo_rx *rx;

	while ((rx = duo_match_posted(match, addr, tag))) {
		if (rx->multi) {
			if (duo_multi_match(rx, size))
				break;
			continue;
		}
		duo_match_unpost(match, rx);
		if (rx->lazy)
			duo_lazy_drop(rx);
		if (!rx->on_core || duo_lazy_recall(rx))
			break;
	}
	return rx;
}

int duo_arrival_queue(struct fi_peer_rx_entry *entry)
{
	struct duo_rx *rx = duo_rx_of_peer(entry);

	if (rx->unresolved)
		duo_arrival_hold(rx);
	else
		duo_match_queue(&rx->ep->match[rx->kind], rx);
	return 0;
}

void duo_arrival_unlink(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;

	switch (rx->state) {
	case DUO_RX_UNEXP:
		duo_match_unqueue(&ep->match[rx->kind], rx);
		break;
	case DUO_RX_UNRESOLVED:
		TAILQ_REMOVE(&ep->rx.unresolved, rx, link);
		ep->group->pending--;
		break;
	case DUO_RX_CLAIMED:
		TAILQ_REMOVE(&ep->rx.claimed, rx, link);
		break;
	default:
		assert(rx->state == DUO_RX_LOCAL ||
		       rx->state == DUO_RX_ARRIVING);
	}
}

/*
 * rx is an unexpected message. True if its sender had no fi_addr and has one
 * now, or if the fi_addr of its sender is `gone`, which the application has
 * removed.
 */
static bool duo_arrival_changed(const struct duo_rx *rx, fi_addr_t gone)
{
	return rx->addr == FI_ADDR_UNSPEC ?
	       duo_map_peer(rx->ep->map, rx->src_index) != FI_ADDR_UNSPEC :
	       rx->addr == gone;
}

/*
 * Inserts the messages at the head of ep->rx.unresolved. This keeps the order
 * of the messages of each sender: a message is matched or becomes unexpected
 * only while this list has no earlier message. So messages of the same sender
 * that are already in the list have arrived after the inserted ones.
 */
void duo_arrival_identify(struct duo_ep *ep, fi_addr_t gone)
{
	struct duo_rx_list found = TAILQ_HEAD_INITIALIZER(found);
	struct duo_rx *rx, *next;
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++) {
		for (rx = TAILQ_FIRST(&ep->match[kind].unexp); rx; rx = next) {
			next = TAILQ_NEXT(rx, link);
			if (!duo_arrival_changed(rx, gone))
				continue;
			duo_match_unqueue(&ep->match[kind], rx);
			duo_rx_become(rx, DUO_RX_UNRESOLVED);
			TAILQ_INSERT_TAIL(&found, rx, link);
			ep->group->pending++;
		}
	}
	duo_lazy_unblock(ep);
	if (!TAILQ_EMPTY(&found))
		duo_ep_set_deferred(ep);
	TAILQ_CONCAT(&found, &ep->rx.unresolved, link);
	TAILQ_CONCAT(&ep->rx.unresolved, &found, link);
}

bool duo_arrival_adopt(struct duo_rx *msg, struct duo_rx *rx)
{
	const struct duo_recv recv = {
		.kind = rx->kind,
		.iov = duo_rx_iov(rx),
		.desc = duo_rx_desc(rx),
		.count = rx->count,
		.want = { .addr = rx->addr, .tag = msg->tag },
		.context = rx->context,
		.flags = rx->flags,
		.multi = rx->multi ? rx->owner : NULL,
	};
	int ret = duo_recv_start(msg, &recv);

	if (ret) {
		duo_cq_push_rx_err(rx->ep->rx_cq, rx, FI_ENOMEM);
		if (rx->multi)
			duo_multi_end(rx->owner);
	}
	duo_rx_release(&rx->ep->pool, rx);
	return !ret;
}

/*
 * Starts to receive the unresolved message msg into the first posted receive
 * that matches. False: no receive matches, or each one that matched has ended
 * with FI_ENOMEM.
 */
static bool duo_arrival_receive(struct duo_rx *msg)
{
	struct duo_rx *rx;

	while ((rx = duo_arrival_match(msg->ep, msg->kind, msg->addr,
				       msg->tag, msg->peer.msg_size))) {
		if (duo_arrival_adopt(msg, rx))
			return true;
	}
	return false;
}

void duo_arrival_resolve(struct duo_ep *ep)
{
	struct duo_rx *msg;

	if (ep->closing)
		return;
	duo_multi_resume(ep);
	if (TAILQ_EMPTY(&ep->rx.unresolved) &&
	    !(ep->map && duo_map_retry_due(ep->map)))
		return;
	duo_map_scan(ep);
	while ((msg = TAILQ_FIRST(&ep->rx.unresolved))) {
		msg->addr = duo_map_peer(ep->map, msg->src_index);
		if (duo_arrival_receive(msg))
			continue;
		duo_arrival_unlink(msg);
		duo_match_queue(&ep->match[msg->kind], msg);
	}
}

static void duo_arrival_truncated(struct duo_rx *rx,
				  const struct fi_cq_tagged_entry *entry,
				  fi_addr_t src)
{
	size_t size = duo_rx_size(rx);
	struct fi_cq_err_entry err = {
		.op_context = rx->context,
		.flags = entry->flags,
		.len = size,
		.buf = size ? rx->iov.iov_base : NULL,
		.data = entry->data,
		.tag = entry->tag,
		.olen = entry->len - size,
		.err = FI_ETRUNC,
		.prov_errno = FI_ETRUNC,
		DUO_CQ_ERR_SRC(src)
	};

	rx->ep->rx.failed++;
	duo_cq_push_err(rx->ep->rx_cq, &err, -1);
	if (rx->multi)
		duo_multi_end(rx->owner);
}

void duo_arrival_done_slow(struct duo_rx *rx, struct fi_cq_tagged_entry *entry,
			   fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (entry->len > duo_rx_size(rx) && !(rx->flags & FI_DISCARD)) {
		duo_arrival_truncated(rx, entry, src);
		return;
	}
	if (rx->flags & FI_DISCARD) {
		entry->buf = NULL;
	} else {
		ep->stats.path[FI_DUO_LOCAL].rx_msgs++;
		ep->stats.path[FI_DUO_LOCAL].rx_bytes += entry->len;
	}
	if (rx->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	else if (rx->multi)
		duo_multi_done(rx, entry, src);
}

void duo_arrival_failed(struct duo_rx *rx, int err, int prov_errno)
{
	const struct fi_cq_err_entry entry = {
		.op_context = rx->context,
		.flags = rx->peer.flags & ~(uint64_t) FI_COMPLETION,
		.data = rx->peer.flags & FI_REMOTE_CQ_DATA ?
			rx->peer.cq_data : 0,
		.tag = rx->tag,
		.err = err,
		.prov_errno = prov_errno,
		DUO_CQ_ERR_SRC(rx->addr)
	};

	if ((rx->flags & (FI_DISCARD | FI_CLAIM)) == FI_DISCARD)
		/*
		 * Reports no error: the application discards the message by
		 * FI_PEEK | FI_DISCARD, and this peek has already completed.
		 */
		return;
	rx->ep->rx.failed++;
	duo_cq_push_err(rx->ep->rx_cq, &entry, FI_DUO_LOCAL);
	if (rx->multi)
		duo_multi_end(rx->owner);
}
