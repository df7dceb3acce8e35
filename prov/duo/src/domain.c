/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <netinet/in.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "duo.h"

static int duo_domain_close(struct fid *fid)
{
	struct duo_domain *domain =
		duo_container_of(fid, struct duo_domain, domain_fid.fid);
	int ret;

	if (atomic_load(&domain->refs))
		return -FI_EBUSY;
	ret = fi_close(&domain->path_domain[FI_DUO_CORE]->fid);
	if (ret)
		return ret;
	if (domain->path_domain[FI_DUO_SHM])
		fi_close(&domain->path_domain[FI_DUO_SHM]->fid);
	duo_lock_destroy(&domain->lock);
	atomic_fetch_sub(&domain->fabric->refs, 1);
	free(domain);
	return 0;
}

static int duo_domain_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_domain *domain =
		duo_container_of(fid, struct duo_domain, domain_fid.fid);

	/* an event queue is the core's own; nothing of ours may get there */
	if (!bfid || bfid->fclass != FI_CLASS_EQ)
		return -FI_EINVAL;
	return fi_domain_bind(domain->path_domain[FI_DUO_CORE], bfid, flags);
}

static struct fi_ops duo_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_domain_close,
	.bind = duo_domain_bind,
	.control = duo_no_control,
	.ops_open = duo_no_ops_open,
};

/* The core's own, of RMA: see duo_ep_bind_cntr(). MPICH wants to have one. */
static int duo_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
			 struct fid_cntr **cntr, void *context)
{
	return fi_cntr_open(duo_domain_of(domain)->path_domain[FI_DUO_CORE],
			    attr, cntr, context);
}

static struct fi_ops_domain duo_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = duo_av_open,
	.cq_open = duo_cq_open,
	.endpoint = duo_ep_open,
	.scalable_ep = duo_no_scalable_ep,
	.cntr_open = duo_cntr_open,
	.poll_open = duo_no_poll_open,
	.stx_ctx = duo_no_stx_ctx,
	.srx_ctx = duo_no_srx_ctx,
};

static size_t duo_sockaddr_len(uint32_t addr_format)
{
	switch (addr_format) {
	case FI_SOCKADDR_IN:
		return sizeof(struct sockaddr_in);
	case FI_SOCKADDR_IN6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

static int duo_domain_open_core(struct duo_domain *domain,
				const struct fi_info *info, void *context)
{
	struct fi_info *core = duo_info_to_core(info);
	int ret;

	if (!core)
		return -FI_ENOMEM;
	ret = fi_domain(domain->fabric->path_fabric[FI_DUO_CORE], core,
			&domain->path_domain[FI_DUO_CORE], context);
	fi_freeinfo(core);
	return ret;
}

static void duo_domain_open_shm(struct duo_domain *domain)
{
	struct duo_fabric *fabric = domain->fabric;
	int ret;

	if (!fabric->path_fabric[FI_DUO_SHM])
		return;
	ret = fi_domain(fabric->path_fabric[FI_DUO_SHM], fabric->shm_info,
			&domain->path_domain[FI_DUO_SHM], NULL);
	if (!ret)
		return;
	domain->path_domain[FI_DUO_SHM] = NULL;
	DUO_WARN(DOMAIN, "shm domain: %s; the core %s carries all messages\n",
		 fi_strerror(-ret), fabric->core_name);
}

int duo_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		    struct fid_domain **domain_fid, void *context)
{
	struct duo_domain *domain;
	int ret;

	if (!info || !info->domain_attr)
		return -FI_EINVAL;
	domain = calloc(1, sizeof(*domain));
	if (!domain)
		return -FI_ENOMEM;
	domain->fabric = duo_fabric_of(fabric_fid);
	domain->sockaddr_len = duo_sockaddr_len(info->addr_format);
	ret = duo_lock_init(&domain->lock,
			    info->domain_attr->threading != FI_THREAD_DOMAIN);
	if (ret)
		goto free_domain;
	ret = duo_domain_open_core(domain, info, context);
	if (ret)
		goto destroy_lock;
	duo_domain_open_shm(domain);

	domain->domain_fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->domain_fid.fid.context = context;
	domain->domain_fid.fid.ops = &duo_domain_fi_ops;
	domain->domain_fid.ops = &duo_domain_ops;
	domain->domain_fid.mr = &duo_mr_ops;
	atomic_fetch_add(&domain->fabric->refs, 1);
	*domain_fid = &domain->domain_fid;
	return 0;

destroy_lock:
	duo_lock_destroy(&domain->lock);
free_domain:
	free(domain);
	return ret;
}
