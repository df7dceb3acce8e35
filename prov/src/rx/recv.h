/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receives. ofi_duo keeps each receive in its own posted queue, except receives
 * that only the core can complete. If messages over the core can match a
 * receive, ofi_duo also posts it to the core: core/post.h decides when. Lock:
 * the functions that the application calls take the group's lock. The caller of
 * any other function must hold it.
 */
#ifndef DUO_RECV_H
#define DUO_RECV_H

#include "core/post.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "transport/transport.h"

struct duo_recv {
	enum duo_rx_kind kind;
	const struct iovec *iov;
	void **desc;
	size_t count;
	struct duo_want want;
	void *context;
	uint64_t flags;
	struct duo_rx *multi;	/* owner entry; NULL: not a sub-receive */
};

ssize_t duo_recv(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
		 fi_addr_t src, void *context);
ssize_t duo_recvv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t src, void *context);
ssize_t duo_recvmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags);
ssize_t duo_trecv(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
		  fi_addr_t src, uint64_t tag, uint64_t ignore, void *context);
ssize_t duo_trecvv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
		   void *context);
ssize_t duo_trecvmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags);
ssize_t duo_ep_cancel(fid_t fid, void *context);

/*
 * True if the post of this receive only appends an entry to the posted queue:
 * the core never gets the receive, no message waits that it could match, the
 * queue has no index, and there is a free entry. The caller must hold the
 * group's lock.
 */
DUO_INLINE bool duo_recv_simple(const struct duo_ep *ep, enum duo_rx_kind kind,
				const struct duo_want *want)
{
	const struct duo_match *match = &ep->match[kind];

	return !(ep->attention & 1U << kind) &&
	       duo_recv_never(ep, want) && TAILQ_EMPTY(&ep->rx.unresolved) &&
	       !match->unexp_count && duo_match_plain(match, want->ignore) &&
	       !SLIST_EMPTY(&ep->pool.free);
}

/* Appends the receive to the posted queue. duo_recv_simple() must be true. */
DUO_INLINE void duo_recv_queue(struct duo_ep *ep, enum duo_rx_kind kind,
			       void *buf, size_t len, void *desc,
			       const struct duo_want *want, void *context)
{
	struct duo_rx *rx = duo_rx_alloc_plain(&ep->pool, duo_rx_plain(kind));

	rx->addr = want->addr;
	rx->tag = want->tag;
	rx->context = context;
	rx->ignore = want->ignore;
	rx->flags = ep->rx.op_flags[kind];
	rx->desc = desc;
	rx->iov.iov_base = buf;
	rx->iov.iov_len = len;
	duo_match_append_plain(&ep->match[kind], rx);
}

/*
 * The fast path: posts a receive that only local messages can match. True: the
 * receive is posted, and this thread holds the group's lock, so the caller must
 * call duo_recv_end(). False: nothing has changed; the caller must call
 * duo_recv() or duo_trecv().
 */
DUO_INLINE bool duo_recv_local(struct fid_ep *ep_fid, enum duo_rx_kind kind,
			       void *buf, size_t len, void *desc,
			       struct duo_want want, void *context,
			       const enum duo_lock_mode mode)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_group *group = mode ? duo_group_of(&ep->group) : NULL;

	if (mode && __builtin_expect(!duo_group_take(&ep->group, group, mode),
				     false))
		return false;
	if (__builtin_expect(duo_recv_simple(ep, kind, &want), true)) {
		duo_recv_queue(ep, kind, buf, len, desc, &want, context);
		return true;
	}
	if (mode)
		duo_lock_end(&group->lock, mode, 0);
	return false;
}

/* Releases the group's lock after duo_recv_local(). Returns 0. */
DUO_INLINE ssize_t duo_recv_end(struct fid_ep *ep_fid,
				const enum duo_lock_mode mode)
{
	return duo_lock_end(&duo_ep_of(ep_fid)->group->lock, mode, 0);
}

/*
 * Posts rx to ofi_duo's posted queue, to the core, or to both. Returns 0 or an
 * error. After an error, rx is freed.
 */
int duo_recv_place(struct duo_rx *rx);
/*
 * Copies *recv to rx, except source and tag. duo_recv_reserve() must have
 * returned true before.
 */
void duo_recv_fill(struct duo_rx *rx, const struct duo_recv *recv);

/*
 * Ends rx, which must be in no queue, with the error err, and frees rx. If rx
 * is the unused space of a multi-receive buffer, also closes this buffer.
 */
void duo_recv_fail(struct duo_rx *rx, int err);

/*
 * If *recv has several buffers, reserves two receive entries: one for the
 * receive, and one for its list of buffers. False: no memory.
 */
DUO_INLINE bool duo_recv_reserve(struct duo_ep *ep, const struct duo_recv *recv)
{
	return recv->count <= 1 || duo_rx_pool_reserve(&ep->pool, 2);
}

/* peek.c */
ssize_t duo_recv_peek(struct duo_ep *ep, const struct duo_recv *recv);
ssize_t duo_recv_claim(struct duo_ep *ep, const struct duo_recv *recv);

/*
 * Starts to receive the local message rx into the buffers of *recv. The message
 * must be waiting: unexpected, unresolved, or claimed by a peek. Returns 0 or
 * an error. After an error, nothing has changed.
 */
static inline int duo_recv_start(struct duo_rx *rx, const struct duo_recv *recv)
{
	return duo_recv_reserve(rx->ep, recv) ?
	       rx->ep->domain->peer->start(rx, recv) : -FI_EAGAIN;
}

#endif /* DUO_RECV_H */
