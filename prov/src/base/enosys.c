/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the provider does not do; none of it is advertised. */

#include <rdma/fi_errno.h>

#include "base/enosys.h"

int duo_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	return -FI_ENOSYS;
}

int duo_no_control(struct fid *fid, int command, void *arg)
{
	return -FI_ENOSYS;
}

int duo_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_wait_set(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		    struct fid_wait **set)
{
	return -FI_ENOSYS;
}

int duo_no_poll(struct fid_domain *domain, struct fi_poll_attr *attr,
		struct fid_poll **set)
{
	return -FI_ENOSYS;
}

int duo_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **sep, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
		   struct fid_stx **stx, void *context)
{
	return -FI_ENOSYS;
}

int duo_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **rx_ep, void *context)
{
	return -FI_ENOSYS;
}
