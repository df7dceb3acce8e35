/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The send calls. The first send to an address, and each send over the local
 * path, takes the group's lock. Other sends over the core take no lock.
 */
#ifndef DUO_SEND_H
#define DUO_SEND_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "av/route.h"
#include "obj/cq.h"
#include "obj/send.h"
#include "transport/near/near_ep.h"

/* Counts an operation over the core, which may be called without a lock. */
static inline void duo_tx_count(const struct duo_ep *ep, uint64_t *count)
{
	if (ep->domain->group.lock.on)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	else
		++*count;
}

/* Renews the core poll budget. Must follow each operation over the core. */
static inline void duo_tx_core_called(struct duo_ep *ep)
{
	if (ep->tx_cq)	/* NULL: ep only receives, or has counters only */
		duo_cq_core_active(ep->tx_cq);
}

/*
 * Returns the flags of a call, for the core. With a local side, removes
 * FI_MORE: efa would wait for the next operation, which near may get.
 */
static inline uint64_t duo_tx_core_flags(const struct duo_ep *ep,
					 uint64_t flags)
{
	return ep->path_ep[FI_DUO_LOCAL] ? flags & ~FI_MORE : flags;
}

ssize_t duo_sendv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t dest, void *context);
ssize_t duo_sendmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags);
ssize_t duo_tsendv(struct fid_ep *ep_fid, const struct iovec *iov,
		   void **desc, size_t count, fi_addr_t dest, uint64_t tag,
		   void *context);
ssize_t duo_tsendmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags);

/* Sends one buffer. Arguments in registers: the fast path needs no stack. */
ssize_t duo_send_one(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, fi_addr_t dest, uint64_t tag, void *context,
		     uint64_t data, enum duo_send_variant variant,
		     unsigned int near_flags);

/* Rings the doorbell if necessary, and releases the lock. Returns 0. */
ssize_t duo_send_notify(struct duo_lock *lock, struct near_peer *peer);

/* Returns dest's route word if dest is local, else 0. Takes no lock. */
DUO_INLINE uint64_t duo_send_route(const struct duo_ep *ep, fi_addr_t dest)
{
	uint64_t word = dest < ep->route_size ?
			duo_route_load(ep->route, dest) : 0;

	return duo_route_state(word) == DUO_ROUTE_LOCAL ? word : 0;
}

/*
 * Writes a message to a local peer's ring, and its completion to the CQ.
 * Returns the peer. NULL: nothing was written.
 */
DUO_INLINE struct near_peer *duo_send_put(struct duo_ep *ep,
					  const struct duo_send call)
{
	const bool quiet = call.variant == DUO_SEND_INJECT;
	const struct near_msg msg = call.msg;
	struct near_peer *peer;
	uint64_t route;

	if (near_unlikely(ep->attention & DUO_EP_SEND))
		return NULL;
	route = duo_send_route(ep, call.dest);
	if (near_unlikely(!route))
		return NULL;
	peer = ep->near->peer[duo_route_index(route)];
	if (near_unlikely(!peer || (!quiet && !duo_cq_accepts(ep->tx_cq)) ||
			  !near_send_short(ep->near->port, peer, &msg)))
		return NULL;
	ep->stats.path[FI_DUO_LOCAL].tx_msgs++;
	ep->stats.path[FI_DUO_LOCAL].tx_bytes += msg.len;
	if (!quiet && ep->near->tx_reports)
		duo_cq_put_sent(ep->tx_cq, call.context, FI_SEND |
				(msg.flags & NEAR_TAGGED ? FI_TAGGED :
							    FI_MSG));
	return peer;
}

/*
 * The fast path: sends a small message to a local peer. Returns the peer, and
 * keeps the group's lock: the caller must pass the peer to duo_send_end().
 * NULL: nothing was sent; the caller must call duo_send_one().
 */
DUO_INLINE struct near_peer *duo_send_small(struct fid_ep *ep_fid,
					    const struct duo_send call,
					    const enum duo_lock_mode mode)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_group *group;
	struct near_peer *peer;

	if (call.msg.len > NEAR_INLINE ||
	    (call.variant == DUO_SEND_INJECT && call.msg.len > ep->inject_size))
		return NULL;
	if (!mode)
		return duo_send_put(ep, call);
	group = duo_group_of(&ep->group);
	/* tests the route first, because a send over the core takes no lock */
	if (near_unlikely(!duo_send_route(ep, call.dest) ||
			  !duo_group_take(&ep->group, group, mode)))
		return NULL;
	peer = duo_send_put(ep, call);
	if (near_unlikely(!peer))
		duo_lock_end(&group->lock, mode, 0);
	return peer;
}

/*
 * Ends the fast path: rings the doorbell if necessary, releases the lock, and
 * returns 0. Makes only tail calls, so that the fast path saves no registers.
 */
DUO_INLINE ssize_t duo_send_end(struct fid_ep *ep_fid, struct near_peer *peer,
				const enum duo_lock_mode mode)
{
	struct duo_lock *lock = &duo_ep_of(ep_fid)->group->lock;

	if (!mode)
		return near_send_end(peer);
	if (near_unlikely(!near_tx_polled(&peer->tx)))
		return duo_send_notify(lock, peer);
	return duo_lock_end(lock, mode, 0);
}

#endif /* DUO_SEND_H */
