/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message meets a receive: large ones, those that do not fit, several
 * buffers, and multi-receive buffers, which take one message after another.
 */

#include <errno.h>

#include "api/recv.h"

/* src: whom the error is about, FI_ADDR_NOTAVAIL: nobody in particular. */
static void near_recv_fail(struct near_ep *ep, const struct near_recv *recv,
			   fi_addr_t src, int err, size_t len, size_t olen)
{
	struct fi_cq_err_entry entry = {
		.op_context = recv->context,
		.flags = recv->flags & (NEAR_RECV_FLAGS | FI_MULTI_RECV),
		.len = len,
		.buf = recv->iov[0].iov_base,
		.tag = recv->msg.tag,
		.data = recv->msg.data,
		.olen = olen,
		.err = err,
		NEAR_CQ_ERR_SRC(src)
	};

	near_count_err(ep->rx_cntr);
	near_cq_error(ep->rx_cq, &entry);
}

/* A receive that ends without a message: its own tag, no message's data. */
static void near_recv_unused(struct near_ep *ep, struct near_recv *recv,
			     fi_addr_t src, int err)
{
	recv->msg = (struct near_msg){.tag = recv->tag};
	near_recv_fail(ep, recv, src, err, 0, 0);
}

/* The end of a receive that takes one message: all of it, a part, or none. */
static void near_recv_finish(struct near_ep *ep, struct near_recv *recv,
			     uint64_t more, int err)
{
	size_t len = recv->msg.len;

	/* what the buffer's last piece tells of it, by an error as well */
	recv->flags = (recv->flags & ~FI_MULTI_RECV) | more |
		      near_msg_fi_flags(&recv->msg);
	if (err)
		near_recv_fail(ep, recv, recv->from, err, 0, 0);
	else if (len > recv->len)
		near_recv_fail(ep, recv, recv->from, FI_ETRUNC, recv->len,
			       len - recv->len);
	else
		near_recv_report(ep, recv, &recv->msg, recv->from, more);
}

/*
 * A piece of multi has ended. A used-up buffer goes back with the last one's
 * completion, one that was cancelled with an error after it.
 */
static uint64_t near_multi_ended(struct near_ep *ep, struct near_recv *multi)
{
	if (--multi->busy || multi->posted)
		return 0;
	if (multi->cancelled)
		near_recv_unused(ep, multi, FI_ADDR_NOTAVAIL, FI_ECANCELED);
	near_pool_put(&ep->recvs, multi);
	return multi->cancelled ? 0 : FI_MULTI_RECV;
}

/*
 * A piece has its message. Messages of one source are reported in the order
 * in which they lie in the buffers, so it waits for those before it.
 */
static void near_piece_ended(struct near_ep *ep, struct near_recv *piece,
			     int err)
{
	struct near_link *pieces = &piece->source->pieces, *first;
	uint64_t more;

	piece->ended = true;
	piece->err = err;
	while ((first = pieces->next) != pieces) {
		piece = near_container(first, struct near_recv, link);
		if (!piece->ended)
			return;
		near_list_remove(first);
		more = near_multi_ended(ep, piece->multi);
		near_recv_finish(ep, piece, more, piece->err);
		near_pool_put(&ep->recvs, piece);
	}
}

/* A piece, or a receive as any other, has its message, or never will. */
void near_recv_ended(struct near_ep *ep, struct near_recv *recv, int err)
{
	if (recv->multi) {
		near_piece_ended(ep, recv, err);
		return;
	}
	near_recv_finish(ep, recv, 0, err);
	near_pool_put(&ep->recvs, recv);
}

/*
 * A receive of its own for the message, at the start of what is left of the
 * buffer; NULL: no memory.
 */
static struct near_recv *near_multi_piece(struct near_ep *ep,
					  struct near_recv *multi, size_t len)
{
	struct near_recv *piece = near_pool_get(&ep->recvs);
	size_t take = len < multi->len ? len : multi->len;

	if (!piece)
		return NULL;
	piece->context = multi->context;
	piece->flags = multi->flags;
	piece->ended = false;
	piece->multi = multi;
	piece->posted = false;
	piece->len = take;
	piece->iov_count = 1;
	piece->iov[0].iov_base = multi->iov[0].iov_base;
	piece->iov[0].iov_len = take;
	return piece;
}

/* The rest stays posted, in its place, while it is worth it. */
static void near_multi_advance(struct near_ep *ep, struct near_recv *multi,
			       size_t len)
{
	multi->iov[0].iov_base = (char *)multi->iov[0].iov_base + len;
	multi->iov[0].iov_len -= len;
	multi->len -= len;
	multi->busy++;
	if (multi->len < ep->min_multi_recv && multi->posted)
		near_recv_unpost(ep, multi);
}

/*
 * The receive that this message really goes to: recv itself, off its queue,
 * or a piece of it.
 */
int near_recv_take(struct near_ep *ep, struct near_recv *recv,
		   struct near_source *source, const struct near_msg *msg)
{
	struct near_recv *to = recv;
	bool here = msg->payload;
	size_t fits;
	int ret;

	if (recv->flags & FI_MULTI_RECV) {
		to = near_multi_piece(ep, recv, msg->len);
		if (!to)
			return -EAGAIN;
	}
	/* as the receive is on its way, its place in the queue is free */
	to->msg = *msg;
	if (!here && to->iov_count == 1 && msg->len <= to->len)
		here = near_recv_now(ep->port, source->peer, &msg->rndv,
				     to->iov->iov_base, msg->len);
	if (!here) {
		ret = near_recv(ep->port, source->peer, &msg->rndv, to->iov,
				to->iov_count, msg->len, to);
		if (ret) {
			if (to != recv)
				near_pool_put(&ep->recvs, to);
			return ret;
		}
	}
	if (to != recv) {
		to->source = source;
		near_list_append(&source->pieces, &to->link);
		near_multi_advance(ep, recv, to->len);
	}
	if (recv->posted && to == recv)
		near_recv_unpost(ep, recv);
	to->from = source->addr;
	if (msg->payload) {
		fits = msg->len < to->len ? msg->len : to->len;
		near_iov_in(to->iov, 0, msg->payload, fits);
	}
	if (here)
		near_recv_ended(ep, to, 0);
	return 0;
}

/*
 * What has come already for a multi-receive buffer that was just posted. The
 * rest waits for room, and everything else with it: near_ep_room().
 */
void near_multi_fill(struct near_ep *ep, struct near_recv *multi)
{
	unsigned int kind = multi->flags & FI_TAGGED ? NEAR_TAGGED : 0;
	struct near_unexp *unexp;

	ep->filling = NULL;
	while (multi->posted &&
	       (unexp = near_match_unexp(&ep->match, kind, multi))) {
		if (!near_cq_room(ep->rx_cq) ||
		    near_recv_take(ep, multi, unexp->source, &unexp->msg)) {
			ep->filling = multi;
			return;
		}
		near_match_unqueue(unexp);
		near_unexp_free(ep, unexp);
	}
	if (multi->posted && multi->source && multi->source->gone)
		near_recv_orphan(ep, multi);
}

void near_recv_orphan(struct near_ep *ep, struct near_recv *recv)
{
	near_recv_unpost(ep, recv);
	near_recv_unused(ep, recv, recv->source->addr, FI_ECONNRESET);
	near_pool_put(&ep->recvs, recv);
}

/* recv is off its queue; pieces that are on their way still fill it. */
void near_recv_cancelled(struct near_ep *ep, struct near_recv *recv)
{
	if (ep->filling == recv)
		ep->filling = NULL;
	recv->cancelled = true;
	if (recv->busy)
		return;
	near_recv_unused(ep, recv, FI_ADDR_NOTAVAIL, FI_ECANCELED);
	near_pool_put(&ep->recvs, recv);
}
