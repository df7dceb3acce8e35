/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Progress of a completion queue: polls shm, and the core as often as it is
 * worth, and turns what they report into entries of the ring. The caller
 * holds the domain's lock.
 */

#include <time.h>
#include <rdma/fi_errno.h>

#include "duo.h"

#define DUO_CORE_BATCH 16
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

int duo_cq_poll_core(struct duo_cq *cq)
{
	struct fi_cq_tagged_entry entry[DUO_CORE_BATCH];
	size_t batch = DUO_CORE_BATCH;
	fi_addr_t src[DUO_CORE_BATCH];
	struct duo_rx *rx;
	ssize_t i, count;

	cq->core_polls++;
	/* not more than the caller takes: the ring is a second copy */
	if (cq->sink.room && cq->sink.room < batch)
		batch = cq->sink.room;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], entry, batch, src);
	if (count == -FI_EAVAIL)
		return duo_cq_core_err(cq);
	for (i = 0; i < count; i++)	/* entries of ours, mostly */
		__builtin_prefetch((char *) entry[i].op_context +
				   offsetof(struct duo_rx, context));
	for (i = 0; i < count; i++) {
		rx = duo_cq_rx(cq, entry[i].op_context);
		if (rx)
			duo_lazy_core_done(rx, &entry[i], src[i]);
		else
			duo_cq_push(cq, &entry[i], FI_ADDR_NOTAVAIL);
	}
	return count > 0 ? count : 0;
}

static bool duo_cq_room(struct duo_cq *cq)
{
	struct duo_ep *ep;

	if (!cq->domain->crowded)
		return true;
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

/* What is held comes before what arrives next. */
static void duo_cq_resolve(struct duo_cq *cq)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		duo_srx_resolve(ep);
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		duo_srx_resolve(ep);
}

static void duo_cq_poll_shm(struct duo_cq *cq)
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
static bool duo_cq_core_due(struct duo_cq *cq)
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
	if (ep->lazy_count && !ep->closing && duo_lazy_due(cq, ep))
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
static bool duo_cq_shm_due(struct duo_cq *cq)
{
	if (cq->shm_idle <= DUO_SHM_IDLE ||
	    !atomic_load_explicit(&cq->core_credit, memory_order_relaxed))
		return true;
	return ++cq->shm_skip % DUO_SHM_INTERVAL == 0;
}

void duo_cq_progress(struct duo_cq *cq)
{
	if (cq->path_cq[FI_DUO_SHM]) {
		if (duo_cq_shm_due(cq))
			duo_cq_poll_shm(cq);
		if (cq->domain->lazy)
			duo_cq_flush_lazy(cq);
		if (!duo_cq_core_due(cq))
			return;
	} else if (cq->domain->lazy) {
		duo_cq_flush_lazy(cq);	/* what the core has refused */
	}
	if (duo_cq_poll_core(cq))
		duo_cq_core_active(cq);
}
