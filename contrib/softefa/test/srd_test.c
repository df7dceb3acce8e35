/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* SRD's guarantees without faults, and the status of invalid requests. */
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "softefa.h"
#include "rig.h"

START_TEST(message_arrives)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to, back;
	uint32_t len, i;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	back = rig_to_node(&b, &a);
	for (i = 0; i < 4; i++) {
		len = (uint32_t[]){ 0, 8, 4096, 8928 }[i];
		memset(a.buf, 'a' + (int)i, len);
		ck_assert_int_eq(rig_recv(&b, 100 + i, 0, 9000), 0);
		ck_assert_int_eq(rig_send(&a, &to, 7 + i, 0, len), 0);
		ck_assert(rig_wait(b.rcq, &wc, &a, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
		ck_assert_uint_eq(wc.wr_id, 100 + i);
		ck_assert_uint_eq(wc.byte_len, len);
		ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
		ck_assert_uint_eq(wc.slid, ((struct se_ah *)back.ah)->ahn);
		ck_assert_int_eq(memcmp(a.buf, b.buf, len), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_uint_eq(wc.wr_id, 7 + i);
	}
	ck_assert_uint_eq(rig_stats(&a).tx_pkts, 4);
	ck_assert_uint_eq(rig_stats(&b).rx_pkts, 4);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(immediate_and_inline_data_arrive)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	uint64_t got;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send_imm(&a, &to, 42, 0xabcd), 0);
	ck_assert(rig_wait(b.rcq, &wc, &a, RIG_WAIT_MS));
	memcpy(&got, b.buf, sizeof(got));
	ck_assert_uint_eq(got, 42);
	ck_assert_uint_eq(wc.imm, 0xabcd);
	ck_assert_uint_eq(wc.flags, IBV_WC_WITH_IMM);
	/*
	 * All address handles to a GID have one number. a and b have the same
	 * GID, so b's completion has the number of a's handle for b.
	 */
	ck_assert_uint_eq(wc.slid, ((struct se_ah *)to.ah)->ahn);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(qp_sends_to_itself)
{
	struct rig_node a;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i);
	rig_open(&a, NULL);
	to = rig_to_node(&a, &a);
	memset(a.buf, 'x', 100);
	ck_assert_int_eq(rig_recv(&a, 1, 1000, 100), 0);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 100), 0);
	ck_assert(rig_wait(a.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(memcmp(a.buf, a.buf + 1000, 100), 0);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	rig_close(&a);
}
END_TEST

START_TEST(unknown_sender_has_gid)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	struct ibv_poll_cq_attr attr = { 0 };
	union ibv_gid gid;
	uint64_t end;

	rig_wire(_i);
	rig_env("SOFTEFA_NDEV", "2");
	rig_open(&a, NULL);
	rig_open(&b, &(struct rig_opt){ .dev = 1, .rnr_retry = 7 });
	ck_assert(!se_gid_equal(&a.gid, &b.gid));
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 8), 0);
	end = rig_now_ms() + RIG_WAIT_MS;
	while (ibv_start_poll(b.rcq, &attr))
		ck_assert_uint_lt(rig_now_ms(), end);
	ck_assert_uint_eq(ibv_wc_read_slid(b.rcq), SE_AH_UNKNOWN);
	ck_assert_int_eq(efadv_wc_read_sgid(efadv_cq_from_ibv_cq_ex(b.rcq),
					    &gid), 0);
	ck_assert(se_gid_equal(&gid, &a.gid));
	ibv_end_poll(b.rcq);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Rows: an error, and the vendor_err and the status that it causes. */
enum wrong { BAD_QKEY, BAD_QPN, BAD_LKEY, TOO_LONG, SHORT_RECV, NO_RECV };

static const struct {
	const char *name;
	enum wrong wrong;
	uint32_t vendor_err;
	enum ibv_wc_status status;
} wrong_cases[] = {
	{ "qkey", BAD_QKEY, 13, IBV_WC_RESP_TIMEOUT_ERR },
	{ "qpn", BAD_QPN, 9, IBV_WC_REM_INV_RD_REQ_ERR },
	{ "lkey", BAD_LKEY, 5, IBV_WC_LOC_PROT_ERR },
	{ "beyond the MTU", TOO_LONG, 6, IBV_WC_LOC_LEN_ERR },
	{ "receive too short", SHORT_RECV, 11, IBV_WC_REM_INV_REQ_ERR },
	{ "no receive", NO_RECV, 10, IBV_WC_RNR_RETRY_EXC_ERR },
};

static void wrong_send(struct rig_node *a, struct rig_node *b, enum wrong wrong)
{
	struct rig_to to = rig_to_node(a, b);
	struct ibv_mr mr, *good = a->mr;
	uint32_t len = wrong == TOO_LONG ? 8929 : 64;

	if (wrong == BAD_QKEY)
		to.qkey++;
	if (wrong == BAD_QPN)
		to.qpn ^= 0x5555;
	if (wrong == BAD_LKEY) {
		mr = *good;
		mr.lkey++;
		a->mr = &mr;
	}
	if (wrong != NO_RECV)
		ck_assert_int_eq(rig_recv(b, 1, 0,
					  wrong == SHORT_RECV ? 32 : 9000), 0);
	ck_assert_int_eq(rig_send(a, &to, 5, 0, len), 0);
	a->mr = good;
}

START_TEST(invalid_send_fails)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	size_t i;

	rig_wire(_i);
	for (i = 0; i < sizeof(wrong_cases) / sizeof(wrong_cases[0]); i++) {
		rig_open(&a, &(struct rig_opt){ .rnr_retry = 1 });
		rig_open(&b, NULL);
		wrong_send(&a, &b, wrong_cases[i].wrong);
		ck_assert_msg(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS), "%s",
			      wrong_cases[i].name);
		ck_assert_msg(wc.vendor_err == wrong_cases[i].vendor_err &&
			      wc.status == wrong_cases[i].status,
			      "%s: vendor_err %u status %d",
			      wrong_cases[i].name, wc.vendor_err, wc.status);
		/* the flow still works: the next, valid message arrives */
		to = rig_to_node(&a, &b);
		ck_assert_int_eq(rig_recv(&b, 2, 0, 9000), 0);
		ck_assert_int_eq(rig_send(&a, &to, 6, 0, 16), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		ck_assert_msg(wc.status == IBV_WC_SUCCESS, "%s: next %d",
			      wrong_cases[i].name, wc.status);
		rig_close(&a);
		rig_close(&b);
	}
}
END_TEST

/* With rnr_retry 7 a send is repeated until the peer posts a receive. */
START_TEST(rnr_retries_until_ready)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
	do {
		ck_assert(!rig_wait(a.scq, &wc, &b, 50));
	} while (!rig_stats(&a).rnr);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(error_state_flushes)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 64), 0);
	ck_assert_int_eq(ibv_modify_qp(a.qp, &attr, IBV_QP_STATE), 0);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 2);
	ck_assert(rig_wait(a.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_WR_FLUSH_ERR);
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), EINVAL);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 64), EINVAL);
	ck_assert(!rig_poll(a.scq, &wc));
	rig_close(&a);
	rig_close(&b);
}
END_TEST

#define THREAD_MSGS 2000

struct sender {
	struct rig_node *node;
	struct rig_to to;
};

static void *sender_run(void *arg)
{
	struct sender *sender = arg;
	struct rig_wc wc;
	int posted = 0, done = 0;

	while (done < THREAD_MSGS) {
		if (posted < THREAD_MSGS &&
		    !rig_send(sender->node, &sender->to, 1, 0, 200))
			posted++;
		while (rig_poll(sender->node->scq, &wc))
			done += wc.status == IBV_WC_SUCCESS;
	}
	return NULL;
}

/* Two threads with a QP each send to a third QP: all messages arrive. */
START_TEST(threads_send_to_one_qp)
{
	struct rig_node a[2], b;
	struct sender sender[2];
	pthread_t thread[2];
	struct rig_wc wc;
	int i, got = 0;

	rig_wire(_i);
	rig_open(&b, NULL);
	for (i = 0; i < RIG_DEPTH; i++)
		ck_assert_int_eq(rig_recv(&b, 1, 0, 256), 0);
	for (i = 0; i < 2; i++) {
		rig_open(&a[i], NULL);
		sender[i].node = &a[i];
		sender[i].to = rig_to_node(&a[i], &b);
		ck_assert_int_eq(pthread_create(&thread[i], NULL, sender_run,
						&sender[i]), 0);
	}
	while (got < 2 * THREAD_MSGS) {
		ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_int_eq(rig_recv(&b, 1, 0, 256), 0);
		got++;
	}
	for (i = 0; i < 2; i++) {
		/* b's last poll has sent the last ACK: the thread ends */
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
		rig_close(&a[i]);
	}
	ck_assert(!rig_poll(b.rcq, &wc));
	rig_close(&b);
}
END_TEST

Suite *suite_srd(void)
{
	Suite *suite = suite_create("srd");
	TCase *tc = tcase_create("srd");

	tcase_add_loop_test(tc, message_arrives, 0, RIG_WIRES);
	tcase_add_loop_test(tc, immediate_and_inline_data_arrive, 0, RIG_WIRES);
	tcase_add_loop_test(tc, qp_sends_to_itself, 0, RIG_WIRES);
	tcase_add_loop_test(tc, unknown_sender_has_gid, 0, RIG_WIRES);
	tcase_add_loop_test(tc, invalid_send_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, rnr_retries_until_ready, 0, RIG_WIRES);
	tcase_add_loop_test(tc, error_state_flushes, 0, RIG_WIRES);
	tcase_add_loop_test(tc, threads_send_to_one_qp, 0, RIG_WIRES);
	suite_add_tcase(suite, tc);
	return suite;
}
