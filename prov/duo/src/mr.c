/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory is registered with the core alone: shm needs no registration for
 * messages of host memory. Key and descriptor are the core's, so descriptors
 * go to the core as they are, and never to shm. The object is ours, because
 * it is bound to endpoints of ours.
 */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "duo.h"

static struct duo_mr *duo_mr_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_mr, mr_fid.fid);
}

static int duo_mr_close(struct fid *fid)
{
	struct duo_mr *mr = duo_mr_of(fid);
	int ret = fi_close(&mr->core->fid);

	if (ret)
		return ret;
	atomic_fetch_sub(&mr->domain->refs, 1);
	free(mr);
	return 0;
}

/* To an endpoint, for FI_MR_ENDPOINT; what else there is, we have not. */
static int duo_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_mr *mr = duo_mr_of(fid);
	struct duo_ep *ep;

	if (!bfid)
		return -FI_EINVAL;
	if (bfid->fclass != FI_CLASS_EP)
		return -FI_ENOSYS;
	ep = duo_container_of(bfid, struct duo_ep, ep_fid.fid);
	if (ep->domain != mr->domain)
		return -FI_EINVAL;
	return fi_mr_bind(mr->core, &ep->path_ep[FI_DUO_CORE]->fid, flags);
}

static void duo_mr_copy(struct duo_mr *mr)
{
	mr->mr_fid.mem_desc = mr->core->mem_desc;
	mr->mr_fid.key = mr->core->key;
}

/* Enabling may choose the key. */
static int duo_mr_control(struct fid *fid, int command, void *arg)
{
	struct duo_mr *mr = duo_mr_of(fid);
	int ret = fi_control(&mr->core->fid, command, arg);

	duo_mr_copy(mr);
	return ret;
}

static int duo_mr_ops_open(struct fid *fid, const char *name, uint64_t flags,
			   void **ops, void *context)
{
	return fi_open_ops(&duo_mr_of(fid)->core->fid, name, flags, ops,
			   context);
}

static struct fi_ops duo_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_mr_close,
	.bind = duo_mr_bind,
	.control = duo_mr_control,
	.ops_open = duo_mr_ops_open,
};

static struct duo_mr *duo_mr_alloc(struct fid *domain_fid, void *context)
{
	struct duo_mr *mr = calloc(1, sizeof(*mr));

	if (!mr)
		return NULL;
	mr->domain = duo_container_of(domain_fid, struct duo_domain,
				      domain_fid.fid);
	mr->mr_fid.fid.fclass = FI_CLASS_MR;
	mr->mr_fid.fid.context = context;
	mr->mr_fid.fid.ops = &duo_mr_fi_ops;
	return mr;
}

/* ret: what the core said. */
static int duo_mr_finish(struct duo_mr *mr, int ret, struct fid_mr **mr_fid)
{
	if (ret) {
		free(mr);
		return ret;
	}
	duo_mr_copy(mr);
	atomic_fetch_add(&mr->domain->refs, 1);
	*mr_fid = &mr->mr_fid;
	return 0;
}

static int duo_mr_reg(struct fid *fid, const void *buf, size_t len,
		      uint64_t access, uint64_t offset, uint64_t key,
		      uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	struct duo_mr *mr = duo_mr_alloc(fid, context);
	int ret;

	if (!mr)
		return -FI_ENOMEM;
	ret = fi_mr_reg(mr->domain->path_domain[FI_DUO_CORE], buf, len,
			access, offset, key, flags, &mr->core, context);
	return duo_mr_finish(mr, ret, mr_fid);
}

static int duo_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		       uint64_t access, uint64_t offset, uint64_t key,
		       uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	struct duo_mr *mr = duo_mr_alloc(fid, context);
	int ret;

	if (!mr)
		return -FI_ENOMEM;
	ret = fi_mr_regv(mr->domain->path_domain[FI_DUO_CORE], iov, count,
			 access, offset, key, flags, &mr->core, context);
	return duo_mr_finish(mr, ret, mr_fid);
}

static int duo_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			  uint64_t flags, struct fid_mr **mr_fid)
{
	struct duo_mr *mr = duo_mr_alloc(fid, attr->context);
	int ret;

	if (!mr)
		return -FI_ENOMEM;
	ret = fi_mr_regattr(mr->domain->path_domain[FI_DUO_CORE], attr, flags,
			    &mr->core);
	return duo_mr_finish(mr, ret, mr_fid);
}

struct fi_ops_mr duo_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = duo_mr_reg,
	.regv = duo_mr_regv,
	.regattr = duo_mr_regattr,
};
