/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics without near. The core gets each call with unchanged
 * arguments, with two exceptions: FI_MORE is removed, and a call that has a
 * context, but no argument for flags, gets the endpoint's default flags.
 */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "fixture.h"
#include "av/route.h"

#define LEN 5
#define DATA 0x1234567890abcdefULL
#define RADDR 0x4000
#define KEY 42
#define FLAGS (FI_DELIVERY_COMPLETE | FI_FENCE | FI_MORE | FI_REMOTE_CQ_DATA)
#define DESC ((void *) 0x1000)
#define DATATYPE FI_UINT64
#define OP FI_CSWAP

static int context;
static char buf[LEN], result[LEN], compare[LEN];
static struct iovec iov[2];
static struct fi_ioc ioc[2], resultv[3], comparev[4];
static void *descs[4];

static void setup(void)
{
	fixture_setup();
	peer_publish(1);
	remote = peer_insert(2);
	local = peer_insert(1);
}

static const struct fi_rma_iov rma_iov = { RADDR, LEN, KEY };
static const struct fi_rma_ioc rma_ioc = { RADDR, LEN, KEY };

static struct fi_msg_rma rma_msg(fi_addr_t to)
{
	return (struct fi_msg_rma) { iov, descs, 2, to, &rma_iov, 1, &context,
				     DATA };
}

static struct fi_msg_atomic atomic_msg(fi_addr_t to)
{
	return (struct fi_msg_atomic) { ioc, descs, 2, to, &rma_ioc, 1,
					DATATYPE, OP, &context, DATA };
}

static ssize_t call_rma(int variant, fi_addr_t to)
{
	const struct fi_msg_rma msg = rma_msg(to);

	switch (variant) {
	case 0:
		return fi_read(fx.ep, buf, LEN, DESC, to, RADDR, KEY,
			       &context);
	case 1:
		return fi_readv(fx.ep, iov, descs, 2, to, RADDR, KEY,
				&context);
	case 2:
		return fi_readmsg(fx.ep, &msg, FLAGS);
	case 3:
		return fi_write(fx.ep, buf, LEN, DESC, to, RADDR, KEY,
				&context);
	case 4:
		return fi_writev(fx.ep, iov, descs, 2, to, RADDR, KEY,
				 &context);
	case 5:
		return fi_writemsg(fx.ep, &msg, FLAGS);
	case 6:
		return fi_inject_write(fx.ep, buf, LEN, to, RADDR, KEY);
	case 7:
		return fi_writedata(fx.ep, buf, LEN, DESC, DATA, to, RADDR,
				    KEY, &context);
	default:
		return fi_inject_writedata(fx.ep, buf, LEN, DATA, to, RADDR,
					   KEY);
	}
}

/* descriptors of several results or compare operands */
static void **more_descs = descs;

static ssize_t call_atomic(int variant, fi_addr_t to)
{
	const struct fi_msg_atomic msg = atomic_msg(to);

	switch (variant) {
	case 9:
		return fi_atomic(fx.ep, buf, LEN, DESC, to, RADDR, KEY,
				 DATATYPE, OP, &context);
	case 10:
		return fi_atomicv(fx.ep, ioc, descs, 2, to, RADDR, KEY,
				  DATATYPE, OP, &context);
	case 11:
		return fi_atomicmsg(fx.ep, &msg, FLAGS);
	case 12:
		return fi_inject_atomic(fx.ep, buf, LEN, to, RADDR, KEY,
					DATATYPE, OP);
	case 13:
		return fi_fetch_atomic(fx.ep, buf, LEN, DESC, result, DESC, to,
				       RADDR, KEY, DATATYPE, OP, &context);
	case 14:
		return fi_fetch_atomicv(fx.ep, ioc, descs, 2, resultv,
					more_descs, 3, to, RADDR, KEY,
					DATATYPE, OP, &context);
	case 15:
		return fi_fetch_atomicmsg(fx.ep, &msg, resultv, more_descs,
					  3, FLAGS);
	case 16:
		return fi_compare_atomic(fx.ep, buf, LEN, DESC, compare, DESC,
					 result, DESC, to, RADDR, KEY,
					 DATATYPE, OP, &context);
	case 17:
		return fi_compare_atomicv(fx.ep, ioc, descs, 2, comparev,
					  more_descs, 4, resultv, more_descs,
					  3, to, RADDR, KEY, DATATYPE, OP,
					  &context);
	default:
		return fi_compare_atomicmsg(fx.ep, &msg, comparev, more_descs,
					    4, resultv, more_descs, 3, FLAGS);
	}
}

#define RMA_COUNT 9

static ssize_t call(int variant, fi_addr_t to)
{
	return variant < RMA_COUNT ? call_rma(variant, to) :
				     call_atomic(variant, to);
}

#define ONE .buf = buf, .len = LEN
#define VEC .desc = descs, .len = 2
#define RESULTV .result = resultv, .result_desc = descs, .result_count = 3
#define COMPAREV .compare = comparev, .compare_desc = descs, .compare_count = 4
#define DONE .context = &context
#define MSG DONE, .data = DATA, .flags = FLAGS

/* arguments that the core must get, except those that check_call() adds */
static const struct fake_onesided wanted[] = {
	{ "readmsg", ONE, .desc = DESC, DONE },
	{ "readmsg", iov, VEC, DONE },
	{ "readmsg", iov, VEC, MSG },
	{ "writemsg", ONE, .desc = DESC, DONE },
	{ "writemsg", iov, VEC, DONE },
	{ "writemsg", iov, VEC, MSG },
	{ "inject", ONE },
	{ "writemsg", ONE, .desc = DESC, DONE, .data = DATA,
	  .flags = FI_REMOTE_CQ_DATA },
	{ "injectdata", ONE, .data = DATA },
	{ "atomicmsg", ONE, .desc = DESC, DONE },
	{ "atomicmsg", ioc, VEC, DONE },
	{ "atomicmsg", ioc, VEC, MSG },
	{ "inject_atomic", ONE },
	{ "fetchmsg", ONE, .desc = DESC, .result = result, .result_desc = DESC,
	  .result_count = 1, DONE },
	{ "fetchmsg", ioc, VEC, RESULTV, DONE },
	{ "fetchmsg", ioc, VEC, RESULTV, MSG },
	{ "comparemsg", ONE, .desc = DESC, .result = result, .result_desc = DESC,
	  .result_count = 1, .compare = compare, .compare_desc = DESC,
	  .compare_count = 1, DONE },
	{ "comparemsg", ioc, VEC, RESULTV, COMPAREV, DONE },
	{ "comparemsg", ioc, VEC, RESULTV, COMPAREV, MSG },
};
#define COUNT ((int) ARRAY_SIZE(wanted))

static void check_call(int variant, fi_addr_t to)
{
	const struct fake_onesided *got = &fake.core.onesided;
	struct fake_onesided want = wanted[variant];

	ck_assert_str_eq(got->call, want.call);
	want.call = got->call;
	if (want.context && !(want.flags & FI_MORE))
		want.flags |= fixture_ep()->tx.op_flags;
	want.flags &= ~FI_MORE;
	want.dest = to;
	want.raddr = RADDR;
	want.key = KEY;
	want.datatype = variant < RMA_COUNT ? 0 : DATATYPE;
	want.op = variant < RMA_COUNT ? 0 : OP;
	ck_assert_msg(!memcmp(got, &want, sizeof(want)), "%s", want.call);
	ck_assert_int_eq(fake.core.onesided_count, 1);
}

UNIT_CASE("onesided", setup, fixture_close);

/*
 * _i / 2 is the variant of the call. If _i % 2 is 1, the call names a local
 * peer, otherwise a remote one.
 */
UNIT_ROUNDS(call_reaches_core_with_arguments, 0, 2 * COUNT)
{
	int variant = _i / 2;
	struct fi_duo_stats stats;
	struct fi_cq_tagged_entry entry;

	ck_assert_int_eq(call(variant, _i % 2 ? local : remote), 0);
	check_call(variant, _i % 2 ? local : remote);
	stats = stats_now();
	ck_assert_uint_eq(stats.rma_ops[FI_DUO_CORE], variant < RMA_COUNT);
	ck_assert_uint_eq(stats.atomic_ops[FI_DUO_CORE],
			  variant >= RMA_COUNT);
	ck_assert_uint_eq(stats.path[FI_DUO_CORE].tx_msgs, 0);
	if (wanted[variant].context) {
		entry = expect_entry(&context, FI_ADDR_NOTAVAIL);
		ck_assert_uint_eq(entry.flags, FI_RMA | FI_WRITE);
	}
	expect_nothing();
}

/*
 * The application passes no descriptors for several buffers. ofi_duo passes an
 * array, because efa reads it.
 */
UNIT_ROUNDS(missing_descs_become_array, 0, 4)
{
	static const int variants[] = { 14, 15, 17, 18 };
	static void *const none[4];
	const struct fake_onesided *got = &fake.core.onesided;

	more_descs = NULL;
	ck_assert_int_eq(call(variants[_i], remote), 0);
	more_descs = descs;
	ck_assert_ptr_nonnull(got->result_desc);
	ck_assert_mem_eq(got->result_desc, none, 3 * sizeof(none[0]));
	if (!got->compare)
		return;
	ck_assert_ptr_nonnull(got->compare_desc);
	ck_assert_mem_eq(got->compare_desc, none, sizeof(none));
}

/*
 * FI_INJECT is a default flag, and the inject size is 16 bytes. The core must
 * get the flag only if the operand fits into 16 bytes. If _i is 0, the operand
 * has one element of 16 bytes. If _i is 1, the operand has two elements.
 */
UNIT_ROUNDS(long_operand_is_not_injected, 0, 2)
{
	fixture_ep()->tx.op_flags |= FI_INJECT;
	ck_assert_uint_eq(fixture_ep()->inject_size, 16);
	ck_assert_int_eq(fi_atomic(fx.ep, buf, 1 + (size_t) _i, DESC, remote,
				   RADDR, KEY, FI_DOUBLE_COMPLEX, FI_SUM,
				   &context), 0);
	ck_assert_uint_eq(fake.core.onesided.flags & FI_INJECT,
			  _i ? 0 : FI_INJECT);
}

UNIT_ROUNDS(invalid_address_is_rejected, 0, COUNT)
{
	ck_assert_int_eq(call(_i, FI_ADDR_UNSPEC), -FI_EINVAL);
	ck_assert_int_eq(call(_i, local + 1), -FI_EINVAL);
	ck_assert_int_eq(call(_i, DUO_AV_MAX), -FI_EINVAL);
	ck_assert_int_eq(fake.core.onesided_count, 0);
}

UNIT_ROUNDS(core_error_is_returned, 0, COUNT)
{
	struct fi_duo_stats stats;

	fake.path[FI_DUO_CORE].fail_at = fake.path[FI_DUO_CORE].calls + 1;
	ck_assert_int_eq(call(_i, remote), -FAKE_ERROR);
	stats = stats_now();
	ck_assert_uint_eq(stats.rma_ops[FI_DUO_CORE] +
			  stats.atomic_ops[FI_DUO_CORE], 0);
	expect_nothing();
}

/*
 * RMA and atomics, which use the core here, must not choose the path of
 * messages. The peer is published afterwards, and the first send must use shm.
 */
UNIT_ROUNDS(write_chooses_no_path, 0, COUNT)
{
	fi_addr_t late = peer_insert(9);

	ck_assert_int_eq(call(_i, late), 0);
	peer_publish(9);
	ck_assert_int_eq(fi_tinject(fx.ep, buf, LEN, late, TAG), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_LOCAL].count, 1);
}

UNIT_TEST(write_makes_reads_poll_core)
{
	int polls = fake.core.polls;

	duo_params.core_poll_interval = 1000;
	poll_cq(10);
	ck_assert_int_eq(fake.core.polls, polls);
	/* variant 6 (fi_inject_write) has no completion */
	ck_assert_int_eq(call(6, remote), 0);
	poll_cq(10);
	ck_assert_int_eq(fake.core.polls, polls + 10);
}

UNIT_TEST(valid_call_returns_core_result)
{
	struct fi_atomic_attr attr = { 0 };
	size_t count = 0;

	ck_assert_int_eq(fi_atomicvalid(fx.ep, FI_UINT64, FI_SUM, &count), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_int_eq(fi_fetch_atomicvalid(fx.ep, FI_UINT64, FI_SUM,
					      &count), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_int_eq(fi_compare_atomicvalid(fx.ep, FI_UINT64, FI_SUM,
						&count), 0);
	ck_assert_uint_eq(count, 3);
	ck_assert_int_eq(fi_query_atomic(fx.domain, FI_UINT64, FI_SUM, &attr,
					 0), 0);
	ck_assert_uint_eq(attr.count, 4);
	ck_assert_int_eq(fi_atomicvalid(fx.ep, FI_FLOAT, FI_SUM, &count),
			 -FI_EOPNOTSUPP);
	ck_assert_int_eq(fi_query_atomic(fx.domain, FI_FLOAT, FI_SUM, &attr,
					 0), -FI_EOPNOTSUPP);
}

static struct fid_ep *open_onesided(uint64_t cq_flags, struct fid_cntr *cntr)
{
	static const struct fixture_attr defaults;
	struct fi_info *info = fixture_info(&defaults);
	struct fid_ep *ep;

	info->caps = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE;
	ck_assert_int_eq(fi_endpoint(fx.domain, info, &ep, NULL), 0);
	fi_freeinfo(info);
	ck_assert_int_eq(fi_ep_bind(ep, &fx.av->fid, 0), 0);
	if (cq_flags)
		ck_assert_int_eq(fi_ep_bind(ep, &fx.cq->fid, cq_flags), 0);
	if (cntr)
		ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid,
					    FI_SEND | FI_WRITE), 0);
	return ep;
}

/*
 * An endpoint that has only RMA and atomics has no local side in this test. If
 * _i is 1, the endpoint has a CQ, otherwise only a counter.
 */
UNIT_ROUNDS(rma_only_endpoint_counts_operations, 0, 2)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &cntr, NULL), 0);
	ep = open_onesided(_i ? FI_TRANSMIT | FI_RECV : 0, cntr);
	ck_assert_int_eq(fi_write(ep, buf, LEN, DESC, remote, RADDR, KEY,
				  NULL), -FI_EOPBADSTATE);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_null(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	ck_assert_int_eq(fi_write(ep, buf, LEN, DESC, remote, RADDR, KEY,
				  NULL), 0);
	ck_assert_int_eq(fake.core.onesided_count, 1);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}
