/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reading completion queues, which drives all progress, and the sink: what
 * becomes of what the port of an endpoint delivers. The plain case, a message
 * for a posted receive with one buffer, is inline from fi_cq_read through the
 * ring to the caller's array of completions.
 */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "api/recv.h"
#include "link/proc.h"


static near_inline bool near_sink_room(void *ctx)
{
	return near_ep_room(ctx);
}

static near_inline int near_sink_arrived(void *ctx, struct near_peer *peer,
					 const struct near_msg *msg)
{
	struct near_source *source = near_source_of(peer);
	struct near_ep *ep = ctx;
	struct near_recv *recv;
	struct near_msg other;

	recv = near_likely(source != NULL) ?
		near_match_recv(&ep->match, source, msg->flags & NEAR_TAGGED,
				msg->tag) : NULL;
	if (near_unlikely(!recv || !msg->payload ||
			  msg->len > recv->iov[0].iov_len ||
			  recv->flags & FI_MULTI_RECV)) {
		/* a copy: the original stays in registers */
		other = (struct near_msg) {
			.payload = msg->payload,
			.len = msg->len,
			.tag = msg->tag,
			.data = msg->data,
			.flags = msg->flags,
		};
		if (!msg->payload)
			other.rndv = msg->rndv;
		return recv ? near_recv_take(ep, recv, source, &other) :
			      near_ep_unexpected(ep, peer, &other);
	}
	near_recv_unpost(ep, recv);
	if (near_likely(msg->len <= NEAR_INLINE))
		near_copy_small(recv->iov[0].iov_base, msg->payload, msg->len);
	else
		memcpy(recv->iov[0].iov_base, msg->payload, msg->len);
	near_recv_report(ep, recv, msg, source->addr, 0);
	near_pool_put(&ep->recvs, recv);
	return 0;
}

static void near_sink_received(void *ctx, void *cookie, int err)
{
	near_recv_ended(ctx, cookie, err);
}

static void near_sink_sent(void *ctx, void *cookie, int err)
{
	struct near_send_op *op = cookie;
	struct near_ep *ep = ctx;
	struct fi_cq_tagged_entry entry = {
		.op_context = op->context, .flags = op->flags,
	};
	struct fi_cq_err_entry error = {
		.op_context = op->context, .flags = op->flags, .err = err,
		NEAR_CQ_ERR_SRC(op->to)
	};

	if (err) {
		near_count_err(ep->tx_cntr);
		near_cq_error(ep->tx_cq, &error);
	} else {
		near_count(ep->tx_cntr);
		if (op->report)
			near_cq_put(ep->tx_cq, &entry, FI_ADDR_NOTAVAIL);
	}
	near_pool_put(&ep->sends, op);
}

static void near_sink_met(void *ctx, struct near_peer *peer)
{
	struct near_source *source = malloc(sizeof(*source));
	struct near_ep *ep = ctx;

	if (!source)
		return;	/* near_ep_unexpected() tries again */
	near_source_init(source, peer);
	source->addr = ep->av ? near_av_find(ep->av, near_peer_addr(peer)) :
				FI_ADDR_NOTAVAIL;
	near_peer_set_user(peer, source);
}

/* Nothing comes from it any more: who waits for it alone waits no longer. */
static void near_sink_gone(void *ctx, struct near_peer *peer)
{
	struct near_source *source = near_source_of(peer);
	struct near_ep *ep = ctx;
	struct near_unexp *unexp;
	struct near_recv *recv;
	uint32_t at = 0;

	if (!source)
		return;
	source->gone = true;
	while ((recv = near_pool_next(&ep->recvs, &at)))
		/* near_multi_fill() ends its own, after what has come */
		if (recv->posted && recv->source == source &&
		    recv != ep->filling)
			near_recv_orphan(ep, recv);
	at = 0;
	while ((unexp = near_pool_next(&ep->unexps, &at))) {
		if (unexp->source != source || unexp->msg.payload ||
		    unexp->claim)
			continue;
		near_match_unqueue(unexp);
		near_unexp_free(ep, unexp);
	}
}

static void near_sink_forgotten(void *ctx, struct near_peer *peer)
{
	free(near_source_of(peer));
}

const struct near_sink near_ep_sink = {
	.room = near_sink_room,
	.arrived = near_sink_arrived,
	.received = near_sink_received,
	.sent = near_sink_sent,
	.met = near_sink_met,
	.gone = near_sink_gone,
	.forgotten = near_sink_forgotten,
};

int near_ep_poll(struct near_ep *ep)
{
	if (near_unlikely(ep->filling))
		near_multi_fill(ep, ep->filling);
	return near_poll(ep->port, &near_ep_sink);
}

/* What waits in the ring comes first. */
static void near_cq_drain(struct near_cq *cq)
{
	const struct near_comp *comp;

	while (cq->out_left && cq->head != cq->tail) {
		comp = &cq->ring[cq->head++ & cq->mask];
		near_cq_put(cq, &comp->entry, comp->src);
	}
}

void near_cq_progress(struct near_cq *cq)
{
	struct near_link *link;
	int n = 0;

	for (link = cq->eps.next; link != &cq->eps; link = link->next)
		n += near_ep_poll(((struct near_ep_link *)link)->ep);
	/* who serves its peers is not idle, though it has no completions */
	if (n)
		cq->empty = 0;
}

static near_inline bool near_cq_stirs(const struct near_cq *cq)
{
	struct near_link *link;
	struct near_ep *ep;

	for (link = cq->eps.next; link != &cq->eps; link = link->next) {
		ep = ((struct near_ep_link *)link)->ep;
		if (near_unlikely(ep->filling) || near_stirs(ep->port) != NEAR_STILL)
			return true;
	}
	return false;
}

/* Under the lock. Completions before errors, but no poll before an error. */
static near_inline ssize_t near_cq_fill(struct near_cq *cq, void *buf, size_t count,
			    fi_addr_t *src)
{
	size_t n;

	if (near_unlikely(cq->err_first && cq->head == cq->tail))
		return -FI_EAVAIL;
	cq->out = buf;
	cq->out_src = src;
	cq->out_left = count;
	if (near_unlikely(cq->head != cq->tail))
		near_cq_drain(cq);
	if (near_cq_stirs(cq))
		near_cq_progress(cq);
	n = count - cq->out_left;
	cq->out_left = 0;
	if (n)
		return (ssize_t)n;
	if (cq->err_first)
		return -FI_EAVAIL;
	return !count && cq->head != cq->tail ? 0 : -FI_EAGAIN;
}

static bool near_cq_look_crowd(const struct near_cq *cq)
{
	struct near_link *link;

	for (link = cq->eps.next; link != &cq->eps; link = link->next)
		if (near_ep_crowded(((struct near_ep_link *)link)->ep))
			return true;
	return false;
}

/* Processes come, go, and are bound to processors at any time. */
static bool near_cq_crowded(struct near_cq *cq)
{
	uint64_t now = near_now_ms();
	bool crowded;

	near_lock(cq->domain);
	if (near_crowd_due(&cq->crowd, now))
		near_crowd_told(&cq->crowd, now, near_cq_look_crowd(cq));
	crowded = cq->crowd.crowded;
	near_unlock(cq->domain);
	return crowded;
}

/*
 * Some wait for a send in a loop of reads of their own, and never get to the
 * sched_yield of their idle loop: with more ranks than processors each would
 * burn its time slice while the one it waits for cannot run. Where each has a
 * processor of its own, only strangers would get it.
 */
static void near_cq_rest(struct near_cq *cq)
{
	if (near_params.yield_always || near_cq_crowded(cq))
		sched_yield();
}

/* Under the lock: several threads may read. Is it time to rest? */
static near_inline bool near_cq_idle(struct near_cq *cq)
{
	if (!near_params.yield || ++cq->empty < near_params.yield)
		return false;
	cq->empty = 0;
	return true;
}

static near_inline ssize_t near_cq_get(struct fid_cq *cq_fid, void *buf,
				       size_t count, fi_addr_t *src)
{
	struct near_cq *cq = near_cq_of(cq_fid);
	bool rest = false;
	ssize_t ret;

	near_lock(cq->domain);
	ret = near_cq_fill(cq, buf, count, src);
	if (ret == -FI_EAGAIN)
		rest = near_cq_idle(cq);
	else
		cq->empty = 0;
	near_unlock(cq->domain);
	if (near_unlikely(rest))
		near_cq_rest(cq);
	return ret;
}

ssize_t near_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
			 fi_addr_t *src)
{
	return near_cq_get(cq, buf, count, src);
}

ssize_t near_cq_read(struct fid_cq *cq, void *buf, size_t count)
{
	return near_cq_get(cq, buf, count, NULL);
}
