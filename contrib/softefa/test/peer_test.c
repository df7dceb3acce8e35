/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Peers in other processes exit, are killed or stopped, or never existed. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

struct peer {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
	pid_t pid;
	/* pipe: when the test closes it, the peer destroys its QP and exits */
	int leash;
};

static void peer_run(int out, int leash)
{
	struct peer self = { 0 };
	struct rig_node node;
	struct rig_wc wc;
	char byte;
	int i;

	rig_open(&node, NULL);
	for (i = 0; i < RIG_DEPTH; i++)
		rig_recv(&node, 1, 0, 9000);
	self.gid = node.gid;
	self.qpn = node.qp->qp_num;
	self.rkey = node.mr->rkey;
	self.addr = (uintptr_t)node.buf;
	/* a killed peer must count as failed although this child still runs */
	if (!fork()) {
		if (write(out, &self, sizeof(self)) != sizeof(self))
			_exit(2);
		sleep(3);
		_exit(0);
	}
	fcntl(leash, F_SETFL, O_NONBLOCK);
	while (read(leash, &byte, 1) < 0) {
		if (rig_poll(node.rcq, &wc))
			rig_recv(&node, 1, 0, 9000);
		rig_poll(node.scq, &wc);
	}
	rig_close(&node);
	exit(0);
}

static void peer_start(struct peer *peer)
{
	int out[2], leash[2];
	pid_t pid;

	ck_assert(!pipe2(out, O_CLOEXEC) && !pipe2(leash, O_CLOEXEC));
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (!pid) {
		close(leash[1]);
		peer_run(out[1], leash[0]);
	}
	close(out[1]);
	close(leash[0]);
	ck_assert_int_eq(read(out[0], peer, sizeof(*peer)), sizeof(*peer));
	close(out[0]);
	peer->pid = pid;
	peer->leash = leash[1];
}

static void peer_end(struct peer *peer)
{
	int status;

	close(peer->leash);
	ck_assert_int_eq(waitpid(peer->pid, &status, 0), peer->pid);
	ck_assert_int_eq(status, 0);
}

/* Stops the peer's process. After the return, the peer reads no packet. */
static void peer_stop(struct peer *peer)
{
	siginfo_t info;

	kill(peer->pid, SIGSTOP);
	ck_assert_int_eq(waitid(P_PID, peer->pid, &info, WSTOPPED), 0);
}

static void peer_bury(struct peer *peer)
{
	ck_assert_int_eq(waitpid(peer->pid, NULL, 0), peer->pid);
	close(peer->leash);
}

static void peer_kill(struct peer *peer)
{
	kill(peer->pid, SIGKILL);
	peer_bury(peer);
}

/* Sends a message. Returns its completion's vendor_err; -1: none within ms. */
static int send_one(struct rig_node *a, const struct rig_to *to, uint32_t ms)
{
	struct rig_wc wc;

	ck_assert_int_eq(rig_send(a, to, 1, 0, 64), 0);
	return rig_wait(a->scq, &wc, NULL, ms) ? (int)wc.vendor_err : -1;
}

START_TEST(message_reaches_other_process)
{
	struct peer peer;
	struct rig_node a;
	struct rig_to to;
	int i;

	rig_wire(_i);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	peer_end(&peer);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_REMOTE_BAD_DEST_QPN);
	rig_close(&a);
}
END_TEST

/* Messages in transit to a killed peer, and later ones, must fail. */
START_TEST(message_to_killed_peer_fails)
{
	struct rig_node a;
	struct peer peer;
	struct rig_to to;

	rig_wire(_i);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	peer_stop(&peer);
	ck_assert_int_eq(send_one(&a, &to, 100), -1);
	peer_kill(&peer);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_REMOTE_BAD_DEST_QPN);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_REMOTE_BAD_DEST_QPN);
	rig_close(&a);
}
END_TEST

/* A zombie counts as failed, although its process id still exists. */
START_TEST(message_to_zombie_fails)
{
	struct rig_node a;
	struct peer peer;
	struct rig_to to;
	siginfo_t info;

	rig_wire(_i);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	kill(peer.pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, peer.pid, &info, WEXITED | WNOWAIT), 0);
	ck_assert_int_eq(kill(peer.pid, 0), 0);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_REMOTE_BAD_DEST_QPN);
	peer_bury(&peer);
	rig_close(&a);
}
END_TEST

/* The target is killed after it acknowledged a read request: the read fails. */
START_TEST(read_from_killed_peer_fails)
{
	struct rig_node a;
	struct peer peer;
	struct rig_to to;
	struct rig_wc wc;

	rig_wire(_i);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	peer_stop(&peer);
	ck_assert_int_eq(rig_rdma(&a, &to, IBV_WR_RDMA_READ, 1, 0, 1 << 20,
				  peer.rkey, peer.addr), 0);
	ck_assert(!rig_wait(a.scq, &wc, NULL, 50));
	peer_kill(&peer);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_BAD_DEST_QPN);
	rig_close(&a);
}
END_TEST

/* Changes all flows as if no packet had arrived for this number of minutes. */
static void pass_silence(struct rig_node *a, uint32_t minutes)
{
	uint64_t ns = minutes * 60 * 1000000000ull;
	struct se_qp *qp = (struct se_qp *)a->qp;
	struct se_flow *flow;
	int i;

	for (i = 0; i < SE_FLOW_HASH; i++) {
		for (flow = qp->flows[i]; flow; flow = flow->next) {
			flow->heard -= ns;
			flow->checked -= ns;
		}
	}
}

/*
 * Messages to a stopped peer wait for minutes, even if the peer has never
 * replied: the peer might be a live process that does not poll, such as a rank
 * that waits for another rank of its host.
 */
START_TEST(message_to_stopped_peer_waits)
{
	bool replied = _i / RIG_WIRES;
	struct rig_node a;
	struct peer peer;
	struct rig_to to;
	struct rig_wc wc;

	rig_wire(_i % RIG_WIRES);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	if (replied)
		ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	peer_stop(&peer);
	ck_assert_int_eq(send_one(&a, &to, 700), -1);
	pass_silence(&a, 9);
	ck_assert(!rig_wait(a.scq, &wc, NULL, 100));
	kill(peer.pid, SIGCONT);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	peer_end(&peer);
	rig_close(&a);
}
END_TEST

/* If the peer's host stops replying, a message times out. Only on udp. */
START_TEST(message_to_silent_peer_times_out)
{
	struct rig_node a;
	struct peer peer;
	struct rig_to to;

	rig_wire(RIG_UDP);
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), 0);
	peer_stop(&peer);
	se_cfg.timeout_ms = 300;
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_UNRESP_REMOTE);
	peer_kill(&peer);
	rig_close(&a);
}
END_TEST

START_TEST(message_to_missing_host_fails)
{
	struct rig_node a;
	struct rig_to to;
	union ibv_gid gid;

	rig_wire(_i);
	rig_env("SOFTEFA_TIMEOUT_MS", "200");
	rig_open(&a, NULL);
	gid = a.gid;
	gid.raw[12] = 240; /* a reserved address, to which there is no route */
	to = rig_to(&a, &gid, 4711);
	ck_assert_int_eq(send_one(&a, &to, RIG_WAIT_MS), SE_UNREACH_REMOTE);
	rig_close(&a);
}
END_TEST

/* A QP sends its last ACKs before it is destroyed, even if packets are lost. */
START_TEST(closed_qp_still_acknowledges)
{
	struct rig_node a;
	struct peer peer;
	struct rig_to to;
	struct rig_wc wc;
	int i, done = 0;

	rig_wire(_i);
	rig_env("SOFTEFA_LOSS", "0.3");
	peer_start(&peer);
	rig_open(&a, NULL);
	to = rig_to(&a, &peer.gid, peer.qpn);
	for (i = 0; i < 50; i++)
		ck_assert_int_eq(rig_send(&a, &to, 1, 0, 64), 0);
	while (done < 50) {
		ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
		ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
		done++;
	}
	peer_end(&peer);
	rig_close(&a);
}
END_TEST

/*
 * The ACK of a closed QP counts, although an ICMP error for a later packet has
 * arrived before this process reads the ACK.
 */
START_TEST(ack_before_error_counts)
{
	struct rig_node a, b;
	struct rig_wc wc;
	struct rig_to to;

	rig_wire(RIG_UDP);
	/* no delays: each packet is sent by the call that posts it */
	rig_env("SOFTEFA_REORDER", "0");
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	to = rig_to_node(&a, &b);
	ck_assert_int_eq(rig_recv(&b, 1, 0, 64), 0);
	ck_assert_int_eq(rig_send(&a, &to, 1, 0, 64), 0);
	while (!rig_stats(&b).rx_pkts)
		rig_progress(&b);
	rig_close(&b);
	ck_assert_int_eq(rig_send(&a, &to, 2, 0, 64), 0);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.wr_id, 1);
	ck_assert_int_eq(wc.status, IBV_WC_SUCCESS);
	ck_assert(rig_wait(a.scq, &wc, NULL, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.vendor_err, SE_REMOTE_BAD_DEST_QPN);
	rig_close(&a);
}
END_TEST

static int dir_count(const char *prefix)
{
	DIR *dir = opendir(getenv("SOFTEFA_DIR"));
	struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir)))
		count += !strncmp(entry->d_name, prefix, strlen(prefix));
	if (dir)
		closedir(dir);
	return count;
}

/* A process that starts removes the files of a killed one. */
START_TEST(files_of_killed_process_are_removed)
{
	struct rig_node a;
	struct peer peer;

	rig_wire(RIG_SHM);
	peer_start(&peer);
	peer_kill(&peer);
	ck_assert_int_eq(dir_count("q-"), 1);
	ck_assert_int_eq(dir_count("sys-"), 1);
	rig_open(&a, NULL);
	ck_assert_int_eq(dir_count("q-"), 1);
	ck_assert_int_eq(dir_count("sys-"), 1);
	rig_close(&a);
	ck_assert_int_eq(dir_count("q-"), 0);
}
END_TEST

Suite *suite_peers(void)
{
	Suite *suite = suite_create("peers");
	TCase *tc = tcase_create("peers");

	tcase_add_loop_test(tc, message_reaches_other_process, 0, RIG_WIRES);
	tcase_add_loop_test(tc, message_to_killed_peer_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, message_to_zombie_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, read_from_killed_peer_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, message_to_stopped_peer_waits, 0,
			    2 * RIG_WIRES);
	tcase_add_test(tc, message_to_silent_peer_times_out);
	tcase_add_loop_test(tc, message_to_missing_host_fails, 0, RIG_WIRES);
	tcase_add_loop_test(tc, closed_qp_still_acknowledges, 0, RIG_WIRES);
	tcase_add_test(tc, ack_before_error_counts);
	tcase_add_test(tc, files_of_killed_process_are_removed);
	suite_add_tcase(suite, tc);
	return suite;
}
