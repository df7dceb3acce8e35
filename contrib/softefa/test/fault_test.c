/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* SRD's guarantees hold on a lossy wire, and faults are as configured. */
#include <string.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

#define MSGS 3000
#define SLOT 64

/*
 * Reads b's completions. Returns the number of messages that arrived after a
 * message that was sent later.
 */
static int numbered_take(struct rig_node *b, uint8_t *seen, uint32_t *got)
{
	static uint32_t highest;
	struct rig_wc wc;
	uint32_t value;
	int late = 0;

	while (rig_poll(b->rcq, &wc)) {
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		memcpy(&value, b->buf + wc.wr_id * SLOT, sizeof(value));
		ck_assert_uint_lt(value, MSGS);
		ck_assert_msg(!seen[value], "%u arrived twice", value);
		seen[value] = 1;
		late += value < highest;
		highest = value > highest ? value : highest;
		++*got;
		ck_assert_int_eq(rig_recv(b, wc.wr_id,
					  (uint32_t)wc.wr_id * SLOT, SLOT), 0);
	}
	return late;
}

/*
 * Sends MSGS numbered messages from a to b. Reuses completed buffers. Returns
 * the number of late messages: see numbered_take().
 */
static int numbered_run(struct rig_node *a, struct rig_node *b)
{
	static uint8_t seen[MSGS];
	struct rig_to to = rig_to_node(a, b);
	uint32_t next = 0, sent = 0, got = 0, slot[RIG_DEPTH], slots, i;
	struct rig_wc wc;
	bool polled;
	int late = 0;

	for (slots = 0; slots < RIG_DEPTH; slots++) {
		slot[slots] = slots;
		ck_assert_int_eq(rig_recv(b, slots, slots * SLOT, SLOT), 0);
	}
	while (sent < MSGS || got < MSGS) {
		if (next < MSGS && slots) {
			i = slot[--slots];
			memcpy(a->buf + i * SLOT, &next, sizeof(next));
			ck_assert_int_eq(rig_send(a, &to,
						  (uint64_t)next << 16 | i,
						  i * SLOT, SLOT), 0);
			next++;
		}
		polled = rig_poll(a->scq, &wc);
		late += numbered_take(b, seen, &got);
		if (!polled)
			continue;
		/* a's message is complete, so b has received it already */
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		ck_assert_msg(seen[wc.wr_id >> 16],
			      "%lu completed, not delivered", wc.wr_id >> 16);
		slot[slots++] = wc.wr_id & 0xffff;
		sent++;
	}
	return late;
}

static const struct {
	const char *name, *loss, *reorder, *dup, *rnr, *delay;
	bool retrans, late, lost, twice, not_ready;
} fault_cases[] = {
	{ "none", "0", "0", "0", "0", "0", 0, 0, 0, 0, 0 },
	{ "loss", "5%", "0", "0", "0", "0", 1, 1, 1, 0, 0 },
	{ "reorder", "0", "0.2", "0", "0", "0", 0, 1, 0, 0, 0 },
	{ "dup", "0", "0", "0.2", "0", "0", 0, 0, 0, 1, 0 },
	{ "rnr", "0", "0", "0", "0.05", "0", 0, 1, 0, 0, 1 },
	{ "delay", "0", "0", "0", "0", "200", 0, 0, 0, 0, 0 },
	{ "all", "5%", "0.2", "0.1", "0.02", "10", 1, 1, 1, 1, 1 },
};

START_TEST(faulty_wire_delivers_exactly_once)
{
	int row = _i / RIG_WIRES, late;
	struct se_stats a_stats, b_stats;
	struct rig_node a, b;
	uint64_t start;

	rig_wire(_i % RIG_WIRES);
	rig_env("SOFTEFA_LOSS", fault_cases[row].loss);
	rig_env("SOFTEFA_REORDER", fault_cases[row].reorder);
	rig_env("SOFTEFA_DUP", fault_cases[row].dup);
	rig_env("SOFTEFA_RNR", fault_cases[row].rnr);
	rig_env("SOFTEFA_DELAY_US", fault_cases[row].delay);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	start = rig_now_ms();
	late = numbered_run(&a, &b);
	a_stats = rig_stats(&a);
	b_stats = rig_stats(&b);
	ck_assert_uint_eq(a_stats.tx_pkts, MSGS);
	ck_assert_uint_eq(b_stats.rx_pkts, MSGS);
	if (fault_cases[row].retrans)
		ck_assert_msg(a_stats.retrans > 0, "%s", fault_cases[row].name);
	if (fault_cases[row].late)
		ck_assert_msg(late > 0, "%s", fault_cases[row].name);
	else if (_i % RIG_WIRES == RIG_SHM)
		ck_assert_msg(!late && !b_stats.late, "%s: %d late",
			      fault_cases[row].name, late);
	ck_assert_msg(!a_stats.lost == !fault_cases[row].lost, "%s: lost %lu",
		      fault_cases[row].name, a_stats.lost);
	if (fault_cases[row].twice)
		ck_assert_uint_gt(b_stats.dup, 0);
	ck_assert_msg(!a_stats.rnr == !fault_cases[row].not_ready,
		      "%s: rnr %lu", fault_cases[row].name, a_stats.rnr);
	/* shortest time: the packets of a window wait together, for 200 us */
	if (!strcmp(fault_cases[row].name, "delay"))
		ck_assert_uint_ge(rig_now_ms() - start,
				  MSGS / SE_WINDOW * 200 / 1000);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(injected_error_ends_message)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	int i, failed = 0;

	rig_wire(_i);
	rig_env("SOFTEFA_ERROR", "0.25");
	rig_env("SOFTEFA_ERROR_STATUS", "13");
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		if (wc.status) {
			ck_assert_uint_eq(wc.vendor_err, 13);
			failed++;
		}
	}
	ck_assert_int_gt(failed, 5);
	ck_assert_int_lt(failed, 50);
	ck_assert_uint_eq(rig_stats(&a).errors, (uint64_t)failed);
	ck_assert_uint_eq(rig_stats(&b).rx_pkts, 100 - (uint64_t)failed);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

#define SEED_MSGS 300

struct pattern {
	uint8_t lost[SEED_MSGS], failed[SEED_MSGS];
};

/*
 * Main function of a worker process: sends messages, and writes a struct
 * pattern to the pipe "out", from which the test reads it. The pattern has the
 * messages that were lost at the first transmission, and those that failed. All
 * workers with one seed must write the same pattern.
 */
static void seed_run(const struct rig_target *target, int out)
{
	struct pattern pattern = { .lost = { 0 } };
	struct rig_node a, b;
	uint64_t lost, failed;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < SEED_MSGS; i++) {
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
		lost = rig_stats(&a).lost;
		failed = rig_stats(&a).errors;
		ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
		pattern.lost[i] = rig_stats(&a).lost != lost;
		pattern.failed[i] = rig_stats(&a).errors != failed;
		ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
		rig_poll(b.rcq, &wc);
	}
	rig_close(&a);
	rig_close(&b);
	if (write(out, &pattern, sizeof(pattern)) != sizeof(pattern))
		_exit(1);
}

static int pattern_count(const uint8_t *hits)
{
	int i, count = 0;

	for (i = 0; i < SEED_MSGS; i++)
		count += hits[i];
	return count;
}

/*
 * Five processes send the same messages with seeds 7, 7, 8, 1 and none. Equal
 * seeds must cause the same faults, and seeds 7 and 8 different faults. A
 * process without a seed must have the faults of seed 1.
 */
START_TEST(seed_reproduces_faults)
{
	static const char *const seeds[] = { "7", "7", "8", "1", "" };
	struct rig_target none = { .qpn = 0 };
	struct pattern pattern[5];
	struct rig_crew crew[5];
	int i;

	rig_wire(_i);
	rig_env("SOFTEFA_REORDER", "0");
	rig_env("SOFTEFA_LOSS", "10%");
	rig_env("SOFTEFA_ERROR", "10%");
	for (i = 0; i < 5; i++) {
		rig_env("SOFTEFA_SEED", seeds[i]);
		rig_crew_start(&crew[i], 1, seed_run);
		ck_assert_int_eq(write(crew[i].out, &none, sizeof(none)),
				 sizeof(none));
		ck_assert_int_eq(read(crew[i].in, &pattern[i],
				      sizeof(pattern[i])),
				 sizeof(pattern[i]));
		ck_assert_int_gt(pattern_count(pattern[i].lost), 0);
		ck_assert_int_gt(pattern_count(pattern[i].failed), 0);
	}
	rig_crew_end(crew, 5);
	ck_assert_int_eq(memcmp(&pattern[0], &pattern[1],
				sizeof(pattern[0])), 0);
	ck_assert_int_ne(memcmp(pattern[0].lost, pattern[2].lost,
				SEED_MSGS), 0);
	ck_assert_int_ne(memcmp(pattern[0].failed, pattern[2].failed,
				SEED_MSGS), 0);
	ck_assert_int_eq(memcmp(&pattern[3], &pattern[4],
				sizeof(pattern[3])), 0);
}
END_TEST

/* Without SOFTEFA_REORDER, messages arrive out of order. */
START_TEST(messages_are_reordered_by_default)
{
	struct rig_node a, b;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	ck_assert_int_gt(numbered_run(&a, &b), 0);
	ck_assert_uint_gt(rig_stats(&b).late, 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Equal seeds lose the same packets, different seeds lose different packets. */
START_TEST(seed_selects_faults)
{
	int i, hits = 0, differ = 0;
	bool first[1000];

	se_cfg.fault[SE_FAULT_LOSS] = 0.1;
	se_cfg.seed = 1;
	for (i = 0; i < 1000; i++) {
		first[i] = se_fault(SE_FAULT_LOSS, 1, 2, (uint32_t)i);
		hits += first[i];
	}
	ck_assert_int_gt(hits, 60);
	ck_assert_int_lt(hits, 140);
	for (i = 0; i < 1000; i++)
		ck_assert(first[i] == se_fault(SE_FAULT_LOSS, 1, 2,
					       (uint32_t)i));
	se_cfg.seed = 2;
	for (i = 0; i < 1000; i++)
		differ += first[i] != se_fault(SE_FAULT_LOSS, 1, 2,
					       (uint32_t)i);
	ck_assert_int_gt(differ, 50);
	se_cfg.fault[SE_FAULT_LOSS] = 1;
	ck_assert(se_fault(SE_FAULT_LOSS, 1, 2, 3));
	se_cfg.fault[SE_FAULT_LOSS] = 0;
	ck_assert(!se_fault(SE_FAULT_LOSS, 1, 2, 3));
}
END_TEST

#define LONG_TEXT "1234567890123456789012345678901234567890123456789012345678901234"

/* Invalid values of variables are reported and ignored. */
START_TEST(bad_values_are_ignored)
{
	rig_env("SOFTEFA_LOSS", "1.5");
	rig_env("SOFTEFA_DUP", "x");
	rig_env("SOFTEFA_REORDER", "10%");
	rig_env("SOFTEFA_NDEV", "100");
	rig_env("SOFTEFA_WIRE", "ether");
	rig_env("SOFTEFA_RDMA", "read");
	rig_env("SOFTEFA_ADDR", LONG_TEXT);
	ck_assert_int_eq(se_config_read(), 0);
	ck_assert_str_eq(se_cfg.addr, "");
	ck_assert(se_cfg.fault[SE_FAULT_LOSS] == 0);
	ck_assert(se_cfg.fault[SE_FAULT_DUP] == 0);
	ck_assert(se_cfg.fault[SE_FAULT_REORDER] == 0.1);
	ck_assert_uint_eq(se_cfg.ndev, 1);
	ck_assert(!se_cfg.udp);
	ck_assert_uint_eq(se_cfg.caps & (SE_CAP_RDMA_READ | SE_CAP_RDMA_WRITE),
			  SE_CAP_RDMA_READ);
}
END_TEST

/*
 * The device sends a held packet when its time has come, also if no other
 * packet of the flow needs attention then.
 */
START_TEST(held_packet_is_sent_in_time)
{
	struct rig_node a, b;
	struct se_flow *flow;
	struct rig_to to;

	rig_wire(RIG_SHM);
	rig_env("SOFTEFA_REORDER", "1");
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	flow = se_flow_find((struct se_qp *)a.qp, &b.gid, b.qp->qp_num);
	while (flow->slot[0].state != SE_SLOT_SENT)
		rig_progress(&a);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 8), 0);
	ck_assert_int_eq(flow->slot[1].state, SE_SLOT_WAIT);
	ck_assert_uint_le(flow->due, flow->slot[1].time);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

Suite *suite_faults(void)
{
	int rows = sizeof(fault_cases) / sizeof(fault_cases[0]);
	Suite *suite = suite_create("faults");
	TCase *tc = tcase_create("faults");

	tcase_add_loop_test(tc, faulty_wire_delivers_exactly_once, 0,
			    rows * RIG_WIRES);
	tcase_add_loop_test(tc, injected_error_ends_message, 0, RIG_WIRES);
	tcase_add_loop_test(tc, seed_reproduces_faults, 0, RIG_WIRES);
	tcase_add_loop_test(tc, messages_are_reordered_by_default, 0,
			    RIG_WIRES);
	tcase_add_test(tc, seed_selects_faults);
	tcase_add_test(tc, bad_values_are_ignored);
	tcase_add_test(tc, held_packet_is_sent_in_time);
	suite_add_tcase(suite, tc);
	return suite;
}
