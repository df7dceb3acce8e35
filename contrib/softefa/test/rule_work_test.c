/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * State changes and work requests that rdma-core or the kernel rejects, and
 * contents of completions; see docs/softefa.md.
 */
#include <errno.h>

#include "softefa.h"
#include "rig.h"

#define COUNT(rows) ((int)(sizeof(rows) / sizeof((rows)[0])))
#define TO_INIT (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY)

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
	int mask, err;
	struct ibv_qp_attr attr;
	bool ud;
} step_rows[] = {
	{ "reset to init", IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT, .err = 0 },
	{ "reset to init, no qkey", IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT, .err = EINVAL },
	{ "reset to init, port 2", IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT,
	  .err = EINVAL, .attr = { .port_num = 2 } },
	{ "reset to init, pkey 1", IBV_QPS_RESET, IBV_QPS_INIT, TO_INIT,
	  .err = EOPNOTSUPP, .attr = { .pkey_index = 1 } },
	{ "reset to init, address", IBV_QPS_RESET, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_AV, .err = EOPNOTSUPP },
	{ "reset to init, rnr", IBV_QPS_RESET, IBV_QPS_INIT,
	  TO_INIT | IBV_QP_RNR_RETRY, .err = EINVAL },
	{ "reset to rtr", IBV_QPS_RESET, IBV_QPS_RTR, 0, .err = EINVAL },
	{ "reset to rts", IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_SQ_PSN, .err = EINVAL },
	{ "reset to err", IBV_QPS_RESET, IBV_QPS_ERR, 0, .err = EINVAL },
	{ "reset to reset", IBV_QPS_RESET, IBV_QPS_RESET, 0, .err = 0 },
	{ "init to init", IBV_QPS_INIT, IBV_QPS_INIT, IBV_QP_QKEY, .err = 0 },
	{ "init to rtr", IBV_QPS_INIT, IBV_QPS_RTR, 0, .err = 0 },
	{ "init to rtr, psn", IBV_QPS_INIT, IBV_QPS_RTR, IBV_QP_SQ_PSN,
	  .err = EINVAL },
	{ "init to rts", IBV_QPS_INIT, IBV_QPS_RTS, IBV_QP_SQ_PSN, .err = EINVAL },
	{ "init to err", IBV_QPS_INIT, IBV_QPS_ERR, 0, .err = 0 },
	{ "rtr to rts", IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY, .err = 0 },
	{ "rtr to rts, no psn", IBV_QPS_RTR, IBV_QPS_RTS, 0, .err = EINVAL },
	{ "rtr to rts, rnr of UD", IBV_QPS_RTR, IBV_QPS_RTS,
	  IBV_QP_SQ_PSN | IBV_QP_RNR_RETRY, .err = EINVAL, .ud = true },
	{ "rts to init", IBV_QPS_RTS, IBV_QPS_INIT, TO_INIT, .err = EINVAL },
	{ "rts, qkey", IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_QKEY, .err = 0 },
	{ "rts, rnr", IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_RNR_RETRY, .err = EINVAL },
	{ "rts, cur_qp_state rtr", IBV_QPS_RTS, IBV_QPS_RTS, IBV_QP_CUR_STATE,
	  .err = EINVAL, .attr = { .cur_qp_state = IBV_QPS_RTR } },
	{ "rts to sqd", IBV_QPS_RTS, IBV_QPS_SQD, 0, .err = 0 },
	{ "err to rts", IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_SQ_PSN, .err = EINVAL },
	{ "err to reset", IBV_QPS_ERR, IBV_QPS_RESET, 0, .err = 0 },
	{ "err to reset, qkey", IBV_QPS_ERR, IBV_QPS_RESET, IBV_QP_QKEY,
	  .err = EINVAL },
};

START_TEST(invalid_state_change_is_rejected)
{
	struct ibv_qp_attr attr = step_rows[_i].attr;
	struct ibv_qp_init_attr init;
	struct rig_node a;
	int ret;

	rig_open(&a, NULL);
	a.qp->state = step_rows[_i].from;
	((struct se_qp *)a.qp)->ud = step_rows[_i].ud;
	attr.qp_state = step_rows[_i].to;
	if (!attr.port_num)
		attr.port_num = 1;
	ret = ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | step_rows[_i].mask);
	ck_assert_msg(ret == step_rows[_i].err, "%s: %d", step_rows[_i].name,
		      ret);
	ck_assert_int_eq(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.qp_state, ret ? step_rows[_i].from :
					      step_rows[_i].to);
	ck_assert_int_eq(ibv_query_qp(a.qp, &attr, IBV_QP_AV, &init),
			 EOPNOTSUPP);
	((struct se_qp *)a.qp)->ud = false;
	rig_close(&a);
}
END_TEST

static const struct {
	const char *name;
	unsigned int flags;
	bool sig_all;
	uint32_t inline_len; /* 0: not inline data */
	int err;
} wr_rows[] = {
	{ "signaled", IBV_SEND_SIGNALED, false, 0, 0 },
	{ "all signaled", 0, true, 0, 0 },
	{ "not signaled", 0, false, 0, EINVAL },
	{ "fenced", IBV_SEND_SIGNALED | IBV_SEND_FENCE, false, 0, EINVAL },
	{ "solicited", IBV_SEND_SIGNALED | IBV_SEND_SOLICITED, false, 0,
	  EINVAL },
	{ "inline, as configured", IBV_SEND_SIGNALED | IBV_SEND_INLINE, false,
	  8, 0 },
	{ "inline, more", IBV_SEND_SIGNALED | IBV_SEND_INLINE, false, 9,
	  EINVAL },
};

static int send_new(struct ibv_qp *qp, struct rig_node *node,
		    const struct rig_to *to, unsigned int flags,
		    uint32_t inline_len)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_flags = flags;
	ibv_wr_send(ex);
	if (inline_len)
		ibv_wr_set_inline_data(ex, node->buf, inline_len);
	else
		ibv_wr_set_sge(ex, node->mr->lkey, (uintptr_t)node->buf, 8);
	ibv_wr_set_ud_addr(ex, to->ah, to->qpn, to->qkey);
	return ibv_wr_complete(ex);
}

static int send_old(struct ibv_qp *qp, struct rig_node *node,
		    const struct rig_to *to, unsigned int flags,
		    uint32_t inline_len)
{
	struct ibv_sge sge = { (uintptr_t)node->buf,
			       inline_len ? inline_len : 8, node->mr->lkey };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1,
					.opcode = IBV_WR_SEND };

	wr.send_flags = flags;
	wr.wr.ud.ah = to->ah;
	wr.wr.ud.remote_qpn = to->qpn;
	wr.wr.ud.remote_qkey = to->qkey;
	return ibv_post_send(qp, &wr, &bad);
}

START_TEST(invalid_work_request_is_rejected)
{
	struct ibv_qp_init_attr_ex attr = {
		.sq_sig_all = wr_rows[_i].sig_all,
		.cap = { .max_inline_data = 8, .max_send_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct efadv_qp_init_attr dv = { 0 };
	struct rig_node a;
	struct ibv_qp *qp;
	struct rig_to to;
	int ret;

	rig_open(&a, NULL);
	attr.pd = a.pd;
	attr.send_cq = ibv_cq_ex_to_cq(a.scq);
	attr.recv_cq = ibv_cq_ex_to_cq(a.rcq);
	qp = efadv_create_qp_ex(a.ctx, &attr, &dv, sizeof(dv));
	ck_assert_ptr_nonnull(qp);
	qp->state = IBV_QPS_RTS;
	to = rig_to_node(&a, &a);
	ret = send_new(qp, &a, &to, wr_rows[_i].flags, wr_rows[_i].inline_len);
	ck_assert_msg(ret == wr_rows[_i].err, "%s: %d", wr_rows[_i].name, ret);
	ret = send_old(qp, &a, &to, wr_rows[_i].flags, wr_rows[_i].inline_len);
	ck_assert_msg(ret == wr_rows[_i].err, "%s, old: %d", wr_rows[_i].name,
		      ret);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	rig_close(&a);
}
END_TEST

/* As on the device, a read has a send's opcode, and completes with length 0. */
START_TEST(completion_of_read_has_no_opcode)
{
	struct rig_node a, b;
	struct ibv_wc old;
	struct rig_wc wc;
	struct rig_to to;

	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 1, 0, 64,
				  b.mr->rkey, (uintptr_t)b.buf), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.opcode, IBV_WC_SEND);
	ck_assert_uint_eq(wc.byte_len, 0);
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 1, 0, 64,
				  b.mr->rkey, (uintptr_t)b.buf), 0);
	while (!ibv_poll_cq(ibv_cq_ex_to_cq(a.scq), 1, &old))
		rig_progress(&b);
	ck_assert_int_eq(old.opcode, IBV_WC_SEND);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Each completion of a destroyed QP fails one poll. */
START_TEST(completion_of_destroyed_qp_fails_once)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct rig_node a, b;
	struct ibv_wc old;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	}
	ck_assert_int_eq(ibv_destroy_qp(b.qp), 0);
	ck_assert_int_eq(ibv_start_poll(b.rcq, &attr), EINVAL);
	ck_assert_int_eq(ibv_poll_cq(ibv_cq_ex_to_cq(b.rcq), 1, &old),
			 -EINVAL);
	ck_assert_int_eq(ibv_start_poll(b.rcq, &attr), ENOENT);
	ck_assert_int_eq(ibv_poll_cq(ibv_cq_ex_to_cq(b.rcq), 1, &old), 0);
	rig_close(&a);
}
END_TEST

Suite *suite_work_rules(void)
{
	Suite *suite = suite_create("work_rules");
	TCase *tc = tcase_create("work_rules");

	tcase_add_loop_test(tc, invalid_state_change_is_rejected, 0,
			    COUNT(step_rows));
	tcase_add_loop_test(tc, invalid_work_request_is_rejected, 0,
			    COUNT(wr_rows));
	tcase_add_test(tc, completion_of_read_has_no_opcode);
	tcase_add_test(tc, completion_of_destroyed_qp_fails_once);
	suite_add_tcase(suite, tc);
	return suite;
}
