/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Receives; see recv.h. */

#include <rdma/fi_errno.h>

#include "av/map.h"
#include "core/lazy.h"
#include "core/post.h"
#include "rx/arrive.h"
#include "rx/multi.h"
#include "rx/recv.h"

/* Sets rx->wanted, if it must differ from DUO_RX_WANTED. */
DUO_NOINLINE void duo_recv_set_wanted(const struct duo_ep *ep,
				      struct duo_rx *rx,
				      const struct duo_recv *recv)
{
	size_t i;

	if (ep->rx.special & DUO_RX_SELECTIVE && !(recv->flags & FI_COMPLETION))
		rx->wanted = DUO_RX_UNWANTED;
	if (!(ep->rx.special & DUO_RX_DEVICE) || !rx->wanted)
		return;
	for (i = 0; recv->desc && i < recv->count; i++)
		if (recv->desc[i])
			rx->wanted = DUO_RX_WANTED_DEVICE;
}

/*
 * Stores the list of several buffers in an additional receive entry, which the
 * caller has reserved by duo_recv_reserve().
 */
DUO_NOINLINE void duo_recv_copy_bufs(struct duo_rx *rx,
				     const struct duo_recv *recv)
{
	struct duo_rx_buffers *to = duo_rx_extend(&rx->ep->pool, rx,
						  recv->count);
	size_t i;

	to->size = 0;
	for (i = 0; i < recv->count; i++) {
		to->iov[i] = recv->iov[i];
		to->desc[i] = recv->desc ? recv->desc[i] : NULL;
		to->size += recv->iov[i].iov_len;
	}
}

DUO_INLINE void duo_recv_write(const struct duo_ep *ep, struct duo_rx *rx,
			       const struct duo_recv *recv)
{
	rx->kind = recv->kind;
	if (ep->rx.special)
		duo_recv_set_wanted(ep, rx, recv);
	rx->context = recv->context;
	rx->ignore = recv->want.ignore;
	rx->flags = recv->flags;
	if (recv->count > 1)
		duo_recv_copy_bufs(rx, recv);
	else
		rx->count = recv->count;
	rx->iov = recv->count ? *recv->iov : (struct iovec) { 0 };
	rx->desc = recv->count && recv->desc ? *recv->desc : NULL;
}

void duo_recv_fill(struct duo_rx *rx, const struct duo_recv *recv)
{
	rx->wanted = DUO_RX_WANTED;
	/* if a peek has claimed rx, the peek may have had several buffers */
	if (rx->count > 1)
		duo_rx_strip(&rx->ep->pool, rx);
	duo_recv_write(rx->ep, rx, recv);
	if (recv->multi) {
		rx->multi = true;
		rx->owner = recv->multi;
		/* duo_multi_done() tests owner->wanted, not rx->wanted */
		rx->wanted = DUO_RX_UNWANTED;
	}
	/*
	 * A call with FI_PEEK | FI_DISCARD gets only the completion of the
	 * peek. The discard of the message has none.
	 */
	if ((recv->flags & (FI_DISCARD | FI_CLAIM)) == FI_DISCARD)
		rx->wanted = DUO_RX_UNWANTED;
}

/*
 * If the core must not get rx before an earlier multi-receive buffer is used
 * up, puts rx into the posted queue as a blocked receive, and returns true.
 * False: the caller must post rx.
 */
static bool duo_recv_blocked(struct duo_rx *rx)
{
	struct duo_match *match = &rx->ep->match[rx->kind];

	rx->seq = match->seq;
	if (!duo_multi_blocks(rx))
		return false;
	duo_match_post(match, rx);
	duo_lazy_block(rx);
	return true;
}

void duo_recv_fail(struct duo_rx *rx, int err)
{
	struct duo_ep *ep = rx->ep;

	duo_cq_push_rx_err(ep->rx_cq, rx, err);
	if (rx->multi)
		duo_multi_abort(rx->owner);
	duo_rx_release(&ep->pool, rx);
}

/*
 * Posts rx to the core, or puts rx into the posted queue as a blocked receive.
 * If the process of the source has exited, or the source cannot send over any
 * path, ends rx with FI_ECONNRESET instead. Returns 0 in these cases. If rx
 * cannot be posted to the core now, frees rx and returns the error.
 *
 * final: the core cannot cancel rx. So rx must not join the posted queue,
 * because local messages could match it there.
 */
DUO_NOINLINE int duo_recv_post_core(struct duo_rx *rx, bool final)
{
	struct duo_ep *ep = rx->ep;
	int ret = 0;

	if (ep->core.carries_nothing || duo_map_exited(ep, rx->addr)) {
		duo_rx_become(rx, DUO_RX_POSTED);
		duo_recv_fail(rx, FI_ECONNRESET);
		return 0;
	}
	if (ep->lazy.count)
		ret = duo_lazy_flush_overlap(ep, rx->kind, &rx->want);
	if (!ret && ep->multi.open && duo_recv_blocked(rx))
		return 0;
	if (!ret)
		ret = duo_lazy_post(rx);
	if (ret) {
		duo_rx_become(rx, DUO_RX_POSTED);
		duo_rx_release(&ep->pool, rx);
		return ret;
	}
	if (final)
		duo_rx_become(rx, DUO_RX_CORE);
	else
		duo_match_post(&ep->match[rx->kind], rx);
	return 0;
}

/*
 * Defers rx: a later poll may post rx to the core. If rx is `final`, does not
 * defer it, because the core could not cancel it. If rx names a source, makes
 * the local transport monitor the process of this source. If rx names none,
 * ends the unused state of the core, because the message may come over it.
 */
DUO_INLINE void duo_recv_later(struct duo_ep *ep, struct duo_rx *rx,
			       fi_addr_t addr, bool final)
{
	if (addr == FI_ADDR_UNSPEC) {
		if (duo_cq_core_unused(ep->rx_cq))
			duo_ep_use_core(ep);
	} else {
		duo_map_monitor(ep, addr);
		/* restarts the time after which duo_ep_age() uses the core */
		if (duo_cq_core_unused(ep->rx_cq) && !ep->lazy.count)
			ep->lazy.all_us = 0;
	}
	if (!final)
		duo_lazy_add(ep, rx, DUO_LAZY_WAITS);
}

/*
 * Posts rx to ofi_duo's posted queue, to the core, or to both, as `when`
 * requires. If `when` is DUO_RECV_NOW and `due` is true, leaves the post to the
 * core to the next poll. Returns 0 or an error. After an error, rx is freed.
 */
DUO_INLINE int duo_recv_place_when(struct duo_ep *ep, struct duo_rx *rx,
				   enum duo_rx_kind kind,
				   const struct duo_want *want,
				   enum duo_recv_when when, bool due)
{
	bool final = duo_want_final(ep, kind, want);

	if (when == DUO_RECV_NOW && !due)
		return duo_recv_post_core(rx, final);
	duo_match_post(&ep->match[kind], rx);
	if (when == DUO_RECV_NOW)
		duo_lazy_add(ep, rx, DUO_LAZY_DUE);
	else if (when == DUO_RECV_LATER)
		duo_recv_later(ep, rx, want->addr, final);
	return 0;
}

int duo_recv_place(struct duo_rx *rx)
{
	return duo_recv_place_when(rx->ep, rx, rx->kind, &rx->want,
				   duo_recv_when(rx->ep, &rx->want), false);
}

/*
 * Posts a receive. The caller must have found that no unexpected message
 * matches it. Returns 0 or an error. when, due: duo_recv_place_when().
 */
DUO_INLINE int duo_recv_post(struct duo_ep *ep, const struct duo_recv *recv,
			     enum duo_recv_when when, bool due)
{
	struct duo_rx *rx;

	if (!duo_recv_reserve(ep, recv))
		return -FI_EAGAIN;
	rx = duo_rx_alloc(&ep->pool);
	if (!rx)
		return -FI_EAGAIN;
	rx->addr = recv->want.addr;
	rx->tag = recv->want.tag;
	duo_recv_write(ep, rx, recv);
	return duo_recv_place_when(ep, rx, recv->kind, &recv->want, when, due);
}

#define DUO_RECV_FLAGS (FI_PEEK | FI_CLAIM | FI_DISCARD)

/*
 * For the provider near: chooses the path of a source whose path is undecided.
 * Without a path, a receive that names this source would end in an error.
 * Returns 0; -FI_EAGAIN: no memory.
 */
static int duo_recv_decide(struct duo_ep *ep, fi_addr_t addr)
{
	if (addr == FI_ADDR_UNSPEC)
		return 0;
	duo_map_decide(ep, addr);
	return duo_route_state(duo_route_load(ep->route, addr)) ==
	       DUO_ROUTE_UNDECIDED ? -FI_EAGAIN : 0;
}

static int duo_recv_check(struct duo_ep *ep, const struct duo_recv *recv)
{
	if (!duo_ep_enabled(ep))
		return duo_ep_early(ep);
	if (!ep->rx.ready)
		return -FI_ENOCQ;
	if (recv->flags & DUO_RECV_FLAGS && recv->kind != DUO_TAGGED)
		return -FI_EBADFLAGS;
	if ((recv->flags & DUO_RECV_FLAGS) == FI_DISCARD)
		return -FI_EBADFLAGS;
	if (recv->flags & FI_MULTI_RECV &&
	    (recv->kind != DUO_MSG || !(ep->caps & FI_MULTI_RECV)))
		return -FI_EBADFLAGS;
	if (recv->count > ep->rx.iov_limit || (recv->count && !recv->iov) ||
	    (recv->flags & FI_MULTI_RECV && recv->count != 1))
		return -FI_EINVAL;
	if (duo_recv_when(ep, &recv->want) == DUO_RECV_NO_SOURCE)
		return -FI_EINVAL;
	return ep->core.carries_nothing ?
	       duo_recv_decide(ep, recv->want.addr) : 0;
}

/*
 * The slow path of all receive calls: handles all flags, and matches unexpected
 * messages. The caller must hold the group's lock.
 */
DUO_NOINLINE ssize_t duo_recv_slow(struct duo_ep *ep,
				   const struct duo_recv *recv)
{
	struct duo_rx *rx;
	int ret = duo_recv_check(ep, recv);

	if (ret)
		return ret;
	if (!TAILQ_EMPTY(&ep->rx.unresolved))
		duo_arrival_resolve(ep);
	if (!TAILQ_EMPTY(&ep->multi.ready))
		duo_multi_resume(ep);
	if (recv->flags & FI_MULTI_RECV)
		return duo_multi_recv(ep, recv);
	if (recv->flags & FI_PEEK)
		return duo_recv_peek(ep, recv);
	if (recv->flags & FI_CLAIM)
		return duo_recv_claim(ep, recv);
	rx = duo_match_unexp(&ep->match[recv->kind], &recv->want);
	return rx ? duo_recv_start(rx, recv) :
		    duo_recv_post(ep, recv, duo_recv_when(ep, &recv->want),
				  false);
}

static ssize_t duo_recv_any(struct fid_ep *ep_fid, enum duo_rx_kind kind,
			    const struct iovec *iov, void **desc, size_t count,
			    struct duo_want want, void *context,
			    uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_recv recv = {
		.kind = kind,
		.iov = iov,
		.desc = desc,
		.count = count,
		.want = want,
		.context = context,
		.flags = flags,
	};
	struct iovec skipped[DUO_IOV_LIMIT];
	ssize_t ret;

	if (ep->prefix && !duo_ep_skip_prefix(ep, skipped, &recv.iov,
					      &recv.desc, &recv.count))
		return -FI_EINVAL;
	if (!(ep->caps & FI_DIRECTED_RECV))
		recv.want.addr = FI_ADDR_UNSPEC;
	duo_group_lock(&ep->group);
	ret = duo_recv_slow(ep, &recv);
	duo_unlock(&ep->group->lock);
	return ret;
}

/* Calls duo_recv_slow() for a call with one buffer and no flags argument. */
DUO_NOINLINE ssize_t duo_recv_slow_one(struct duo_ep *ep,
				       const struct duo_recv *recv,
				       struct iovec iov, void *desc)
{
	struct duo_recv one = *recv;

	one.iov = &iov;
	one.desc = &desc;
	one.flags = ep->rx.op_flags[one.kind];
	return duo_recv_slow(ep, &one);
}

/*
 * True if duo_recv_one() may post the receive itself. False: duo_recv_one()
 * must call duo_recv_slow(). If `when` is DUO_RECV_NOW, the next poll must be
 * permitted to post the receive to the core: docs/matching.md, "At the next
 * poll", has the conditions.
 */
DUO_INLINE bool duo_recv_common(const struct duo_ep *ep, enum duo_rx_kind kind,
				enum duo_recv_when when)
{
	if (!ep->rx.ready || when == DUO_RECV_NO_SOURCE ||
	    !TAILQ_EMPTY(&ep->rx.unresolved) || ep->match[kind].unexp_count)
		return false;
	if (kind == DUO_MSG && ep->rx.op_flags[DUO_MSG] & FI_MULTI_RECV)
		return false;
	return when != DUO_RECV_NOW ||
	       (ep->core.polled_match && ep->lazy.count == ep->lazy.due &&
		!ep->multi.open && !ep->rx.peer_exited);
}

/* Executes a receive call with one buffer and no flags argument. */
DUO_INLINE ssize_t duo_recv_one(struct duo_ep *ep, enum duo_rx_kind kind,
				void *buf, size_t len, void *desc,
				struct duo_want want, void *context)
{
	const struct iovec iov = { buf, len };
	struct duo_recv slow, recv = {
		.kind = kind,
		.iov = &iov,
		.desc = &desc,
		.count = 1,
		.want = want,
		.context = context,
	};
	enum duo_recv_when when;
	ssize_t ret;

	if (!(ep->caps & FI_DIRECTED_RECV))
		recv.want.addr = FI_ADDR_UNSPEC;
	duo_group_lock(&ep->group);
	when = duo_recv_when(ep, &recv.want);
	if (__builtin_expect(duo_recv_common(ep, kind, when), 1)) {
		recv.flags = ep->rx.op_flags[kind];
		ret = duo_recv_post(ep, &recv, when, true);
	} else {
		/*
		 * Passes the address of a copy. duo_recv_post() above is
		 * inline, so no function outside takes the address of recv, and
		 * the compiler can keep recv in registers.
		 */
		slow = recv;
		slow.iov = NULL;
		slow.desc = NULL;
		ret = duo_recv_slow_one(ep, &slow, iov, desc);
	}
	duo_unlock(&ep->group->lock);
	return ret;
}

/*
 * The application's calls. Those without a flags argument use the default flags
 * of the endpoint.
 */
ssize_t duo_recv(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
		 fi_addr_t src, void *context)
{
	const struct duo_want want = { .addr = src, .ignore = ~0ULL };

	return duo_recv_one(duo_ep_of(ep_fid), DUO_MSG, buf, len, desc, want,
			    context);
}

ssize_t duo_recvv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		  size_t count, fi_addr_t src, void *context)
{
	const struct duo_want want = { .addr = src, .ignore = ~0ULL };

	return duo_recv_any(ep_fid, DUO_MSG, iov, desc, count, want, context,
			    duo_ep_of(ep_fid)->rx.op_flags[DUO_MSG]);
}

ssize_t duo_recvmsg(struct fid_ep *ep_fid, const struct fi_msg *msg,
		    uint64_t flags)
{
	const struct duo_want want = { .addr = msg->addr, .ignore = ~0ULL };

	return duo_recv_any(ep_fid, DUO_MSG, msg->msg_iov, msg->desc,
			    msg->iov_count, want, msg->context, flags);
}

ssize_t duo_trecv(struct fid_ep *ep_fid, void *buf, size_t len, void *desc,
		  fi_addr_t src, uint64_t tag, uint64_t ignore, void *context)
{
	const struct duo_want want = { src, tag, ignore };

	return duo_recv_one(duo_ep_of(ep_fid), DUO_TAGGED, buf, len, desc,
			    want, context);
}

ssize_t duo_trecvv(struct fid_ep *ep_fid, const struct iovec *iov, void **desc,
		   size_t count, fi_addr_t src, uint64_t tag, uint64_t ignore,
		   void *context)
{
	const struct duo_want want = { src, tag, ignore };

	return duo_recv_any(ep_fid, DUO_TAGGED, iov, desc, count, want,
			    context,
			    duo_ep_of(ep_fid)->rx.op_flags[DUO_TAGGED]);
}

ssize_t duo_trecvmsg(struct fid_ep *ep_fid, const struct fi_msg_tagged *msg,
		     uint64_t flags)
{
	const struct duo_want want = { msg->addr, msg->tag, msg->ignore };

	return duo_recv_any(ep_fid, DUO_TAGGED, msg->msg_iov, msg->desc,
			    msg->iov_count, want, msg->context, flags);
}

static ssize_t duo_cancel_rx(struct duo_ep *ep, struct duo_rx *rx)
{
	if (rx->multi)
		return duo_multi_cancel(rx);
	duo_match_unpost(&ep->match[rx->kind], rx);
	duo_lazy_drop(rx);
	if (rx->on_core && !duo_lazy_recall(rx))
		/* the core has matched rx: the core's completion ends rx */
		return 0;
	duo_cq_push_rx_err(ep->rx_cq, rx, FI_ECANCELED);
	duo_rx_release(&ep->pool, rx);
	return 0;
}

ssize_t duo_ep_cancel(fid_t fid, void *context)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);
	struct duo_rx *rx = NULL;
	ssize_t ret;
	int kind;

	duo_group_lock(&ep->group);
	duo_ep_use_core(ep);
	for (kind = 0; kind < DUO_KIND_COUNT && !rx; kind++)
		rx = duo_match_context(&ep->match[kind], context);
	ret = rx ? duo_cancel_rx(ep, rx) :
		   duo_multi_cancel_context(ep, context);
	duo_unlock(&ep->group->lock);
	return ret;
}
