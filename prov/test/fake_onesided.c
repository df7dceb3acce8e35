/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* RMA and atomics of the fake core. Each call is recorded and completes. */

#include <rdma/fi_atomic.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "fake.h"

static ssize_t fake_onesided(struct fid_ep *ep, const char *call,
			     const struct fake_onesided *done)
{
	const struct fi_cq_err_entry entry = {
		.op_context = done->context,
		.flags = FI_RMA | FI_WRITE,
	};
	int ret;

	ck_assert_int_eq(fake_obj_of(&ep->fid)->path, FI_DUO_CORE);
	ret = fake_enter(FI_DUO_CORE);
	if (ret)
		return ret;
	fake.core.onesided = *done;
	fake.core.onesided.call = call;
	fake.core.onesided_count++;
	if (done->context)
		fake_core_event(fake_obj_of(&ep->fid)->tx_cq, &entry, 3);
	return 0;
}

#define FAKE_DONE(...) (&(const struct fake_onesided) { __VA_ARGS__ })

/* Records an RMA call; a vector with one element is recorded as a buffer. */
static ssize_t fake_rma_msg(struct fid_ep *ep, const char *call,
			    const struct fi_msg_rma *msg, uint64_t flags)
{
	bool one = msg->iov_count == 1;

	return fake_onesided(ep, call, FAKE_DONE(
		.buf = one ? msg->msg_iov->iov_base : (void *) msg->msg_iov,
		.len = one ? msg->msg_iov->iov_len : msg->iov_count,
		.desc = one && msg->desc ? *msg->desc : msg->desc,
		.dest = msg->addr,
		.raddr = msg->rma_iov->addr, .key = msg->rma_iov->key,
		.context = msg->context, .data = msg->data, .flags = flags));
}

static ssize_t fake_readmsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			    uint64_t flags)
{
	return fake_rma_msg(ep, "readmsg", msg, flags);
}

static ssize_t fake_writemsg(struct fid_ep *ep, const struct fi_msg_rma *msg,
			     uint64_t flags)
{
	return fake_rma_msg(ep, "writemsg", msg, flags);
}

static ssize_t fake_rma_inject(struct fid_ep *ep, const void *buf, size_t len,
			       fi_addr_t dest, uint64_t raddr, uint64_t key)
{
	return fake_onesided(ep, "inject", FAKE_DONE(.buf = buf, .len = len,
		.dest = dest, .raddr = raddr, .key = key));
}

static ssize_t fake_rma_injectdata(struct fid_ep *ep, const void *buf,
				   size_t len, uint64_t data, fi_addr_t dest,
				   uint64_t raddr, uint64_t key)
{
	return fake_onesided(ep, "injectdata", FAKE_DONE(.buf = buf,
		.len = len, .dest = dest, .raddr = raddr, .key = key,
		.data = data));
}

struct fi_ops_rma fake_rma_ops = {
	.size = sizeof(struct fi_ops_rma),
	.readmsg = fake_readmsg,
	.writemsg = fake_writemsg,
	.inject = fake_rma_inject,
	.injectdata = fake_rma_injectdata,
};

static ssize_t fake_inject_atomic(struct fid_ep *ep, const void *buf,
				  size_t count, fi_addr_t dest, uint64_t raddr,
				  uint64_t key, enum fi_datatype datatype,
				  enum fi_op op)
{
	return fake_onesided(ep, "inject_atomic", FAKE_DONE(.buf = buf,
		.len = count, .dest = dest, .raddr = raddr, .key = key,
		.datatype = datatype, .op = op));
}

/*
 * Records an atomic. "done" has the arguments that only some calls have:
 * results, compare operands and flags.
 */
static ssize_t fake_atomic_msg(struct fid_ep *ep, const char *call,
			       const struct fi_msg_atomic *msg,
			       struct fake_onesided done)
{
	bool one = msg->iov_count == 1;

	done.buf = one ? msg->msg_iov->addr : (void *) msg->msg_iov;
	done.len = one ? msg->msg_iov->count : msg->iov_count;
	done.desc = one && msg->desc ? *msg->desc : msg->desc;
	if (done.result_count == 1) {
		done.result = ((const struct fi_ioc *) done.result)->addr;
		done.result_desc = *(void *const *) done.result_desc;
	}
	if (done.compare_count == 1) {
		done.compare = ((const struct fi_ioc *) done.compare)->addr;
		done.compare_desc = *(void *const *) done.compare_desc;
	}
	done.dest = msg->addr;
	done.raddr = msg->rma_iov->addr;
	done.key = msg->rma_iov->key;
	done.datatype = msg->datatype;
	done.op = msg->op;
	done.context = msg->context;
	done.data = msg->data;
	return fake_onesided(ep, call, &done);
}

static ssize_t fake_atomicmsg(struct fid_ep *ep,
			      const struct fi_msg_atomic *msg, uint64_t flags)
{
	return fake_atomic_msg(ep, "atomicmsg", msg,
			       *FAKE_DONE(.flags = flags));
}

static ssize_t fake_fetchmsg(struct fid_ep *ep,
			     const struct fi_msg_atomic *msg,
			     struct fi_ioc *resultv, void **result_desc,
			     size_t result_count, uint64_t flags)
{
	return fake_atomic_msg(ep, "fetchmsg", msg, *FAKE_DONE(
		.result = resultv, .result_desc = result_desc,
		.result_count = result_count, .flags = flags));
}

static ssize_t fake_comparemsg(struct fid_ep *ep,
			       const struct fi_msg_atomic *msg,
			       const struct fi_ioc *comparev,
			       void **compare_desc, size_t compare_count,
			       struct fi_ioc *resultv, void **result_desc,
			       size_t result_count, uint64_t flags)
{
	return fake_atomic_msg(ep, "comparemsg", msg, *FAKE_DONE(
		.compare = comparev, .compare_desc = compare_desc,
		.compare_count = compare_count, .result = resultv,
		.result_desc = result_desc, .result_count = result_count,
		.flags = flags));
}

/* Sets *count to "answer", by which a test recognizes the called function. */
static int fake_valid(struct fid_ep *ep, enum fi_datatype datatype,
		      enum fi_op op, size_t *count, size_t answer)
{
	ck_assert_int_eq(fake_obj_of(&ep->fid)->path, FI_DUO_CORE);
	*count = answer;
	return datatype == FI_UINT64 && op == FI_SUM ? 0 : -FI_EOPNOTSUPP;
}

static int fake_writevalid(struct fid_ep *ep, enum fi_datatype datatype,
			   enum fi_op op, size_t *count)
{
	return fake_valid(ep, datatype, op, count, 1);
}

static int fake_fetchvalid(struct fid_ep *ep, enum fi_datatype datatype,
			   enum fi_op op, size_t *count)
{
	return fake_valid(ep, datatype, op, count, 2);
}

static int fake_comparevalid(struct fid_ep *ep, enum fi_datatype datatype,
			     enum fi_op op, size_t *count)
{
	return fake_valid(ep, datatype, op, count, 3);
}

struct fi_ops_atomic fake_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.writemsg = fake_atomicmsg,
	.inject = fake_inject_atomic,
	.readwritemsg = fake_fetchmsg,
	.compwritemsg = fake_comparemsg,
	.writevalid = fake_writevalid,
	.readwritevalid = fake_fetchvalid,
	.compwritevalid = fake_comparevalid,
};

int fake_query_atomic(struct fid_domain *domain, enum fi_datatype datatype,
		      enum fi_op op, struct fi_atomic_attr *attr,
		      uint64_t flags)
{
	ck_assert_int_eq(fake_obj_of(&domain->fid)->path, FI_DUO_CORE);
	attr->count = 4;
	return datatype == FI_UINT64 && op == FI_SUM ? 0 : -FI_EOPNOTSUPP;
}
