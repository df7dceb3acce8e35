/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Atomics: decide who carries them, forward; see onesided.h. */

#include <rdma/fi_atomic.h>

#include "rma/atomic.h"
#include "tx/onesided.h"

#define DUO_ATOMIC_DESCS 16	/* no core takes more in a call */

static inline int duo_atomic_begin(struct duo_ep *ep, fi_addr_t dest,
				   enum near_verb verb,
				   const struct fi_rma_ioc *at,
				   enum fi_datatype datatype, enum fi_op op,
				   struct duo_onesided *to)
{
	const struct near_rma_args args = {
		.verb = verb,
		.addr = at->addr,
		.key = at->key,
		.len = at->count * near_type_size(datatype),
		.op = op,
		.type = datatype,
	};

	return duo_onesided_begin(ep, dest, &args, to);
}

static inline int duo_atomic_begin_msg(struct duo_ep *ep,
				       const struct fi_msg_atomic *msg,
				       enum near_verb verb,
				       struct duo_onesided *to)
{
	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, msg->addr, to);
	if (msg->rma_iov_count > 1)
		verb = DUO_SEVERAL;
	return duo_atomic_begin(ep, msg->addr, verb, msg->rma_iov,
				msg->datatype, msg->op, to);
}

static inline ssize_t duo_atomic_end(struct duo_ep *ep,
				     const struct duo_onesided *to, ssize_t ret)
{
	return duo_onesided_end(ep, to, ep->stats.atomic_ops, ret);
}

static size_t duo_ioc_count(const struct fi_ioc *ioc, size_t count)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		sum += ioc[i].count;
	return sum;
}

static ssize_t duo_atomic(struct fid_ep *ep_fid, const void *buf, size_t count,
			  void *desc, fi_addr_t peer, uint64_t raddr,
			  uint64_t key, enum fi_datatype datatype,
			  enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, count, key};
	int ret =
		duo_atomic_begin(ep, peer, NEAR_ATOMIC, &at, datatype, op, &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_atomic(to.ep, buf, count, desc, to.addr, raddr,
					key, datatype, op, context));
}

static ssize_t duo_atomicv(struct fid_ep *ep_fid, const struct fi_ioc *iov,
			   void **desc, size_t count, fi_addr_t peer,
			   uint64_t raddr, uint64_t key,
			   enum fi_datatype datatype, enum fi_op op,
			   void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, duo_ioc_count(iov, count), key};
	int ret =
		duo_atomic_begin(ep, peer, NEAR_ATOMIC, &at, datatype, op, &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_atomicv(to.ep, iov, desc, count, to.addr,
					 raddr, key, datatype, op, context));
}

static ssize_t duo_atomicmsg(struct fid_ep *ep_fid,
			     const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_atomic out = *msg;
	struct duo_onesided to;
	int ret = duo_atomic_begin_msg(ep, msg, NEAR_ATOMIC, &to);

	if (ret)
		return ret;
	out.addr = to.addr;
	return duo_atomic_end(ep, &to, fi_atomicmsg(to.ep, &out, flags));
}

static ssize_t duo_inject_atomic(struct fid_ep *ep_fid, const void *buf,
				 size_t count, fi_addr_t peer, uint64_t raddr,
				 uint64_t key, enum fi_datatype datatype,
				 enum fi_op op)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, count, key};
	int ret =
		duo_atomic_begin(ep, peer, NEAR_ATOMIC, &at, datatype, op, &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_inject_atomic(to.ep, buf, count, to.addr,
					       raddr, key, datatype, op));
}

/*
 * Of results and operands to compare with. EFA's provider reads that many, also
 * from NULL, by which an application says that it has none.
 */
static void **duo_descs(void **descs, size_t count)
{
	static void *none[DUO_ATOMIC_DESCS];

	return descs || count > DUO_ATOMIC_DESCS ? descs : none;
}

ssize_t duo_fetch_atomic(struct fid_ep *ep_fid, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t peer,
				uint64_t raddr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, count, key};
	int ret =
		duo_atomic_begin(ep, peer, NEAR_FETCH, &at, datatype, op, &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_fetch_atomic(to.ep, buf, count, desc, result,
					      result_desc, to.addr, raddr, key,
					      datatype, op, context));
}

static ssize_t duo_fetch_atomicv(struct fid_ep *ep_fid,
				 const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv,
				 void **result_desc, size_t result_count,
				 fi_addr_t peer, uint64_t raddr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {
		raddr, duo_ioc_count(resultv, result_count), key};
	int ret =
		duo_atomic_begin(ep, peer, NEAR_FETCH, &at, datatype, op, &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_fetch_atomicv(to.ep, iov, desc, count, resultv,
					       duo_descs(result_desc,
							 result_count),
					       result_count, to.addr, raddr,
					       key, datatype, op, context));
}

static ssize_t duo_fetch_atomicmsg(struct fid_ep *ep_fid,
				   const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_atomic out = *msg;
	struct duo_onesided to;
	int ret = duo_atomic_begin_msg(ep, msg, NEAR_FETCH, &to);

	if (ret)
		return ret;
	out.addr = to.addr;
	return duo_atomic_end(ep, &to,
			      fi_fetch_atomicmsg(to.ep, &out, resultv,
						 duo_descs(result_desc,
							   result_count),
						 result_count, flags));
}

static ssize_t duo_compare_atomic(struct fid_ep *ep_fid, const void *buf,
				  size_t count, void *desc, const void *compare,
				  void *compare_desc, void *result,
				  void *result_desc, fi_addr_t peer,
				  uint64_t raddr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op,
				  void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, count, key};
	int ret = duo_atomic_begin(ep, peer, NEAR_COMPARE, &at, datatype, op,
				   &to);

	if (ret)
		return ret;
	return duo_atomic_end(ep, &to,
			      fi_compare_atomic(to.ep, buf, count, desc,
						compare, compare_desc, result,
						result_desc, to.addr, raddr,
						key, datatype, op, context));
}

static ssize_t duo_compare_atomicv(
	struct fid_ep *ep_fid, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *comparev, void **compare_desc,
	size_t compare_count, struct fi_ioc *resultv, void **result_desc,
	size_t result_count, fi_addr_t peer, uint64_t raddr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct duo_onesided to;
	const struct fi_rma_ioc at = {raddr, duo_ioc_count(iov, count), key};
	int ret = duo_atomic_begin(ep, peer, NEAR_COMPARE, &at, datatype, op,
				   &to);

	if (ret)
		return ret;
	return duo_atomic_end(
		ep, &to,
		fi_compare_atomicv(to.ep, iov, desc, count, comparev,
				   duo_descs(compare_desc, compare_count),
				   compare_count, resultv,
				   duo_descs(result_desc, result_count),
				   result_count, to.addr, raddr, key, datatype,
				   op, context));
}

static ssize_t duo_compare_atomicmsg(struct fid_ep *ep_fid,
				     const struct fi_msg_atomic *msg,
				     const struct fi_ioc *comparev,
				     void **compare_desc, size_t compare_count,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_atomic out = *msg;
	struct duo_onesided to;
	int ret = duo_atomic_begin_msg(ep, msg, NEAR_COMPARE, &to);

	if (ret)
		return ret;
	out.addr = to.addr;
	return duo_atomic_end(ep, &to,
			      fi_compare_atomicmsg(to.ep, &out, comparev,
						   duo_descs(compare_desc,
							     compare_count),
						   compare_count, resultv,
						   duo_descs(result_desc,
							     result_count),
						   result_count, flags));
}

static int duo_atomicvalid(struct fid_ep *ep_fid, enum fi_datatype datatype,
			   enum fi_op op, size_t *count)
{
	return fi_atomicvalid(duo_ep_of(ep_fid)->path_ep[FI_DUO_CORE], datatype,
			      op, count);
}

static int duo_fetch_atomicvalid(struct fid_ep *ep_fid,
				 enum fi_datatype datatype, enum fi_op op,
				 size_t *count)
{
	return fi_fetch_atomicvalid(duo_ep_of(ep_fid)->path_ep[FI_DUO_CORE],
				    datatype, op, count);
}

static int duo_compare_atomicvalid(struct fid_ep *ep_fid,
				   enum fi_datatype datatype, enum fi_op op,
				   size_t *count)
{
	return fi_compare_atomicvalid(duo_ep_of(ep_fid)->path_ep[FI_DUO_CORE],
				      datatype, op, count);
}

struct fi_ops_atomic duo_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = duo_atomic,
	.writev = duo_atomicv,
	.writemsg = duo_atomicmsg,
	.inject = duo_inject_atomic,
	.readwrite = duo_short_fetch,
	.readwritev = duo_fetch_atomicv,
	.readwritemsg = duo_fetch_atomicmsg,
	.compwrite = duo_compare_atomic,
	.compwritev = duo_compare_atomicv,
	.compwritemsg = duo_compare_atomicmsg,
	.writevalid = duo_atomicvalid,
	.readwritevalid = duo_fetch_atomicvalid,
	.compwritevalid = duo_compare_atomicvalid,
};
