/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Requests that a real device rejects. */
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "softefa.h"
#include "rig.h"

/* RDMA requests may have one scatter element and no inline data. */
START_TEST(excess_elements_are_rejected)
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

/* The objects of a request must belong to one protection domain. */
START_TEST(other_protection_domain_is_rejected)
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
	/* b reads a's region of another protection domain: rejected */
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

/* The target of RDMA must have an address handle of the initiator. */
START_TEST(rdma_requires_address_handle)
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

/* A completion is lost, and counted, if the CQ has no free entry. */
START_TEST(overrun_loses_completion)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	uint64_t i;

	rig_open(&a, NULL);
	rig_open(&b, &(struct rig_opt){ .rnr_retry = 7, .cqe = 8 });
	to = rig_to_node(&a, &b);
	for (i = 0; i < 10; i++) {
		ck_assert_int_eq(rig_recv(&b, i, 0, 64), 0);
		ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	ck_assert_uint_eq(((struct se_cq *)b.rcq)->overruns, 2);
	for (i = 0; i < 8; i++) {
		ck_assert(rig_poll(b.rcq, &wc));
		ck_assert_uint_eq(wc.wr_id, i);
	}
	ck_assert(!rig_poll(b.rcq, &wc));
	/* lost completions keep their receive queue entries in use */
	ck_assert_uint_eq(((struct se_qp *)b.qp)->rq_used, 2);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* The GID is not only the inode number, which may be equal on two hosts. */
START_TEST(gid_depends_on_host)
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
	Suite *suite = suite_create("strict");
	TCase *tc = tcase_create("strict");

	tcase_add_test(tc, excess_elements_are_rejected);
	tcase_add_loop_test(tc, other_protection_domain_is_rejected, 0,
			    RIG_WIRES);
	tcase_add_loop_test(tc, rdma_requires_address_handle, 0, RIG_WIRES);
	tcase_add_test(tc, overrun_loses_completion);
	tcase_add_test(tc, gid_depends_on_host);
	suite_add_tcase(suite, tc);
	return suite;
}
