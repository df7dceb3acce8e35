/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Endpoints, except data transfers. The core's endpoint exists from
 * fi_endpoint() on. The local side, which is the endpoint's part at the local
 * transport, exists from fi_enable() on (local.c).
 */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "av/av.h"
#include "base/enosys.h"
#include "base/log.h"
#include "base/params.h"
#include "core/read.h"
#include "cq/cq.h"
#include "fi/api.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "obj/up.h"
#include "rx/recv.h"
#include "transport/near/onesided.h"
#include "tx/onesided.h"

/*
 * Switches off efa's own use of shm. Other cores do not have this option, so
 * errors are ignored.
 */
static void duo_ep_core_shm_off(struct duo_ep *ep)
{
	bool permitted = false;

	fi_setopt(&ep->path_ep[FI_DUO_CORE]->fid, FI_OPT_ENDPOINT,
		  DUO_OPT_SHM_PERMITTED, &permitted,
		  sizeof(permitted));
}

static int duo_ep_control(struct fid *fid, int command, void *arg)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	return command == FI_ENABLE ? duo_ep_enable(ep) :
				      duo_core_control(fid, command, arg);
}

static int duo_ep_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	if (!name || !ops || strcmp(name, FI_DUO_OPS))
		return duo_core_ops_open(fid, name, flags, ops, context);
	*ops = &duo_ops;
	return 0;
}

/*
 * Frees the receives, and releases the CQs and the AV. The caller must have
 * closed the endpoints of both paths, and must hold all locks of the domain.
 */
static void duo_ep_fini(struct duo_ep *ep)
{
	int kind;

	if (ep->tx_cq && ep->tx_cq != ep->rx_cq)
		LIST_REMOVE(ep, tx_link);
	if (ep->rx_cq)
		LIST_REMOVE(ep, rx_link);
	duo_ep_attend(ep);
	if (ep->rx_cq)
		atomic_fetch_sub(&ep->rx_cq->refs, 1);
	if (ep->tx_cq)
		atomic_fetch_sub(&ep->tx_cq->refs, 1);
	if (ep->route)
		duo_av_del_ep(ep);
	if (ep->av)
		atomic_fetch_sub(&ep->av->refs, 1);
	ep->group->lazy -= ep->lazy.count;
	ep->group->waits -= ep->lazy.count - ep->lazy.due;
	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_match_fini(&ep->match[kind]);
	duo_rx_pool_fini(&ep->pool);
}

static void duo_ep_drain_core(struct duo_ep *ep)
{
	while (ep->rx_cq && !duo_cq_core_unused(ep->rx_cq) &&
	       duo_cq_poll_core(ep->rx_cq))
		;
}

/*
 * Implements fi_close(). Empties the core's CQ before it frees the receive
 * entries, because entries of the CQ may point to them. While ep->closing is
 * set, ofi_duo matches no message: a match might post a receive to the core's
 * endpoint after the fi_close() of that endpoint.
 */
static int duo_ep_close(struct fid *fid)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);
	struct duo_domain *domain = ep->domain;
	int ret;

	duo_domain_lock(domain);
	ep->closing = true;
	duo_ep_attend(ep);
	if (ep->path_ep[FI_DUO_LOCAL])
		domain->peer->drain(ep);
	duo_ep_drain_core(ep);
	ret = fi_close(&ep->path_ep[FI_DUO_CORE]->fid);
	if (ret) {
		ep->closing = false;
		duo_ep_attend(ep);
		duo_domain_unlock(domain);
		return ret;
	}
	duo_ep_drain_core(ep);
	if (duo_params.stats)
		duo_stats_print(ep);
	duo_ep_close_local(ep);
	duo_cntr_unbind(ep);
	duo_ep_fini(ep);
	duo_domain_unlock(domain);
	duo_near_regions_unmap(domain);
	if (ep->own_cq)
		fi_close(&ep->own_cq->cq_fid.fid);
	atomic_fetch_sub(&domain->refs, 1);
	free(ep);
	return 0;
}

static struct fi_ops duo_ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_ep_close,
	.bind = duo_ep_bind,
	.control = duo_ep_control,
	.ops_open = duo_ep_ops_open,
};

static struct fi_ops_ep duo_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = duo_ep_cancel,
	.getopt = duo_ep_getopt,
	.setopt = duo_ep_setopt,
	.tx_ctx = duo_no_tx_ctx,
	.rx_ctx = duo_no_rx_ctx,
	.rx_size_left = duo_no_size_left,
	.tx_size_left = duo_no_size_left,
	DUO_NO_XPU_EP
};

static int duo_ep_setname(fid_t fid, void *addr, size_t addrlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	return fi_setname(&ep->path_ep[FI_DUO_CORE]->fid, addr, addrlen);
}

static int duo_ep_getname(fid_t fid, void *addr, size_t *addrlen)
{
	struct duo_ep *ep = duo_container_of(fid, struct duo_ep, ep_fid.fid);

	return fi_getname(&ep->path_ep[FI_DUO_CORE]->fid, addr, addrlen);
}

static struct fi_ops_cm duo_ep_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = duo_ep_setname,
	.getname = duo_ep_getname,
	.getpeer = duo_no_getpeer,
	.connect = duo_no_connect,
	.listen = duo_no_listen,
	.accept = duo_no_accept,
	.reject = duo_no_reject,
	.shutdown = duo_no_shutdown,
	.join = duo_no_join,
};

static void duo_ep_init(struct duo_ep *ep, const struct fi_info *info)
{
	int kind;

	for (kind = 0; kind < DUO_KIND_COUNT; kind++)
		duo_match_init(&ep->match[kind], kind);
	TAILQ_INIT(&ep->lazy.list);
	TAILQ_INIT(&ep->rx.unresolved);
	TAILQ_INIT(&ep->rx.claimed);
	TAILQ_INIT(&ep->lazy.blocked);
	TAILQ_INIT(&ep->multi.buffers);
	TAILQ_INIT(&ep->multi.ready);
	TAILQ_INIT(&ep->lazy.retired);
	LIST_INIT(&ep->cntrs);
	ep->lazy.limit = duo_params.defer_polls;
	ep->publication.fd = ep->publication.dir = -1;
	ep->caps = info->caps;
	ep->opts.messages = !ep->caps || ep->caps & (FI_MSG | FI_TAGGED);
	ep->opts.wants_local = ep->opts.messages || (ep->domain->onesided &&
					   ep->caps & (FI_RMA | FI_ATOMIC));
	if (!(ep->caps & (FI_SEND | FI_RECV)))
		ep->caps |= FI_SEND | FI_RECV;
	ep->core = ep->domain->fabric->traits;
	ep->rx.special = ep->domain->device ? DUO_RX_DEVICE : 0;
	ep->tx.core = ep->core.carries_nothing ? NULL :
		      ep->path_ep[FI_DUO_CORE];
	ep->inject_size = info->tx_attr->inject_size;
	if (!duo_params.hook)
		ep->inject_size = duo_min(ep->inject_size, DUO_LOCAL_INJECT);
	ep->rx.iov_limit = DUO_IOV_LIMIT;
	if (info->rx_attr->iov_limit)
		ep->rx.iov_limit = duo_min(info->rx_attr->iov_limit,
					   DUO_IOV_LIMIT);
	ep->max_msg_size = info->ep_attr->max_msg_size ?
			   info->ep_attr->max_msg_size : SIZE_MAX;
	ep->tx.op_flags = info->tx_attr->op_flags;
	ep->tx.order = info->tx_attr->msg_order;
	ep->opts.mixed_order = ep->opts.messages && duo_info_mixed(info);
	duo_ep_init_opts(ep, info);
	duo_ep_attend(ep);
}

static bool duo_ep_prefix_ok(const struct duo_domain *domain,
			     const struct fi_info *info)
{
	if (!duo_info_prefix(info) || domain->fabric->traits.prefix_optional)
		return true;
	DUO_WARN(EP_CTRL, "cannot open an endpoint with FI_MSG_PREFIX: the "
		 "core %s may need the prefix (%zu bytes), and near cannot "
		 "keep it. Remove FI_MSG_PREFIX from the mode in the hints\n",
		 domain->fabric->core_name, info->ep_attr->msg_prefix_size);
	return false;
}

int duo_ep_open(struct fid_domain *domain_fid, struct fi_info *info,
		struct fid_ep **ep_fid, void *context)
{
	struct fi_info *core_info;
	struct duo_ep *ep;
	int ret = -FI_ENOMEM;

	if (!info || !info->domain_attr || !info->ep_attr || !info->tx_attr ||
	    !info->rx_attr || info->ep_attr->type != FI_EP_RDM)
		return -FI_EINVAL;
	if (info->ep_attr->tx_ctx_cnt > 1 || info->ep_attr->rx_ctx_cnt > 1) {
		DUO_WARN(EP_CTRL, "cannot open an endpoint with %zu transmit "
			 "and %zu receive contexts (FI_SHARED_CONTEXT: %zu): "
			 "shared and several contexts are not supported. Set "
			 "tx_ctx_cnt and rx_ctx_cnt to 1 in fi_info\n",
			 info->ep_attr->tx_ctx_cnt, info->ep_attr->rx_ctx_cnt,
			 (size_t) FI_SHARED_CONTEXT);
		return -FI_ENOSYS;
	}
	if (!duo_ep_prefix_ok(duo_domain_of(domain_fid), info))
		return -FI_EINVAL;
	ep = duo_alloc(sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = duo_domain_of(domain_fid);
	core_info = duo_info_to_core(info);
	if (!core_info)
		goto free_ep;
	duo_rx_pool_init(&ep->pool, ep);
	ep->up = &duo_up;
	if (duo_info_prefix(info))
		ep->prefix = info->ep_attr->msg_prefix_size;
	duo_ep_join(ep, &ep->domain->group);
	ret = fi_endpoint(ep->domain->path_domain[FI_DUO_CORE], core_info,
			  &ep->path_ep[FI_DUO_CORE], context);
	fi_freeinfo(core_info);
	if (ret)
		goto free_ep;
	ret = duo_near_table_open(ep->domain, info);
	if (ret)
		goto close_core;
	duo_ep_init(ep, info);
	duo_ep_core_shm_off(ep);
	ret = duo_ep_name_local(ep);
	if (ret)
		goto close_core;

	ep->ep_fid.fid.fclass = FI_CLASS_EP;
	ep->ep_fid.fid.context = context;
	ep->ep_fid.fid.ops = &duo_ep_fi_ops;
	ep->ep_fid.ops = &duo_ep_ops;
	ep->ep_fid.cm = &duo_ep_cm_ops;
	ep->ep_fid.rma = &duo_rma_ops;
	ep->ep_fid.atomic = &duo_atomic_ops;
	ep->ep_fid.collective = &duo_no_collective;
	atomic_fetch_add(&ep->domain->refs, 1);
	*ep_fid = &ep->ep_fid;
	return 0;

close_core:
	fi_close(&ep->path_ep[FI_DUO_CORE]->fid);
free_ep:
	free(ep);
	return ret;
}
