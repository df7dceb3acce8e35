/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* CQs, counters and endpoints of the core "none" (none.h). */

#include <stdbool.h>
#include <string.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>

#include "base/util.h"
#include "core/none.h"
#include "near/near.h"

/* longest atomic, bytes, as reported; near has no limit */
#define DUO_NONE_ATOMIC_MAX 4096

struct duo_none_ep {
	struct fid_ep ep_fid;
	bool named;
	uint8_t name[sizeof(struct near_addr)];
};

static ssize_t duo_none_cq_readfrom(struct fid_cq *cq, void *buf, size_t count,
				    fi_addr_t *src)
{
	return -FI_EAGAIN;
}

static const char *duo_none_cq_strerror(struct fid_cq *cq, int prov_errno,
					const void *err_data, char *buf,
					size_t len)
{
	return fi_strerror(prov_errno);
}

static struct fi_ops_cq duo_none_cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.readfrom = duo_none_cq_readfrom,
	.strerror = duo_none_cq_strerror,
};

int duo_none_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		     struct fid_cq **cq_fid, void *context)
{
	struct fid_cq *cq = duo_none_alloc(sizeof(*cq), FI_CLASS_CQ, context);

	if (!cq)
		return -FI_ENOMEM;
	cq->ops = &duo_none_cq_ops;
	*cq_fid = cq;
	return 0;
}

static uint64_t duo_none_cntr_read(struct fid_cntr *cntr)
{
	return 0;
}

static struct fi_ops_cntr duo_none_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = duo_none_cntr_read,
	.readerr = duo_none_cntr_read,
};

int duo_none_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		       struct fid_cntr **cntr_fid, void *context)
{
	struct fid_cntr *cntr;

	if (attr->events != FI_CNTR_EVENTS_COMP || attr->flags)
		return -FI_ENOSYS;
	cntr = duo_none_alloc(sizeof(*cntr), FI_CLASS_CNTR, context);
	if (!cntr)
		return -FI_ENOMEM;
	cntr->ops = &duo_none_cntr_ops;
	*cntr_fid = cntr;
	return 0;
}

static struct duo_none_ep *duo_none_ep_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_none_ep, ep_fid.fid);
}

static int duo_none_ep_setname(struct fid *fid, void *addr, size_t len)
{
	struct duo_none_ep *ep = duo_none_ep_of(fid);

	if (ep->named || len < sizeof(ep->name))
		return -FI_ENOSYS;
	memcpy(ep->name, addr, sizeof(ep->name));
	ep->named = true;
	return 0;
}

static int duo_none_ep_getname(struct fid *fid, void *addr, size_t *len)
{
	const struct duo_none_ep *ep = duo_none_ep_of(fid);
	size_t space = addr ? *len : 0;

	*len = sizeof(ep->name);
	if (space)
		memcpy(addr, ep->name, space < *len ? space : *len);
	return space < *len ? -FI_ETOOSMALL : 0;
}

static int duo_none_ep_getopt(fid_t fid, int level, int optname, void *optval,
			      size_t *optlen)
{
	return -FI_ENOPROTOOPT;
}

static int duo_none_ep_setopt(fid_t fid, int level, int optname,
			      const void *optval, size_t optlen)
{
	return -FI_ENOPROTOOPT;
}

static int duo_none_atomicvalid(enum near_verb verb, enum fi_datatype type,
				enum fi_op op, size_t *count)
{
	if (!near_rma_has_atomic(verb, op, type))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = DUO_NONE_ATOMIC_MAX / near_type_size(type);
	return 0;
}

static int duo_none_writevalid(struct fid_ep *ep, enum fi_datatype type,
			       enum fi_op op, size_t *count)
{
	return duo_none_atomicvalid(NEAR_ATOMIC, type, op, count);
}

static int duo_none_fetchvalid(struct fid_ep *ep, enum fi_datatype type,
			       enum fi_op op, size_t *count)
{
	return duo_none_atomicvalid(NEAR_FETCH, type, op, count);
}

static int duo_none_comparevalid(struct fid_ep *ep, enum fi_datatype type,
				 enum fi_op op, size_t *count)
{
	return duo_none_atomicvalid(NEAR_COMPARE, type, op, count);
}

int duo_none_query_atomic(struct fid_domain *domain, enum fi_datatype type,
			  enum fi_op op, struct fi_atomic_attr *attr,
			  uint64_t flags)
{
	enum near_verb verb = flags & FI_COMPARE_ATOMIC ? NEAR_COMPARE :
			      flags & FI_FETCH_ATOMIC ? NEAR_FETCH :
			      NEAR_ATOMIC;
	int ret;

	if (!attr)
		return -FI_EINVAL;
	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	ret = duo_none_atomicvalid(verb, type, op, &attr->count);
	attr->size = near_type_size(type);
	return ret;
}

static struct fi_ops_ep duo_none_ep_ops = {
	.size = sizeof(struct fi_ops_ep),
	.getopt = duo_none_ep_getopt,
	.setopt = duo_none_ep_setopt,
};

static struct fi_ops_cm duo_none_cm_ops = {
	.size = sizeof(struct fi_ops_cm),
	.setname = duo_none_ep_setname,
	.getname = duo_none_ep_getname,
};

static struct fi_ops_atomic duo_none_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.writevalid = duo_none_writevalid,
	.readwritevalid = duo_none_fetchvalid,
	.compwritevalid = duo_none_comparevalid,
};

int duo_none_ep_open(struct fid_domain *domain, struct fi_info *info,
		     struct fid_ep **ep_fid, void *context)
{
	struct duo_none_ep *ep = duo_none_alloc(sizeof(*ep), FI_CLASS_EP,
						context);

	if (!ep)
		return -FI_ENOMEM;
	ep->ep_fid.ops = &duo_none_ep_ops;
	ep->ep_fid.cm = &duo_none_cm_ops;
	ep->ep_fid.atomic = &duo_none_atomic_ops;
	*ep_fid = &ep->ep_fid;
	return 0;
}
