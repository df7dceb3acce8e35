/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A thread that sleeps on a completion channel wakes when it must poll. */
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

START_TEST(message_wakes_channel)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;
	struct pollfd pfd;
	struct ibv_cq *cq;
	void *ctx;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, &(struct rig_opt){ .rnr_retry = 7, .channel = true });
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(ibv_req_notify_cq(ibv_cq_ex_to_cq(b.rcq), 0), 0);
	ck_assert(!rig_poll(b.rcq, &wc));
	pfd = (struct pollfd){ .fd = b.channel->fd, .events = POLLIN };
	ck_assert_int_eq(poll(&pfd, 1, 50), 0);
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
	ck_assert_int_eq(poll(&pfd, 1, RIG_WAIT_MS), 1);
	ck_assert_int_eq(ibv_get_cq_event(b.channel, &cq, &ctx), 0);
	ck_assert_ptr_eq(cq, ibv_cq_ex_to_cq(b.rcq));
	ibv_ack_cq_events(cq, 1);
	ck_assert(rig_wait(b.rcq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(poll(&pfd, 1, 0), 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

struct poller {
	struct rig_node *node;
	_Atomic bool stop;
};

/* Thread: a peer that polls without pause. */
static void *poller_run(void *arg)
{
	struct poller *poller = arg;
	struct rig_wc wc;

	while (!poller->stop) {
		if (rig_poll(poller->node->rcq, &wc))
			rig_recv(poller->node, 1, 0, 64);
	}
	return NULL;
}

/*
 * Sleeps on the node's channel, and polls the send CQ when woken, until there
 * is a completion. False: the channel has not woken this thread in RIG_WAIT_MS.
 */
static bool sleep_and_take(struct rig_node *node, struct rig_wc *wc)
{
	struct pollfd pfd = { .fd = node->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *ctx;

	for (;;) {
		if (poll(&pfd, 1, RIG_WAIT_MS) != 1)
			return false;
		ck_assert_int_eq(ibv_get_cq_event(node->channel, &cq, &ctx), 0);
		ibv_ack_cq_events(cq, 1);
		if (rig_poll(node->scq, wc))
			return true;
		ck_assert_int_eq(ibv_req_notify_cq(cq, 0), 0);
	}
}

/*
 * The CQ is armed before a send is posted, as if another thread posted the
 * send. Half of the packets are lost: the channel must wake this thread, so
 * that its polls retransmit.
 */
START_TEST(channel_armed_before_send_wakes)
{
	struct rig_opt opt = { .rnr_retry = 7, .send_channel = true };
	struct poller poller = { 0 };
	struct rig_node a, b;
	pthread_t thread;
	struct rig_wc wc;
	struct rig_to to;
	int i;

	rig_wire(_i);
	rig_env("SOFTEFA_LOSS", "0.5");
	rig_open(&a, &opt);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	for (i = 0; i < RIG_DEPTH; i++)
		ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	poller.node = &b;
	ck_assert_int_eq(pthread_create(&thread, NULL, poller_run, &poller),
			 0);
	for (i = 0; i < 20; i++) {
		ck_assert_int_eq(ibv_req_notify_cq(ibv_cq_ex_to_cq(a.scq), 0),
				 0);
		ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
		ck_assert_msg(sleep_and_take(&a, &wc), "message %d: asleep",
			      i);
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	}
	ck_assert_uint_gt(rig_stats(&a).retrans, 0);
	poller.stop = true;
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/* True if the node's channel stays silent after a few events. */
static bool falls_asleep(struct rig_node *node)
{
	struct pollfd pfd = { .fd = node->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	struct rig_wc wc;
	void *ctx;
	int i;

	for (i = 0; i < 200; i++) {
		while (rig_poll(node->rcq, &wc))
			;
		ck_assert_int_eq(ibv_req_notify_cq(ibv_cq_ex_to_cq(node->rcq),
						   0), 0);
		if (!poll(&pfd, 1, 50))
			return true;
		ck_assert_int_eq(ibv_get_cq_event(node->channel, &cq, &ctx), 0);
		ibv_ack_cq_events(cq, 1);
	}
	return false;
}

/* Sends a message, and sleeps with an armed CQ until it is killed. */
static void sleeper(const struct rig_target *target, int out)
{
	struct rig_opt opt = { .rnr_retry = 7, .channel = true };
	struct rig_node node;
	struct rig_wc wc;
	struct rig_to to;

	rig_open(&node, &opt);
	to = rig_to(&node, &target->gid, target->qpn);
	rig_send(&node, &to, 1, 0, 64);
	if (!rig_wait(node.scq, &wc, NULL, RIG_WAIT_MS) ||
	    !falls_asleep(&node) || write(out, "", 1) != 1)
		_exit(1);
	pause();
}

/*
 * The peer was killed while it slept on its channel. A message to it fails,
 * and its doorbell does not end this process by SIGPIPE.
 */
START_TEST(message_to_killed_sleeper_fails)
{
	struct rig_crew crew;
	struct rig_node a;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i);
	rig_crew_start(&crew, 1, sleeper);
	rig_open(&a, NULL);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
	rig_crew_call(&crew, &a);
	ck_assert_int_eq(rig_crew_hear(&crew, &a, RIG_WAIT_MS), 0);
	ck_assert(rig_wait(a.rcq, &wc, NULL, RIG_WAIT_MS));
	rig_crew_end(&crew, 1);
	to = rig_to(&a, &a.gid, wc.src_qp);
	ck_assert_int_eq(rig_send(&a, &to, 5, 0, 64), 0);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_BAD_DEST_QPN);
	rig_close(&a);
}
END_TEST

/*
 * The ACK to a closed QP causes an ICMP error, which the kernel reports to the
 * next call: the send to another peer. The channel must not stay readable.
 */
START_TEST(error_of_other_peer_is_read)
{
	struct rig_opt opt = { .rnr_retry = 7, .channel = true };
	struct rig_node a, b, c;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(RIG_UDP);
	/* no delays: each packet is sent by the call that posts it */
	rig_env("SOFTEFA_REORDER", "0");
	rig_open(&a, &opt);
	rig_open(&b, NULL);
	rig_open(&c, NULL);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	to = rig_to_node(&c, &a);
	ck_assert_int_eq(rig_send(&c, &to, 5, 0, 64), 0);
	rig_close(&c);
	ck_assert(rig_wait(a.rcq, &wc, NULL, RIG_WAIT_MS));
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_send(&a, &to, 6, 0, 64), 0);
	ck_assert(rig_wait(a.scq, &wc, &b, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert(falls_asleep(&a));
	rig_close(&a);
	rig_close(&b);
}
END_TEST

Suite *suite_notify(void)
{
	Suite *suite = suite_create("notify");
	TCase *tc = tcase_create("notify");

	tcase_add_loop_test(tc, message_wakes_channel, 0, RIG_WIRES);
	tcase_add_loop_test(tc, channel_armed_before_send_wakes, 0, RIG_WIRES);
	tcase_add_loop_test(tc, message_to_killed_sleeper_fails, 0, RIG_WIRES);
	tcase_add_test(tc, error_of_other_peer_is_read);
	suite_add_tcase(suite, tc);
	return suite;
}
