/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <string.h>

#include "core/post.h"
#include "core/read.h"
#include "obj/ep.h"
#include "obj/up.h"

#define DUO_RETIRED_MAX 1024 /* maximum of retired entries per endpoint */

/*
 * Returns src, a source that the core has reported. If it is not in the AV,
 * returns FI_ADDR_NOTAVAIL.
 */
static inline fi_addr_t duo_av_source(const struct duo_av *av, fi_addr_t src)
{
	return src == FI_ADDR_UNSPEC || duo_av_has(av, src) ? src :
							      FI_ADDR_NOTAVAIL;
}

static void duo_ep_count_core(struct duo_ep *ep, size_t len)
{
	ep->stats.path[FI_DUO_CORE].rx_msgs++;
	ep->stats.path[FI_DUO_CORE].rx_bytes += len;
}

static void duo_rx_unpost(struct duo_rx *rx)
{
	if (rx->state == DUO_RX_POSTED)
		duo_match_unpost(&rx->ep->match[rx->kind], rx);
}

/*
 * Makes rx a retired entry: the receive has ended, but the entry is not reused
 * yet. The reason is that efa and ofi_rxm report a truncated receive of several
 * packets twice. At the second report, the entry must not belong to another
 * receive. If the endpoint has more than DUO_RETIRED_MAX retired entries, frees
 * the oldest of them.
 */
static void duo_rx_retire(struct duo_rx *rx)
{
	struct duo_ep *ep = rx->ep;
	struct duo_rx *oldest;

	if (rx->count > 1)
		duo_rx_strip(&ep->pool, rx);
	duo_rx_become(rx, DUO_RX_RETIRED);
	TAILQ_INSERT_TAIL(&ep->lazy.retired, rx, link);
	if (++ep->lazy.retired_count <= DUO_RETIRED_MAX)
		return;
	oldest = TAILQ_FIRST(&ep->lazy.retired);
	TAILQ_REMOVE(&ep->lazy.retired, oldest, link);
	ep->lazy.retired_count--;
	duo_rx_release(&ep->pool, oldest);
}

static bool duo_rx_stale(const struct duo_rx *rx)
{
	return rx->state == DUO_RX_RETIRED || rx->state == DUO_RX_FREE;
}

static void duo_rx_peek_done(struct duo_rx *rx,
			     const struct fi_cq_tagged_entry *entry,
			     fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (ep->core.util_srx)
		src = rx->addr;
	duo_cq_push(ep->rx_cq, entry, src);
	if ((rx->flags & (FI_CLAIM | FI_DISCARD)) != FI_CLAIM) {
		duo_rx_release(&ep->pool, rx);
		return;
	}
	duo_rx_become(rx, DUO_RX_CORE_CLAIMED);
	TAILQ_INSERT_TAIL(&ep->rx.claimed, rx, link);
}

static void duo_rx_core_done(struct duo_rx *rx,
			     struct fi_cq_tagged_entry *entry, fi_addr_t src)
{
	struct duo_ep *ep = rx->ep;

	if (duo_rx_stale(rx))
		return;
	src = duo_av_source(ep->av, src);
	entry->op_context = rx->context;
	if (rx->state == DUO_RX_PEEK) {
		duo_rx_peek_done(rx, entry, src);
		return;
	}
	if (!(rx->flags & FI_DISCARD))
		duo_ep_count_core(ep, entry->len);
	duo_lazy_expedite(ep);
	if (rx->wanted)
		duo_cq_push(ep->rx_cq, entry, src);
	else if (rx->multi)
		ep->up->done(rx, entry, src);
	duo_rx_unpost(rx);
	duo_rx_release(&ep->pool, rx);
}

static void duo_rx_core_failed(struct duo_rx *rx,
			       const struct fi_cq_err_entry *entry)
{
	struct fi_cq_err_entry out = *entry;
	struct duo_ep *ep = rx->ep;

	if (duo_rx_stale(rx))
		return;
	if (rx->state == DUO_RX_CANCELING && entry->err == FI_ECANCELED) {
		duo_rx_become(rx, DUO_RX_CANCELED);
		return;
	}
	out.op_context = rx->context;
	out.flags = duo_rx_cq_flags(rx) | (entry->flags & FI_REMOTE_CQ_DATA);
	if (rx->state == DUO_RX_PEEK)
		out.tag = rx->tag;
	/* efa reports the length of the message, not of the stored part */
	if (entry->err == FI_ETRUNC)
		out.len = duo_min(out.len, duo_rx_size(rx));
	if (rx->multi) {
		ep->up->failed(rx, &out);
	} else {
		ep->rx.failed += rx->state != DUO_RX_PEEK;
		duo_cq_push_err(ep->rx_cq, &out, FI_DUO_CORE);
	}
	duo_rx_unpost(rx);
	if (entry->err == FI_ETRUNC)
		duo_rx_retire(rx);
	else
		duo_rx_release(&ep->pool, rx);
}

int duo_cq_core_err(struct duo_cq *cq)
{
	struct fi_cq_err_entry entry = { 0 };
	struct duo_rx *rx;

	if (fi_cq_readerr(cq->path_cq[FI_DUO_CORE], &entry, 0) <= 0)
		return 0;
	rx = duo_cq_rx(cq, entry.op_context);
	if (rx)
		duo_rx_core_failed(rx, &entry);
	else
		duo_cq_push_err(cq, &entry, FI_DUO_CORE);
	return 1;
}

/*
 * Returns the receive that a successful entry of the core completes. NULL:
 * none. Ignores the context of a peer's RMA: if the device has no RDMA write,
 * efa may leave the context of an earlier receive in the entry of a remote
 * write.
 */
static inline struct duo_rx *duo_cq_core_rx(const struct duo_cq *cq,
				const struct fi_cq_tagged_entry *entry)
{
	return entry->flags & (FI_REMOTE_READ | FI_REMOTE_WRITE) ? NULL :
	       duo_cq_rx(cq, entry->op_context);
}

/*
 * Returns the source of an entry that completes no receive. src: the source
 * that the core has stored; valid only for a remote write to an endpoint with
 * FI_SOURCE.
 */
static fi_addr_t duo_cq_core_source(const struct duo_cq *cq, uint64_t flags,
				    fi_addr_t src)
{
	const struct duo_ep *ep;

	if (!(flags & FI_REMOTE_WRITE))
		return FI_ADDR_NOTAVAIL;
	LIST_FOREACH(ep, &cq->rx_eps, rx_link) {
		if (ep->caps & FI_SOURCE && ep->av && duo_av_has(ep->av, src))
			return src;
	}
	return FI_ADDR_NOTAVAIL;
}

/*
 * Completes rx in the common case: replaces the context and the source in the
 * core's entry, which is in the application's array. If rx needs
 * duo_rx_core_done(), changes nothing and returns false.
 */
DUO_INLINE bool duo_cq_core_recv(struct duo_rx *rx,
				 struct fi_cq_tagged_entry *entry,
				 fi_addr_t *src)
{
	struct duo_ep *ep = rx->ep;

	if (!rx->wanted)
		return false;
	if (rx->state == DUO_RX_POSTED)
		duo_match_unpost(&ep->match[rx->kind], rx);
	else if (rx->state != DUO_RX_CORE || rx->flags & FI_DISCARD)
		return false;
	entry->op_context = rx->context;
	*src = duo_av_source(ep->av, *src);
	duo_ep_count_core(ep, entry->len);
	duo_lazy_expedite(ep);
	duo_rx_release(&ep->pool, rx);
	return true;
}

/*
 * Handles entries of the core's CQ. The array `from` must not be the
 * application's array, because this function may write completions to the
 * latter.
 */
DUO_NOINLINE void duo_cq_core_copy(struct duo_cq *cq,
				   const struct fi_cq_tagged_entry *from,
				   const fi_addr_t *src, size_t count)
{
	struct fi_cq_tagged_entry entry;
	struct duo_rx *rx;
	size_t i;

	for (i = 0; i < count; i++) {
		entry = from[i];
		rx = duo_cq_core_rx(cq, &entry);
		if (rx)
			duo_rx_core_done(rx, &entry, src[i]);
		else
			duo_cq_push(cq, &entry,
				    duo_cq_core_source(cq, entry.flags,
						       src[i]));
	}
}

/*
 * Handles entries in the application's array. Copies them first, because
 * duo_cq_core_copy() may write completions to this array.
 */
DUO_NOINLINE void duo_cq_core_remaining(struct duo_cq *cq,
					const struct fi_cq_tagged_entry *from,
					const fi_addr_t *from_src, size_t count)
{
	struct fi_cq_tagged_entry entry[DUO_CORE_BATCH];
	fi_addr_t src[DUO_CORE_BATCH];

	memcpy(entry, from, count * sizeof(*entry));
	memcpy(src, from_src, count * sizeof(*src));
	duo_cq_core_copy(cq, entry, src, count);
}

int duo_cq_core_in_place(struct duo_cq *cq, size_t count)
{
	struct fi_cq_tagged_entry *entry = cq->sink.buf;
	fi_addr_t *src = duo_cq_core_src(cq);
	struct duo_rx *rx;
	size_t i;

	for (i = 0; i < count; i++) {
		rx = duo_cq_core_rx(cq, &entry[i]);
		if (!rx)
			src[i] = duo_cq_core_source(cq, entry[i].flags, src[i]);
		else if (!duo_cq_core_recv(rx, &entry[i], &src[i]))
			break;
	}
	duo_sink_advance(&cq->sink, i);
	if (i < count)
		duo_cq_core_remaining(cq, &entry[i], &src[i], count - i);
	return count;
}

int duo_cq_core_apart(struct duo_cq *cq)
{
	struct fi_cq_tagged_entry entry[DUO_CORE_BATCH];
	size_t batch = DUO_CORE_BATCH;
	fi_addr_t src[DUO_CORE_BATCH];
	ssize_t count;

	/*
	 * reads no more entries than the application's array can take: ofi_duo
	 * would copy further ones to cq->ring first, and from there to the next
	 * array
	 */
	if (cq->sink.space && cq->sink.space < batch)
		batch = cq->sink.space;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], entry, batch, src);
	if (count == -FI_EAVAIL)
		return duo_cq_core_err(cq);
	if (count <= 0)
		return 0;
	duo_cq_core_copy(cq, entry, src, count);
	return count;
}
