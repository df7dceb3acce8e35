/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* FI_ATOMIC: arguments into one form, and what is valid. */

#include "fi/onesided.h"
#include "rma/atomic.h"

#define NEAR_ATOMIC_MAX 4096	/* bytes; longer ones are done as well */

/* rma/atomic.h has libfabric's numbers without libfabric. */
#define NEAR_SAME(ours, theirs) \
	static_assert((int)(ours) == (int)(theirs), "the same number")
NEAR_SAME(NEAR_INT8, FI_INT8);
NEAR_SAME(NEAR_UINT64, FI_UINT64);
NEAR_SAME(NEAR_FLOAT, FI_FLOAT);
NEAR_SAME(NEAR_DOUBLE, FI_DOUBLE);
NEAR_SAME(NEAR_FLOAT_COMPLEX, FI_FLOAT_COMPLEX);
NEAR_SAME(NEAR_MIN, FI_MIN);
NEAR_SAME(NEAR_BXOR, FI_BXOR);
NEAR_SAME(NEAR_ATOMIC_READ, FI_ATOMIC_READ);
NEAR_SAME(NEAR_ATOMIC_WRITE, FI_ATOMIC_WRITE);
NEAR_SAME(NEAR_CSWAP, FI_CSWAP);
NEAR_SAME(NEAR_CSWAP_GT, FI_CSWAP_GT);
NEAR_SAME(NEAR_MSWAP, FI_MSWAP);

#define NEAR_IOCS (3 * NEAR_IOV_MAX)

/* All buffers of a call as bytes, in one place. */
struct near_atomic_bufs {
	struct iovec iov[NEAR_IOCS];
	size_t used;
};

bool near_atomic_ok(enum near_verb verb, enum fi_datatype type, enum fi_op op)
{
	if (!near_atomic_valid(op, type))
		return false;
	if (near_op_compares(op) != (verb == NEAR_COMPARE))
		return false;
	return op != FI_ATOMIC_READ || verb == NEAR_FETCH;
}

static int near_atomic_add(struct near_atomic_bufs *bufs,
			   struct near_rma_bufs *to, const struct fi_ioc *ioc,
			   size_t count, size_t size)
{
	size_t i;

	if (count > NEAR_IOV_MAX)
		return -FI_EINVAL;
	to->iov = &bufs->iov[bufs->used];
	to->count = count;
	for (i = 0; i < count; i++) {
		bufs->iov[bufs->used].iov_base = ioc[i].addr;
		bufs->iov[bufs->used++].iov_len = ioc[i].count * size;
	}
	return 0;
}

static size_t near_atomic_len(const struct near_rma_bufs *bufs)
{
	return near_iov_len(bufs->iov, bufs->count);
}

/* A call in libfabric's most general form. */
struct near_atomic_args {
	const struct fi_msg_atomic *msg;
	const struct fi_ioc *compare;
	size_t compare_count;
	const struct fi_ioc *result;
	size_t result_count;
	uint64_t flags;
	bool inject;
};

/* The length is what the target is told, and all buffers have it. */
static int near_atomic_bufs(struct near_atomic_bufs *bufs,
			    struct near_rma_args *to,
			    const struct near_atomic_args *args)
{
	const struct fi_msg_atomic *msg = args->msg;
	size_t size = near_type_size(msg->datatype);
	int ret;

	bufs->used = 0;
	to->len = msg->rma_iov->count * size;
	ret = near_atomic_add(bufs, &to->local, msg->msg_iov,
			      msg->op == FI_ATOMIC_READ ? 0 : msg->iov_count,
			      size);
	if (!ret)
		ret = near_atomic_add(bufs, &to->compare, args->compare,
				      args->compare_count, size);
	if (!ret)
		ret = near_atomic_add(bufs, &to->result, args->result,
				      args->result_count, size);
	if (ret)
		return ret;
	if (!to->len ||
	    (msg->op != FI_ATOMIC_READ &&
	     near_atomic_len(&to->local) != to->len) ||
	    (to->verb == NEAR_COMPARE &&
	     near_atomic_len(&to->compare) != to->len) ||
	    (to->verb != NEAR_ATOMIC &&
	     near_atomic_len(&to->result) != to->len))
		return -FI_EINVAL;
	return 0;
}

static ssize_t near_atomic_call(struct fid_ep *ep_fid, enum near_verb verb,
				const struct near_atomic_args *args)
{
	const struct fi_msg_atomic *msg = args->msg;
	struct near_onesided_call call = {
		.args = {
			.verb = verb,
			.op = msg->op,
			.type = msg->datatype,
			.data = msg->data,
		},
		.dest = msg->addr,
		.context = msg->context,
		.flags = FI_ATOMIC | args->flags |
			 (verb == NEAR_ATOMIC ? FI_WRITE : FI_READ),
		.inject = args->inject,
	};
	struct near_atomic_bufs bufs;
	int ret;

	if (!near_atomic_ok(verb, msg->datatype, msg->op))
		return -FI_EOPNOTSUPP;
	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	ret = near_atomic_bufs(&bufs, &call.args, args);
	if (ret)
		return ret;
	call.args.addr = msg->rma_iov->addr;
	call.args.key = msg->rma_iov->key;
	return near_onesided_issue(ep_fid, &call);
}

static ssize_t near_atomic_writemsg(struct fid_ep *ep,
				    const struct fi_msg_atomic *msg,
				    uint64_t flags)
{
	const struct near_atomic_args args = { .msg = msg, .flags = flags };

	return near_atomic_call(ep, NEAR_ATOMIC, &args);
}

static ssize_t near_atomic_fetchmsg(struct fid_ep *ep,
				    const struct fi_msg_atomic *msg,
				    struct fi_ioc *result, void **result_desc,
				    size_t result_count, uint64_t flags)
{
	const struct near_atomic_args args = {
		.msg = msg,
		.result = result,
		.result_count = result_count,
		.flags = flags,
	};

	return near_atomic_call(ep, NEAR_FETCH, &args);
}

static ssize_t near_atomic_comparemsg(struct fid_ep *ep,
				      const struct fi_msg_atomic *msg,
				      const struct fi_ioc *compare,
				      void **compare_desc,
				      size_t compare_count,
				      struct fi_ioc *result,
				      void **result_desc, size_t result_count,
				      uint64_t flags)
{
	const struct near_atomic_args args = {
		.msg = msg,
		.compare = compare,
		.compare_count = compare_count,
		.result = result,
		.result_count = result_count,
		.flags = flags,
	};

	return near_atomic_call(ep, NEAR_COMPARE, &args);
}

/* Initialises the message of a call without one; count elements. */
#define NEAR_ATOMIC_MSG(iov, n, addr_, key_, total)			\
	const struct fi_rma_ioc rma_ioc = { addr_, total, key_ };	\
	const struct fi_msg_atomic msg = {				\
		.msg_iov = iov, .iov_count = n, .addr = dest,		\
		.rma_iov = &rma_ioc, .rma_iov_count = 1,		\
		.datatype = type, .op = op, .context = context,		\
	}

static size_t near_ioc_count(const struct fi_ioc *ioc, size_t count)
{
	size_t i, sum = 0;

	for (i = 0; i < count; i++)
		sum += ioc[i].count;
	return sum;
}

static ssize_t near_atomic_writev(struct fid_ep *ep, const struct fi_ioc *iov,
				  void **desc, size_t count, fi_addr_t dest,
				  uint64_t addr, uint64_t key,
				  enum fi_datatype type, enum fi_op op,
				  void *context)
{
	NEAR_ATOMIC_MSG(iov, count, addr, key, near_ioc_count(iov, count));

	return near_atomic_writemsg(ep, &msg, near_onesided_tx_flags(ep));
}

static ssize_t near_atomic_write(struct fid_ep *ep, const void *buf,
				 size_t count, void *desc, fi_addr_t dest,
				 uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op,
				 void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count };

	return near_atomic_writev(ep, &ioc, NULL, 1, dest, addr, key, type, op,
				  context);
}

static ssize_t near_atomic_inject(struct fid_ep *ep, const void *buf,
				  size_t count, fi_addr_t dest, uint64_t addr,
				  uint64_t key, enum fi_datatype type,
				  enum fi_op op)
{
	const struct fi_ioc ioc = { (void *)buf, count };
	void *context = NULL;
	NEAR_ATOMIC_MSG(&ioc, 1, addr, key, count);
	const struct near_atomic_args args = {
		.msg = &msg, .flags = FI_INJECT, .inject = true,
	};

	return near_atomic_call(ep, NEAR_ATOMIC, &args);
}

static ssize_t near_atomic_fetchv(struct fid_ep *ep, const struct fi_ioc *iov,
				  void **desc, size_t count,
				  struct fi_ioc *result, void **result_desc,
				  size_t result_count, fi_addr_t dest,
				  uint64_t addr, uint64_t key,
				  enum fi_datatype type, enum fi_op op,
				  void *context)
{
	NEAR_ATOMIC_MSG(iov, count, addr, key,
			near_ioc_count(result, result_count));

	return near_atomic_fetchmsg(ep, &msg, result, result_desc, result_count,
				    near_onesided_tx_flags(ep));
}

ssize_t near_atomic_fetch(struct fid_ep *ep, const void *buf,
				 size_t count, void *desc, void *result,
				 void *result_desc, fi_addr_t dest,
				 uint64_t addr, uint64_t key,
				 enum fi_datatype type, enum fi_op op,
				 void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count };
	struct fi_ioc to = { result, count };

	return near_atomic_fetchv(ep, &ioc, NULL, 1, &to, NULL, 1, dest, addr,
				  key, type, op, context);
}

static ssize_t near_atomic_comparev(struct fid_ep *ep,
				    const struct fi_ioc *iov, void **desc,
				    size_t count, const struct fi_ioc *compare,
				    void **compare_desc, size_t compare_count,
				    struct fi_ioc *result, void **result_desc,
				    size_t result_count, fi_addr_t dest,
				    uint64_t addr, uint64_t key,
				    enum fi_datatype type, enum fi_op op,
				    void *context)
{
	NEAR_ATOMIC_MSG(iov, count, addr, key, near_ioc_count(iov, count));

	return near_atomic_comparemsg(ep, &msg, compare, compare_desc,
				      compare_count, result, result_desc,
				      result_count, near_onesided_tx_flags(ep));
}

static ssize_t near_atomic_compare(struct fid_ep *ep, const void *buf,
				   size_t count, void *desc,
				   const void *compare, void *compare_desc,
				   void *result, void *result_desc,
				   fi_addr_t dest, uint64_t addr, uint64_t key,
				   enum fi_datatype type, enum fi_op op,
				   void *context)
{
	const struct fi_ioc ioc = { (void *)buf, count };
	const struct fi_ioc with = { (void *)compare, count };
	struct fi_ioc to = { result, count };

	return near_atomic_comparev(ep, &ioc, NULL, 1, &with, NULL, 1, &to,
				    NULL, 1, dest, addr, key, type, op,
				    context);
}

static int near_atomic_valid_as(enum near_verb verb, enum fi_datatype type,
				enum fi_op op, size_t *count)
{
	if (!near_atomic_ok(verb, type, op))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = NEAR_ATOMIC_MAX / near_type_size(type);
	return 0;
}

static int near_atomic_writevalid(struct fid_ep *ep, enum fi_datatype type,
				  enum fi_op op, size_t *count)
{
	return near_atomic_valid_as(NEAR_ATOMIC, type, op, count);
}

static int near_atomic_fetchvalid(struct fid_ep *ep, enum fi_datatype type,
				  enum fi_op op, size_t *count)
{
	return near_atomic_valid_as(NEAR_FETCH, type, op, count);
}

static int near_atomic_comparevalid(struct fid_ep *ep, enum fi_datatype type,
				    enum fi_op op, size_t *count)
{
	return near_atomic_valid_as(NEAR_COMPARE, type, op, count);
}

int near_query_atomic(struct fid_domain *domain, enum fi_datatype type,
		      enum fi_op op, struct fi_atomic_attr *attr,
		      uint64_t flags)
{
	enum near_verb verb = flags & FI_COMPARE_ATOMIC ? NEAR_COMPARE :
			      flags & FI_FETCH_ATOMIC ? NEAR_FETCH :
			      NEAR_ATOMIC;
	int ret;

	if (flags & ~(FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC) ||
	    flags == (FI_FETCH_ATOMIC | FI_COMPARE_ATOMIC))
		return -FI_EBADFLAGS;
	ret = near_atomic_valid_as(verb, type, op, &attr->count);
	attr->size = near_type_size(type);
	return ret;
}

struct fi_ops_atomic near_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = near_atomic_write,
	.writev = near_atomic_writev,
	.writemsg = near_atomic_writemsg,
	.inject = near_atomic_inject,
	.readwrite = near_atomic_fetch,
	.readwritev = near_atomic_fetchv,
	.readwritemsg = near_atomic_fetchmsg,
	.compwrite = near_atomic_compare,
	.compwritev = near_atomic_comparev,
	.compwritemsg = near_atomic_comparemsg,
	.writevalid = near_atomic_writevalid,
	.readwritevalid = near_atomic_fetchvalid,
	.compwritevalid = near_atomic_comparevalid,
};
