/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Every reported limit holds, and exceeding it returns the documented error. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

START_TEST(queues_are_bounded)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < RIG_DEPTH; i++) {
		ck_assert_int_eq(rig_send(&a, &to, (uint64_t)i, 0, 8), 0);
		ck_assert_int_eq(rig_recv(&b, (uint64_t)i, 0, 64), 0);
	}
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), ENOMEM);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), ENOMEM);
	/* a completion frees space when it is polled, not before */
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), ENOMEM);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), ENOMEM);
	ck_assert(rig_wait(b.rcq, &wc, &a, RIG_WAIT_MS));
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(work_requests_are_checked)
{
	struct ibv_sge sge[4] = { { 0 } };
	struct ibv_data_buf big = { "", 33 };
	struct ibv_recv_wr *bad, wr = { .sg_list = sge, .num_sge = 2 };
	struct ibv_qp_ex *ex;
	struct rig_node a;
	struct rig_to to;

	rig_open(&a, NULL);
	to = rig_to_node(&a, &a);
	ex = ibv_qp_to_qp_ex(a.qp);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge_list(ex, 3, sge);
	ibv_wr_set_ud_addr(ex, to.ah, to.qpn, to.qkey);
	ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_inline_data_list(ex, 1, &big);
	ibv_wr_set_ud_addr(ex, to.ah, to.qpn, to.qkey);
	ck_assert_int_eq(ibv_wr_complete(ex), EINVAL);
	ck_assert_int_eq(ibv_post_recv(a.qp, &wr, &bad), EINVAL);
	/* an aborted session leaves no work request */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_abort(ex);
	ck_assert_uint_eq(rig_stats(&a).tx_pkts, 0);
	rig_close(&a);
}
END_TEST

START_TEST(objects_are_bounded)
{
	struct ibv_ah_attr ah_attr = { .is_global = 1, .port_num = 1 };
	struct ibv_context *ctx;
	struct ibv_ah *ah[4];
	struct ibv_pd *pd[4];
	struct ibv_mr *mr[4];
	struct ibv_cq *cq[4];
	char buf[64];
	int i;

	rig_env("SOFTEFA_MAX_PD", "3");
	rig_env("SOFTEFA_MAX_AH", "3");
	rig_env("SOFTEFA_MAX_MR", "3");
	rig_env("SOFTEFA_MAX_CQ", "3");
	ctx = rig_context(0);
	for (i = 0; i < 4; i++) {
		pd[i] = ibv_alloc_pd(ctx);
		ck_assert(!pd[i] == (i == 3));
	}
	ck_assert_int_eq(errno, ENOMEM);
	for (i = 0; i < 4; i++) {
		ah_attr.grh.dgid.raw[15] = (uint8_t)i;
		ah[i] = ibv_create_ah(pd[0], &ah_attr);
		mr[i] = ibv_reg_mr(pd[0], buf, sizeof(buf), 0);
		cq[i] = ibv_create_cq(ctx, 16, NULL, NULL, 0);
		ck_assert(!ah[i] == (i == 3));
		ck_assert(!mr[i] == (i == 3));
		ck_assert(!cq[i] == (i == 3));
	}
	ck_assert_int_eq(errno, ENOMEM);
	/* a released object can be allocated again */
	ibv_destroy_ah(ah[1]);
	ibv_dereg_mr(mr[1]);
	ibv_destroy_cq(cq[1]);
	ibv_dealloc_pd(pd[1]);
	ck_assert_ptr_nonnull(ah[1] = ibv_create_ah(pd[0], &ah_attr));
	ck_assert_ptr_nonnull(mr[1] = ibv_reg_mr(pd[0], buf, sizeof(buf), 0));
	ck_assert_ptr_nonnull(cq[1] = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	ck_assert_ptr_nonnull(pd[1] = ibv_alloc_pd(ctx));
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(ibv_destroy_ah(ah[i]), 0);
		ck_assert_int_eq(ibv_dereg_mr(mr[i]), 0);
		ck_assert_int_eq(ibv_destroy_cq(cq[i]), 0);
	}
	for (i = 0; i < 3; i++)
		ck_assert_int_eq(ibv_dealloc_pd(pd[i]), 0);
	ck_assert_int_eq(ibv_close_device(ctx), 0);
}
END_TEST

/* All QP numbers must differ modulo the limit; see se_qpn_take(). */
START_TEST(queue_pairs_are_bounded)
{
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_context *ctx;
	struct ibv_qp *qp[9];
	bool used[8] = { false };
	int i;

	rig_wire(_i);
	rig_env("SOFTEFA_MAX_QP", "8");
	rig_env("SOFTEFA_SLOTS", "64");
	ctx = rig_context(0);
	attr.send_cq = attr.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	for (i = 0; i < 9; i++) {
		qp[i] = ibv_create_qp(ibv_alloc_pd(ctx), &attr);
		ck_assert(!qp[i] == (i == 8));
		if (!qp[i])
			break;
		ck_assert(!used[qp[i]->qp_num % 8]);
		used[qp[i]->qp_num % 8] = true;
	}
	ck_assert_int_eq(errno, ENOMEM);
	ck_assert_int_eq(ibv_destroy_cq(attr.send_cq), EBUSY);
	ck_assert_int_eq(ibv_destroy_qp(qp[3]), 0);
	ck_assert_ptr_nonnull(ibv_create_qp(ibv_alloc_pd(ctx), &attr));
}
END_TEST

START_TEST(unmapped_memory_is_rejected)
{
	size_t page = (size_t)getpagesize(), len = 4 * page;
	struct ibv_context *ctx = rig_context(0);
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	char *mem;

	mem = mmap(NULL, len, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(mem, MAP_FAILED);
	ck_assert_ptr_nonnull(ibv_reg_mr(pd, mem, len, 0));
	/* the end of the region is behind the end of the address space */
	ck_assert_ptr_null(ibv_reg_mr(pd, mem + 2, SIZE_MAX, 0));
	ck_assert_int_eq(errno, EINVAL);
	munmap(mem + page, page);
	ck_assert_ptr_null(ibv_reg_mr(pd, mem + 8, len - 16, 0));
	ck_assert_int_eq(errno, EFAULT);
	munmap(mem + len - page, page);
	ck_assert_ptr_null(ibv_reg_mr(pd, mem + 2 * page, 2 * page, 0));
	ck_assert_int_eq(errno, EFAULT);
	ck_assert_ptr_nonnull(ibv_reg_mr(pd, mem + 2 * page + 8, 8, 0));
}
END_TEST

/*
 * An old caller gets the fields that fit in its structure. No byte behind the
 * structure changes.
 */
START_TEST(old_caller_gets_fields_that_fit)
{
	struct ibv_context *ctx = rig_context(0);
	uint8_t bytes[sizeof(struct efadv_device_attr)];
	struct efadv_device_attr full;
	uint32_t part = offsetof(struct efadv_device_attr, device_caps);

	memset(bytes, 0xee, sizeof(bytes));
	ck_assert_int_eq(efadv_query_device(ctx, &full, sizeof(full)), 0);
	ck_assert_int_eq(efadv_query_device(
		ctx, (struct efadv_device_attr *)bytes, part), 0);
	ck_assert_int_eq(memcmp(bytes, &full, part), 0);
	ck_assert_uint_eq(bytes[part], 0xee);
	ck_assert_uint_eq(full.device_caps & 2, 2);
}
END_TEST

Suite *suite_limits(void)
{
	Suite *suite = suite_create("limits");
	TCase *tc = tcase_create("limits");

	tcase_add_loop_test(tc, queues_are_bounded, 0, RIG_WIRES);
	tcase_add_test(tc, work_requests_are_checked);
	tcase_add_test(tc, objects_are_bounded);
	tcase_add_loop_test(tc, queue_pairs_are_bounded, 0, RIG_WIRES);
	tcase_add_test(tc, unmapped_memory_is_rejected);
	tcase_add_test(tc, old_caller_gets_fields_that_fit);
	suite_add_tcase(suite, tc);
	return suite;
}
