/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Fabrics, event queues, domains and regions of the core "none" (none.h). */

#include <stdatomic.h>
#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/compat.h"
#include "base/enosys.h"
#include "base/util.h"
#include "core/none.h"

struct duo_none_fabric {
	struct fid_fabric fabric_fid;
	atomic_int refs;	/* number of open event queues */
};

struct duo_none_eq {
	struct fid_eq eq_fid;
	struct duo_none_fabric *fabric;
};

struct duo_none_domain {
	struct fid_domain domain_fid;
	atomic_uint_fast64_t key; /* next region key that the domain assigns */
	int mr_mode;
};

static struct duo_none_fabric *duo_none_fabric_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_none_fabric, fabric_fid.fid);
}

static int duo_none_close(struct fid *fid)
{
	struct duo_none_eq *eq;

	switch (fid->fclass) {
	case FI_CLASS_FABRIC:
		if (atomic_load(&duo_none_fabric_of(fid)->refs))
			return -FI_EBUSY;
		break;
	case FI_CLASS_EQ:
		eq = duo_container_of(fid, struct duo_none_eq, eq_fid.fid);
		atomic_fetch_sub(&eq->fabric->refs, 1);
		break;
	case FI_CLASS_AV:
		duo_none_av_fini(fid);
		break;
	}
	free(fid);
	return 0;
}

/*
 * Accepts a binding, which has no effect. An endpoint accepts objects of all
 * classes, an AV only event queues.
 */
static int duo_none_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	switch (fid->fclass) {
	case FI_CLASS_EP:
		return 0;
	case FI_CLASS_AV:
		return bfid && bfid->fclass == FI_CLASS_EQ ? 0 : -FI_EINVAL;
	default:
		return -FI_ENOSYS;
	}
}

/*
 * Implements fi_control(). FI_ENABLE of an endpoint has no effect. FI_GETWAIT
 * of a CQ stores -1: the CQ has no file descriptor.
 */
static int duo_none_control(struct fid *fid, int command, void *arg)
{
	if (fid->fclass == FI_CLASS_EP && command == FI_ENABLE)
		return 0;
	if (fid->fclass != FI_CLASS_CQ || command != FI_GETWAIT)
		return -FI_ENOSYS;
	*(int *) arg = -1;
	return 0;
}

static struct fi_ops duo_none_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_none_close,
	.bind = duo_none_bind,
	.control = duo_none_control,
	.ops_open = duo_no_ops_open,
};

void *duo_none_alloc(size_t size, size_t fclass, void *context)
{
	struct fid *fid = calloc(1, size);

	if (!fid)
		return NULL;
	fid->fclass = fclass;
	fid->context = context;
	fid->ops = &duo_none_fi_ops;
	return fid;
}

int duo_none_domain_mr(struct fid_domain *domain_fid)
{
	return duo_container_of(domain_fid, struct duo_none_domain,
				domain_fid)->mr_mode;
}

/*
 * Creates only a key and a descriptor. The region itself is in near's region
 * table, to which fi/mr.c adds it.
 */
static int duo_none_mr_regattr(struct fid *fid, const struct fi_mr_attr *attr,
			       uint64_t flags, struct fid_mr **mr_fid)
{
	struct duo_none_domain *domain = duo_container_of(fid,
			struct duo_none_domain, domain_fid.fid);
	struct fid_mr *mr;

	if (flags & ~(FI_RMA_EVENT | FI_HMEM_DEVICE_ONLY | FI_HMEM_HOST_ALLOC |
		      DUO_MR_DMABUF))
		return -FI_EBADFLAGS;
	if (attr->offset || (attr->iov_count != 1 && attr->access &
			     (FI_REMOTE_READ | FI_REMOTE_WRITE)))
		return -FI_EINVAL;
	mr = duo_none_alloc(sizeof(*mr), FI_CLASS_MR, attr->context);
	if (!mr)
		return -FI_ENOMEM;
	mr->mem_desc = mr;
	if (domain->mr_mode == DUO_MR_BASIC || domain->mr_mode & FI_MR_PROV_KEY)
		mr->key = atomic_fetch_add(&domain->key, 1);
	else
		mr->key = attr->requested_key;
	*mr_fid = mr;
	return 0;
}

static struct fi_ops_mr duo_none_mr_ops = {
	.size = sizeof(struct fi_ops_mr),
	.regattr = duo_none_mr_regattr,
};

static struct fi_ops_domain duo_none_domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = duo_none_av_open,
	.cq_open = duo_none_cq_open,
	.endpoint = duo_none_ep_open,
	.cntr_open = duo_none_cntr_open,
	.query_atomic = duo_none_query_atomic,
};

static int duo_none_domain_open(struct fid_fabric *fabric,
				struct fi_info *info,
				struct fid_domain **domain_fid, void *context)
{
	struct duo_none_domain *domain =
		duo_none_alloc(sizeof(*domain), FI_CLASS_DOMAIN, context);

	if (!domain)
		return -FI_ENOMEM;
	domain->mr_mode = info->domain_attr->mr_mode;
	atomic_init(&domain->key, 1);
	domain->domain_fid.ops = &duo_none_domain_ops;
	domain->domain_fid.mr = &duo_none_mr_ops;
	*domain_fid = &domain->domain_fid;
	return 0;
}

static ssize_t duo_none_eq_read(struct fid_eq *eq, uint32_t *event, void *buf,
				size_t len, uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t duo_none_eq_readerr(struct fid_eq *eq,
				   struct fi_eq_err_entry *buf, uint64_t flags)
{
	return -FI_EAGAIN;
}

static ssize_t duo_none_eq_write(struct fid_eq *eq, uint32_t event,
				 const void *buf, size_t len, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t duo_none_eq_sread(struct fid_eq *eq, uint32_t *event, void *buf,
				 size_t len, int timeout, uint64_t flags)
{
	return -FI_ENOSYS;
}

static const char *duo_none_eq_strerror(struct fid_eq *eq, int prov_errno,
					const void *err_data, char *buf,
					size_t len)
{
	return fi_strerror(prov_errno);
}

static struct fi_ops_eq duo_none_eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = duo_none_eq_read,
	.readerr = duo_none_eq_readerr,
	.write = duo_none_eq_write,
	.sread = duo_none_eq_sread,
	.strerror = duo_none_eq_strerror,
};

/*
 * Opens an event queue that never gets an event. Some applications require an
 * event queue.
 */
static int duo_none_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
			    struct fid_eq **eq_fid, void *context)
{
	struct duo_none_eq *eq = duo_none_alloc(sizeof(*eq), FI_CLASS_EQ,
						context);

	if (!eq)
		return -FI_ENOMEM;
	eq->fabric = duo_none_fabric_of(&fabric->fid);
	eq->eq_fid.ops = &duo_none_eq_ops;
	atomic_fetch_add(&eq->fabric->refs, 1);
	*eq_fid = &eq->eq_fid;
	return 0;
}

/* Returns 0: a thread may sleep, because no event ever arrives. */
static int duo_none_trywait(struct fid_fabric *fabric, struct fid **fids,
			    int count)
{
	return 0;
}

static struct fi_ops_fabric duo_none_fabric_ops = {
	.size = sizeof(struct fi_ops_fabric),
	.domain = duo_none_domain_open,
	.eq_open = duo_none_eq_open,
	.trywait = duo_none_trywait,
};

int duo_none_open(const struct fi_fabric_attr *attr,
		  struct fid_fabric **fabric_fid)
{
	struct duo_none_fabric *fabric =
		duo_none_alloc(sizeof(*fabric), FI_CLASS_FABRIC, NULL);

	if (!fabric)
		return -FI_ENOMEM;
	fabric->fabric_fid.ops = &duo_none_fabric_ops;
	fabric->fabric_fid.api_version = attr->api_version;
	*fabric_fid = &fabric->fabric_fid;
	return 0;
}
