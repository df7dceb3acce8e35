/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What a real device refuses is refused here too. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "softefa.h"
#include "rig.h"

static const struct {
	const char *name;
	enum ibv_qp_state from, to;
	int mask, ret;
} step_cases[] = {
	{ "reset to init", IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ "reset to init, no qkey", IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT, EINVAL },
	{ "reset to rtr", IBV_QPS_RESET, IBV_QPS_RTR, 0, EINVAL },
	{ "reset to rts", IBV_QPS_RESET, IBV_QPS_RTS, IBV_QP_SQ_PSN, EINVAL },
	{ "reset to err", IBV_QPS_RESET, IBV_QPS_ERR, 0, 0 },
	{ "init to rtr", IBV_QPS_INIT, IBV_QPS_RTR, 0, 0 },
	{ "init to rts", IBV_QPS_INIT, IBV_QPS_RTS, IBV_QP_SQ_PSN, EINVAL },
	{ "rtr to rts", IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, 0 },
	{ "rtr to rts, no psn", IBV_QPS_RTR, IBV_QPS_RTS, 0, EINVAL },
	{ "rts to init", IBV_QPS_RTS, IBV_QPS_INIT, 0, EINVAL },
	{ "rts to sqd", IBV_QPS_RTS, IBV_QPS_SQD, 0, 0 },
	{ "err to rts", IBV_QPS_ERR, IBV_QPS_RTS, IBV_QP_SQ_PSN, EINVAL },
	{ "err to reset", IBV_QPS_ERR, IBV_QPS_RESET, 0, 0 },
};

START_TEST(states_in_their_order)
{
	struct ibv_qp_attr attr = { .qp_state = step_cases[_i].to };
	struct ibv_qp_init_attr init;
	struct rig_node a;
	int ret;

	rig_open(&a, NULL);
	a.qp->state = step_cases[_i].from;
	ret = ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | step_cases[_i].mask);
	ck_assert_msg(ret == step_cases[_i].ret, "%s: %d", step_cases[_i].name,
		      ret);
	ck_assert_int_eq(ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &init), 0);
	ck_assert_int_eq(attr.qp_state, ret ? step_cases[_i].from :
					      step_cases[_i].to);
	rig_close(&a);
}
END_TEST

START_TEST(error_state_takes_nothing)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct rig_node a;
	struct rig_wc wc;
	struct rig_to to;

	rig_open(&a, NULL);
	to = rig_to_node(&a, &a);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), EINVAL);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 8), EINVAL);
	ck_assert(!rig_poll(a.scq, &wc));
	rig_close(&a);
}
END_TEST

/* One element and no inline data for RDMA; as many as asked for to send. */
START_TEST(elements_are_counted)
{
	struct ibv_sge sge[2] = { { 0 } };
	struct ibv_qp_ex *ex;
	struct rig_node a;
	struct rig_to to;
	int i;

	rig_open(&a, NULL);
	to = rig_to_node(&a, &a);
	ex = ibv_qp_to_qp_ex(a.qp);
	for (i = 0; i < 2; i++)
		sge[i] = (struct ibv_sge){ (uintptr_t)a.buf, 8, a.mr->lkey };
	for (i = 0; i < 4; i++) {
		ibv_wr_start(ex);
		if (i % 2)
			ibv_wr_rdma_read(ex, a.mr->rkey, (uintptr_t)a.buf);
		else
			ibv_wr_rdma_write(ex, a.mr->rkey, (uintptr_t)a.buf);
		if (i / 2)
			ibv_wr_set_sge_list(ex, 2, sge);
		else
			ibv_wr_set_inline_data(ex, sge, 8);
		ibv_wr_set_ud_addr(ex, to.ah, to.qpn, to.qkey);
		ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	}
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 2, sge);
	ibv_wr_set_ud_addr(ex, to.ah, to.qpn, to.qkey);
	ck_assert_int_eq(ibv_wr_complete(ex), 0);
	rig_close(&a);
}
END_TEST

/* A domain's objects go together; those of another do not fit. */
START_TEST(domains_are_kept_apart)
{
	struct rig_node a, b;
	struct ibv_mr *other, *own;
	struct rig_to to, foreign;
	struct ibv_pd *pd;
	struct rig_wc wc;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	own = a.mr;
	pd = a.pd;
	to = rig_to_node(&a, &b);
	a.pd = ibv_alloc_pd(a.ctx);
	foreign = rig_to_node(&a, &b);
	other = ibv_reg_mr(a.pd, a.buf, RIG_BUF, IBV_ACCESS_LOCAL_WRITE |
			   IBV_ACCESS_REMOTE_READ);
	ck_assert_int_eq(rig_send(&a, &foreign, 1, 0, 8), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_INVALID_AH);
	a.mr = other;
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_INVALID_LKEY);
	/* b reads of a what belongs to another domain of a. */
	to = rig_to_node(&b, &a);
	ck_assert_int_eq(rig_rdma(&b, &to, IBV_WR_RDMA_READ, 1, 0, 8,
				  other->rkey, (uintptr_t)a.buf), 0);
	ck_assert(rig_wait(b.scq, &wc, &a, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_BAD_ADDRESS);
	a.mr = own;
	ck_assert_int_eq(ibv_dereg_mr(other), 0);
	ck_assert_int_eq(ibv_destroy_ah(foreign.ah), 0);
	a.ah_count--;
	ck_assert_int_eq(ibv_dealloc_pd(a.pd), 0);
	a.pd = pd;
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* RDMA wants an address handle at the target; messages do not. */
START_TEST(rdma_wants_a_known_peer)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_READ,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM };
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	int i, known;

	rig_wire(_i);
	rig_env("SOFTEFA_NDEV", "2");
	rig_open(&a, NULL);
	rig_open(&b, &(struct rig_opt){ .dev = 1, .rnr_retry = 7 });
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	for (known = 0; known < 2; known++) {
		if (known)
			rig_to_node(&b, &a);
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
		for (i = 0; i < 3; i++) {
			ck_assert_int_eq(rig_rdma(&a, &to, ops[i], 1, 0, 8,
						  b.mr->rkey,
						  (uintptr_t)b.buf), 0);
			ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
			ck_assert_uint_eq(wc.vendor_err, known ? SE_OK :
					  SE_REMOTE_UNKNOWN_PEER);
		}
	}
	rig_close(&a);
	rig_close(&b);
}
END_TEST

static struct ibv_qp *qp_of(struct rig_node *node, void *dv, uint32_t size)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(node->scq),
		.recv_cq = ibv_cq_ex_to_cq(node->rcq),
		.cap = { .max_send_wr = 4, .max_recv_wr = 4 },
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = node->pd,
	};

	errno = 0;
	return efadv_create_qp_ex(node->ctx, &attr, dv, size);
}

struct se_dv_qp *dv_qp_of(struct ibv_qp_ex *qp)
	__asm__("efadv_qp_from_ibv_qp_ex");

/* Structures that are newer than this library: what it cannot do is refused. */
START_TEST(newer_callers_are_understood)
{
	struct {
		struct se_dv_qp_attr known;
		uint64_t unknown;
	} dv = { .known.wr_flags = SE_WR_PROCESSING_HINTS };
	struct rig_node a;
	struct ibv_qp *qp;

	rig_open(&a, NULL);
	qp = qp_of(&a, &dv, sizeof(dv));
	ck_assert_ptr_nonnull(qp);
	dv_qp_of(ibv_qp_to_qp_ex(qp))->wr_set_processing_hints(NULL, 1);
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	dv.unknown = 1;
	ck_assert_ptr_null(qp_of(&a, &dv, sizeof(dv)));
	ck_assert_int_eq(errno, EINVAL);
	ck_assert_ptr_nonnull(qp = qp_of(&a, &dv, sizeof(dv.known)));
	ck_assert_int_eq(ibv_destroy_qp(qp), 0);
	dv.known.wr_flags |= 2;
	ck_assert_ptr_null(qp_of(&a, &dv, sizeof(dv.known)));
	ck_assert_int_eq(errno, EOPNOTSUPP);
	dv.known.wr_flags = 0;
	dv.known.reserved[0] = 1;
	ck_assert_ptr_null(qp_of(&a, &dv, 16));
	rig_close(&a);
}
END_TEST

START_TEST(newer_queues_are_refused)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 16 };
	struct {
		struct se_dv_cq_attr known;
		uint64_t unknown;
	} dv = { .known.wc_flags = SE_WC_WITH_SGID };
	struct efadv_cq_init_attr *caller = (void *)&dv;
	struct ibv_context *ctx = rig_context(0);
	struct ibv_cq_ex *cq;

	cq = efadv_create_cq(ctx, &attr, caller, sizeof(dv));
	ck_assert_ptr_nonnull(cq);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	dv.unknown = 1;
	ck_assert_ptr_null(efadv_create_cq(ctx, &attr, caller, sizeof(dv)));
	dv.unknown = 0;
	dv.known.flags = 1; /* memory of the caller's */
	ck_assert_ptr_null(efadv_create_cq(ctx, &attr, caller, sizeof(dv)));
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

/* More completions than entries: nothing is lost, but it is told. */
START_TEST(overruns_are_told)
{
	struct rig_node a, b;
	struct se_cq *cq;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	cq = (struct se_cq *)b.rcq;
	cq->ex.cqe = 8;
	for (i = 0; i < 9; i++) {
		ck_assert_int_eq(rig_recv(&b, (uint64_t)i, 0, 64), 0);
		ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	}
	for (i = 0; i < 8; i++)
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_uint_eq(cq->overruns, 1);
	for (i = 0; i < 9; i++)
		ck_assert(rig_wait(b.rcq, &wc, &a, RIG_WAIT_MS));
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* A machine has more than its namespaces' numbers: those repeat elsewhere. */
START_TEST(host_is_in_the_gid)
{
	struct rig_node a;
	struct stat st;

	rig_wire(RIG_SHM);
	rig_open(&a, NULL);
	ck_assert_int_eq(stat("/proc/self/ns/net", &st), 0);
	ck_assert_uint_ne((be64toh(a.gid.global.interface_id) ^ st.st_ino) >>
			  32, 0);
	rig_close(&a);
}
END_TEST

Suite *suite_strict(void)
{
	int steps = sizeof(step_cases) / sizeof(step_cases[0]);
	Suite *suite = suite_create("strict");
	TCase *tc = tcase_create("strict");

	tcase_add_loop_test(tc, states_in_their_order, 0, steps);
	tcase_add_test(tc, error_state_takes_nothing);
	tcase_add_test(tc, elements_are_counted);
	tcase_add_loop_test(tc, domains_are_kept_apart, 0, RIG_WIRES);
	tcase_add_loop_test(tc, rdma_wants_a_known_peer, 0, RIG_WIRES);
	tcase_add_test(tc, newer_callers_are_understood);
	tcase_add_test(tc, newer_queues_are_refused);
	tcase_add_test(tc, overruns_are_told);
	tcase_add_test(tc, host_is_in_the_gid);
	suite_add_tcase(suite, tc);
	return suite;
}
