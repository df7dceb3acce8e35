/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fast path of fi_cq_read(): docs/objects.md, "Fast paths". It only polls
 * near's rings. Functions of the slow path have the same arguments as the
 * fast-path functions that call them. The compiler can then make tail calls, so
 * a read that finds nothing saves no registers.
 */

#include <rdma/fi_errno.h>

#include "base/params.h"
#include "cq/cq.h"
#include "base/enosys.h"
#include "transport/near/sink.h"

#ifndef DUO_LOCKED
#define DUO_LOCKED DUO_LOCK_OFF
#define DUO_NAME(name) name
#endif

/* Another thread holds the lock: waits for it, and takes the slow path. */
static __attribute__((noinline)) ssize_t
duo_cq_read_later(struct duo_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	duo_group_wait(&cq->group);
	return duo_cq_read_all(cq, buf, count, src);
}

DUO_INLINE ssize_t duo_cq_read_over(struct duo_cq *cq, ssize_t ret)
{
	return duo_lock_end(&cq->group->lock, DUO_LOCKED, ret);
}

/*
 * Polls the port's active rings that have messages, beginning with the ring at
 * *at. If `at` is NULL, polls none. Returns the number of events.
 */
DUO_INLINE uint32_t duo_cq_read_port(struct near_port *port,
				     struct near_rx_ring *const *at)
{
	struct near_slot *slot;
	uint64_t word;
	uint32_t n = 0;

	for (; at; at = near_ring_ready(port, at + 1)) {
		near_rx_ready(&(*at)->rx, &slot, &word);
		n += near_rx_ring_poll(port, *at, slot, word, &duo_near_rings);
	}
	return n;
}

/*
 * Polls the active rings of ep's port, beginning with the ring at *ring. If
 * `ring` is NULL, polls all active rings of this port. Then polls all active
 * rings of the endpoints that follow ep in the CQ. Writes completions to
 * cq->sink. Releases the group's lock. Returns the result of fi_cq_read().
 */
static __attribute__((noinline)) ssize_t
duo_cq_read_rings(struct duo_cq *cq, const struct duo_ep *ep,
		  struct near_rx_ring *const *ring)
{
	struct near_port *port;
	uint32_t n = 0;

	for (; ep; ep = duo_cq_next_ep(cq, ep), ring = NULL) {
		if (near_unlikely(!ep->near))
			continue;
		port = ep->near->port;
		n += duo_cq_read_port(
			port,
			ring ? ring : near_ring_ready(port, port->active));
	}
	cq->left--;
	cq->local_idle = n || cq->sink.count ? 0 : cq->local_idle + 1;
	cq->sink.space = 0;
	return duo_cq_read_over(cq, near_likely(cq->sink.count) ?
				(ssize_t) cq->sink.count :
				duo_cq_read_none(cq));
}

/*
 * Completes a read that has found a message in the ring at *ring. If the first
 * posted receive matches this message, delivers the message, and writes the
 * completion to buf. Then polls the remaining active rings. Releases the
 * group's lock. Returns the result of fi_cq_read().
 */
static __attribute__((noinline)) ssize_t
duo_cq_read_found(struct duo_cq *cq, void *buf, size_t count, fi_addr_t *src,
		  struct duo_ep *ep, struct near_rx_ring *const *ring)
{
	struct near_port *port = ep->near->port;
	void *next = NULL;

	if (near_likely(count && ep->rx_cq == cq))
		next = duo_near_match_first(ep, *ring, cq->format, buf, src);
	if (near_unlikely(!next)) {
		cq->sink = (struct duo_sink) { buf, src, count, 0 };
		return duo_cq_read_rings(cq, ep, ring);
	}
	port->run = NULL;
	ring = near_ring_ready(port, ring);
	if (near_unlikely(ring || duo_cq_next_ep(cq, ep))) {
		cq->sink = (struct duo_sink) { next, src ? src + 1 : NULL,
					       count - 1, 1 };
		return duo_cq_read_rings(cq, ep, ring);
	}
	cq->left--;
	cq->local_idle = 0;
	return duo_cq_read_over(cq, 1);
}

static __attribute__((noinline)) ssize_t duo_cq_read_idle(struct duo_cq *cq)
{
	return duo_cq_read_over(cq, duo_cq_yield(cq));
}

DUO_INLINE ssize_t duo_cq_read_any(struct duo_cq *cq, void *buf, size_t count,
				   fi_addr_t *src)
{
	struct near_rx_ring *const *ring;
	struct near_port *port;
	struct duo_ep *ep;

	if (DUO_LOCKED &&
	    near_unlikely(!duo_lock_take(&duo_group_of(&cq->group)->lock,
					 DUO_LOCKED)))
		return duo_cq_read_later(cq, buf, count, src);
	if (near_unlikely(cq->attention || !cq->left || duo_cq_core_busy(cq)))
		return duo_cq_read_all(cq, buf, count, src);
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (near_unlikely(!ep->near))
			continue;
		port = ep->near->port;
		if (near_unlikely(!near_rings_only(port)))
			return duo_cq_read_all(cq, buf, count, src);
		ring = near_ring_ready(port, port->active);
		if (near_unlikely(ring != NULL))
			return duo_cq_read_found(cq, buf, count, src, ep, ring);
	}
	cq->left--;
	if (near_unlikely(!(++cq->local_idle & duo_params.yield_mask)))
		return duo_cq_read_idle(cq);
	return duo_cq_read_over(cq, -FI_EAGAIN);
}

static ssize_t duo_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
			       fi_addr_t *src)
{
	return duo_cq_read_any(duo_cq_of(cq), buf, count, src);
}

static ssize_t duo_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return duo_cq_read_any(duo_cq_of(cq), buf, count, NULL);
}

struct fi_ops_cq DUO_NAME(duo_cq_ops) = {
	.size = sizeof(struct fi_ops_cq),
	.read = duo_cq_read,
	.readfrom = duo_cq_readfrom,
	.readerr = duo_cq_readerr,
	.sread = duo_cq_sread,
	.sreadfrom = duo_cq_sreadfrom,
	.signal = duo_cq_signal,
	.strerror = duo_cq_strerror,
	DUO_NO_XPU_CQ
};
