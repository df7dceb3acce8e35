/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Atomics: each call for near, else forwarded to the core; see onesided.h. A
 * fetch-and-add of one word is tried as small ones of rma.c are.
 */

#include <assert.h>
#include <rdma/fi_atomic.h>

#include "tx/onesided.h"

#define DUO_ATOMIC_DESCS 16	/* no core takes more in a call */

/* near has libfabric's numbers without libfabric. */
#define DUO_SAME(ours, theirs) \
	static_assert((int) (ours) == (int) (theirs), "the same number")
DUO_SAME(NEAR_INT8, FI_INT8);
DUO_SAME(NEAR_UINT64, FI_UINT64);
DUO_SAME(NEAR_FLOAT, FI_FLOAT);
DUO_SAME(NEAR_DOUBLE, FI_DOUBLE);
DUO_SAME(NEAR_FLOAT_COMPLEX, FI_FLOAT_COMPLEX);
DUO_SAME(NEAR_MIN, FI_MIN);
DUO_SAME(NEAR_SUM, FI_SUM);
DUO_SAME(NEAR_BXOR, FI_BXOR);
DUO_SAME(NEAR_ATOMIC_READ, FI_ATOMIC_READ);
DUO_SAME(NEAR_ATOMIC_WRITE, FI_ATOMIC_WRITE);
DUO_SAME(NEAR_CSWAP, FI_CSWAP);
DUO_SAME(NEAR_CSWAP_GT, FI_CSWAP_GT);
DUO_SAME(NEAR_MSWAP, FI_MSWAP);

/* Operands to compare with, or results, that a call has beside its message. */
struct duo_iocs {
	const struct fi_ioc *ioc;
	size_t count;
};

static const struct duo_iocs duo_iocs_none;

static size_t duo_ioc_count(const struct fi_ioc *ioc, size_t count)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		sum += ioc[i].count;
	return sum;
}

/* In bytes, in iov; what is more than near takes is counted, and refused. */
static struct near_rma_bufs duo_iocs_bytes(struct iovec *iov,
					   struct duo_iocs from, size_t size)
{
	size_t i;

	for (i = 0; i < from.count && i < NEAR_IOV_MAX; i++)
		iov[i] = (struct iovec) { from.ioc[i].addr,
					  from.ioc[i].count * size };
	return (struct near_rma_bufs) { iov, from.count };
}

static struct fi_msg_atomic duo_atomic_msg(const struct fi_ioc *ioc,
					   size_t count, fi_addr_t dest,
					   const struct fi_rma_ioc *at,
					   enum fi_datatype datatype,
					   enum fi_op op, void *context)
{
	return (struct fi_msg_atomic) {
		.msg_iov = ioc, .iov_count = count, .addr = dest,
		.rma_iov = at, .rma_iov_count = 1,
		.datatype = datatype, .op = op, .context = context,
	};
}

/* As duo_onesided_any(); dest is msg->addr. */
static int duo_atomic_any(struct duo_ep *ep, enum near_verb verb,
			  struct fi_msg_atomic *msg, struct duo_iocs compare,
			  struct duo_iocs result, uint64_t flags, bool quiet)
{
	struct iovec local[NEAR_IOV_MAX], with[NEAR_IOV_MAX], to[NEAR_IOV_MAX];
	const struct duo_iocs operands = {
		msg->msg_iov, msg->op == FI_ATOMIC_READ ? 0 : msg->iov_count,
	};
	size_t size = near_type_size(msg->datatype);
	struct near_rma_args op = {
		.verb = msg->rma_iov_count > 1 ? DUO_SEVERAL : verb,
		.local = duo_iocs_bytes(local, operands, size),
		.compare = duo_iocs_bytes(with, compare, size),
		.result = duo_iocs_bytes(to, result, size),
		.op = (uint8_t) msg->op,
		.type = (uint8_t) msg->datatype,
		.data = msg->data,
		.about = FI_ATOMIC | (verb == NEAR_ATOMIC ? FI_WRITE : FI_READ),
		.cookie = msg->context,
	};

	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, &msg->addr);
	op.addr = msg->rma_iov->addr;
	op.key = msg->rma_iov->key;
	op.len = msg->rma_iov->count * size;
	return duo_onesided_any(ep, &msg->addr, &op, flags, quiet);
}

static ssize_t duo_atomic_called(struct duo_ep *ep, ssize_t ret)
{
	return duo_onesided_called(ep, ep->stats.atomic_ops, ret);
}

static ssize_t duo_atomic(struct fid_ep *ep_fid, const void *buf, size_t count,
			  void *desc, fi_addr_t dest, uint64_t raddr,
			  uint64_t key, enum fi_datatype datatype,
			  enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, count, key };
	const struct fi_ioc ioc = { (void *) buf, count };
	struct fi_msg_atomic msg =
		duo_atomic_msg(&ioc, 1, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_ATOMIC, &msg, duo_iocs_none,
				 duo_iocs_none, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_atomic(ep->path_ep[FI_DUO_CORE], buf, count, desc,
			      msg.addr, raddr, key, datatype, op, context));
}

static ssize_t duo_atomicv(struct fid_ep *ep_fid, const struct fi_ioc *iov,
			   void **desc, size_t count, fi_addr_t dest,
			   uint64_t raddr, uint64_t key,
			   enum fi_datatype datatype, enum fi_op op,
			   void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, duo_ioc_count(iov, count), key };
	struct fi_msg_atomic msg =
		duo_atomic_msg(iov, count, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_ATOMIC, &msg, duo_iocs_none,
				 duo_iocs_none, ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_atomicv(ep->path_ep[FI_DUO_CORE], iov, desc, count,
			       msg.addr, raddr, key, datatype, op, context));
}

static ssize_t duo_atomicmsg(struct fid_ep *ep_fid,
			     const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_atomic out = *msg;
	int ret = duo_atomic_any(ep, NEAR_ATOMIC, &out, duo_iocs_none,
				 duo_iocs_none, flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(ep, fi_atomicmsg(ep->path_ep[FI_DUO_CORE],
						  &out, flags));
}

static ssize_t duo_inject_atomic(struct fid_ep *ep_fid, const void *buf,
				 size_t count, fi_addr_t dest, uint64_t raddr,
				 uint64_t key, enum fi_datatype datatype,
				 enum fi_op op)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, count, key };
	const struct fi_ioc ioc = { (void *) buf, count };
	struct fi_msg_atomic msg =
		duo_atomic_msg(&ioc, 1, dest, &at, datatype, op, NULL);
	int ret = duo_atomic_any(ep, NEAR_ATOMIC, &msg, duo_iocs_none,
				 duo_iocs_none, FI_INJECT, true);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_inject_atomic(ep->path_ep[FI_DUO_CORE], buf, count,
				     msg.addr, raddr, key, datatype, op));
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

DUO_SAME_ARGS ssize_t duo_fetch_atomic_any(struct fid_ep *ep_fid,
					   const void *buf, size_t count,
					   void *desc, void *result,
					   void *result_desc, fi_addr_t dest,
					   uint64_t raddr, uint64_t key,
					   enum fi_datatype datatype,
					   enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, count, key };
	const struct fi_ioc ioc = { (void *) buf, count };
	const struct fi_ioc to = { result, count };
	struct fi_msg_atomic msg =
		duo_atomic_msg(&ioc, 1, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_FETCH, &msg, duo_iocs_none,
				 (struct duo_iocs) { &to, 1 },
				 ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_fetch_atomic(ep->path_ep[FI_DUO_CORE], buf, count, desc,
				    result, result_desc, msg.addr, raddr, key,
				    datatype, op, context));
}

static ssize_t duo_fetch_atomic(struct fid_ep *ep_fid, const void *buf,
				size_t count, void *desc, void *result,
				void *result_desc, fi_addr_t dest,
				uint64_t raddr, uint64_t key,
				enum fi_datatype datatype, enum fi_op op,
				void *context)
{
	const struct iovec iov = { (void *) buf, 8 }, to = { result, 8 };

	if (count == 1 && near_rma_adds(datatype, op) &&
	    duo_onesided_small(ep_fid, dest, (struct near_rma_args) {
			.verb = NEAR_FETCH, .addr = raddr, .key = key,
			.local = { &iov, 1 }, .result = { &to, 1 }, .len = 8,
			.op = NEAR_SUM, .type = (uint8_t) datatype,
			.about = FI_ATOMIC | FI_READ, .cookie = context }))
		return 0;
	return duo_fetch_atomic_any(ep_fid, buf, count, desc, result,
				    result_desc, dest, raddr, key, datatype,
				    op, context);
}

static ssize_t duo_fetch_atomicv(struct fid_ep *ep_fid,
				 const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv,
				 void **result_desc, size_t result_count,
				 fi_addr_t dest, uint64_t raddr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = {
		raddr, duo_ioc_count(resultv, result_count), key,
	};
	struct fi_msg_atomic msg =
		duo_atomic_msg(iov, count, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_FETCH, &msg, duo_iocs_none,
				 (struct duo_iocs) { resultv, result_count },
				 ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_fetch_atomicv(ep->path_ep[FI_DUO_CORE], iov, desc,
				     count, resultv,
				     duo_descs(result_desc, result_count),
				     result_count, msg.addr, raddr, key,
				     datatype, op, context));
}

static ssize_t duo_fetch_atomicmsg(struct fid_ep *ep_fid,
				   const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	struct fi_msg_atomic out = *msg;
	int ret = duo_atomic_any(ep, NEAR_FETCH, &out, duo_iocs_none,
				 (struct duo_iocs) { resultv, result_count },
				 flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_fetch_atomicmsg(ep->path_ep[FI_DUO_CORE], &out, resultv,
				       duo_descs(result_desc, result_count),
				       result_count, flags));
}

static ssize_t duo_compare_atomic(struct fid_ep *ep_fid, const void *buf,
				  size_t count, void *desc, const void *compare,
				  void *compare_desc, void *result,
				  void *result_desc, fi_addr_t dest,
				  uint64_t raddr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op,
				  void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, count, key };
	const struct fi_ioc ioc = { (void *) buf, count };
	const struct fi_ioc with = { (void *) compare, count };
	const struct fi_ioc to = { result, count };
	struct fi_msg_atomic msg =
		duo_atomic_msg(&ioc, 1, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_COMPARE, &msg,
				 (struct duo_iocs) { &with, 1 },
				 (struct duo_iocs) { &to, 1 },
				 ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_compare_atomic(ep->path_ep[FI_DUO_CORE], buf, count,
				      desc, compare, compare_desc, result,
				      result_desc, msg.addr, raddr, key,
				      datatype, op, context));
}

static ssize_t duo_compare_atomicv(
	struct fid_ep *ep_fid, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *comparev, void **compare_desc,
	size_t compare_count, struct fi_ioc *resultv, void **result_desc,
	size_t result_count, fi_addr_t dest, uint64_t raddr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, duo_ioc_count(iov, count), key };
	struct fi_msg_atomic msg =
		duo_atomic_msg(iov, count, dest, &at, datatype, op, context);
	int ret = duo_atomic_any(ep, NEAR_COMPARE, &msg,
				 (struct duo_iocs) { comparev, compare_count },
				 (struct duo_iocs) { resultv, result_count },
				 ep->tx.op_flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_compare_atomicv(ep->path_ep[FI_DUO_CORE], iov, desc,
				       count, comparev,
				       duo_descs(compare_desc, compare_count),
				       compare_count, resultv,
				       duo_descs(result_desc, result_count),
				       result_count, msg.addr, raddr, key,
				       datatype, op, context));
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
	int ret = duo_atomic_any(ep, NEAR_COMPARE, &out,
				 (struct duo_iocs) { comparev, compare_count },
				 (struct duo_iocs) { resultv, result_count },
				 flags, false);

	if (ret != DUO_TO_CORE)
		return ret;
	return duo_atomic_called(
		ep, fi_compare_atomicmsg(ep->path_ep[FI_DUO_CORE], &out,
					 comparev,
					 duo_descs(compare_desc, compare_count),
					 compare_count, resultv,
					 duo_descs(result_desc, result_count),
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
	.readwrite = duo_fetch_atomic,
	.readwritev = duo_fetch_atomicv,
	.readwritemsg = duo_fetch_atomicmsg,
	.compwrite = duo_compare_atomic,
	.compwritev = duo_compare_atomicv,
	.compwritemsg = duo_compare_atomicmsg,
	.writevalid = duo_atomicvalid,
	.readwritevalid = duo_fetch_atomicvalid,
	.compwritevalid = duo_compare_atomicvalid,
};
