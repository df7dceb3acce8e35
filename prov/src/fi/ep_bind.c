/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* fi_ep_bind() and fi_enable(). */

#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/log.h"
#include "cq/cq.h"
#include "fi/api.h"
#include "obj/ep.h"

static int duo_ep_late(const struct duo_ep *ep, const char *what)
{
	DUO_WARN(EP_CTRL, "ep %p: %s is not possible after fi_enable\n",
		 (const void *) ep, what);
	return -FI_EOPBADSTATE;
}

/*
 * True if the core must report operations of this kind (FI_SEND or FI_RECV) to
 * the core's CQ of `cq`. If `cq` is a hidden CQ, the core must do so only if
 * the endpoint has messages of this kind.
 */
static bool duo_core_reports(const struct duo_ep *ep, const struct duo_cq *cq,
			     uint64_t kind)
{
	return cq && (!cq->hidden || (ep->opts.messages && ep->caps & kind));
}

/*
 * Binds the core's CQs to the core's endpoint. Does not pass on
 * FI_SELECTIVE_COMPLETION for receives. Otherwise the core would not report the
 * end of some receives, and ofi_duo would never free their entries.
 */
static int duo_core_bind_cqs(const struct duo_ep *ep)
{
	struct fid_ep *core = ep->path_ep[FI_DUO_CORE];
	int ret = 0;

	if (duo_core_reports(ep, ep->rx_cq, FI_RECV))
		ret = fi_ep_bind(core, &ep->rx_cq->path_cq[FI_DUO_CORE]->fid,
				 FI_RECV);
	if (!ret && duo_core_reports(ep, ep->tx_cq, FI_SEND))
		ret = fi_ep_bind(core, &ep->tx_cq->path_cq[FI_DUO_CORE]->fid,
				 ep->tx.bind_flags);
	return ret;
}

/*
 * Binds CQs and counters to the core's endpoint and enables it. Holds all locks
 * of the domain, so that no thread reads a CQ whose endpoint is bound but not
 * enabled: in such a read, efa before 2.2 would post receives to a QP that does
 * not exist.
 */
static int duo_core_enable(struct duo_ep *ep)
{
	int ret = 0;

	duo_domain_lock(ep->domain);
	if (!ep->core_bound) {
		ret = duo_core_bind_cqs(ep);
		if (!ret)
			ret = duo_cntr_bind_core(ep);
		ep->core_bound = !ret;
	}
	if (!ret)
		ret = fi_enable(ep->path_ep[FI_DUO_CORE]);
	duo_domain_unlock(ep->domain);
	return ret;
}

/*
 * Puts an endpoint and its new CQ into one group. If the endpoint has two CQs
 * or a counter, this is the domain's group, into which the CQs move. Otherwise
 * it is the group of the CQ. other: the CQ that is already bound, or NULL. The
 * caller must hold all locks of the domain. Returns 0 or -FI_ENOMEM.
 */
static int duo_ep_unite(struct duo_ep *ep, struct duo_cq *cq,
			struct duo_cq *other)
{
	int ret = 0;

	if ((other && other != cq) || !LIST_EMPTY(&ep->cntrs))
		ret = duo_cq_join(cq);
	if (!ret && other && other != cq)
		ret = duo_cq_join(other);
	if (!ret)
		duo_ep_join(ep, cq->group);
	return ret;
}

static void duo_ep_insert_cq(struct duo_ep *ep, struct duo_cq *cq,
			     uint64_t flags)
{
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx.bind_flags = flags & ~(uint64_t) FI_RECV;
		LIST_INSERT_HEAD(&cq->tx_eps, ep, tx_link);
		atomic_fetch_add(&cq->refs, 1);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		if (flags & FI_SELECTIVE_COMPLETION)
			ep->rx.special |= DUO_RX_SELECTIVE;
		LIST_INSERT_HEAD(&cq->rx_eps, ep, rx_link);
		atomic_fetch_add(&cq->refs, 1);
	}
	/*
	 * a CQ lists an endpoint only once: if the endpoint uses the CQ for
	 * sends and receives, only cq->rx_eps has it
	 */
	if (ep->tx_cq == ep->rx_cq)
		LIST_REMOVE(ep, tx_link);
	duo_cq_attend(cq);
}

static int duo_ep_attach_cq(struct duo_ep *ep, struct duo_cq *cq,
			    uint64_t flags)
{
	int ret;

	duo_domain_lock(ep->domain);
	ret = duo_ep_unite(ep, cq, ep->rx_cq ? ep->rx_cq : ep->tx_cq);
	if (!ret)
		duo_ep_insert_cq(ep, cq, flags);
	duo_domain_unlock(ep->domain);
	return ret;
}

static int duo_ep_bind_cq(struct duo_ep *ep, struct duo_cq *cq, uint64_t flags)
{
	if (duo_ep_enabled(ep))
		return duo_ep_late(ep, "binding a completion queue");
	if (cq->domain != ep->domain ||
	    !(flags & (FI_TRANSMIT | FI_RECV)) ||
	    flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION) ||
	    (flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	return duo_ep_attach_cq(ep, cq, flags);
}

/*
 * Returns 0. -FI_ENOCQ: the endpoint can send, or receive, and has neither a CQ
 * nor a counter for this.
 */
static int duo_ep_check_cqs(const struct duo_ep *ep)
{
	const char *lacks = NULL;

	if (!ep->opts.messages)
		return 0;
	if (ep->caps & FI_RECV && !ep->rx_cq && !duo_cntr_counts(ep, FI_RECV))
		lacks = "FI_RECV";
	if (ep->caps & FI_SEND && !ep->tx_cq && !duo_cntr_counts(ep, FI_SEND))
		lacks = "FI_TRANSMIT";
	if (!lacks)
		return 0;
	DUO_WARN(EP_CTRL, "ep %p: no completion queue or counter for %s; bind "
		 "one before fi_enable\n", (const void *) ep, lacks);
	return -FI_ENOCQ;
}

/*
 * Binds a hidden CQ (ep->own_cq) for each direction to which the application
 * has bound none, if the endpoint has messages, or RMA over near. Without a
 * local transport, does so only for the directions in ep->caps.
 */
static int duo_ep_add_cq(struct duo_ep *ep)
{
	uint64_t lacks = (ep->tx_cq ? 0 : FI_TRANSMIT) |
			 (ep->rx_cq ? 0 : FI_RECV);
	int ret = 0;

	if (!ep->domain->peer)
		lacks &= ep->caps;
	if (!ep->opts.wants_local || !lacks)
		return 0;
	if (!ep->own_cq)
		ret = duo_cq_open_hidden(ep->domain, &ep->own_cq);
	if (!ret)
		ret = duo_ep_attach_cq(ep, ep->own_cq,
				       lacks | FI_SELECTIVE_COMPLETION);
	return ret;
}

static int duo_ep_bind_av(struct duo_ep *ep, struct duo_av *av, uint64_t flags)
{
	int ret;

	if (duo_ep_enabled(ep))
		return duo_ep_late(ep, "binding an address vector");
	if (av->domain != ep->domain || ep->av)
		return -FI_EINVAL;
	ret = fi_ep_bind(ep->path_ep[FI_DUO_CORE], &av->core->fid, flags);
	if (ret)
		return ret;
	atomic_fetch_add(&av->refs, 1);
	/*
	 * other threads read ep->av when they poll a CQ, under the lock of this
	 * CQ
	 */
	duo_domain_lock(ep->domain);
	ep->av = av;
	duo_domain_unlock(ep->domain);
	return 0;
}

int duo_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	if (!bfid)
		return -FI_EINVAL;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return duo_ep_bind_cq(ep, duo_container_of(bfid, struct duo_cq,
							   cq_fid.fid), flags);
	case FI_CLASS_AV:
		return duo_ep_bind_av(ep, duo_container_of(bfid, struct duo_av,
							   av_fid.fid), flags);
	case FI_CLASS_CNTR:
		return duo_cntr_bind_ep(duo_cntr_of(bfid), ep, flags);
	case FI_CLASS_EQ:
		return fi_ep_bind(ep->path_ep[FI_DUO_CORE], bfid, flags);
	default:
		return -FI_ENOSYS;
	}
}

static bool duo_cq_waits(const struct duo_cq *cq)
{
	return cq && cq->waiter.obj != FI_WAIT_NONE;
}

/*
 * True if fi_enable() must end the unused state of the core. While the core is
 * unused, ofi_duo neither polls it nor posts deferred receives to it. The state
 * must end for any of these reasons:
 * - The endpoint has no local side, so the core carries all its messages.
 * - The core may execute RMA and atomics, which need no receive.
 * - A message over the core may have to wake a thread that sleeps on a CQ.
 */
static bool duo_ep_needs_core(const struct duo_ep *ep)
{
	return !ep->path_ep[FI_DUO_LOCAL] || !ep->opts.messages ||
	       ep->caps & (FI_RMA | FI_ATOMIC) || duo_cq_waits(ep->rx_cq) ||
	       duo_cq_waits(ep->tx_cq);
}

int duo_ep_enable(struct duo_ep *ep)
{
	int ret;

	if (duo_ep_enabled(ep))
		return duo_ep_late(ep, "another fi_enable");
	if (!ep->av) {
		DUO_WARN(EP_CTRL, "ep %p: no address vector; bind one before "
			 "fi_enable\n", (void *) ep);
		return -FI_ENOAV;
	}
	ret = duo_ep_check_cqs(ep);
	if (!ret)
		ret = duo_ep_add_cq(ep);
	/*
	 * Must precede duo_core_enable(): if duo_av_add_ep() fails, the core's
	 * endpoint is not enabled yet, so fi_enable() can be called again.
	 */
	if (!ret)
		ret = duo_av_add_ep(ep);
	if (!ret)
		ret = duo_core_enable(ep);
	if (!ret)
		ret = duo_ep_open_local(ep);
	if (ret)
		return ret;
	duo_domain_lock(ep->domain);
	ep->route_size = DUO_AV_MAX;
	ep->rx.ready = ep->rx_cq &&
		       (!ep->rx_cq->hidden || ep->caps & FI_RECV);
	duo_ep_attend(ep);
	if (duo_ep_needs_core(ep))
		duo_ep_use_core(ep);
	duo_domain_unlock(ep->domain);
	return 0;
}
