/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Posting receives, and taking them back. */

#include "api/recv.h"

int near_recv_want(struct near_ep *ep, const struct near_recv_args *args,
		   struct near_recv *recv)
{
	struct near_peer *peer;
	int ret;

	recv->tag = args->flags & FI_TAGGED ? args->tag : 0;
	recv->ignore = args->flags & FI_TAGGED ? args->ignore : UINT64_MAX;
	recv->context = args->context;
	recv->flags = args->flags;
	recv->source = NULL;
	if (args->src == FI_ADDR_UNSPEC || !ep->directed)
		return 0;
	if (near_likely(args->src < ep->peer_count && ep->peer[args->src])) {
		peer = ep->peer[args->src];
	} else {
		ret = near_ep_resolve(ep, args->src, &peer);
		if (ret)
			return ret;
	}
	/* a foreign one, too, which a send has left alone */
	if (near_unlikely(!peer->wanted))
		near_peer_watch(ep->port, peer);
	recv->source = near_source_of(peer);
	return recv->source ? 0 : -FI_EAGAIN;
}

static int near_recv_fill(struct near_recv *recv,
			  const struct near_recv_args *args)
{
	size_t i;

	if (args->count > NEAR_IOV_MAX ||
	    (args->flags & FI_MULTI_RECV && args->count != 1))
		return -FI_EINVAL;
	recv->iov_count = (uint32_t)args->count;
	recv->iov[0] = (struct iovec) { 0 };
	for (i = 0; i < args->count; i++)
		recv->iov[i] = args->iov[i];
	recv->len = near_iov_len(recv->iov, args->count);
	recv->busy = 0;
	recv->multi = NULL;
	recv->posted = false;
	recv->cancelled = false;
	return 0;
}

/* Gives recv what has come already. 1: it is done; 0: it is to be posted. */
static int near_recv_unexp(struct near_ep *ep, struct near_recv *recv,
			   unsigned int kind)
{
	struct near_unexp *unexp;
	int ret;

	unexp = near_match_unexp(&ep->match, kind, recv);
	if (!unexp)
		return 0;
	if (!near_cq_room(ep->rx_cq))
		return -FI_EAGAIN;
	ret = near_recv_take(ep, recv, unexp->source, &unexp->msg);
	if (ret)
		return ret;
	near_match_unqueue(unexp);
	near_unexp_free(ep, unexp);
	return 1;
}

static ssize_t near_recv_post(struct near_ep *ep, struct near_recv *recv,
			      const struct near_recv_args *args)
{
	unsigned int kind = args->flags & FI_TAGGED ? NEAR_TAGGED : 0;
	int ret;

	ret = near_recv_want(ep, args, recv);
	if (!ret)
		ret = near_recv_fill(recv, args);
	if (ret)
		return ret;
	if (near_unlikely(!near_list_empty(&ep->match.unexp[kind])) &&
	    !(args->flags & FI_MULTI_RECV)) {
		ret = near_recv_unexp(ep, recv, kind);
		if (ret)
			return ret;
	}
	if (recv->source)
		near_peer_hold(recv->source->peer);
	recv->posted = true;
	near_match_post(&ep->match, kind, recv);
	if (near_unlikely(args->flags & FI_MULTI_RECV))
		near_multi_fill(ep, recv);
	else if (near_unlikely(recv->source && recv->source->gone))
		near_recv_orphan(ep, recv);
	return 0;
}

ssize_t near_ep_recv(struct near_ep *ep, const struct near_recv_args *args)
{
	struct near_recv *recv;
	ssize_t ret;

	if (near_unlikely(!ep->enabled))
		return near_ep_early(ep);
	if (near_unlikely(args->flags & (FI_PEEK | FI_CLAIM | FI_DISCARD)))
		return near_ep_peek(ep, args);
	if (near_unlikely(ep->filling))
		return -FI_EAGAIN;
	recv = near_pool_get(&ep->recvs);
	if (near_unlikely(!recv))
		return -FI_EAGAIN;
	ret = near_recv_post(ep, recv, args);
	if (ret == 1)
		return 0;	/* it is over, and with the pool again */
	if (near_unlikely(ret))
		near_pool_put(&ep->recvs, recv);
	return ret;
}

ssize_t near_ep_cancel(struct fid *fid, void *context)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);
	struct near_recv *recv;
	uint32_t at = 0;

	near_lock(ep->domain);
	while ((recv = near_pool_next(&ep->recvs, &at)))
		if (recv->posted && recv->context == context)
			break;
	if (recv) {
		near_recv_unpost(ep, recv);
		near_recv_cancelled(ep, recv);
	}
	near_unlock(ep->domain);
	return recv ? 0 : -FI_ENOENT;
}
