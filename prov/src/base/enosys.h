/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Operations that ofi_duo does not support: duo_no_<name>() returns -FI_ENOSYS.
 * The members of ofi_duo's tables of functions must not be NULL instead,
 * because libfabric calls many of them without a check for NULL.
 */
#ifndef DUO_ENOSYS_H
#define DUO_ENOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>

#define DUO_NO_OPS(no) \
	no(bind, struct fid *fid, struct fid *bfid, uint64_t flags) \
	no(control, struct fid *fid, int command, void *arg) \
	no(ops_open, struct fid *fid, const char *name, uint64_t flags, \
	   void **ops, void *context) \
	no(wait_set, struct fid_fabric *fabric, struct fi_wait_attr *attr, \
	   struct fid_wait **set) \
	no(passive_ep, struct fid_fabric *fabric, struct fi_info *info, \
	   struct fid_pep **pep, void *context) \
	no(scalable_ep, struct fid_domain *domain, struct fi_info *info, \
	   struct fid_ep **sep, void *context) \
	no(poll_open, struct fid_domain *domain, struct fi_poll_attr *attr, \
	   struct fid_poll **set) \
	no(insertsvc, struct fid_av *av, const char *node, \
	   const char *service, fi_addr_t *fi_addr, uint64_t flags, \
	   void *context) \
	no(insertsym, struct fid_av *av, const char *node, size_t nodecnt, \
	   const char *service, size_t svccnt, fi_addr_t *fi_addr, \
	   uint64_t flags, void *context) \
	no(lookup, struct fid_av *av, fi_addr_t fi_addr, void *addr, \
	   size_t *addrlen) \
	no(stx_ctx, struct fid_domain *domain, struct fi_tx_attr *attr, \
	   struct fid_stx **stx, void *context) \
	no(srx_ctx, struct fid_domain *domain, struct fi_rx_attr *attr, \
	   struct fid_ep **rx_ep, void *context) \
	no(tx_ctx, struct fid_ep *sep, int index, struct fi_tx_attr *attr, \
	   struct fid_ep **tx_ep, void *context) \
	no(rx_ctx, struct fid_ep *sep, int index, struct fi_rx_attr *attr, \
	   struct fid_ep **rx_ep, void *context) \
	no(getpeer, struct fid_ep *ep, void *addr, size_t *addrlen) \
	no(connect, struct fid_ep *ep, const void *addr, const void *param, \
	   size_t paramlen) \
	no(listen, struct fid_pep *pep) \
	no(accept, struct fid_ep *ep, const void *param, size_t paramlen) \
	no(reject, struct fid_pep *pep, fid_t handle, const void *param, \
	   size_t paramlen) \
	no(shutdown, struct fid_ep *ep, uint64_t flags) \
	no(join, struct fid_ep *ep, const void *addr, uint64_t flags, \
	   struct fid_mc **mc, void *context)

/* operations of FI_XPU (libfabric 2.7), which export an object to a GPU */
#ifdef FI_XPU
#define DUO_NO_XPU(no) \
	no(xpu_ctx, struct fid_domain *domain, struct fi_xpu_attr *attr, \
	   struct fid_xpu_ctx **ctx, void *context) \
	no(xpu_ep, struct fid_ep *ep, uint64_t flags, \
	   struct fid_xpu_ep *xpu_ep) \
	no(xpu_cq, struct fid_cq *cq, uint64_t flags, \
	   struct fid_xpu_cq *xpu_cq) \
	no(xpu_cntr, struct fid_cntr *cntr, uint64_t flags, \
	   struct fid_xpu_cntr *xpu_cntr)
#define DUO_NO_XPU_CTX .xpu_ctx = duo_no_xpu_ctx,
#define DUO_NO_XPU_EP .export_xpu = duo_no_xpu_ep,
#define DUO_NO_XPU_CQ .export_xpu = duo_no_xpu_cq,
#define DUO_NO_XPU_CNTR .export_xpu = duo_no_xpu_cntr,
#else
#define DUO_NO_XPU(no)
#define DUO_NO_XPU_CTX
#define DUO_NO_XPU_EP
#define DUO_NO_XPU_CQ
#define DUO_NO_XPU_CNTR
#endif

#define DUO_NO_DECLARE(name, ...) int duo_no_##name(__VA_ARGS__);
DUO_NO_OPS(DUO_NO_DECLARE)
DUO_NO_XPU(DUO_NO_DECLARE)
ssize_t duo_no_size_left(struct fid_ep *ep);
/* collective operations of endpoints; each returns -FI_ENOSYS */
extern struct fi_ops_collective duo_no_collective;

#endif /* DUO_ENOSYS_H */
