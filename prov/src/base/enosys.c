/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <rdma/fi_collective.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"

#define DUO_NO_DEFINE(name, ...) \
	int duo_no_##name(__VA_ARGS__) \
	{ \
		return -FI_ENOSYS; \
	}

DUO_NO_OPS(DUO_NO_DEFINE)
DUO_NO_XPU(DUO_NO_DEFINE)

ssize_t duo_no_size_left(struct fid_ep *ep)
{
	return -FI_ENOSYS;
}

/* parameters that most collective operations share */
#define DUO_NO_COLL struct fid_ep *ep, const void *buf, size_t count, \
		    void *desc, void *result, void *result_desc, fi_addr_t coll
#define DUO_NO_COLL_END enum fi_datatype type, uint64_t flags, void *context
#define DUO_NO_COLLECTIVE(no) \
	no(barrier, struct fid_ep *ep, fi_addr_t coll, void *context) \
	no(barrier2, struct fid_ep *ep, fi_addr_t coll, uint64_t flags, \
	   void *context) \
	no(broadcast, struct fid_ep *ep, void *buf, size_t count, void *desc, \
	   fi_addr_t coll, fi_addr_t root, DUO_NO_COLL_END) \
	no(alltoall, DUO_NO_COLL, DUO_NO_COLL_END) \
	no(allgather, DUO_NO_COLL, DUO_NO_COLL_END) \
	no(allreduce, DUO_NO_COLL, enum fi_datatype type, enum fi_op op, \
	   uint64_t flags, void *context) \
	no(reduce_scatter, DUO_NO_COLL, enum fi_datatype type, enum fi_op op, \
	   uint64_t flags, void *context) \
	no(reduce, DUO_NO_COLL, fi_addr_t root, enum fi_datatype type, \
	   enum fi_op op, uint64_t flags, void *context) \
	no(scatter, DUO_NO_COLL, fi_addr_t root, DUO_NO_COLL_END) \
	no(gather, DUO_NO_COLL, fi_addr_t root, DUO_NO_COLL_END) \
	no(msg, struct fid_ep *ep, const struct fi_msg_collective *msg, \
	   struct fi_ioc *resultv, void **result_desc, size_t count, \
	   uint64_t flags)

#define DUO_NO_DEFINE_LONG(name, ...) \
	static ssize_t duo_no_##name(__VA_ARGS__) \
	{ \
		return -FI_ENOSYS; \
	}
#define DUO_NO_MEMBER(name, ...) .name = duo_no_##name,

DUO_NO_COLLECTIVE(DUO_NO_DEFINE_LONG)

struct fi_ops_collective duo_no_collective = {
	.size = sizeof(struct fi_ops_collective),
	DUO_NO_COLLECTIVE(DUO_NO_MEMBER)
};
