/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Peers in another pid namespace, which requires permission. So most tests are
 * repeated with a peer that only changes the namespace in its address.
 */

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

#define STOP_MS 400
#define LEN 300000

enum place {
	IN_NAMESPACE,
	/*
	 * the peer changes the namespace in its address; it has a child, which
	 * lives longer than the peer and has copies of its file descriptors
	 */
	PRETENDS,
	PLACES
};

static struct rig *us;
static struct near_addr ours, theirs;
static pid_t child;
static uint8_t buf[LEN], got[LEN];

/* Runs the peer: sends a small and a large message, and receives large ones. */
static void act(struct rig *rig)
{
	struct near_peer *to_us = rig_peer_at(rig, &ours);
	uint32_t done = 0, sent = 0;

	for (;; sched_yield()) {
		rig_poll(rig, NEAR_TICK_POLLS);
		if (!sent && !rig_send(rig, to_us, 1, buf, 8))
			sent = 1;
		if (sent == 1 &&
		    !rig_send_large(rig, to_us, 2, buf, LEN, buf))
			sent = 2;
		for (; done < rig->count; done++)
			if (rig->event[done].kind == RIG_RNDV)
				rig_take(rig, done, got, LEN);
	}
}

/* Runs a peer that sleeps in a loop; writes a byte to `to` before a sleep. */
static void sleeps(struct rig *rig, int to)
{
	struct pollfd fd = { near_wait_fd(rig->port), POLLIN, 0 };

	for (;;) {
		while (near_arm(rig->port))
			rig_poll(rig, 1);
		if (write(to, "", 1) < 0)
			_exit(1);
		poll(&fd, 1, -1);
		near_woken(rig->port);
		rig_poll(rig, NEAR_TICK_POLLS);
	}
}

static void child_main(enum place place, int to, bool sleeper)
{
	struct rig *rig;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig = rig_open(false);
	if (place == PRETENDS) {
		rig->port->addr.pid_ns++;
		near_address(rig->port, &rig->addr);
	}
	near_listen(rig->port, -1);
	if (place == PRETENDS && !fork()) {
		poll(NULL, 0, 20000);
		_exit(0);
	}
	if (write(to, &rig->addr, sizeof(rig->addr)) < 0)
		_exit(1);
	if (sleeper)
		sleeps(rig, to);
	act(rig);
}

/* Starts the peer; returns the read end of its pipe, or -1: not permitted. */
static int start(enum place place, bool sleeper)
{
	int fd[2];

	ck_assert_int_eq(pipe(fd), 0);
	child = (pid_t)syscall(SYS_clone, (place == IN_NAMESPACE ?
			       CLONE_NEWPID : 0) | SIGCHLD, NULL, NULL, NULL,
			       NULL);
	if (!child)
		child_main(place, fd[1], sleeper);
	close(fd[1]);
	if (child < 0) {
		child = 0;
		close(fd[0]);
		rig_skip("far", "no pid namespace may be made");
		return -1;
	}
	ck_assert_int_eq(read(fd[0], &theirs, sizeof(theirs)),
			 sizeof(theirs));
	return fd[0];
}

static void end(void)
{
	unit_kill(child);
	child = 0;
}

static void stop(void)
{
	siginfo_t info;

	kill(child, SIGSTOP);
	ck_assert_int_eq(waitid(P_PID, child, &info, WSTOPPED), 0);
}

static void setup(void)
{
	us = rig_open(false);
	near_listen(us->port, -1);
	ours = us->addr;
	rig_fill(buf, LEN, 3);
}

static void teardown(void)
{
	if (child)
		end();
	rig_close(us);
}

/* Returns the number of events of this kind with this error. */
static int ended(enum rig_kind kind, int err)
{
	uint32_t i;
	int n = 0;

	for (i = 0; i < us->count; i++)
		n += us->event[i].kind == kind && us->event[i].err == err;
	return n;
}

static struct near_peer *connect_far(void)
{
	struct near_peer *peer;

	rig_until(us, NULL, 2);
	peer = near_peer_find(us->port, &theirs);
	ck_assert_ptr_nonnull(peer);
	ck_assert(peer->far);
	return peer;
}

UNIT_CASE("far", setup, teardown);

/* While the peer is stopped, a large message in each direction is pending. */
UNIT_LOOP(killed_peer_ends_messages, 0, PLACES)
{
	struct near_peer *peer;

	if (start((enum place)_i, false) < 0)
		return;
	peer = connect_far();
	stop();
	rig_take(us, 1, got, LEN);
	ck_assert_int_eq(rig_send_large(us, peer, 3, buf, LEN, buf), 0);
	rig_poll_ms(us, STOP_MS);
	ck_assert_int_eq(ended(RIG_GONE, 0), 0);
	kill(child, SIGKILL);
	rig_until_gone(us, 5);
	ck_assert_int_eq(ended(RIG_SENT, ECONNRESET), 1);
	ck_assert_int_eq(ended(RIG_RECEIVED, ECONNRESET), 1);
	ck_assert_int_eq(rig_send(us, peer, 4, buf, 8), -ECONNRESET);
}

UNIT_LOOP(stopped_peer_has_not_failed, 0, PLACES)
{
	struct near_peer *peer;

	if (start((enum place)_i, false) < 0)
		return;
	peer = connect_far();
	stop();
	ck_assert_int_eq(rig_send_large(us, peer, 3, buf, LEN, buf), 0);
	rig_poll_ms(us, STOP_MS);
	ck_assert_uint_eq(us->count, 2);
	kill(child, SIGCONT);
	rig_until(us, NULL, 3);
	ck_assert_int_eq(ended(RIG_SENT, 0), 1);
}

UNIT_TEST(peers_with_pid_1_are_released)
{
	unsigned int files = 0;
	uint32_t before;
	int i, fd;

	for (i = 0; i < 5; i++) {
		before = us->count;
		fd = start(IN_NAMESPACE, false);
		if (fd < 0)
			return;
		ck_assert_int_eq(theirs.pid, 1);
		rig_until(us, NULL, before + 2);
		ck_assert_int_eq(ended(RIG_MSG, 0), i + 1);
		ck_assert_uint_eq(rig_rx_rings(us), 1);
		end();
		close(fd);
		rig_until(us, NULL, before + 3);
		ck_assert_int_eq(ended(RIG_GONE, 0), i + 1);
		ck_assert_uint_eq(rig_rx_rings(us), 0);
		files = files ? files : rig_files();
		ck_assert_uint_eq(rig_files(), files);
	}
}

/*
 * This process writes to the wake pipe of the killed peer. The pipe has no
 * reader, but this process must not get SIGPIPE.
 */
UNIT_LOOP(peer_killed_asleep_is_disconnected, 0, PLACES)
{
	struct near_peer *peer;
	char byte;
	int fd;

	fd = start((enum place)_i, true);
	if (fd < 0)
		return;
	peer = rig_peer_at(us, &theirs);
	while (rig_send(us, peer, 1, buf, 8) == -EAGAIN)
		rig_poll(us, NEAR_TICK_POLLS);
	while (peer->wake_fd < 0) {
		ck_assert_int_eq(read(fd, &byte, 1), 1);
		rig_send(us, peer, 1, buf, 8);
	}
	/* the peer has polled all messages and sleeps */
	while (!__atomic_load_n(&peer->segment->armed, __ATOMIC_ACQUIRE))
		sched_yield();
	kill(child, SIGKILL);
	rig_until(us, NULL, 1);
	ck_assert_int_eq(ended(RIG_GONE, 0), 1);
	close(fd);
}
