/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Objects that rdma-core or the kernel rejects: a test or row for each rule in
 * docs/softefa.md, table of rejected requests.
 */
#include <errno.h>
#include <string.h>

#include "softefa.h"
#include "rig.h"

#define PD IBV_QP_INIT_ATTR_PD
#define OPS IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
#define COUNT(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))

enum entry { EFADV_EX, EFADV_DRIVER, VERBS, VERBS_EX };

static const struct {
	const char *name, *rdma;
	struct ibv_qp_init_attr_ex attr;
	struct se_dv_qp_attr dv;
	enum entry entry;
	int err;
} qp_rows[] = {
	{ "plain", NULL, { .comp_mask = PD }, { 0 }, EFADV_EX, 0 },
	{ "plain, as driver QP", NULL, { .comp_mask = PD }, { 0 },
	  EFADV_DRIVER, 0 },
	{ "UD", NULL, { .comp_mask = PD, .qp_type = IBV_QPT_UD }, { 0 },
	  VERBS, 0 },
	{ "UD, extended", NULL, { .comp_mask = PD | OPS,
				  .qp_type = IBV_QPT_UD }, { 0 }, VERBS_EX, 0 },
	{ "SRD of plain verbs", NULL, { .comp_mask = PD }, { 0 }, VERBS,
	  EOPNOTSUPP },
	{ "SRD of plain verbs, extended", NULL, { .comp_mask = PD | OPS },
	  { 0 }, VERBS_EX, EOPNOTSUPP },
	{ "UD of efadv", NULL, { .comp_mask = PD, .qp_type = IBV_QPT_UD },
	  { 0 }, EFADV_EX, EINVAL },
	{ "UD as driver QP", NULL, { .comp_mask = PD, .qp_type = IBV_QPT_UD },
	  { 0 }, EFADV_DRIVER, EINVAL },
	{ "RC", NULL, { .comp_mask = PD, .qp_type = IBV_QPT_RC }, { 0 },
	  VERBS, EOPNOTSUPP },
	{ "unknown driver type", NULL, { .comp_mask = PD },
	  { .driver_qp_type = 1 }, EFADV_EX, EOPNOTSUPP },
	{ "no PD", NULL, { .comp_mask = OPS }, { 0 }, EFADV_EX, EINVAL },
	{ "unknown comp_mask", NULL,
	  { .comp_mask = PD | IBV_QP_INIT_ATTR_CREATE_FLAGS }, { 0 },
	  EFADV_EX, EOPNOTSUPP },
	{ "atomics", NULL,
	  { .comp_mask = PD | OPS,
	    .send_ops_flags = IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP }, { 0 },
	  EFADV_EX, EOPNOTSUPP },
	{ "memory windows", NULL,
	  { .comp_mask = PD | OPS,
	    .send_ops_flags = IBV_QP_EX_WITH_BIND_MW }, { 0 }, EFADV_EX,
	  EOPNOTSUPP },
	{ "reads", "read",
	  { .comp_mask = PD | OPS,
	    .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ }, { 0 }, EFADV_EX, 0 },
	{ "reads without RDMA", "0",
	  { .comp_mask = PD | OPS,
	    .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ }, { 0 }, EFADV_EX,
	  EOPNOTSUPP },
	{ "writes without them", "read",
	  { .comp_mask = PD | OPS,
	    .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE }, { 0 }, EFADV_EX,
	  EOPNOTSUPP },
	{ "reads of UD", NULL,
	  { .comp_mask = PD | OPS, .qp_type = IBV_QPT_UD,
	    .send_ops_flags = IBV_QP_EX_WITH_RDMA_READ }, { 0 }, VERBS_EX,
	  EOPNOTSUPP },
	{ "unsolicited without it", "write", { .comp_mask = PD },
	  { .flags = SE_QP_UNSOLICITED }, EFADV_EX, EOPNOTSUPP },
	{ "unknown flags", NULL, { .comp_mask = PD }, { .flags = 0x80 },
	  EFADV_EX, EOPNOTSUPP },
	{ "unknown wr_flags", NULL, { .comp_mask = PD | OPS },
	  { .wr_flags = 2 }, EFADV_EX, EOPNOTSUPP },
	{ "dv comp_mask", NULL, { .comp_mask = PD }, { .comp_mask = 1 },
	  EFADV_EX, EINVAL },
	{ "dv reserved", NULL, { .comp_mask = PD }, { .reserved = { 1 } },
	  EFADV_EX, EINVAL },
	{ "3 elements to send", NULL,
	  { .comp_mask = PD, .cap.max_send_sge = 3 }, { 0 }, EFADV_EX,
	  EINVAL },
	{ "4 elements to receive", NULL,
	  { .comp_mask = PD, .cap.max_recv_sge = 4 }, { 0 }, EFADV_EX,
	  EINVAL },
	{ "inline data", NULL,
	  { .comp_mask = PD, .cap.max_inline_data = 32 }, { 0 }, EFADV_EX, 0 },
	{ "more inline data", NULL,
	  { .comp_mask = PD, .cap.max_inline_data = 33 }, { 0 }, EFADV_EX,
	  EINVAL },
	{ "deepest send queue", NULL,
	  { .comp_mask = PD, .cap.max_send_wr = 1024 }, { 0 }, EFADV_EX, 0 },
	{ "deeper send queue", NULL,
	  { .comp_mask = PD, .cap.max_send_wr = 1025 }, { 0 }, EFADV_EX,
	  EINVAL },
	{ "deepest receive queue", NULL,
	  { .comp_mask = PD, .cap.max_recv_wr = 8192 }, { 0 }, EFADV_EX, 0 },
	{ "3 elements, a third of its depth", NULL,
	  { .comp_mask = PD, .cap.max_recv_wr = 2730, .cap.max_recv_sge = 3 },
	  { 0 }, EFADV_EX, 0 },
	{ "3 elements, full depth", NULL,
	  { .comp_mask = PD, .cap.max_recv_wr = 8192, .cap.max_recv_sge = 3 },
	  { 0 }, EFADV_EX, EINVAL },
};

static struct ibv_qp *make_qp(struct rig_node *node, enum entry entry,
			      struct ibv_qp_init_attr_ex attr,
			      struct se_dv_qp_attr dv)
{
	struct ibv_qp_init_attr old;

	attr.pd = node->pd;
	attr.send_cq = ibv_cq_ex_to_cq(node->scq);
	attr.recv_cq = ibv_cq_ex_to_cq(node->rcq);
	if (!attr.qp_type)
		attr.qp_type = IBV_QPT_DRIVER;
	if (!attr.cap.max_recv_sge)
		attr.cap.max_recv_sge = 1;
	if (attr.comp_mask & OPS && !attr.send_ops_flags)
		attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	memcpy(&old, &attr, sizeof(old));
	errno = 0;
	switch (entry) {
	case EFADV_EX:
		return efadv_create_qp_ex(node->ctx, &attr,
					  (struct efadv_qp_init_attr *)&dv,
					  sizeof(dv));
	case EFADV_DRIVER:
		return efadv_create_driver_qp(node->pd, &old,
					      dv.driver_qp_type);
	case VERBS:
		return ibv_create_qp(node->pd, &old);
	default:
		return ibv_create_qp_ex(node->ctx, &attr);
	}
}

START_TEST(invalid_queue_pair_is_rejected)
{
	struct rig_node a;
	struct ibv_qp *qp;

	rig_env("SOFTEFA_RDMA", qp_rows[_i].rdma ? qp_rows[_i].rdma : "");
	rig_open(&a, NULL);
	qp = make_qp(&a, qp_rows[_i].entry, qp_rows[_i].attr, qp_rows[_i].dv);
	ck_assert_msg(!qp == !!qp_rows[_i].err && errno == qp_rows[_i].err,
		      "%s: %s, errno %d", qp_rows[_i].name,
		      qp ? "made" : "rejected", errno);
	if (qp)
		ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rig_close(&a);
}
END_TEST

struct se_dv_qp *dv_qp_of(struct ibv_qp_ex *qp)
	__asm__("efadv_qp_from_ibv_qp_ex");

/* In a structure longer than the library's, additional bytes must be 0. */
START_TEST(longer_structure_with_zeros_is_accepted)
{
	struct ibv_qp_init_attr_ex attr = {
		.cap.max_recv_sge = 1, .qp_type = IBV_QPT_DRIVER,
		.comp_mask = PD,
	};
	struct {
		struct se_dv_qp_attr known;
		uint64_t unknown;
	} dv = { .unknown = 0 };
	struct efadv_qp_init_attr *caller = (void *)&dv;
	struct ibv_qp *qp;
	struct rig_node a;

	rig_open(&a, NULL);
	attr.pd = a.pd;
	attr.send_cq = ibv_cq_ex_to_cq(a.scq);
	attr.recv_cq = ibv_cq_ex_to_cq(a.rcq);
	qp = efadv_create_qp_ex(a.ctx, &attr, caller, sizeof(dv));
	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	dv.unknown = 1;
	ck_assert_ptr_null(efadv_create_qp_ex(a.ctx, &attr, caller,
					      sizeof(dv)));
	ck_assert_int_eq(errno, EINVAL);
	qp = efadv_create_qp_ex(a.ctx, &attr, caller, sizeof(dv.known));
	ck_assert_ptr_nonnull(qp);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	ck_assert_ptr_null(efadv_create_qp_ex(a.ctx, &attr, caller, 8));
	ck_assert_int_eq(errno, EINVAL);
	rig_close(&a);
}
END_TEST

START_TEST(qp_has_requested_operations_only)
{
	struct ibv_qp_init_attr_ex attr = { .comp_mask = PD };
	struct se_dv_qp_attr dv = { 0 };
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;
	struct rig_node a;

	rig_open(&a, NULL);
	qp = make_qp(&a, EFADV_EX, attr, dv);
	ck_assert_ptr_null(ibv_qp_to_qp_ex(qp));
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);

	attr.comp_mask |= OPS;
	attr.send_ops_flags = IBV_QP_EX_WITH_SEND;
	qp = make_qp(&a, EFADV_EX, attr, dv);
	ex = ibv_qp_to_qp_ex(qp);
	ck_assert(ex->wr_send && !ex->wr_send_imm && !ex->wr_rdma_read &&
		  !ex->wr_rdma_write && !ex->wr_rdma_write_imm);
	ck_assert(!dv_qp_of(ex)->wr_set_processing_hints);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);

	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	dv.wr_flags = SE_WR_PROCESSING_HINTS;
	qp = make_qp(&a, EFADV_EX, attr, dv);
	ex = ibv_qp_to_qp_ex(qp);
	ck_assert(!ex->wr_send && ex->wr_rdma_read);
	dv_qp_of(ex)->wr_set_processing_hints(NULL, 1);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rig_close(&a);
}
END_TEST

#define STANDARD IBV_WC_STANDARD_FLAGS

static const struct {
	const char *name, *rdma;
	struct ibv_cq_init_attr_ex attr;
	struct se_dv_cq_attr dv;
	uint64_t unknown;
	uint32_t inlen; /* 0: size of the structure */
	int err;
} cq_rows[] = {
	{ "plain", NULL, { 0 }, { 0 }, 0, 0, 0 },
	{ "all readers", NULL, { .wc_flags = STANDARD },
	  { .wc_flags = SE_WC_WITH_SGID | SE_WC_WITH_UNSOLICITED }, 0, 0, 0 },
	{ "single threaded", NULL,
	  { .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
	    .flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED }, { 0 }, 0, 0, 0 },
	{ "timestamps", NULL,
	  { .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP }, { 0 }, 0, 0,
	  EOPNOTSUPP },
	{ "unknown comp_mask", NULL, { .comp_mask = 1u << 31 }, { 0 }, 0, 0,
	  EOPNOTSUPP },
	{ "unknown flags", NULL,
	  { .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
	    .flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN }, { 0 }, 0, 0,
	  EOPNOTSUPP },
	{ "PD that is none", NULL,
	  { .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD }, { 0 }, 0, 0, EINVAL },
	{ "largest", NULL, { .cqe = 1 << 16 }, { 0 }, 0, 0, 0 },
	{ "larger", NULL, { .cqe = (1 << 16) + 1 }, { 0 }, 0, 0, EINVAL },
	{ "unknown vector", NULL, { .comp_vector = SE_COMP_VECTORS }, { 0 },
	  0, 0, EINVAL },
	{ "dv comp_mask", NULL, { 0 }, { .comp_mask = 1 }, 0, 0, EINVAL },
	{ "dv wc_flags", NULL, { 0 }, { .wc_flags = 4 }, 0, 0, EOPNOTSUPP },
	{ "unsolicited without it", "write", { 0 },
	  { .wc_flags = SE_WC_WITH_UNSOLICITED }, 0, 0, EOPNOTSUPP },
	{ "memory of the caller", NULL, { 0 }, { .flags = 1 }, 0, 0,
	  EOPNOTSUPP },
	{ "newer fields", NULL, { 0 }, { 0 }, 1, 0, EINVAL },
	{ "newer fields beyond inlen", NULL, { 0 }, { 0 }, 1,
	  sizeof(struct se_dv_cq_attr), 0 },
	{ "too short", NULL, { 0 }, { 0 }, 0, 8, EINVAL },
};

START_TEST(invalid_cq_is_rejected)
{
	struct ibv_cq_init_attr_ex attr = cq_rows[_i].attr;
	struct {
		struct se_dv_cq_attr known;
		uint64_t unknown;
	} dv = { cq_rows[_i].dv, cq_rows[_i].unknown };
	uint32_t inlen = cq_rows[_i].inlen;
	struct ibv_context *ctx;
	struct ibv_cq_ex *cq;

	rig_env("SOFTEFA_RDMA", cq_rows[_i].rdma ? cq_rows[_i].rdma : "");
	ctx = rig_context(0);
	if (!attr.cqe)
		attr.cqe = 16;
	errno = 0;
	cq = efadv_create_cq(ctx, &attr, (void *)&dv,
			     inlen ? inlen : sizeof(dv));
	ck_assert_msg(!cq == !!cq_rows[_i].err && errno == cq_rows[_i].err,
		      "%s: %s, errno %d", cq_rows[_i].name,
		      cq ? "made" : "rejected", errno);
	if (cq)
		ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

START_TEST(cq_has_requested_readers_only)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16, .wc_flags = IBV_WC_EX_WITH_SRC_QP,
	};
	struct efadv_cq_init_attr dv = { 0 };
	struct ibv_context *ctx = rig_context(0);
	struct ibv_cq_ex *cq;

	cq = efadv_create_cq(ctx, &attr, &dv, sizeof(dv));
	ck_assert(cq->read_opcode && cq->read_vendor_err && cq->read_wc_flags);
	ck_assert(cq->read_src_qp && !cq->read_byte_len && !cq->read_imm_data &&
		  !cq->read_qp_num && !cq->read_slid && !cq->read_sl &&
		  !cq->read_dlid_path_bits);
	ck_assert(!efadv_cq_from_ibv_cq_ex(cq)->wc_read_sgid);
	ck_assert(!((struct se_cq *)cq)->dv.wc_is_unsolicited);
	ck_assert_int_eq(ibv_req_notify_cq(ibv_cq_ex_to_cq(cq), 1),
			 EOPNOTSUPP);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

#define LOCAL IBV_ACCESS_LOCAL_WRITE

static const struct {
	const char *name, *rdma;
	int access;
	size_t len;
	int err;
} mr_rows[] = {
	{ "local", "0", LOCAL, 64, 0 },
	{ "hints", "0", LOCAL | IBV_ACCESS_RELAXED_ORDERING, 64, 0 },
	{ "all of RDMA", "write", LOCAL | IBV_ACCESS_REMOTE_READ |
				  IBV_ACCESS_REMOTE_WRITE, 64, 0 },
	{ "remote read without RDMA", "0", LOCAL | IBV_ACCESS_REMOTE_READ, 64,
	  EOPNOTSUPP },
	{ "remote write without writes", "read",
	  LOCAL | IBV_ACCESS_REMOTE_WRITE, 64, EOPNOTSUPP },
	{ "remote write without local", "write", IBV_ACCESS_REMOTE_WRITE, 64,
	  EINVAL },
	{ "atomics", "write", LOCAL | IBV_ACCESS_REMOTE_ATOMIC, 64,
	  EOPNOTSUPP },
	{ "memory windows", "write", LOCAL | IBV_ACCESS_MW_BIND, 64,
	  EOPNOTSUPP },
	{ "on demand", "write", LOCAL | IBV_ACCESS_ON_DEMAND, 64, EOPNOTSUPP },
	{ "empty", "write", LOCAL, 0, EINVAL },
};

START_TEST(invalid_region_is_rejected)
{
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	char buf[64];

	rig_env("SOFTEFA_RDMA", mr_rows[_i].rdma);
	ctx = rig_context(0);
	pd = ibv_alloc_pd(ctx);
	errno = 0;
	mr = ibv_reg_mr(pd, buf, mr_rows[_i].len, mr_rows[_i].access);
	ck_assert_msg(!mr == !!mr_rows[_i].err && errno == mr_rows[_i].err,
		      "%s: %s, errno %d", mr_rows[_i].name,
		      mr ? "made" : "rejected", errno);
	if (mr)
		ck_assert_int_eq(ibv_dereg_mr(mr), 0);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

START_TEST(invalid_address_handle_is_rejected)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 2 };
	struct ibv_context *ctx = rig_context(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	errno = 0;
	ck_assert_ptr_null(ibv_create_ah(pd, &attr));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_int_eq(ibv_dealloc_pd(pd), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

int sq_depth(struct ibv_context *ctx, void *attr, uint32_t inlen)
	__asm__("efadv_get_max_sq_depth");
int rq_depth(struct ibv_context *ctx, void *attr, uint32_t inlen)
	__asm__("efadv_get_max_rq_depth");

START_TEST(depth_query_returns_limits)
{
	static const struct {
		struct se_dv_sq_depth ask;
		int ret;
	} sq[] = {
		{ { .max_send_sge = 2, .max_rdma_sge = 1,
		    .max_inline_data = 32 }, 1024 },
		{ { .flags = SE_SQ_DEPTH_INLINE_WRITE }, 512 },
		{ { .max_send_sge = 3 }, -EINVAL },
		{ { .max_rdma_sge = 2 }, -EINVAL },
		{ { .max_inline_data = 33 }, -EINVAL },
		{ { .comp_mask = 1 }, -EINVAL },
	};
	static const struct {
		struct se_dv_rq_depth ask;
		int ret;
	} rq[] = {
		{ { .max_recv_sge = 1 }, 8192 },
		{ { .max_recv_sge = 3 }, 2730 },
		{ { .max_recv_sge = 4 }, -EINVAL },
		{ { .max_recv_sge = 1, .comp_mask = 1 }, -EINVAL },
	};
	struct ibv_context *ctx = rig_context(0);
	struct se_dv_sq_depth s;
	struct se_dv_rq_depth r;
	int i;

	for (i = 0; i < COUNT(sq); i++) {
		s = sq[i].ask;
		ck_assert_int_eq(sq_depth(ctx, &s, sizeof(s)), sq[i].ret);
	}
	for (i = 0; i < COUNT(rq); i++) {
		r = rq[i].ask;
		ck_assert_int_eq(rq_depth(ctx, &r, sizeof(r)), rq[i].ret);
	}
	ck_assert_int_eq(sq_depth(ctx, &s, 8), -EINVAL);
	ck_assert_int_eq(rq_depth(ctx, &r, 8), -EINVAL);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

Suite *suite_rules(void)
{
	Suite *suite = suite_create("rules");
	TCase *tc = tcase_create("rules");

	tcase_add_loop_test(tc, invalid_queue_pair_is_rejected, 0,
			    COUNT(qp_rows));
	tcase_add_test(tc, longer_structure_with_zeros_is_accepted);
	tcase_add_test(tc, qp_has_requested_operations_only);
	tcase_add_loop_test(tc, invalid_cq_is_rejected, 0, COUNT(cq_rows));
	tcase_add_test(tc, cq_has_requested_readers_only);
	tcase_add_loop_test(tc, invalid_region_is_rejected, 0, COUNT(mr_rows));
	tcase_add_test(tc, invalid_address_handle_is_rejected);
	tcase_add_test(tc, depth_query_returns_limits);
	suite_add_tcase(suite, tc);
	return suite;
}
