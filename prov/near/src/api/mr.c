/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions: an entry of the domain's table, if peers may use it. What
 * is registered for this process alone needs nothing done.
 */

#include <stdlib.h>

#include "api/near_fi.h"

struct near_mr {
	struct fid_mr fid;
	struct near_domain *domain;
	bool listed;		/* in the table */
};

static int near_mr_close(struct fid *fid)
{
	struct near_mr *mr = near_container(fid, struct near_mr, fid.fid);

	near_lock(mr->domain);
	if (mr->listed)
		near_table_remove(mr->domain->table, mr->fid.key);
	mr->domain->refs--;
	near_unlock(mr->domain);
	free(mr);
	return 0;
}

static struct fi_ops near_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_mr_close,
	.bind = near_no_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

/* Under the lock. */
static int near_mr_list(struct near_mr *mr, const struct fi_mr_attr *attr)
{
	struct near_domain *domain = mr->domain;
	struct near_region_entry entry = { .access = 0 };

	mr->fid.key = domain->prov_keys ? domain->key++ : attr->requested_key;
	if (attr->access & FI_REMOTE_READ)
		entry.access |= NEAR_MAY_READ;
	if (attr->access & FI_REMOTE_WRITE)
		entry.access |= NEAR_MAY_WRITE;
	if (!entry.access)
		return 0;
	if (attr->iov_count != 1)
		return -FI_EINVAL;
	entry.memory = (uintptr_t)attr->mr_iov->iov_base;
	entry.len = attr->mr_iov->iov_len;
	entry.key = mr->fid.key;
	entry.start = domain->virt_addrs ? entry.memory : attr->offset;
	mr->listed = true;	/* or there will be no region */
	return near_table_add(domain->table, &entry);
}

static int near_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			   uint64_t flags, struct fid_mr **mr_fid)
{
	struct near_domain *domain = near_container(fid, struct near_domain,
						    fid.fid);
	struct near_mr *mr;
	int ret;

	if (flags & ~FI_RMA_EVENT)
		return -FI_EBADFLAGS;
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return -FI_ENOMEM;
	mr->domain = domain;
	mr->fid.fid.fclass = FI_CLASS_MR;
	mr->fid.fid.context = attr->context;
	mr->fid.fid.ops = &near_mr_fi_ops;
	mr->fid.mem_desc = mr;
	near_lock(domain);
	ret = near_mr_list(mr, attr);
	if (!ret)
		domain->refs++;
	near_unlock(domain);
	if (ret) {
		free(mr);
		return ret;
	}
	*mr_fid = &mr->fid;
	return 0;
}

static int near_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
			uint64_t access, uint64_t offset, uint64_t key,
			uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
	};

	return near_mr_regattr(fid, &attr, flags, mr);
}

static int near_mr_reg(struct fid *fid, const void *buf, size_t len,
		       uint64_t access, uint64_t offset, uint64_t key,
		       uint64_t flags, struct fid_mr **mr, void *context)
{
	const struct iovec iov = { (void *)buf, len };

	return near_mr_regv(fid, &iov, 1, access, offset, key, flags, mr,
			    context);
}

struct fi_ops_mr near_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = near_mr_reg,
	.regv = near_mr_regv,
	.regattr = near_mr_regattr,
};
