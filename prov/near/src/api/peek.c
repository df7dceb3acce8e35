/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_PEEK, FI_CLAIM and FI_DISCARD. */

#include "api/recv.h"

static void near_peek_found(struct near_ep *ep,
			    const struct near_recv_args *args,
			    const struct near_unexp *unexp)
{
	struct fi_cq_tagged_entry entry = {
		.op_context = args->context,
		.flags = FI_RECV | (args->flags & (FI_TAGGED | FI_MSG)) |
			 near_msg_fi_flags(&unexp->msg),
		.len = unexp->msg.len,
		.data = unexp->msg.data,
		.tag = unexp->msg.tag,
	};

	near_cq_put(ep->rx_cq, &entry, unexp->source->addr);
}

static void near_peek_none(struct near_ep *ep,
			   const struct near_recv_args *args)
{
	struct fi_cq_err_entry entry = {
		.op_context = args->context,
		.flags = FI_RECV | (args->flags & (FI_TAGGED | FI_MSG)),
		.tag = args->tag,
		.err = FI_ENOMSG,
		NEAR_CQ_ERR_SRC(FI_ADDR_NOTAVAIL)
	};

	near_cq_error(ep->rx_cq, &entry);
}

static ssize_t near_peek(struct near_ep *ep, const struct near_recv_args *args)
{
	unsigned int kind = args->flags & FI_TAGGED ? NEAR_TAGGED : 0;
	struct near_unexp *unexp;
	struct near_recv want;
	int ret;

	near_ep_poll(ep);
	if (!near_cq_room(ep->rx_cq))
		return -FI_EAGAIN;
	ret = near_recv_want(ep, args, &want);
	if (ret)
		return ret;
	unexp = near_match_unexp(&ep->match, kind, &want);
	if (!unexp) {
		near_peek_none(ep, args);
		return 0;
	}
	near_peek_found(ep, args, unexp);
	if (!(args->flags & (FI_CLAIM | FI_DISCARD)))
		return 0;
	near_match_unqueue(unexp);
	unexp->claim = args->context;
	near_list_append(&ep->claimed, &unexp->link);
	/* without memory for it now, it stays claimed until the end */
	if (args->flags & FI_DISCARD) {
		near_list_remove(&unexp->link);
		if (near_unexp_discard(ep, unexp))
			near_list_append(&ep->claimed, &unexp->link);
	}
	return 0;
}

static struct near_unexp *near_claim_find(struct near_ep *ep, void *context)
{
	struct near_unexp *unexp;
	struct near_link *link;

	for (link = ep->claimed.next; link != &ep->claimed; link = link->next) {
		unexp = near_container(link, struct near_unexp, link);
		if (unexp->claim == context)
			return unexp;
	}
	return NULL;
}

/* The message that a peek with the same context has claimed. */
static ssize_t near_claim_take(struct near_ep *ep,
			       const struct near_recv_args *args)
{
	struct near_unexp *unexp = near_claim_find(ep, args->context);
	struct near_recv *recv;
	size_t i;
	int ret;

	if (!unexp || args->count > NEAR_IOV_MAX)
		return -FI_EINVAL;
	if (!near_cq_room(ep->rx_cq))
		return -FI_EAGAIN;
	recv = near_pool_get(&ep->recvs);
	if (!recv)
		return -FI_EAGAIN;
	recv->context = args->context;
	recv->flags = args->flags & ~FI_MULTI_RECV;
	recv->source = NULL;
	recv->multi = NULL;
	recv->posted = false;
	recv->iov_count = args->flags & FI_DISCARD ? 0 : (uint32_t)args->count;
	recv->iov[0] = (struct iovec) { 0 };
	for (i = 0; i < recv->iov_count; i++)
		recv->iov[i] = args->iov[i];
	recv->len = near_iov_len(recv->iov, recv->iov_count);
	ret = near_recv_take(ep, recv, unexp->source, &unexp->msg);
	if (ret) {
		near_pool_put(&ep->recvs, recv);
		return ret;
	}
	near_list_remove(&unexp->link);
	near_unexp_free(ep, unexp);
	return 0;
}

static ssize_t near_claim_discard(struct near_ep *ep,
				  const struct near_recv_args *args)
{
	struct near_unexp *unexp = near_claim_find(ep, args->context);
	int ret;

	if (!unexp)
		return -FI_EINVAL;
	if (!near_cq_room(ep->rx_cq))
		return -FI_EAGAIN;
	near_list_remove(&unexp->link);
	near_peek_found(ep, args, unexp);
	ret = near_unexp_discard(ep, unexp);
	if (ret)
		near_list_append(&ep->claimed, &unexp->link);
	return ret;
}

ssize_t near_ep_peek(struct near_ep *ep, const struct near_recv_args *args)
{
	if (args->flags & FI_PEEK)
		return near_peek(ep, args);
	if (!(args->flags & FI_CLAIM))
		return -FI_EBADFLAGS;
	return args->flags & FI_DISCARD ? near_claim_discard(ep, args) :
					  near_claim_take(ep, args);
}
