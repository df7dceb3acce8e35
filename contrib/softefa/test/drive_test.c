/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Polls of any CQ drive all QPs: a real device makes progress without polls. */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

static bool has_completion(struct ibv_cq_ex *cq)
{
	return !se_cq_empty((struct se_cq *)cq);
}

/* A message between two QPs arrives while only a third QP's CQ is polled. */
START_TEST(poll_of_third_cq_drives_all)
{
	uint64_t end = rig_now_ms() + RIG_WAIT_MS;
	struct rig_node a, b, third;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(_i);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	rig_open(&third, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 8), 0);
	while (!has_completion(a.scq) && rig_now_ms() < end)
		ck_assert(!rig_poll(third.rcq, &wc));
	ck_assert(has_completion(a.scq));
	ck_assert(has_completion(b.rcq));
	rig_close(&third);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

/*
 * One of two ranks that close an endpoint at the same time. Each rank sends a
 * message from "closing" to the other rank's endpoint "other", which is open.
 * Each rank polls only the CQ of "closing", as fi_close() of libfabric does.
 */
struct rank {
	struct rig_node closing, other;
};

static void rank_open(struct rank *rank)
{
	rig_open(&rank->closing, NULL);
	rig_open(&rank->other, NULL);
	ck_assert_int_eq(rig_recv(&rank->other, 1, 0, 64), 0);
}

/*
 * Closes an endpoint: sends a message, writes a byte to done_fd when the send
 * has completed, and polls until stop_fd is readable, too. False: the send has
 * not completed within RIG_WAIT_MS.
 */
static bool rank_close(struct rank *rank, const struct rig_target *peer,
		       int stop_fd, int done_fd)
{
	struct rig_to to = rig_to(&rank->closing, &peer->gid, peer->qpn);
	struct pollfd pfd = { .fd = stop_fd, .events = POLLIN };
	uint64_t end = rig_now_ms() + RIG_WAIT_MS;
	struct rig_wc wc;
	bool done = false;

	ck_assert_int_eq(rig_send(&rank->closing, &to, 1, 0, 8), 0);
	while (rig_now_ms() < end && (!done || poll(&pfd, 1, 0) < 1)) {
		if (!rig_poll(rank->closing.scq, &wc))
			continue;
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		done = true;
		ck_assert_int_eq(write(done_fd, "", 1), 1);
	}
	return done;
}

static void rank_run(const struct rig_target *target, int out)
{
	struct rig_target self;
	struct rank rank;

	rank_open(&rank);
	self = (struct rig_target){ .gid = rank.other.gid,
				    .qpn = rank.other.qp->qp_num };
	if (write(out, &self, sizeof(self)) == sizeof(self))
		rank_close(&rank, target, target->in, out);
}

START_TEST(ranks_can_close_at_the_same_time)
{
	struct rig_target peer;
	struct rig_crew crew;
	struct rank rank;

	rig_wire(_i);
	rig_crew_start(&crew, 1, rank_run);
	rank_open(&rank);
	rig_crew_call(&crew, &rank.other);
	ck_assert_int_eq(read(crew.in, &peer, sizeof(peer)), sizeof(peer));
	ck_assert(rank_close(&rank, &peer, crew.in, crew.out));
	ck_assert_int_eq(rig_crew_hear(&crew, NULL, RIG_WAIT_MS), 0);
	rig_crew_end(&crew, 1);
	rig_close(&rank.closing);
	rig_close(&rank.other);
}
END_TEST

static void *open_and_close(void *arg)
{
	struct rig_node node;
	int i;

	for (i = 0; i < 50; i++) {
		rig_open(&node, NULL);
		rig_close(&node);
	}
	*(_Atomic bool *)arg = true;
	return NULL;
}

/* ibv_destroy_qp() must not block while threads poll without pause. */
START_TEST(polls_do_not_block_close)
{
	_Atomic bool stop = false;
	struct rig_node a;
	struct rig_wc wc;
	pthread_t thread;

	rig_wire(_i);
	rig_open(&a, NULL);
	ck_assert_int_eq(pthread_create(&thread, NULL, open_and_close, &stop),
			 0);
	while (!stop)
		ck_assert(!rig_poll(a.rcq, &wc));
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	rig_close(&a);
}
END_TEST

/* Sends RIG_DEPTH messages, more than a window, and exits at once. */
static void send_and_exit(void)
{
	struct rig_node from, to;
	struct rig_to at;
	int i;

	rig_open(&to, NULL);
	rig_open(&from, NULL);
	at = rig_to_node(&from, &to);
	for (i = 0; i < RIG_DEPTH; i++) {
		ck_assert_int_eq(rig_recv(&to, 1, 0, 64), 0);
		ck_assert_int_eq(rig_send(&from, &at, 1, 0, 8), 0);
	}
	exit(0);
}

/* At exit, a drain sends most of the packets. The statistics include them. */
START_TEST(statistics_at_exit_count_drain)
{
	char text[2048] = "", want[32];
	size_t len = 0;
	ssize_t n;
	int out[2];
	pid_t pid;

	rig_wire(_i);
	rig_env("SOFTEFA_STATS", "1");
	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		dup2(out[1], STDERR_FILENO);
		send_and_exit();
	}
	close(out[1]);
	while ((n = read(out[0], text + len, sizeof(text) - 1 - len)) > 0)
		len += (size_t)n;
	close(out[0]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	snprintf(want, sizeof(want), "tx_pkts=%d ", RIG_DEPTH);
	ck_assert_msg(strstr(text, want), "%s is not in:\n%s", want, text);
}
END_TEST

Suite *suite_drive(void)
{
	Suite *suite = suite_create("drive");
	TCase *tc = tcase_create("drive");

	tcase_add_loop_test(tc, poll_of_third_cq_drives_all, 0, RIG_WIRES);
	tcase_add_loop_test(tc, ranks_can_close_at_the_same_time, 0, RIG_WIRES);
	tcase_add_loop_test(tc, polls_do_not_block_close, 0, RIG_WIRES);
	tcase_add_loop_test(tc, statistics_at_exit_count_drain, 0, RIG_WIRES);
	suite_add_tcase(suite, tc);
	return suite;
}
