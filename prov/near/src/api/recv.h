/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives of an endpoint, from the call to the completion. */
#ifndef NEAR_API_RECV_H
#define NEAR_API_RECV_H

#include "api/cq.h"
#include "proto/hot.h"

/* What a completion tells of the receive itself. */
#define NEAR_RECV_FLAGS (FI_RECV | FI_MSG | FI_TAGGED)

static inline bool near_ep_room(const struct near_ep *ep)
{
	return near_cq_room(ep->rx_cq) && !ep->filling &&
	       (ep->tx_cq == ep->rx_cq || near_cq_room(ep->tx_cq));
}

static inline struct near_source *near_source_of(const struct near_peer *peer)
{
	return peer->user;
}

static inline void near_peer_drop(struct near_port *port,
				  struct near_peer *peer)
{
	if (near_likely(peer->refs > 1))
		peer->refs--;
	else
		near_peer_put(port, peer);
}

/* Takes recv off its queue. */
static inline void near_recv_unpost(struct near_ep *ep, struct near_recv *recv)
{
	near_match_unpost(recv);
	recv->posted = false;
	if (recv->source)
		near_peer_drop(ep->port, recv->source->peer);
}

static inline uint64_t near_msg_fi_flags(const struct near_msg *msg)
{
	return msg->flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0;
}

/* The receive has msg, all of it. */
static inline void near_recv_report(struct near_ep *ep,
				    const struct near_recv *recv,
				    const struct near_msg *msg, fi_addr_t src,
				    uint64_t more)
{
	struct fi_cq_tagged_entry entry = {
		.op_context = recv->context,
		.flags = (recv->flags & NEAR_RECV_FLAGS) |
			 near_msg_fi_flags(msg) | more,
		.len = msg->len,
		.buf = recv->iov[0].iov_base,
		.data = msg->data,
		.tag = msg->tag,
	};

	near_count(ep->rx_cntr);
	if (near_likely(recv->flags & FI_COMPLETION) || more)
		near_cq_put(ep->rx_cq, &entry, src);
}

/* recv.c: the general form of all receive calls. */
struct near_recv_args {
	const struct iovec *iov;
	size_t count;
	fi_addr_t src;
	uint64_t tag;
	uint64_t ignore;
	void *context;
	uint64_t flags;		/* FI_TAGGED or FI_MSG, and the call's */
};

ssize_t near_ep_recv(struct near_ep *ep, const struct near_recv_args *args);

/*
 * One buffer, posted behind others: nothing has come for it, and its source,
 * if it names one, is known. false: nothing is done, near_ep_recv() is to.
 */
static near_inline bool near_ep_recv_short(struct near_ep *ep, void *buf,
					   size_t len, fi_addr_t src,
					   uint64_t tag, uint64_t ignore,
					   void *context, uint64_t flags,
					   bool tagged)
{
	unsigned int kind = tagged ? NEAR_TAGGED : 0;
	struct near_source *source = NULL;
	struct near_recv *recv;

	if (ep->directed && src != FI_ADDR_UNSPEC) {
		if (near_unlikely(src >= ep->peer_count || !ep->peer[src]))
			return false;
		source = near_source_of(ep->peer[src]);
		if (near_unlikely(!source || source->gone))
			return false;
	}
	if (near_unlikely(!near_list_empty(&ep->match.unexp[kind]) ||
			  ep->filling || flags & FI_MULTI_RECV ||
			  !near_pool_ready(&ep->recvs)))
		return false;
	recv = near_pool_get(&ep->recvs);
	recv->tag = tag;
	recv->ignore = ignore;
	recv->context = context;
	recv->flags = flags;
	recv->source = source;
	recv->iov[0].iov_base = buf;
	recv->iov[0].iov_len = len;
	recv->iov_count = 1;
	recv->len = len;
	recv->multi = NULL;
	recv->busy = 0;
	recv->posted = true;
	recv->cancelled = false;
	if (source)
		source->peer->refs++;
	near_match_post(&ep->match, kind, recv);
	return true;
}

/* take.c: a message meets a receive, which is not the plain case. */
/* recv is posted, or was given by near_ep_recv(). -EAGAIN: nothing is done. */
int near_recv_take(struct near_ep *ep, struct near_recv *recv,
		   struct near_source *source, const struct near_msg *msg);
void near_recv_ended(struct near_ep *ep, struct near_recv *recv, int err);
void near_multi_fill(struct near_ep *ep, struct near_recv *multi);
void near_recv_cancelled(struct near_ep *ep, struct near_recv *recv);
/* recv is posted, and its source is gone. */
void near_recv_orphan(struct near_ep *ep, struct near_recv *recv);

/* unexp.c */
int near_ep_unexpected(struct near_ep *ep, struct near_peer *peer,
		       const struct near_msg *msg);
void near_unexp_free(struct near_ep *ep, struct near_unexp *unexp);
/* Unqueued already; the sender is told. -EAGAIN: nothing is done. */
int near_unexp_discard(struct near_ep *ep, struct near_unexp *unexp);

/* peek.c */
ssize_t near_ep_peek(struct near_ep *ep, const struct near_recv_args *args);
/* What matching needs of args, in recv; source is held when it is directed. */
int near_recv_want(struct near_ep *ep, const struct near_recv_args *args,
		   struct near_recv *recv);

#endif /* NEAR_API_RECV_H */
