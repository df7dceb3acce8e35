/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions, with the core's key and mem_desc. Device memory is also
 * prepared for copying (device/device.h). near's region table lists regions for
 * local peers (transport/near/onesided.h). The application gets a fid of
 * ofi_duo, because it may bind the region to ofi_duo's endpoints.
 */

#include <inttypes.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "device/device.h"
#include "fi/api.h"
#include "obj/cntr.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "obj/mr.h"
#include "transport/near/onesided.h"

static struct duo_mr *duo_mr_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_mr, mr_fid.fid);
}

/*
 * Frees mr. The caller must have removed mr from near's region table and from
 * the domain's tree of device memory (device_mrs).
 */
static void duo_mr_free(struct duo_mr *mr)
{
	duo_device_forget(mr);
	duo_near_regions_unmap(mr->domain);
	atomic_fetch_sub(&mr->domain->refs, 1);
	free(mr);
}

static int duo_mr_close(struct fid *fid)
{
	struct duo_mr *mr = duo_mr_of(fid);
	struct fid *core = &mr->core->fid;
	bool listed = mr->listed;
	int ret;

	if (duo_near_region_used(mr)) {
		DUO_WARN(MR, "memory region with key 0x%" PRIx64 " at 0x%"
			 PRIx64 ": fi_close returns -FI_EBUSY, because RMA or "
			 "a message from or to it is pending. Read its "
			 "completion first, or close the endpoint\n",
			 mr->mr_fid.key, mr->region.memory);
		return -FI_EBUSY;
	}
	/*
	 * must precede fi_close(core): the tree of device memory is sorted by
	 * mem_desc, and the core may later give a new region the same mem_desc
	 */
	if (!duo_device_unlist(mr))
		/*
		 * other registrations share mr, and another thread may close
		 * the last of them, which frees mr
		 */
		return fi_close(core);
	duo_near_region_unlist(mr);
	ret = fi_close(core);
	if (ret) {
		if (listed)
			duo_near_region_list(mr);
		duo_device_list(mr, NULL);
		return ret;
	}
	duo_mr_free(mr);
	return 0;
}

/*
 * Binds a counter, which counts the peers' accesses to the region. The core
 * must then execute all these accesses, because near cannot count the accesses
 * to one region. So removes the region from near's region table.
 */
static int duo_mr_bind_cntr(struct duo_mr *mr, struct duo_cntr *cntr,
			    uint64_t flags)
{
	int ret;

	if (cntr->domain != mr->domain)
		return -FI_EINVAL;
	ret = fi_mr_bind(mr->core, &cntr->path_cntr[FI_DUO_CORE]->fid, flags);
	if (!ret) {
		duo_near_region_unlist(mr);
		duo_lock(&cntr->domain->group.lock);
		cntr->on_core = true;
		duo_unlock(&cntr->domain->group.lock);
		mr->region.access = 0;
	}
	return ret;
}

/* Binds a region to an endpoint (FI_MR_ENDPOINT), or to a counter. */
static int duo_mr_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct duo_mr *mr = duo_mr_of(fid);
	struct duo_ep *ep;

	if (!bfid)
		return -FI_EINVAL;
	if (bfid->fclass == FI_CLASS_CNTR)
		return duo_mr_bind_cntr(mr, duo_cntr_of(bfid), flags);
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

/*
 * Implements fi_control(). FI_ENABLE may change the core's key or mem_desc. If
 * so, lists the region again with the new values.
 */
static int duo_mr_control(struct fid *fid, int command, void *arg)
{
	struct duo_mr *mr = duo_mr_of(fid);
	int ret = duo_core_control(fid, command, arg);

	if (mr->core->key == mr->mr_fid.key &&
	    mr->core->mem_desc == mr->mr_fid.mem_desc)
		return ret;
	duo_near_region_unlist(mr);
	duo_device_unlist(mr);
	duo_mr_copy(mr);
	duo_near_region_list(mr);
	return duo_device_list(mr, NULL) ? -FI_ENOMEM : ret;
}

static struct fi_ops duo_mr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_mr_close,
	.bind = duo_mr_bind,
	.control = duo_mr_control,
	.ops_open = duo_core_ops_open,
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

/* Registers the region with the core. Returns 0 or the core's error. */
static int duo_mr_open_core(struct duo_mr *mr, const struct fi_mr_attr *attr,
			    uint64_t flags)
{
	int ret = fi_mr_regattr(mr->domain->path_domain[FI_DUO_CORE], attr,
				flags, &mr->core);

	if (ret)
		return ret;
	duo_mr_copy(mr);
	atomic_fetch_add(&mr->domain->refs, 1);
	return 0;
}

static int duo_mr_open(struct fid *domain_fid, const struct fi_mr_attr *attr,
		       uint64_t flags, struct fid_mr **mr_fid)
{
	struct duo_mr *mr = duo_mr_alloc(domain_fid, attr->context);
	struct fi_mr_attr mine = *attr;
	struct duo_mr *open;
	struct iovec iov;
	int ret;

	if (!mr)
		return -FI_ENOMEM;
	duo_near_regions_unmap(mr->domain);
	ret = duo_mr_open_core(mr, attr, flags);
	if (ret) {
		free(mr);
		return ret;
	}
	duo_mr_attr_iov(&mine, flags, &iov);
	ret = duo_device_register(mr, &mine, &open);
	if (!ret && open != mr) {
		duo_mr_free(mr);
		*mr_fid = &open->mr_fid;
		return 0;
	}
	if (!ret && (mr->device || (attr->iface == FI_HMEM_SYSTEM &&
				    !(flags & DUO_MR_DMABUF))))
		ret = duo_near_region_set(mr, mine.mr_iov, mine.iov_count,
					  mine.access);
	if (ret)
		duo_mr_close(&mr->mr_fid.fid);
	else
		*mr_fid = &mr->mr_fid;
	return ret;
}

static int duo_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			  uint64_t flags, struct fid_mr **mr_fid)
{
	const struct duo_domain *domain =
		duo_container_of(fid, struct duo_domain, domain_fid.fid);
	const struct fi_mr_attr ours =
		duo_caller_mr_attr(attr, domain->fabric->fabric_fid.api_version,
				   domain->caps & FI_HMEM);

	return duo_mr_open(fid, &ours, flags, mr_fid);
}

static int duo_mr_regv(struct fid *fid, const struct iovec *iov, size_t count,
		       uint64_t access, uint64_t offset, uint64_t key,
		       uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	const struct fi_mr_attr attr = {
		.mr_iov = iov,
		.iov_count = count,
		.access = access,
		.offset = offset,
		.requested_key = key,
		.context = context,
		.iface = FI_HMEM_SYSTEM,
	};

	return duo_mr_open(fid, &attr, flags, mr_fid);
}

static int duo_mr_reg(struct fid *fid, const void *buf, size_t len,
		      uint64_t access, uint64_t offset, uint64_t key,
		      uint64_t flags, struct fid_mr **mr_fid, void *context)
{
	const struct iovec iov = { (void *) buf, len };

	return duo_mr_regv(fid, &iov, 1, access, offset, key, flags, mr_fid,
			   context);
}

struct fi_ops_mr duo_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.reg = duo_mr_reg,
	.regv = duo_mr_regv,
	.regattr = duo_mr_regattr,
};
