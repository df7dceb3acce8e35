/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The send calls. The *route* of an address is a word with the path that all
 * messages to this address take: over the core or over the local transport. The
 * first send to an address decides on the path, and takes the group's lock.
 * Each send over the local path takes the lock, too. Later sends over the core
 * take no lock.
 */
#ifndef DUO_SEND_H
#define DUO_SEND_H

#include <rdma/fi_endpoint.h>
#include <rdma/fi_tagged.h>

#include "av/route.h"
#include "obj/cq.h"
#include "obj/send.h"
#include "transport/near/near_ep.h"

/*
 * Adds 1 to *count, a number of operations over the core. These operations take
 * no lock, so several threads might call this function at the same time. If
 * several threads may use the domain, therefore adds atomically.
 */
static inline void duo_tx_count(const struct duo_ep *ep, uint64_t *count)
{
	if (ep->domain->group.lock.on)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	else
		++*count;
}

/*
 * Must be called after each operation over the core. Makes the next reads of
 * the CQ poll the core, because they may find its completion there.
 */
static inline void duo_tx_core_called(struct duo_ep *ep)
{
	if (ep->tx_cq)	/* NULL: ep only receives, or has counters only */
		duo_cq_core_active(ep->tx_cq);
}

/*
 * Returns the flags that the core gets for a call with these flags. If the
 * endpoint can also send over the local transport, removes FI_MORE. With
 * FI_MORE, efa would delay the operation until it gets the next one. But
 * ofi_duo may pass the next operation to the local transport.
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

/*
 * The slow path: sends one buffer. The arguments are scalars, so that the fast
 * path can pass them without storing a struct on its stack.
 */
ssize_t duo_send_one(struct fid_ep *ep_fid, const void *buf, size_t len,
		     void *desc, fi_addr_t dest, uint64_t tag, void *context,
		     uint64_t data, enum duo_send_variant variant,
		     unsigned int near_flags);

/*
 * Rings the doorbell of the peer if near requires this, so that the peer reads
 * the ring to which the message was written. Releases the lock. Returns 0.
 */
ssize_t duo_send_notify(struct duo_lock *lock, struct near_peer *peer);

/*
 * Returns the route word of dest if the path to dest is local, otherwise 0.
 * Takes no lock.
 */
DUO_INLINE uint64_t duo_send_route(const struct duo_ep *ep, fi_addr_t dest)
{
	uint64_t word = dest < ep->route_size ?
			duo_route_load(ep->route, dest) : 0;

	return duo_route_state(word) == DUO_ROUTE_LOCAL ? word : 0;
}

/*
 * Writes a message to the ring of a local peer. If the send has a completion,
 * writes it to the CQ. Returns the peer. NULL: nothing was written.
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
 * The fast path: sends a small message to a local peer. If the message was
 * sent, returns the peer. This thread then holds the group's lock, and the
 * caller must pass the peer to duo_send_end(). NULL: nothing was sent, and the
 * caller must call duo_send_one().
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
 * Ends the fast path: rings the doorbell of the peer if near requires this, and
 * releases the group's lock. Returns 0. Makes only tail calls, so that the fast
 * path saves no registers.
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
