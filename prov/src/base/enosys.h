/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the provider does not do; none of it is advertised. All -FI_ENOSYS. */
#ifndef DUO_ENOSYS_H
#define DUO_ENOSYS_H

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

int duo_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int duo_no_control(struct fid *fid, int command, void *arg);
int duo_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);
int duo_no_wait_set(struct fid_fabric *fabric, struct fi_wait_attr *attr,
		    struct fid_wait **set);
int duo_no_poll(struct fid_domain *domain, struct fi_poll_attr *attr,
		struct fid_poll **set);
int duo_no_scalable_ep(struct fid_domain *domain, struct fi_info *info,
		       struct fid_ep **sep, void *context);
int duo_no_stx_ctx(struct fid_domain *domain, struct fi_tx_attr *attr,
		   struct fid_stx **stx, void *context);
int duo_no_srx_ctx(struct fid_domain *domain, struct fi_rx_attr *attr,
		   struct fid_ep **rx_ep, void *context);

#endif /* DUO_ENOSYS_H */
