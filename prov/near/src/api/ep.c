/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Endpoints: opening, binding, closing. */

#include <stdlib.h>
#include <string.h>

#include "api/recv.h"
#include "near_xpu.h"

static void near_ep_log(int level, const char *text)
{
	if (level)
		FI_INFO(&near_prov, FI_LOG_EP_CTRL, "%s\n", text);
	else
		NEAR_WARN(EP_CTRL, "%s\n", text);
}

static void near_ep_unbind_cq(struct near_ep *ep, struct near_cq *cq,
			      struct near_ep_link *link)
{
	if (!cq)
		return;
	cq->refs--;
	if (link->ep)
		near_list_remove(&link->link);
}

static void near_ep_unbind_cntr(struct near_cntr *cntr,
				struct near_ep_link *link)
{
	if (!cntr)
		return;
	cntr->refs--;
	if (link->ep)
		near_list_remove(&link->link);
}

static void near_ep_release(struct near_ep *ep)
{
	struct near_unexp *unexp;
	uint32_t at = 0;

	near_close(ep->port);
	while ((unexp = near_pool_next(&ep->unexps, &at)))
		if (unexp->block)
			near_block_put(&ep->blocks, unexp->block);
	near_blocks_fini(&ep->blocks);
	near_pool_fini(&ep->unexps);
	near_pool_fini(&ep->recvs);
	near_pool_fini(&ep->sends);
	free(ep->peer);
	free(ep);
}

static int near_ep_close(struct fid *fid)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);
	struct near_domain *domain = ep->domain;
	int i;

	near_lock(domain);
	near_ep_unbind_cq(ep, ep->tx_cq, &ep->tx_link);
	near_ep_unbind_cq(ep, ep->rx_cq, &ep->rx_link);
	near_ep_unbind_cntr(ep->tx_cntr, &ep->tx_cntr_link);
	near_ep_unbind_cntr(ep->rx_cntr, &ep->rx_cntr_link);
	for (i = 0; i < NEAR_CNTR_EVENTS; i++)
		near_ep_unbind_cntr(ep->rma_cntr[i], &ep->rma_cntr_link[i]);
	if (ep->av) {
		ep->av->refs--;
		near_list_remove(&ep->av_link);
	}
	domain->refs--;
	near_ep_release(ep);
	near_unlock(domain);
	return 0;
}

/* Said once: a program that does not look at errors would fill the log. */
int near_ep_early(struct near_ep *ep)
{
	if (!ep->told_early)
		NEAR_WARN(EP_CTRL, "endpoint %p is not enabled: this data call "
			  "fails, and so do all others until fi_enable\n",
			  (void *)ep);
	ep->told_early = true;
	return -FI_EOPBADSTATE;
}

static int near_ep_late(const struct near_ep *ep, const char *what)
{
	NEAR_WARN(EP_CTRL, "endpoint %p is enabled already: %s comes too late\n",
		  (const void *)ep, what);
	return -FI_EOPBADSTATE;
}

static int near_ep_bind_av(struct near_ep *ep, struct near_av *av)
{
	if (ep->enabled)
		return near_ep_late(ep, "an address vector");
	if (ep->av || av->domain != ep->domain)
		return -FI_EINVAL;
	ep->av = av;
	av->refs++;
	near_list_append(&av->eps, &ep->av_link);
	return 0;
}

/* Polled from now on. */
static void near_ep_link(struct near_ep *ep, struct near_link *eps,
			 struct near_ep_link *link)
{
	link->ep = ep;
	near_list_append(eps, &link->link);
}

/* One that is not enabled is polled by nobody: there may be none to tell. */
static void near_ep_link_cntr(struct near_ep *ep, struct near_cntr *cntr,
			      struct near_ep_link *link)
{
	if (cntr && !link->ep)
		near_ep_link(ep, &cntr->eps, link);
}

static void near_ep_link_cntrs(struct near_ep *ep)
{
	int i;

	near_ep_link_cntr(ep, ep->tx_cntr, &ep->tx_cntr_link);
	near_ep_link_cntr(ep, ep->rx_cntr, &ep->rx_cntr_link);
	for (i = 0; i < NEAR_CNTR_EVENTS; i++)
		near_ep_link_cntr(ep, ep->rma_cntr[i], &ep->rma_cntr_link[i]);
}

static const uint64_t near_cntr_flags[NEAR_CNTR_EVENTS] = {
	[NEAR_CNTR_READ] = FI_READ,
	[NEAR_CNTR_WRITE] = FI_WRITE,
	[NEAR_CNTR_REMOTE_READ] = FI_REMOTE_READ,
	[NEAR_CNTR_REMOTE_WRITE] = FI_REMOTE_WRITE,
};

#define NEAR_CNTR_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)

/* What others do is told from now on. */
static void near_ep_bind_rma_cntr(struct near_ep *ep, struct near_cntr *cntr,
				  uint64_t flags)
{
	int i;

	for (i = 0; i < NEAR_CNTR_EVENTS; i++) {
		if (!(flags & near_cntr_flags[i]))
			continue;
		ep->rma_cntr[i] = cntr;
		cntr->refs++;
	}
	near_rma_tell(ep->port, ep->rma_cntr[NEAR_CNTR_REMOTE_READ],
		      ep->rma_cntr[NEAR_CNTR_REMOTE_WRITE]);
}

static bool near_ep_counts(const struct near_ep *ep, uint64_t flags)
{
	int i;

	for (i = 0; i < NEAR_CNTR_EVENTS; i++)
		if (flags & near_cntr_flags[i] && ep->rma_cntr[i])
			return true;
	return (flags & FI_SEND && ep->tx_cntr) ||
	       (flags & FI_RECV && ep->rx_cntr);
}

static int near_ep_bind_cntr(struct near_ep *ep, struct near_cntr *cntr,
			     uint64_t flags)
{
	if (!flags || flags & ~(FI_SEND | FI_RECV | NEAR_CNTR_RMA))
		return -FI_EBADFLAGS;
	if (cntr->domain != ep->domain || near_ep_counts(ep, flags))
		return -FI_EINVAL;
	if (flags & FI_SEND) {
		ep->tx_cntr = cntr;
		cntr->refs++;
	}
	if (flags & FI_RECV) {
		ep->rx_cntr = cntr;
		cntr->refs++;
	}
	near_ep_bind_rma_cntr(ep, cntr, flags);
	if (ep->enabled) {
		near_ep_link_cntrs(ep);
		near_cntr_rouse(cntr);
	}
	return 0;
}

static int near_ep_bind_cq(struct near_ep *ep, struct near_cq *cq,
			   uint64_t flags)
{
	bool all = !(flags & FI_SELECTIVE_COMPLETION);
	int ret;

	if (ep->enabled)
		return near_ep_late(ep, "a completion queue");
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)) || cq->domain != ep->domain ||
	    (flags & FI_TRANSMIT && ep->tx_cq) ||
	    (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	ret = near_cq_wait_ep(cq, ep);
	if (ret)
		return ret;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_all = all;
		cq->refs++;
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_all = all;
		cq->refs++;
	}
	return 0;
}

static int near_ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);
	int ret = 0;

	if (!bfid)
		return -FI_EINVAL;
	near_lock(ep->domain);
	switch (bfid->fclass) {
	case FI_CLASS_AV:
		ret = near_ep_bind_av(ep, near_container(bfid, struct near_av,
							 fid.fid));
		break;
	case FI_CLASS_CQ:
		ret = near_ep_bind_cq(ep, near_container(bfid, struct near_cq,
							 fid.fid), flags);
		break;
	case FI_CLASS_CNTR:
		ret = near_ep_bind_cntr(ep, near_container(bfid,
					struct near_cntr, fid.fid), flags);
		break;
	case FI_CLASS_EQ:
		break;
	default:
		ret = -FI_ENOSYS;
	}
	near_unlock(ep->domain);
	return ret;
}

static int near_ep_check(const struct near_ep *ep)
{
	if (ep->enabled)
		return near_ep_late(ep, "another fi_enable");
	if (!ep->av) {
		NEAR_WARN(EP_CTRL, "endpoint %p has no address vector: bind one "
			  "before fi_enable\n", (const void *)ep);
		return -FI_ENOAV;
	}
	if (!ep->tx_cq || !ep->rx_cq) {
		NEAR_WARN(EP_CTRL, "endpoint %p has no completion queue for %s: "
			  "bind one before fi_enable\n", (const void *)ep,
			  ep->tx_cq ? "FI_RECV" : "FI_TRANSMIT");
		return -FI_ENOCQ;
	}
	return 0;
}

/* A CQ that serves both directions polls the endpoint once. */
static void near_ep_start(struct near_ep *ep)
{
	ep->rx_op_flags = ep->rx_flags | FI_RECV |
			  (ep->rx_all ? FI_COMPLETION : 0);
	near_ep_link(ep, &ep->tx_cq->eps, &ep->tx_link);
	if (ep->rx_cq != ep->tx_cq)
		near_ep_link(ep, &ep->rx_cq->eps, &ep->rx_link);
	near_ep_link_cntrs(ep);
	ep->enabled = true;
	/* who sleeps has to arm this one, too */
	near_ep_rouse(ep);
}

static int near_ep_enable(struct near_ep *ep)
{
	int ret;

	near_lock(ep->domain);
	ret = near_ep_check(ep);
	if (!ret)
		near_ep_start(ep);
	near_unlock(ep->domain);
	return ret;
}

static int near_ep_control(struct fid *fid, int command, void *arg)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);

	return command == FI_ENABLE ? near_ep_enable(ep) : -FI_ENOSYS;
}

static int near_ep_getname(struct fid *fid, void *addr, size_t *len)
{
	struct near_ep *ep = near_container(fid, struct near_ep, fid.fid);
	struct near_addr name;
	size_t room = *len;

	near_address(ep->port, &name);
	*len = sizeof(name);
	memcpy(addr, &name, room < sizeof(name) ? room : sizeof(name));
	return room < sizeof(name) ? -FI_ETOOSMALL : 0;
}

static int near_no_setname(struct fid *fid, void *addr, size_t len)
{
	return -FI_ENOSYS;
}

static int near_no_getpeer(struct fid_ep *ep, void *addr, size_t *len)
{
	return -FI_ENOSYS;
}

static int near_no_connect(struct fid_ep *ep, const void *addr,
			   const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int near_no_listen(struct fid_pep *pep)
{
	return -FI_ENOSYS;
}

static int near_no_accept(struct fid_ep *ep, const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int near_no_reject(struct fid_pep *pep, struct fid *handle,
			  const void *param, size_t len)
{
	return -FI_ENOSYS;
}

static int near_no_shutdown(struct fid_ep *ep, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int near_no_join(struct fid_ep *ep, const void *addr, uint64_t flags,
			struct fid_mc **mc, void *context)
{
	return -FI_ENOSYS;
}

static int near_no_tx_ctx(struct fid_ep *sep, int index,
			  struct fi_tx_attr *attr, struct fid_ep **tx_ep,
			  void *context)
{
	return -FI_ENOSYS;
}

static int near_no_rx_ctx(struct fid_ep *sep, int index,
			  struct fi_rx_attr *attr, struct fid_ep **rx_ep,
			  void *context)
{
	return -FI_ENOSYS;
}

static ssize_t near_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

static struct fi_ops near_ep_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_ep_close,
	.bind = near_ep_bind,
	.control = near_ep_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_ep near_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.cancel = near_ep_cancel,
	.getopt = near_ep_getopt,
	.setopt = near_ep_setopt,
	.tx_ctx = near_no_tx_ctx,
	.rx_ctx = near_no_rx_ctx,
	.rx_size_left = near_no_size_left,
	.tx_size_left = near_no_size_left,
	NEAR_NO_XPU_EP
};

static struct fi_ops_cm near_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = near_no_setname,
	.getname = near_ep_getname,
	.getpeer = near_no_getpeer,
	.connect = near_no_connect,
	.listen = near_no_listen,
	.accept = near_no_accept,
	.reject = near_no_reject,
	.shutdown = near_no_shutdown,
	.join = near_no_join,
};

static void near_ep_init(struct near_ep *ep, const struct fi_info *info)
{
	near_match_init(&ep->match);
	near_list_init(&ep->claimed);
	near_pool_init(&ep->recvs, sizeof(struct near_recv),
		       NEAR_POOL_UNLIMITED);
	near_pool_init(&ep->unexps, sizeof(struct near_unexp),
		       NEAR_POOL_UNLIMITED);
	near_pool_init(&ep->sends, sizeof(struct near_send_op),
		       NEAR_POOL_UNLIMITED);
	near_blocks_init(&ep->blocks, NEAR_BLOCKS_KEEP);
	ep->min_multi_recv = NEAR_MULTI_MIN;
	ep->directed = info->caps & FI_DIRECTED_RECV;
	ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->msg_order = info->tx_attr ? info->tx_attr->msg_order : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->fid.fid.fclass = FI_CLASS_EP;
	ep->fid.fid.ops = &near_ep_fi_ops;
	ep->fid.ops = &near_ep_ops;
	ep->fid.cm = &near_cm_ops;
	ep->fid.msg = &near_msg_ops;
	ep->fid.tagged = &near_tagged_ops;
	near_short_ops(ep);
}

int near_ep_open(struct fid_domain *domain_fid, struct fi_info *info,
		 struct fid_ep **ep_fid, void *context)
{
	struct near_ep *ep = calloc(1, sizeof(*ep));
	struct near_attr attr = {
		.sink = &near_ep_sink,
		.ctx = ep,
		.log = near_ep_log,
		.no_cma = !near_params.cma,
		.no_ptracer = !near_params.ptracer,
		.memory = near_params.memory,
	};
	int ret;

	if (!ep)
		return -FI_ENOMEM;
	near_ep_init(ep, info);
	ret = near_open(&ep->port, &attr);
	if (ret) {
		free(ep);
		return ret;
	}
	ep->fid.fid.context = context;
	ep->domain = near_domain_of(domain_fid);
	ret = near_rma_open(ep->port, &near_ep_rma_sink, ep->domain->table);
	if (ret) {
		near_close(ep->port);
		free(ep);
		return ret;
	}
	near_listen(ep->port, -1);	/* without, it meets fewer */
	near_lock(ep->domain);
	ep->domain->refs++;
	near_unlock(ep->domain);
	*ep_fid = &ep->fid;
	return 0;
}
