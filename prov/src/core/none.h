/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The core of the provider near, named "none". It takes the place of the
 * provider that ofi_duo wraps in other modules. It carries no data, and is not
 * a libfabric provider. Its objects open, bind and close like those of any
 * core. Functions that ofi_duo never calls are NULL.
 * - The AV assigns a fi_addr to each address of near.
 * - The domain assigns region keys if mr_mode has FI_MR_PROV_KEY or is
 *   FI_MR_BASIC.
 * - An endpoint gets its name by fi_setname(3), once, and has no data calls.
 * - The CQs are empty.
 *
 * Cost: control path only. Thread safe, except the AV: the caller of an AV's
 * functions must hold the domain's lock.
 */
#ifndef DUO_NONE_H
#define DUO_NONE_H

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

#define DUO_NONE "none"		/* name of this core in duo_params.core */

/* Implements fi_getinfo(3). hints->fabric_attr must not be NULL. */
int duo_none_getinfo(const char *node, uint64_t flags,
		     const struct fi_info *hints, struct fi_info **info_out);

int duo_none_open(const struct fi_fabric_attr *attr,
		  struct fid_fabric **fabric_fid);

/* Allocates an object that begins with its fid (none.c). NULL: no memory. */
void *duo_none_alloc(size_t size, size_t fclass, void *context);
/* Returns the mr_mode of an open domain. */
int duo_none_domain_mr(struct fid_domain *domain_fid);

/* functions in none_ep.c */
int duo_none_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		     struct fid_cq **cq_fid, void *context);
int duo_none_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		       struct fid_cntr **cntr_fid, void *context);
int duo_none_query_atomic(struct fid_domain *domain, enum fi_datatype type,
			  enum fi_op op, struct fi_atomic_attr *attr,
			  uint64_t flags);
int duo_none_ep_open(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **ep_fid, void *context);

/* functions in none_av.c */
int duo_none_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		     struct fid_av **av_fid, void *context);
void duo_none_av_fini(struct fid *fid);

#endif /* DUO_NONE_H */
