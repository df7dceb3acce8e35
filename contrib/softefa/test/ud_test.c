/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* UD: each datagram is delivered once or not at all, without a report. */
#include <string.h>

#include "softefa.h"
#include "rig.h"

static const struct rig_opt ud = { .ud = true };

static void open_two(struct rig_node *a, struct rig_node *b, int wire)
{
	rig_wire(wire);
	rig_open(a, &ud);
	rig_open(b, &ud);
}

static void complete(struct rig_node *node)
{
	struct rig_wc wc;

	ck_assert(rig_wait(node->scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
}

/* The data is in the receive buffer behind space for a global route header. */
START_TEST(datagrams_arrive)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;

	open_two(&a, &b, _i);
	to = rig_to_node(&a, &b);
	memset(a.buf, 0x5a, 100);
	ck_assert_int_eq(rig_recv(&b, 7, 0, SE_GRH_LEN + 100), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 100), 0);
	complete(&a);
	ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert_int_eq(wc.opcode, IBV_WC_RECV);
	ck_assert_uint_eq(wc.wr_id, 7);
	ck_assert_uint_eq(wc.byte_len, SE_GRH_LEN + 100);
	ck_assert_uint_eq(wc.src_qp, a.qp->qp_num);
	ck_assert_int_eq(memcmp(b.buf + SE_GRH_LEN, a.buf, 100), 0);
	ck_assert_uint_eq(b.buf[SE_GRH_LEN + 100], 0);

	ck_assert_int_eq(rig_recv(&b, 8, 0, SE_GRH_LEN + 100), 0);
	ck_assert_int_eq(rig_send_imm(&a, &to, 2, 0xabcd), 0);
	complete(&a);
	ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.flags, IBV_WC_WITH_IMM);
	ck_assert_uint_eq(wc.imm, 0xabcd);
	ck_assert_uint_eq(wc.byte_len, SE_GRH_LEN + sizeof(uint64_t));
	rig_close(&a);
	rig_close(&b);
}
END_TEST

enum dropped { NO_RECEIVE, SHORT_RECEIVE, WRONG_QKEY, DROPPED };

/* A datagram that cannot be delivered is dropped, and its send succeeds. */
START_TEST(undeliverable_datagram_is_dropped)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to, wrong;

	open_two(&a, &b, _i % RIG_WIRES);
	to = rig_to_node(&a, &b);
	wrong = to;
	wrong.qkey++;
	if (_i / RIG_WIRES == SHORT_RECEIVE)
		ck_assert_int_eq(rig_recv(&b, 1, 0, 8), 0);
	if (_i / RIG_WIRES == WRONG_QKEY)
		ck_assert_int_eq(rig_recv(&b, 1, 0, 100), 0);
	ck_assert_int_eq(rig_send(&a, _i / RIG_WIRES == WRONG_QKEY ? &wrong :
				  &to, 1, 0, 8), 0);
	complete(&a);
	/* order is kept: if the next datagram arrives, this one was dropped */
	if (_i / RIG_WIRES != WRONG_QKEY) {
		rig_progress(&b);
		ck_assert(!rig_poll(b.rcq, &wc));
	}
	if (_i / RIG_WIRES == SHORT_RECEIVE) {
		rig_close(&a);
		rig_close(&b);
		return;
	}
	ck_assert_int_eq(rig_recv(&b, 2, 0, 100), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 16), 0);
	complete(&a);
	ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.byte_len, SE_GRH_LEN + 16);
	ck_assert_uint_eq(rig_stats(&b).rx_pkts, 1);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

#define MANY 200

/* A lost datagram is not retransmitted. All others arrive. */
START_TEST(lost_datagram_is_not_repeated)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	uint64_t lost;
	int i;

	rig_env("SOFTEFA_LOSS", "0.2");
	open_two(&a, &b, _i);
	to = rig_to_node(&a, &b);
	for (i = 0; i < MANY; i++) {
		lost = rig_stats(&a).lost;
		ck_assert_int_eq(rig_recv(&b, (uint64_t)i, 0, 100), 0);
		ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
		complete(&a);
		if (rig_stats(&a).lost == lost)
			ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
	}
	lost = rig_stats(&a).lost;
	ck_assert(lost > 0 && lost < MANY / 2);
	ck_assert_uint_eq(rig_stats(&b).rx_pkts, MANY - lost);
	ck_assert_uint_eq(rig_stats(&a).retrans, 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* A datagram to a destroyed QP is dropped, and its send succeeds. */
START_TEST(datagram_to_destroyed_qp_is_dropped)
{
	struct rig_node a, b;
	struct rig_to to;

	open_two(&a, &b, _i);
	to = rig_to_node(&a, &b);
	rig_close(&b);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	complete(&a);
	rig_close(&a);
}
END_TEST

Suite *suite_ud(void)
{
	Suite *suite = suite_create("ud");
	TCase *tc = tcase_create("ud");

	tcase_add_loop_test(tc, datagrams_arrive, 0, RIG_WIRES);
	tcase_add_loop_test(tc, undeliverable_datagram_is_dropped, 0,
			    DROPPED * RIG_WIRES);
	tcase_add_loop_test(tc, lost_datagram_is_not_repeated, 0, RIG_WIRES);
	tcase_add_loop_test(tc, datagram_to_destroyed_qp_is_dropped, 0,
			    RIG_WIRES);
	suite_add_tcase(suite, tc);
	return suite;
}
