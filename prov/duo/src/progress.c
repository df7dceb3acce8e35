/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Progress of a completion queue: polls shm, and the core as often as it is
 * worth, and turns what they report into entries of the ring. The caller
 * holds the domain's lock.
 */

#include <string.h>
#include <time.h>
#include <rdma/fi_errno.h>

#include "duo.h"

#define DUO_SHM_BUSY 256	/* polls; idle for longer: shm is not busy */
#define DUO_SHM_IDLE 1024	/* polls; idle for longer: not expected */
#define DUO_SHM_INTERVAL 8	/* polls of the core per poll of shm then */
#define DUO_LAZY_AGE 16		/* times lazy_limit: the longest wait */
#define DUO_LOOK_MIN 4		/* polls; the application is slow if twice */
#define DUO_LOOK_MS 4		/* in a row they take this, milliseconds */
#define DUO_LOOK_MAX 64		/* polls between looks at one who is not */

/* shm writes its completions here. Receives carry our entry. */
static ssize_t duo_peer_cq_write(struct fid_peer_cq *peer_cq, void *context,
				 uint64_t flags, size_t len, void *buf,
				 uint64_t data, uint64_t tag, fi_addr_t src)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = flags,
		.len = len,
		.buf = buf,
		.data = data,
		.tag = tag,
	};

	cq->shm_events++;
	if (flags & FI_RECV)
		duo_srx_done(context, flags, len, buf, data, src);
	else
		duo_cq_push(cq, &entry, FI_ADDR_NOTAVAIL);
	return 0;
}

static struct duo_rx *duo_cq_rx(struct duo_cq *cq, void *context)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link) {
		if (duo_rx_pool_owns(&ep->pool, context))
			return context;
	}
	return NULL;
}

static ssize_t duo_peer_cq_writeerr(struct fid_peer_cq *peer_cq,
				    const struct fi_cq_err_entry *entry)
{
	struct duo_cq *cq = duo_container_of(peer_cq, struct duo_cq, peer_cq);
	struct duo_rx *rx = duo_cq_rx(cq, entry->op_context);

	cq->shm_events++;
	if (rx)
		duo_srx_failed(rx, entry);
	else
		duo_cq_push_err(cq, entry, FI_DUO_SHM);
	return 0;
}

struct fi_ops_cq_owner duo_cq_owner_ops = {
	.size = sizeof(struct fi_ops_cq_owner),
	.write = duo_peer_cq_write,
	.writeerr = duo_peer_cq_writeerr,
};

/* Returns 1 if there was an error entry. */
static int duo_cq_core_err(struct duo_cq *cq)
{
	struct fi_cq_err_entry entry = { 0 };
	struct duo_rx *rx;

	if (fi_cq_readerr(cq->path_cq[FI_DUO_CORE], &entry, 0) <= 0)
		return 0;
	rx = duo_cq_rx(cq, entry.op_context);
	if (rx)
		duo_lazy_core_failed(rx, &entry);
	else
		duo_cq_push_err(cq, &entry, FI_DUO_CORE);
	return 1;
}

/*
 * A receive as most are ends: its entry, which lies where the application
 * wants it, becomes the application's. False: see duo_lazy_core_done().
 */
DUO_HOT bool duo_cq_core_recv(struct duo_rx *rx,
			      struct fi_cq_tagged_entry *entry, fi_addr_t *src)
{
	struct duo_ep *ep = rx->ep;

	if (!rx->wanted)
		return false;
	if (rx->state == DUO_RX_POSTED)
		duo_match_unpost(&ep->match[rx->kind], rx);
	else if (rx->state != DUO_RX_CORE || rx->flags & FI_DISCARD)
		return false;
	entry->op_context = rx->context;
	*src = duo_core_av_source(ep->core_av, *src);
	duo_ep_count_core(ep, entry->len);
	duo_lazy_hurry(ep);
	duo_rx_release(&ep->pool, rx);
	return true;
}

/* Entries that lie elsewhere, or may become none or more than one. */
DUO_COLD void duo_cq_core_copy(struct duo_cq *cq,
			       const struct fi_cq_tagged_entry *from,
			       const fi_addr_t *src, size_t count)
{
	struct fi_cq_tagged_entry entry;
	struct duo_rx *rx;
	size_t i;

	for (i = 0; i < count; i++) {
		entry = from[i];
		rx = duo_cq_rx(cq, entry.op_context);
		if (rx)
			duo_lazy_core_done(rx, &entry, src[i]);
		else
			duo_cq_push(cq, &entry, FI_ADDR_NOTAVAIL);
	}
}

/* The rest of a batch, which the caller's array is in the way of. */
DUO_COLD void duo_cq_core_rest(struct duo_cq *cq,
			       const struct fi_cq_tagged_entry *from,
			       const fi_addr_t *from_src, size_t count)
{
	struct fi_cq_tagged_entry entry[DUO_CORE_BATCH];
	fi_addr_t src[DUO_CORE_BATCH];

	memcpy(entry, from, count * sizeof(*entry));
	memcpy(src, from_src, count * sizeof(*src));
	duo_cq_core_copy(cq, entry, src, count);
}

/*
 * Entries that were read straight into the caller's array. The core's format
 * is ours, so what has to be done to most of them is done in place.
 */
DUO_COLD void duo_cq_core_in_place(struct duo_cq *cq,
				   struct fi_cq_tagged_entry *entry,
				   fi_addr_t *src, size_t count)
{
	struct duo_rx *rx;
	size_t i;

	for (i = 0; i < count; i++) {
		rx = duo_cq_rx(cq, entry[i].op_context);
		if (!rx)
			src[i] = FI_ADDR_NOTAVAIL;
		else if (!duo_cq_core_recv(rx, &entry[i], &src[i]))
			break;
	}
	duo_sink_advance(&cq->sink, i);
	if (i < count)
		duo_cq_core_rest(cq, &entry[i], &src[i], count - i);
}

DUO_HOT ssize_t duo_cq_core_direct(struct duo_cq *cq)
{
	fi_addr_t *src = cq->sink.src ? cq->sink.src : cq->core_src;
	struct fi_cq_tagged_entry *entry = cq->sink.buf;
	size_t room = cq->sink.room;
	ssize_t count;

	if (room > DUO_CORE_BATCH)
		room = DUO_CORE_BATCH;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], entry, room, src);
	if (count > 0)
		duo_cq_core_in_place(cq, entry, src, count);
	return count;
}

/* For an application with a shorter entry, and into the ring. */
DUO_COLD ssize_t duo_cq_core_apart(struct duo_cq *cq)
{
	struct fi_cq_tagged_entry entry[DUO_CORE_BATCH];
	size_t batch = DUO_CORE_BATCH;
	fi_addr_t src[DUO_CORE_BATCH];
	ssize_t count;

	/* not more than the caller takes: the ring is a second copy */
	if (cq->sink.room && cq->sink.room < batch)
		batch = cq->sink.room;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], entry, batch, src);
	if (count > 0)
		duo_cq_core_copy(cq, entry, src, count);
	return count;
}

DUO_HOT int duo_cq_core_batch(struct duo_cq *cq)
{
	ssize_t count;

	cq->core_polls++;
	count = cq->sink.room && cq->format == FI_CQ_FORMAT_TAGGED ?
		duo_cq_core_direct(cq) : duo_cq_core_apart(cq);
	if (count == -FI_EAVAIL)
		return duo_cq_core_err(cq);
	return count > 0 ? count : 0;
}

int duo_cq_poll_core(struct duo_cq *cq)
{
	return duo_cq_core_batch(cq);
}

DUO_COLD bool duo_cq_crowded_room(struct duo_cq *cq)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link) {
		if (!duo_ep_room(ep))
			return false;
	}
	LIST_FOREACH(ep, &cq->tx_eps, tx_link) {
		if (!duo_ep_room(ep))
			return false;
	}
	return true;
}

static inline bool duo_cq_room(struct duo_cq *cq)
{
	return !cq->domain->crowded || duo_cq_crowded_room(cq);
}

/* What is held comes before what arrives next. */
DUO_COLD void duo_cq_resolve(struct duo_cq *cq)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		duo_srx_resolve(ep);
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		duo_srx_resolve(ep);
}

DUO_HOT void duo_cq_poll_shm(struct duo_cq *cq)
{
	cq->shm_events = 0;
	if (cq->domain->held)
		duo_cq_resolve(cq);
	if (!duo_cq_room(cq))
		return;		/* senders see -FI_EAGAIN meanwhile */
	fi_cq_read(cq->path_cq[FI_DUO_SHM], NULL, 0);
	if (cq->domain->held)
		duo_cq_resolve(cq);
	cq->shm_idle = cq->shm_events ? 0 : cq->shm_idle + 1;
}

/*
 * The core is polled every time while it has something to do or shm has
 * not; else every core_interval-th time.
 */
DUO_HOT bool duo_cq_core_due(struct duo_cq *cq)
{
	uint32_t credit = atomic_load_explicit(&cq->core_credit,
					       memory_order_relaxed);

	if (credit) {
		atomic_store_explicit(&cq->core_credit, credit - 1,
				      memory_order_relaxed);
		return true;
	}
	if (cq->shm_idle > DUO_SHM_BUSY)
		return true;
	if (++cq->core_skip < duo_params.core_interval)
		return false;
	cq->core_skip = 0;
	return true;
}

static uint64_t duo_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Patience is counted in polls; who polls seldom shall not need it. */
static void duo_cq_look_at_clock(struct duo_cq *cq)
{
	uint64_t now = duo_now_ms();

	if (now - cq->look_ms >= DUO_LOOK_MS) {
		cq->slow++;
		cq->look_every = DUO_LOOK_MIN;
	} else {
		cq->slow = 0;
		if (cq->look_every < DUO_LOOK_MAX)
			cq->look_every *= 2;
	}
	cq->look_in = cq->look_every;
	cq->look_ms = now;
}

/* Has the oldest lazy receive waited long enough for a local message? */
static bool duo_lazy_due(const struct duo_cq *cq, struct duo_ep *ep)
{
	return cq->slow > 1 || cq->shm_idle >= ep->lazy_limit ||
	       ep->lazy_age++ >= DUO_LAZY_AGE * ep->lazy_limit;
}

static void duo_ep_flush_lazy(const struct duo_cq *cq, struct duo_ep *ep)
{
	if (ep->closing)
		return;
	if (ep->due_count)
		duo_lazy_flush_due(ep);
	if (ep->lazy_count && duo_lazy_due(cq, ep))
		duo_lazy_flush(ep);
}

/*
 * Who polls the CQ of sends alone may wait for a completion that the peer
 * gives only when its own message has found a receive here.
 */
static void duo_cq_flush_lazy(struct duo_cq *cq)
{
	struct duo_ep *ep;

	if (!cq->look_in--)
		duo_cq_look_at_clock(cq);
	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		duo_ep_flush_lazy(cq, ep);
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		duo_ep_flush_lazy(cq, ep);
}

/*
 * While the core is active and shm has long been idle, shm is polled every
 * DUO_SHM_INTERVAL-th time: the remote path pays for little of it.
 */
DUO_HOT bool duo_cq_shm_due(struct duo_cq *cq)
{
	if (cq->shm_idle <= DUO_SHM_IDLE ||
	    !atomic_load_explicit(&cq->core_credit, memory_order_relaxed))
		return true;
	return ++cq->shm_skip % DUO_SHM_INTERVAL == 0;
}

DUO_HOT void duo_cq_poll(struct duo_cq *cq)
{
	if (cq->path_cq[FI_DUO_SHM]) {
		if (duo_cq_shm_due(cq))
			duo_cq_poll_shm(cq);
		if (cq->domain->lazy)
			duo_cq_flush_lazy(cq);
		if (!duo_cq_core_due(cq))
			return;
	} else if (cq->domain->lazy) {
		duo_cq_flush_lazy(cq);	/* due, or refused by the core */
	}
	if (duo_cq_core_batch(cq))
		duo_cq_core_active(cq);
}

void duo_cq_progress(struct duo_cq *cq)
{
	duo_cq_poll(cq);
}

ssize_t duo_cq_read_fresh(struct duo_cq *cq, void *buf, size_t count,
			  fi_addr_t *src)
{
	cq->sink = (struct duo_sink) { buf, src, count, 0 };
	duo_cq_poll(cq);
	cq->sink.room = 0;
	if (cq->sink.count)
		return cq->sink.count;
	return duo_err_due(&cq->errs, &cq->ring) ? -FI_EAVAIL : -FI_EAGAIN;
}
