/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_XPU (libfabric 2.7): GPU code that drives an endpoint by itself. Neither
 * provider here offers it, but fi_xpu_ctx() and fi_*_export_xpu() call these
 * entries without a look at the table, so they have to be there. Each name
 * below goes into a table; before 2.7 it is empty.
 */
#ifndef DUO_XPU_H
#define DUO_XPU_H

#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#ifdef FI_XPU

static inline int duo_no_xpu_ctx(struct fid_domain *domain,
				  struct fi_xpu_attr *attr,
				  struct fid_xpu_ctx **ctx, void *context)
{
	return -FI_ENOSYS;
}

static inline int duo_no_xpu_ep(struct fid_ep *ep, uint64_t flags,
				 struct fid_xpu_ep *xpu_ep)
{
	return -FI_ENOSYS;
}

static inline int duo_no_xpu_cq(struct fid_cq *cq, uint64_t flags,
				 struct fid_xpu_cq *xpu_cq)
{
	return -FI_ENOSYS;
}

static inline int duo_no_xpu_cntr(struct fid_cntr *cntr, uint64_t flags,
				   struct fid_xpu_cntr *xpu_cntr)
{
	return -FI_ENOSYS;
}

#define DUO_NO_XPU_CTX .xpu_ctx = duo_no_xpu_ctx,
#define DUO_NO_XPU_EP .export_xpu = duo_no_xpu_ep,
#define DUO_NO_XPU_CQ .export_xpu = duo_no_xpu_cq,
#define DUO_NO_XPU_CNTR .export_xpu = duo_no_xpu_cntr,
#else
#define DUO_NO_XPU_CTX
#define DUO_NO_XPU_EP
#define DUO_NO_XPU_CQ
#define DUO_NO_XPU_CNTR
#endif

#endif /* DUO_XPU_H */
