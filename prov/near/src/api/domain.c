/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Domains. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/near_fi.h"
#include "near_xpu.h"

static int near_domain_close(struct fid *fid)
{
	struct near_domain *domain = near_container(fid, struct near_domain,
						    fid.fid);

	if (domain->refs)
		return -FI_EBUSY;
	near_closed_domain(domain);
	__atomic_fetch_sub(&domain->fabric->refs, 1, __ATOMIC_RELAXED);
	near_table_close(domain->table);
	pthread_mutex_destroy(&domain->mutex);
	free(domain);
	return 0;
}

static int near_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
			       struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

static int near_no_poll_open(struct fid_domain *domain,
			     struct fi_poll_attr *attr,
			     struct fid_poll **pollset)
{
	return -FI_ENOSYS;
}

static int near_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
			   struct fid_stx **stx, void *context)
{
	return -FI_ENOSYS;
}

static int near_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
			   struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}

static struct fi_ops near_domain_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_domain_close,
	.bind = near_no_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_domain near_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = near_av_open,
	.cq_open = near_cq_open,
	.endpoint = near_ep_open,
	.scalable_ep = near_no_scalable_ep,
	.cntr_open = near_cntr_open,
	.poll_open = near_no_poll_open,
	.stx_ctx = near_no_stx_ctx,
	.srx_ctx = near_no_srx_ctx,
	.query_atomic = near_query_atomic,
	NEAR_NO_XPU_CTX
};

int near_domain_open(struct fid_fabric *fabric_fid, struct fi_info *info,
		     struct fid_domain **domain_fid, void *context)
{
	struct near_domain *domain = calloc(1, sizeof(*domain));
	int mode, ret;

	if (!domain)
		return -FI_ENOMEM;
	ret = pthread_mutex_init(&domain->mutex, NULL);
	if (ret) {
		free(domain);
		return -ret;
	}
	ret = near_table_open(&domain->table);
	if (ret) {
		NEAR_WARN(DOMAIN, "no table of memory regions: %s%s\n",
			  strerror(-ret), ret == -EFBIG ? ". Raise the limit "
			  "of the size of files (ulimit -f)" : ret == -EMFILE ?
			  ". Raise the limit of open files (ulimit -n)" : "");
		pthread_mutex_destroy(&domain->mutex);
		free(domain);
		return ret;
	}
	domain->fabric = near_fabric_of(fabric_fid);
	domain->locked = info->domain_attr->threading != FI_THREAD_DOMAIN;
	domain->key = 1;
	mode = domain->mr_mode = info->domain_attr->mr_mode;
	domain->virt_addrs = mode == NEAR_MR_BASIC || mode & FI_MR_VIRT_ADDR;
	domain->prov_keys = mode == NEAR_MR_BASIC || mode & FI_MR_PROV_KEY;
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &near_domain_fi_ops;
	domain->fid.ops = &near_domain_ops;
	domain->fid.mr = &near_mr_ops;
	__atomic_fetch_add(&domain->fabric->refs, 1, __ATOMIC_RELAXED);
	near_opened_domain(domain);
	*domain_fid = &domain->fid;
	return 0;
}
