/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Peers in other namespaces, peers of other users, and reused pids */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* uid of an ordinary user, since "nobody" stands for all unmapped uids */
#define SOMEBODY 54321
#define LEN 200000

enum { REJECTED, ONE_WAY, BOTH_WAYS };
/* Flags in addition to CLONE_* */
#define MAPPED 1	/* the user namespace maps the uid to itself */
#define UNDUMPABLE 2	/* other users cannot open its /proc/PID */
#define HIDDEN 4	/* /proc of the test does not list the process */
#define DEAF 8		/* the process has no socket */
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define NO_CLONE (MAPPED | UNDUMPABLE | HIDDEN | DEAF)
/* namespaces that only the children enter */
#define FAR (CLONE_NEWPID | CLONE_NEWTIME)

static const struct space {
	const char *name;
	int flags;
	int expect;
} spaces[] = {
	{ "none", 0, BOTH_WAYS },
	{ "ipc", CLONE_NEWIPC, BOTH_WAYS },
	{ "mount", CLONE_NEWNS, BOTH_WAYS },
	/*
	 * the process sees one and the same uid for all other processes, so it
	 * trusts none of them
	 */
	{ "user without numbers", CLONE_NEWUSER, ONE_WAY },
	/*
	 * outside processes can map the process's memory; the process itself
	 * needs the fd exchange to map theirs
	 */
	{ "user", CLONE_NEWUSER | MAPPED, BOTH_WAYS },
	{ "pid", CLONE_NEWPID, BOTH_WAYS },
	{ "pid and ipc", CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS,
	  BOTH_WAYS },
	{ "pid and user", CLONE_NEWPID | CLONE_NEWUSER | MAPPED, BOTH_WAYS },
	/* outside processes see another start time of the process */
	{ "time", CLONE_NEWTIME, BOTH_WAYS },
	/* no other process can check the owner of its socket */
	{ "not dumpable", UNDUMPABLE, BOTH_WAYS },
	{ "hidepid", UNDUMPABLE | HIDDEN, BOTH_WAYS },
	{ "net", CLONE_NEWNET, BOTH_WAYS },
	{ "pid and net", CLONE_NEWPID | CLONE_NEWNET, REJECTED },
};
#define SPACES ((int)(ARRAY_SIZE(spaces)))

static struct rig *us;
static uint8_t big[LEN], got[LEN];

/* Reads the other process's address. False: the process could not start. */
static bool read_address(int fd, struct near_addr *addr)
{
	return read(fd, addr, sizeof(*addr)) == sizeof(*addr);
}

static void tell(int fd, const struct rig *rig)
{
	if (write(fd, &rig->addr, sizeof(rig->addr)) < 0)
		_exit(2);
}

static void store(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(3);
	close(fd);
}

static void enter(int flags)
{
	uid_t uid = geteuid();
	char map[64];

	if (unshare(flags & ~NO_CLONE))
		_exit(3);
	if (flags & UNDUMPABLE)
		prctl(PR_SET_DUMPABLE, 0);
	if (flags & CLONE_NEWTIME)
		store("/proc/self/timens_offsets", "boottime 1000 0");
	if (!(flags & MAPPED))
		return;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	store("/proc/self/uid_map", map);
}

/* In the other process: replies to each message, receives each large one. */
static void echo(int fd, int flags)
{
	struct rig_event *event;
	struct rig *rig;
	uint32_t done = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	enter(flags);
	/* the next child is the first process of a new namespace */
	if (flags & FAR && fork()) {
		wait(NULL);
		_exit(0);
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig = rig_open(false);
	if (!(flags & DEAF))
		near_listen(rig->port, -1);
	tell(fd, rig);
	for (;; rig_poll(rig, 1)) {
		if (done == rig->count) {
			sched_yield();
			continue;
		}
		event = &rig->event[done];
		if (event->kind == RIG_MSG &&
		    rig_send(rig, event->peer, event->msg.tag, big, 10) ==
		    -EAGAIN)
			continue;
		done++;
		if (event->kind == RIG_RNDV)
			rig_take(rig, done - 1, got, LEN);
	}
}

/* Starts a process in these namespaces; returns 0 if not permitted. */
static pid_t start(int flags, struct near_addr *addr)
{
	int fd[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fd), 0);
	pid = fork();
	if (!pid) {
		close(fd[0]);
		echo(fd[1], flags);
	}
	close(fd[1]);
	if (read_address(fd[0], addr)) {
		close(fd[0]);
		return pid;
	}
	close(fd[0]);
	waitpid(pid, NULL, 0);
	return 0;
}

static void finish(pid_t pid)
{
	unit_kill(pid);
	rig_close(us);
}

/* Exchanges a small and a large message; asserts replies or peer failure. */
static void exchange(const struct space *space, const struct near_addr *addr)
{
	struct near_peer *peer = rig_peer_at(us, addr);
	uint32_t i, answers = 0, gone = 0, sent = 0;

	if (space->expect == REJECTED) {
		ck_assert_int_eq(rig_send_when(us, peer, 1, NULL), -ECONNRESET);
		ck_assert_int_eq(us->warnings, 1);
		return;
	}
	ck_assert_int_eq(rig_send_when(us, peer, 1, NULL), 0);
	ck_assert_int_eq(peer->far, !!(space->flags & FAR));
	ck_assert_int_eq(peer->needs_fdx, peer->far ||
			 (geteuid() && space->flags & UNDUMPABLE));
	ck_assert_int_eq(rig_send_large(us, peer, 2, big, LEN, big), 0);
	rig_until(us, NULL, 2);
	for (i = 0; i < us->count; i++) {
		answers += us->event[i].kind == RIG_MSG;
		gone += us->event[i].kind == RIG_GONE;
		sent += us->event[i].kind == RIG_SENT && !us->event[i].err;
	}
	ck_assert_uint_eq(answers, space->expect == BOTH_WAYS);
	ck_assert_uint_eq(sent, space->expect == BOTH_WAYS);
	ck_assert_uint_eq(gone, space->expect == ONE_WAY);
}

UNIT_CASE("spaces", NULL, NULL);

UNIT_LOOP(peers_of_namespaces_communicate, 0, SPACES)
{
	struct near_addr addr;
	pid_t pid;

	us = rig_open(false);
	near_listen(us->port, -1);
	pid = start(spaces[_i].flags, &addr);
	if (!pid) {
		rig_skip(spaces[_i].name, "no such namespace may be made");
		return;
	}
	exchange(&spaces[_i], &addr);
	finish(pid);
}

/* Mounts a /proc that does not list processes of other users. */
static bool hide(void)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("proc", "/proc", "proc", 0, "hidepid=2");
}

/* Drops privileges and opens a port. False: not permitted. */
static bool open_ordinary(void)
{
	if (!geteuid() &&
	    (setgroups(0, NULL) ||
	     setresgid(SOMEBODY, SOMEBODY, SOMEBODY) ||
	     setresuid(SOMEBODY, SOMEBODY, SOMEBODY))) {
		rig_skip("ordinary_user", "no other user here");
		return false;
	}
	/* by default, a process that has changed its uid is not dumpable */
	prctl(PR_SET_DUMPABLE, 1);
	us = rig_open(false);
	near_listen(us->port, -1);
	return true;
}

/* Calls open_ordinary(), starts the other process; returns 0: not permitted. */
static pid_t start_ordinary(const char *name, int flags, struct near_addr *addr)
{
	pid_t pid;

	/* An ordinary user may make a namespace only in a user namespace. */
	if (flags & ~NO_CLONE && !(flags & CLONE_NEWUSER))
		return 0;
	if (flags & HIDDEN && !hide()) {
		rig_skip(name, "/proc may not be mounted");
		return 0;
	}
	if (!open_ordinary())
		return 0;
	pid = start(flags, addr);
	if (!pid)
		rig_skip(name, "an ordinary user makes none");
	return pid;
}

/* As peers_of_namespaces_communicate(), but by processes of an ordinary user */
UNIT_LOOP(ordinary_users_communicate, 0, SPACES)
{
	struct near_addr addr;
	pid_t pid = start_ordinary(spaces[_i].name, spaces[_i].flags, &addr);

	if (!pid)
		return;
	exchange(&spaces[_i], &addr);
	finish(pid);
}

/*
 * If _i & 1 is set, /proc does not list the peer. If _i & 2 is set, this port
 * has no socket.
 */
UNIT_LOOP(peer_without_socket_is_unreachable, 0, 4)
{
	struct near_addr addr;
	struct near_peer *peer;
	pid_t pid = start_ordinary("no socket", UNDUMPABLE | DEAF |
				   (_i & 1 ? HIDDEN : 0), &addr);

	if (!pid)
		return;
	if (_i & 2)
		near_fdx_close(us->port);
	peer = rig_peer_at(us, &addr);
	ck_assert_int_eq(rig_send_when(us, peer, 1, NULL), -EHOSTUNREACH);
	rig_poll(us, 10 * NEAR_TICK_POLLS);
	ck_assert(!peer->draining);
	ck_assert_uint_eq(us->count, 0);
	finish(pid);
}

/* In a child: sends a message, and another one after each byte from "tell". */
static pid_t send_when_told(int tell)
{
	struct near_peer *peer;
	struct rig *rig;
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig = rig_open(false);
	near_listen(rig->port, -1);
	peer = rig_peer(rig, us);
	rig_send(rig, peer, 1, big, 8);
	fcntl(tell, F_SETFL, O_NONBLOCK);
	for (;; rig_poll(rig, 1)) {
		if (read(tell, &byte, 1) == 1)
			rig_send(rig, peer, 1, big, 8);
	}
}

/*
 * /proc seems to hide a peer without a socket. One warning is logged, although
 * near searches for the socket several times, and the send fails. If _i is 1,
 * no file descriptor is free to check whether the peer's process exists.
 */
UNIT_LOOP(missing_socket_is_logged_once, 0, 2)
{
	struct near_addr addr;
	pid_t pid = rig_child(NULL, false, &addr);
	struct near_peer *peer;
	int i;

	us = rig_open(false);
	ck_assert_int_eq(near_listen(us->port, -1), 0);
	peer = rig_peer_at(us, &addr);
	peer->needs_fdx = true;
	if (_i)
		unit_reject_if(SYS_pidfd_open, 0, (uint32_t)pid,
			       SECCOMP_RET_ERRNO | EMFILE);
	for (i = 0; i < 3; i++) {
		rig_poll(us, 1);
		near_peer_monitor(us->port, peer);
	}
	ck_assert_int_eq(us->warnings, 1);
	ck_assert_int_eq(rig_send(us, peer, 1, "x", 1), -EHOSTUNREACH);
	ck_assert_int_eq(us->warnings, 1);
	ck_assert(!near_peer_failed(peer));
	rig_close_all();
	unit_kill(pid);
}

/*
 * A process becomes non-dumpable after a sender has connected to it. The first
 * wakeup comes by the fd exchange, the second by the wake pipe.
 */
UNIT_TEST(peer_that_becomes_undumpable_is_woken)
{
	struct pollfd woken = { .events = POLLIN };
	uint32_t i;
	int tell[2];
	pid_t pid;

	if (!open_ordinary())
		return;
	woken.fd = near_wait_fd(us->port);
	ck_assert_int_eq(pipe(tell), 0);
	pid = send_when_told(tell[0]);
	rig_until(us, NULL, 1);
	prctl(PR_SET_DUMPABLE, 0);
	for (i = 2; i < 4; i++) {
		while (near_woken(us->port), near_arm(us->port))
			rig_poll(us, 1);
		ck_assert_int_eq(write(tell[1], "", 1), 1);
		ck_assert_int_eq(poll(&woken, 1, RIG_TIMEOUT_MS), 1);
		rig_until(us, NULL, i);
	}
	finish(pid);
}

/* Messages must pass with each value of ptrace_scope (_i). */
UNIT_LOOP(messages_pass_under_yama, 0, 2)
{
	static const char path[] = "/proc/sys/kernel/yama/ptrace_scope";
	int fd = open(path, O_RDWR | O_CLOEXEC);
	struct near_addr addr;
	char before = '?', scope = (char)('0' + _i);
	pid_t pid;

	if (fd < 0 || read(fd, &before, 1) != 1 ||
	    pwrite(fd, &scope, 1, 0) != 1) {
		rig_skip("ptrace_scope", "it cannot be set");
		return;
	}
	us = rig_open(false);
	near_listen(us->port, -1);
	pid = start(0, &addr);
	exchange(&spaces[0], &addr);
	finish(pid);
	ck_assert_int_eq(pwrite(fd, &before, 1, 0), 1);
	close(fd);
}

static pid_t fork_as(pid_t pid)
{
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	char text[16];
	ssize_t len = snprintf(text, sizeof(text), "%d", pid - 1);

	if (fd < 0 || write(fd, text, (size_t)len) != len)
		_exit(77);
	close(fd);
	return fork();
}

/* In a child: sends a large or a small message, then waits. */
static void send_and_wait(int fd, bool large)
{
	struct rig *rig = rig_open(false);
	struct near_peer *peer = rig_peer(rig, us);

	if (large)
		rig_send_large(rig, peer, 1, big, LEN, NULL);
	else
		rig_send(rig, peer, 2, big, 8);
	tell(fd, rig);
	for (;;)
		pause();
}

/* Reuses a killed sender's pid, by ns_last_pid in a new pid namespace. */
static void reuse(void)
{
	struct near_addr theirs;
	int fd[2], i, failed = 0;
	pid_t pid;

	us = rig_open(false);
	if (pipe(fd))
		_exit(1);
	pid = fork();
	if (!pid)
		send_and_wait(fd[1], true);
	read_address(fd[0], &theirs);
	unit_kill(pid);
	usleep(50000);	/* so that start times, in ticks, differ */
	/* the next process has these bytes at the killed sender's address */
	memset(big, 0xee, sizeof(big));
	if (fork_as(pid) == 0)
		send_and_wait(fd[1], false);
	read_address(fd[0], &theirs);
	if (theirs.pid != pid)
		_exit(78);
	rig_until(us, NULL, 2);
	rig_take(us, us->event[0].kind != RIG_RNDV, got, LEN);
	/* both messages, the peer failure, and the failed receive */
	rig_until(us, NULL, 4);
	for (i = 0; i < 4; i++)
		failed += us->event[i].kind == RIG_RECEIVED &&
			  us->event[i].err == ECONNRESET;
	_exit(failed == 1 && got[0] != 0xee ? 0 : 80);
}

UNIT_TEST(reused_pid_is_not_read)
{
	int status;
	pid_t pid;

	rig_fill(big, LEN, 3);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS))
			_exit(77);
		pid = fork();
		if (!pid) {
			if (mount("none", "/", NULL, MS_REC | MS_PRIVATE,
				  NULL) ||
			    mount("proc", "/proc", "proc", 0, NULL))
				_exit(77);
			reuse();
		}
		waitpid(pid, &status, 0);
		_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
	waitpid(pid, &status, 0);
	ck_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		rig_skip("pid_comes_again", "no pid namespace may be made");
		return;
	}
	ck_assert_int_eq(WEXITSTATUS(status), 0);
}
