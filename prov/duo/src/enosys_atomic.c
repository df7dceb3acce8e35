/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_ATOMIC is not advertised; whoever calls it all the same is told so. */

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>

#include "duo.h"

static ssize_t duo_no_atomic(struct fid_ep *ep, const void *buf, size_t count,
			     void *desc, fi_addr_t dest, uint64_t addr,
			     uint64_t key, enum fi_datatype datatype,
			     enum fi_op op, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_atomicv(struct fid_ep *ep, const struct fi_ioc *iov,
			      void **desc, size_t count, fi_addr_t dest,
			      uint64_t addr, uint64_t key,
			      enum fi_datatype datatype, enum fi_op op,
			      void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_atomicmsg(struct fid_ep *ep,
				const struct fi_msg_atomic *msg,
				uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_inject_atomic(struct fid_ep *ep, const void *buf,
				    size_t count, fi_addr_t dest,
				    uint64_t addr, uint64_t key,
				    enum fi_datatype datatype, enum fi_op op)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_fetch(struct fid_ep *ep, const void *buf, size_t count,
			    void *desc, void *result, void *result_desc,
			    fi_addr_t dest, uint64_t addr, uint64_t key,
			    enum fi_datatype datatype, enum fi_op op,
			    void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_fetchv(struct fid_ep *ep, const struct fi_ioc *iov,
			     void **desc, size_t count,
			     struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, fi_addr_t dest,
			     uint64_t addr, uint64_t key,
			     enum fi_datatype datatype, enum fi_op op,
			     void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_fetchmsg(struct fid_ep *ep,
			       const struct fi_msg_atomic *msg,
			       struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, uint64_t flags)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_compare(struct fid_ep *ep, const void *buf, size_t count,
			      void *desc, const void *compare,
			      void *compare_desc, void *result,
			      void *result_desc, fi_addr_t dest, uint64_t addr,
			      uint64_t key, enum fi_datatype datatype,
			      enum fi_op op, void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_comparev(struct fid_ep *ep, const struct fi_ioc *iov,
			       void **desc, size_t count,
			       const struct fi_ioc *comparev,
			       void **compare_desc, size_t compare_count,
			       struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, fi_addr_t dest,
			       uint64_t addr, uint64_t key,
			       enum fi_datatype datatype, enum fi_op op,
			       void *context)
{
	return -FI_ENOSYS;
}

static ssize_t duo_no_comparemsg(struct fid_ep *ep,
				 const struct fi_msg_atomic *msg,
				 const struct fi_ioc *comparev,
				 void **compare_desc, size_t compare_count,
				 struct fi_ioc *resultv, void **result_desc,
				 size_t result_count, uint64_t flags)
{
	return -FI_ENOSYS;
}

static int duo_no_atomicvalid(struct fid_ep *ep, enum fi_datatype datatype,
			      enum fi_op op, size_t *count)
{
	return -FI_EOPNOTSUPP;
}

struct fi_ops_atomic duo_no_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = duo_no_atomic,
	.writev = duo_no_atomicv,
	.writemsg = duo_no_atomicmsg,
	.inject = duo_no_inject_atomic,
	.readwrite = duo_no_fetch,
	.readwritev = duo_no_fetchv,
	.readwritemsg = duo_no_fetchmsg,
	.compwrite = duo_no_compare,
	.compwritev = duo_no_comparev,
	.compwritemsg = duo_no_comparemsg,
	.writevalid = duo_no_atomicvalid,
	.readwritevalid = duo_no_atomicvalid,
	.compwritevalid = duo_no_atomicvalid,
};
