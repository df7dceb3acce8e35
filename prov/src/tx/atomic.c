/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The atomic calls. Either near or the core executes them: onesided.h. */

#include <assert.h>
#include <rdma/fi_atomic.h>

#include "base/util.h"
#include "tx/onesided.h"

/* maximum number of buffers, and so of descriptors, that any core accepts */
#define DUO_ATOMIC_DESCS 16

/*
 * near does not use libfabric, and has its own enums. Their values must equal
 * those of libfabric, because this file converts by a cast.
 */
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

/*
 * Returns the size of a type, bytes, even if only cores support this type. 0:
 * neither near nor a core supports it.
 */
static size_t duo_type_size(enum fi_datatype type)
{
	switch (type) {
	case FI_DOUBLE_COMPLEX:
		return 2 * sizeof(double);
	case FI_LONG_DOUBLE:
		return sizeof(long double);
	case FI_LONG_DOUBLE_COMPLEX:
		return 2 * sizeof(long double);
	case FI_INT128:
	case FI_UINT128:
		return 16;
	default:
		return near_type_size(type);
	}
}

/* A list of buffers of an atomic: operands, compare operands or results. */
struct duo_iocs {
	const struct fi_ioc *ioc;
	void **desc;
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

/*
 * Converts a list of buffers with lengths in elements of `size` bytes to one
 * with lengths in bytes. Writes the first NEAR_IOV_MAX buffers to iov[], to
 * which the result refers. near rejects the operation if there are more.
 */
static struct near_rma_bufs duo_iocs_bytes(struct iovec *iov,
					   struct duo_iocs from, size_t size)
{
	size_t i;

	for (i = 0; i < from.count && i < NEAR_IOV_MAX; i++)
		iov[i] = (struct iovec) { from.ioc[i].addr,
					  from.ioc[i].count * size };
	return (struct near_rma_bufs) { iov, from.count, from.desc };
}

/* Passes an atomic to near. Returns the result of duo_onesided_any(). */
static int duo_atomic_near(struct duo_ep *ep, enum near_verb verb,
			   const struct fi_msg_atomic *msg,
			   struct duo_iocs compare, struct duo_iocs result,
			   uint64_t flags, bool quiet)
{
	struct iovec local[NEAR_IOV_MAX], with[NEAR_IOV_MAX], to[NEAR_IOV_MAX];
	size_t size = near_type_size(msg->datatype);
	const struct duo_iocs mine = {
		msg->msg_iov, msg->desc,
		msg->op == FI_ATOMIC_READ ? 0 : msg->iov_count,
	};
	struct near_rma_args op = {
		.verb = msg->rma_iov_count > 1 ? DUO_SEVERAL : verb,
		.local = duo_iocs_bytes(local, mine, size),
		.compare = duo_iocs_bytes(with, compare, size),
		.result = duo_iocs_bytes(to, result, size),
		/* passes NEAR_OP_COUNT for FI_NOOP etc., which near rejects */
		.op = (uint8_t) duo_min((size_t) msg->op, NEAR_OP_COUNT),
		.type = (uint8_t) duo_min((size_t) msg->datatype, NEAR_TYPES),
		.data = msg->data,
		.about = FI_ATOMIC | (verb == NEAR_ATOMIC ? FI_WRITE : FI_READ),
		.cookie = msg->context,
	};

	if (!msg->rma_iov_count)
		return duo_onesided_core(ep, msg->addr);
	op.addr = msg->rma_iov->addr;
	op.key = msg->rma_iov->key;
	op.len = msg->rma_iov->count * size;
	return duo_onesided_any(ep, msg->addr, &op, flags, quiet);
}

/*
 * Returns the descriptors of the buffers. If the application has passed no
 * descriptors, returns an array of NULL pointers, because efa reads one
 * descriptor for each buffer.
 */
static void **duo_iocs_desc(struct duo_iocs iocs)
{
	static void *none[DUO_ATOMIC_DESCS];

	return iocs.desc || iocs.count > DUO_ATOMIC_DESCS ? iocs.desc : none;
}

/* Passes an atomic to the core, and returns the core's result. */
static ssize_t duo_atomic_core(struct fid_ep *core, enum near_verb verb,
			       const struct fi_msg_atomic *msg,
			       struct duo_iocs compare, struct duo_iocs result,
			       uint64_t flags)
{
	struct fi_ioc *results = (struct fi_ioc *) result.ioc;

	switch (verb) {
	case NEAR_ATOMIC:
		return fi_atomicmsg(core, msg, flags);
	case NEAR_FETCH:
		return fi_fetch_atomicmsg(core, msg, results,
					  duo_iocs_desc(result), result.count,
					  flags);
	default:
		return fi_compare_atomicmsg(core, msg, compare.ioc,
					    duo_iocs_desc(compare),
					    compare.count, results,
					    duo_iocs_desc(result), result.count,
					    flags);
	}
}

/* Passes an atomic to near; if near cannot execute it, to the core. */
static ssize_t duo_atomic_any(struct fid_ep *ep_fid, enum near_verb verb,
			      struct fi_msg_atomic msg, struct duo_iocs compare,
			      struct duo_iocs result, uint64_t flags)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	ssize_t ret = duo_atomic_near(ep, verb, &msg, compare, result, flags,
				      false);

	if (ret != DUO_TO_CORE)
		return ret;
	ret = duo_atomic_core(ep->path_ep[FI_DUO_CORE], verb, &msg, compare,
			      result, duo_tx_core_flags(ep, flags));
	return duo_onesided_called(ep, ep->stats.atomic_ops, ret);
}

/*
 * For calls that have neither a struct fi_msg_atomic nor flags as arguments:
 * DUO_ATOMIC_MSG makes the struct, and DUO_ATOMIC_DEFAULTS the flags. Both use
 * the caller's variables ep_fid, dest, datatype, op and at.
 */
#define DUO_ATOMIC_MSG(ioc, descs, n, at, context_) (struct fi_msg_atomic) { \
	.msg_iov = (ioc), .desc = (descs), .iov_count = (n), .addr = dest, \
	.rma_iov = (at), .rma_iov_count = 1, .datatype = datatype, .op = op, \
	.context = (context_) }
#define DUO_ATOMIC_DEFAULTS duo_onesided_defaults(duo_ep_of(ep_fid), \
	at.count * duo_type_size(datatype))

static ssize_t duo_atomicv(struct fid_ep *ep_fid, const struct fi_ioc *iov,
			   void **desc, size_t count, fi_addr_t dest,
			   uint64_t raddr, uint64_t key,
			   enum fi_datatype datatype, enum fi_op op,
			   void *context)
{
	const struct fi_rma_ioc at = { raddr, duo_ioc_count(iov, count), key };

	return duo_atomic_any(ep_fid, NEAR_ATOMIC,
			      DUO_ATOMIC_MSG(iov, desc, count, &at, context),
			      duo_iocs_none, duo_iocs_none,
			      DUO_ATOMIC_DEFAULTS);
}

static ssize_t duo_fetch_atomicv(struct fid_ep *ep_fid,
				 const struct fi_ioc *iov, void **desc,
				 size_t count, struct fi_ioc *resultv,
				 void **result_desc, size_t result_count,
				 fi_addr_t dest, uint64_t raddr, uint64_t key,
				 enum fi_datatype datatype, enum fi_op op,
				 void *context)
{
	const struct duo_iocs result = { resultv, result_desc, result_count };
	const struct fi_rma_ioc at = {
		raddr, duo_ioc_count(resultv, result_count), key,
	};

	return duo_atomic_any(ep_fid, NEAR_FETCH,
			      DUO_ATOMIC_MSG(iov, desc, count, &at, context),
			      duo_iocs_none, result, DUO_ATOMIC_DEFAULTS);
}

static ssize_t duo_compare_atomicv(
	struct fid_ep *ep_fid, const struct fi_ioc *iov, void **desc,
	size_t count, const struct fi_ioc *comparev, void **compare_desc,
	size_t compare_count, struct fi_ioc *resultv, void **result_desc,
	size_t result_count, fi_addr_t dest, uint64_t raddr, uint64_t key,
	enum fi_datatype datatype, enum fi_op op, void *context)
{
	const struct fi_rma_ioc at = { raddr, duo_ioc_count(iov, count), key };
	const struct duo_iocs result = { resultv, result_desc, result_count },
		compare = { comparev, compare_desc, compare_count };

	return duo_atomic_any(ep_fid, NEAR_COMPARE,
			      DUO_ATOMIC_MSG(iov, desc, count, &at, context),
			      compare, result, DUO_ATOMIC_DEFAULTS);
}

static ssize_t duo_atomic(struct fid_ep *ep_fid, const void *buf, size_t count,
			  void *desc, fi_addr_t dest, uint64_t raddr,
			  uint64_t key, enum fi_datatype datatype,
			  enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };

	return duo_atomicv(ep_fid, &ioc, &desc, 1, dest, raddr, key, datatype,
			   op, context);
}

DUO_SAME_ARGS ssize_t duo_fetch_atomic_any(struct fid_ep *ep_fid,
					   const void *buf, size_t count,
					   void *desc, void *result,
					   void *result_desc, fi_addr_t dest,
					   uint64_t raddr, uint64_t key,
					   enum fi_datatype datatype,
					   enum fi_op op, void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };
	struct fi_ioc to = { result, count };

	return duo_fetch_atomicv(ep_fid, &ioc, &desc, 1, &to, &result_desc, 1,
				 dest, raddr, key, datatype, op, context);
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

static ssize_t duo_compare_atomic(struct fid_ep *ep_fid, const void *buf,
				  size_t count, void *desc, const void *compare,
				  void *compare_desc, void *result,
				  void *result_desc, fi_addr_t dest,
				  uint64_t raddr, uint64_t key,
				  enum fi_datatype datatype, enum fi_op op,
				  void *context)
{
	const struct fi_ioc ioc = { (void *) buf, count };
	const struct fi_ioc with = { (void *) compare, count };
	struct fi_ioc to = { result, count };

	return duo_compare_atomicv(ep_fid, &ioc, &desc, 1, &with,
				   &compare_desc, 1, &to, &result_desc, 1,
				   dest, raddr, key, datatype, op, context);
}

static ssize_t duo_atomicmsg(struct fid_ep *ep_fid,
			     const struct fi_msg_atomic *msg, uint64_t flags)
{
	return duo_atomic_any(ep_fid, NEAR_ATOMIC, *msg, duo_iocs_none,
			      duo_iocs_none, flags);
}

static ssize_t duo_fetch_atomicmsg(struct fid_ep *ep_fid,
				   const struct fi_msg_atomic *msg,
				   struct fi_ioc *resultv, void **result_desc,
				   size_t result_count, uint64_t flags)
{
	const struct duo_iocs result = { resultv, result_desc, result_count };

	return duo_atomic_any(ep_fid, NEAR_FETCH, *msg, duo_iocs_none, result,
			      flags);
}

static ssize_t duo_compare_atomicmsg(struct fid_ep *ep_fid,
				     const struct fi_msg_atomic *msg,
				     const struct fi_ioc *comparev,
				     void **compare_desc, size_t compare_count,
				     struct fi_ioc *resultv, void **result_desc,
				     size_t result_count, uint64_t flags)
{
	const struct duo_iocs result = { resultv, result_desc, result_count },
		compare = { comparev, compare_desc, compare_count };

	return duo_atomic_any(ep_fid, NEAR_COMPARE, *msg, compare, result,
			      flags);
}

/*
 * Injects an atomic. An inject that succeeds has no completion. fi_atomicmsg()
 * has no flag for this, so this function does not call duo_atomic_any(): it
 * sets `quiet` for near, and calls the core's fi_inject_atomic().
 */
static ssize_t duo_inject_atomic(struct fid_ep *ep_fid, const void *buf,
				 size_t count, fi_addr_t dest, uint64_t raddr,
				 uint64_t key, enum fi_datatype datatype,
				 enum fi_op op)
{
	struct duo_ep *ep = duo_ep_of(ep_fid);
	const struct fi_rma_ioc at = { raddr, count, key };
	const struct fi_ioc ioc = { (void *) buf, count };
	struct fi_msg_atomic msg = DUO_ATOMIC_MSG(&ioc, NULL, 1, &at, NULL);
	ssize_t ret = duo_atomic_near(ep, NEAR_ATOMIC, &msg, duo_iocs_none,
				      duo_iocs_none, FI_INJECT, true);

	if (ret != DUO_TO_CORE)
		return ret;
	ret = fi_inject_atomic(ep->path_ep[FI_DUO_CORE], buf, count, msg.addr,
			       raddr, key, datatype, op);
	return duo_onesided_called(ep, ep->stats.atomic_ops, ret);
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
