/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Flows of peers that exit, and of more peers than SOFTEFA_MAX_FLOWS. */
#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

static int fd_count(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

/* Sends a message. Processes with an even pid do not destroy their QPs. */
static void visitor(const struct rig_target *target, int out)
{
	struct rig_node node;
	struct rig_wc wc = { .vendor_err = 255 };
	struct rig_to to;
	uint8_t status;

	rig_open(&node, NULL);
	to = rig_to(&node, &target->gid, target->qpn);
	rig_send(&node, &to, 1, 0, 8000);
	rig_wait(node.scq, &wc, NULL, RIG_WAIT_MS);
	status = (uint8_t)wc.vendor_err;
	if (getpid() % 2)
		rig_close(&node);
	if (write(out, &status, 1) != 1)
		_exit(1);
}

#define VISITORS 24

/* All messages arrive if more peers than SOFTEFA_MAX_FLOWS send in turn. */
START_TEST(flows_of_exited_peers_are_freed)
{
	struct rig_crew crew[VISITORS];
	struct rig_node a;
	struct se_qp *qp;
	struct rig_wc wc;
	int i, fds;

	rig_wire(_i);
	rig_env("SOFTEFA_MAX_FLOWS", "4");
	rig_crew_start(crew, VISITORS, visitor);
	rig_open(&a, NULL);
	qp = (struct se_qp *)a.qp;
	fds = fd_count();
	for (i = 0; i < VISITORS; i++) {
		ck_assert_int_eq(rig_recv(&a, (uint64_t)i, 0, 9000), 0);
		rig_crew_call(&crew[i], &a);
		ck_assert_int_eq(rig_crew_hear(&crew[i], &a, RIG_WAIT_MS), 0);
		ck_assert(rig_wait(a.rcq, &wc, NULL, RIG_WAIT_MS));
		ck_assert_uint_eq(wc.wr_id, (uint64_t)i);
		rig_crew_end(&crew[i], 1);
		/* on udp, only the ICMP error for a PING shows the exit */
		if (_i == RIG_UDP) {
			pthread_mutex_lock(&qp->lock);
			for (int b = 0; b < SE_FLOW_HASH; b++)
				if (qp->flows[b])
					se_flow_tell(qp, qp->flows[b],
						     SE_PKT_PING, 0);
			pthread_mutex_unlock(&qp->lock);
		}
		ck_assert_uint_le(qp->flow_count, 4);
	}
	ck_assert_int_le(fd_count(), fds);
	/* without messages, polls free the last flows */
	for (i = 0; i < 300 * 8192 && qp->flow_count; i++)
		rig_poll(a.rcq, &wc);
	ck_assert_uint_eq(qp->flow_count, 0);
	rig_close(&a);
}
END_TEST

#define CROWD 3

/* While live peers use all flows, a message from or to a further peer fails. */
START_TEST(peer_beyond_limit_gets_error)
{
	struct rig_node a, b[CROWD];
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_wire(_i);
	rig_open(&a, NULL);
	se_cfg.max_flows = CROWD - 1;
	for (i = 0; i < CROWD; i++) {
		rig_open(&b[i], NULL);
		to = rig_to_node(&b[i], &a);
		ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&b[i], &to, 5, 0, 8), 0);
		ck_assert_msg(rig_wait(b[i].scq, &wc, &a, RIG_WAIT_MS),
			      "%d waits", i);
		ck_assert_uint_eq(wc.vendor_err,
				  i < CROWD - 1 ? 0 : SE_UNREACH_REMOTE);
	}
	to = rig_to_node(&a, &b[CROWD - 1]);
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 8), 0);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_UNREACH_REMOTE);
	/* when a peer closes, a further peer can have a flow */
	rig_close(&b[0]);
	if (_i == RIG_SHM) {
		usleep(20000);
		to = rig_to_node(&b[CROWD - 1], &a);
		ck_assert_int_eq(rig_send(&b[CROWD - 1], &to, 5, 0, 8), 0);
		ck_assert(rig_wait(b[CROWD - 1].scq, &wc, &a, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	for (i = 1; i < CROWD; i++)
		rig_close(&b[i]);
	rig_close(&a);
}
END_TEST

/*
 * If this process can open no file descriptor, the peer must not count as
 * failed.
 */
START_TEST(missing_descriptor_is_no_failure)
{
	struct rlimit none, limit;
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(RIG_SHM);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 8), 0);
	ck_assert(!rig_wait(a.scq, &wc, &b, 200));
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Receives all packets in the ring. Retransmits none. */
static void take_all(struct rig_node *node)
{
	struct se_qp *qp = (struct se_qp *)node->qp;

	pthread_mutex_lock(&qp->lock);
	while (qp->wire->rx(qp, 1))
		;
	pthread_mutex_unlock(&qp->lock);
}

/* A NAK waits for space in the peer's ring. */
START_TEST(nak_waits_for_space)
{
	struct rig_node a, b;
	struct rig_to to, back;
	int i;

	rig_wire(RIG_SHM);
	rig_env("SOFTEFA_SLOTS", "64");
	/* no delays: all 64 packets fill the ring at the same time */
	rig_env("SOFTEFA_REORDER", "0");
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	back = rig_to_node(&b, &a);
	for (i = 0; i < 64; i++) {
		ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&b, &back, 5, 0, 8), 0);
	}
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 8), 0);
	/* b has no receive, and a's ring has no space for the NAK */
	rig_progress(&b);
	ck_assert_uint_eq(rig_stats(&a).rnr, 0);
	take_all(&a);
	ck_assert_uint_eq(rig_stats(&a).rx_pkts, 64);
	rig_progress(&b);
	take_all(&a);
	ck_assert_uint_eq(rig_stats(&a).rnr, 1);
	ck_assert_uint_eq(rig_stats(&a).retrans, 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* Frees the node's only flow, as if its peer had been silent for too long. */
static void forget_peer(struct rig_node *node, const struct rig_node *peer)
{
	struct se_qp *qp = (struct se_qp *)node->qp;
	struct se_flow *flow;

	pthread_mutex_lock(&qp->lock);
	flow = se_flow_find(qp, &peer->gid, peer->qp->qp_num);
	ck_assert_ptr_nonnull(flow);
	flow->quiet_since = se_now() - 11 * 1000000000ull;
	se_cfg.timeout_ms = 10;
	se_flow_reap_all(qp, true);
	se_cfg.timeout_ms = 10 * RIG_WAIT_MS;
	pthread_mutex_unlock(&qp->lock);
	ck_assert_uint_eq(qp->flow_count, 0);
}

/*
 * A receiver has freed the flow of a peer that was silent for too long. The
 * peer's next message fails, even if the peer had sent only one packet before.
 * The message after the failed one arrives.
 */
START_TEST(message_to_freed_flow_fails)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_wire(RIG_UDP);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < 3; i++) {
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&a, &to, 5, 0, 8), 0);
		ck_assert_msg(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS),
			      "message %d waits", i);
		ck_assert_uint_eq(wc.vendor_err,
				  i == 1 ? SE_REMOTE_BAD_DEST_QPN : SE_OK);
		ck_assert_int_eq(rig_wait(b.rcq, &wc, NULL, 0), i != 1);
		if (!i)
			forget_peer(&b, &a);
	}
	rig_close(&a);
	rig_close(&b);
}
END_TEST

Suite *suite_flows(void)
{
	Suite *suite = suite_create("flows");
	TCase *tc = tcase_create("flows");

	tcase_add_loop_test(tc, flows_of_exited_peers_are_freed, 0, RIG_WIRES);
	tcase_add_loop_test(tc, peer_beyond_limit_gets_error, 0, RIG_WIRES);
	tcase_add_test(tc, missing_descriptor_is_no_failure);
	tcase_add_test(tc, nak_waits_for_space);
	tcase_add_test(tc, message_to_freed_flow_fails);
	suite_add_tcase(suite, tc);
	return suite;
}
