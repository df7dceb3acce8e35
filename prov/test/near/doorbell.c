/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A byte in the wake pipe wakes a sleeping thread. near_segment.armed is the
 * number of the sleep, or 0 if no sender need write the byte.
 */

#include <poll.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

static struct rig *us, *other;
static struct near_peer *to_us;
static uint8_t big[NEAR_STEP + 777], got[sizeof(big)];

static void setup(void)
{
	us = rig_open(false);
	other = rig_open(false);
	to_us = rig_peer(other, us);
	ck_assert_int_ge(near_wait_fd(us->port), 0);
}

static bool readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

/* True if the pipe has a byte, or gets one within timeout_ms. */
static bool rung(int timeout_ms)
{
	return readable(us->port->wake[0], timeout_ms);
}

/* True if a sleeping thread would wake within timeout_ms. */
static bool ready(int timeout_ms)
{
	return readable(near_wait_fd(us->port), timeout_ms);
}

static uint32_t armed(void)
{
	return __atomic_load_n(&us->port->segment->armed, __ATOMIC_SEQ_CST);
}

static void sleep_now(void)
{
	while (near_arm(us->port)) {
		near_woken(us->port);
		rig_poll(us, 1);
	}
	ck_assert(!rung(0));
	ck_assert_uint_ne(armed(), 0);
}

/*
 * Forks a sender with a ring to us. A byte in the pipe "tell" makes the sender
 * send a second message.
 */
static pid_t sender(int tell)
{
	const struct near_addr ours = us->addr;
	struct near_peer *peer;
	struct rig *rig;
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	rig = rig_open(false);
	peer = rig_peer_at(rig, &ours);
	if (rig_send(rig, peer, 1, "", 0) || read(tell, &byte, 1) != 1)
		_exit(3);
	/* kills the sender at its first open(): that of the wake pipe */
	unit_reject(SYS_openat, SECCOMP_RET_KILL_PROCESS);
	rig_send(rig, peer, 2, "", 0);
	_exit(4);
}

UNIT_CASE("bell", setup, rig_close_all);

/*
 * The sender is killed after it has loaded "armed", before it opens the pipe.
 */
UNIT_TEST(next_sender_wakes_after_kill)
{
	int tell[2], status;
	pid_t pid;

	ck_assert_int_eq(pipe(tell), 0);
	pid = sender(tell[0]);
	rig_until(us, NULL, 1);
	sleep_now();
	ck_assert_int_eq(write(tell[1], "", 1), 1);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFSIGNALED(status), "ended with %d",
		      WEXITSTATUS(status));
	ck_assert(!rung(0));
	ck_assert_int_eq(rig_send(other, to_us, 3, "", 0), 0);
	ck_assert(rung(RIG_TIMEOUT_MS));
	ck_assert(near_woken(us->port));
	rig_until(us, NULL, 4);	/* three messages and RIG_GONE */
}

/*
 * Each sleep must store another value in "armed". Otherwise a sender that was
 * delayed since an earlier sleep could clear the value of a later one.
 */
UNIT_TEST(each_sleep_has_own_armed_value)
{
	uint32_t before = 0;
	int i;

	us->port->sleeps = UINT32_MAX - 1;
	for (i = 0; i < 4; i++) {
		sleep_now();
		ck_assert_uint_ne(armed(), before);
		before = armed();
		ck_assert_int_eq(rig_send(other, to_us, 1, "", 0), 0);
		ck_assert(rung(RIG_TIMEOUT_MS));
		ck_assert_uint_eq(armed(), 0);
	}
}

UNIT_TEST(byte_wakes_before_armed_is_cleared)
{
	uint32_t before;

	sleep_now();
	before = armed();
	ck_assert_int_eq(write(us->port->wake[1], "", 1), 1);
	ck_assert(near_woken(us->port));
	ck_assert_uint_eq(armed(), 0);
	sleep_now();
	ck_assert_uint_ne(armed(), before);
}

/* The pid belongs to another process (_i is 0), or the port is closed (1). */
UNIT_LOOP(byte_goes_to_no_other_process, 0, 2)
{
	const uint64_t start = to_us->addr.start;

	ck_assert_int_eq(rig_send(other, to_us, 1, "", 0), 0);
	rig_until(us, NULL, 1);
	sleep_now();
	near_unmonitor(other->port, to_us);
	if (_i)
		us->port->segment->closed = 1;
	else
		to_us->addr.start--;
	near_doorbell_ring(to_us);
	ck_assert(!rung(0));
	ck_assert_uint_ne(armed(), 0);
	us->port->segment->closed = 0;
	to_us->addr.start = start;
	near_doorbell_ring(to_us);
	ck_assert(rung(RIG_TIMEOUT_MS));
}

/*
 * The first message to a sleeping port writes a byte to the pipe. The second
 * message, and a message to a port that is awake, must write none.
 */
UNIT_TEST(armed_port_gets_one_byte)
{
	int i;

	for (i = 0; i < 100; i++) {
		ck_assert_int_eq(near_arm(us->port), 0);
		ck_assert(!ready(0));
		ck_assert_int_eq(rig_send(other, to_us, i, big, 8), 0);
		ck_assert_int_eq(rig_send(other, to_us, i, big, 8), 0);
		ck_assert(ready(1000));
		/* near_arm() in another thread does not consume the byte */
		ck_assert_int_eq(near_arm(us->port), -EAGAIN);
		ck_assert(ready(0));
		ck_assert(near_woken(us->port));
		ck_assert(!ready(0));
		us->count = 0;
		rig_until(us, NULL, 2);
		rig_send(other, to_us, i, big, 8);
		ck_assert_int_eq(near_arm(us->port), -EAGAIN);
		rig_until(us, NULL, 3);
	}
}

static int lowest_free(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/*
 * Makes `other` check the receiver by its start time, or need the fd exchange
 * to open its wake pipe. Returns the limit with which `other` lacks a file
 * descriptor for that.
 */
static rlim_t few_for(bool by_start, bool needs_fdx)
{
	if (needs_fdx) {
		ck_assert_int_eq(near_listen(us->port, -1), 0);
		ck_assert_int_eq(near_listen(other->port, -1), 0);
		to_us->needs_fdx = true;
	}
	if (!by_start)
		return 0;
	near_unmonitor(other->port, to_us);
	to_us->by_start = true;
	/* enough for the wake pipe, too few to read the start time as well */
	return (rlim_t)lowest_free() + 1;
}

/*
 * A sender has too few file descriptors to open the receiver's wake pipe. Later
 * the sender has enough of them, and must wake the receiver. _i % 3 selects the
 * call that does this: a send (0), a poll (1) or near_arm() (2). _i / 3 selects
 * what the sender needs descriptors for: see few_for().
 */
UNIT_LOOP(sender_without_descriptor_wakes_later, 0, 9)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;
	int how = _i % 3;
	rlim_t limit;

	ck_assert_int_eq(rig_send(other, to_us, 1, big, 8), 0);
	rig_until(us, NULL, 1);
	while (near_arm(us->port))
		near_woken(us->port);
	limit = unit_limit(RLIMIT_NOFILE, few_for(_i / 3 == 1, _i / 3 == 2));
	ck_assert_int_eq(rig_send(other, to_us, 2, big, 8), 0);
	/* if near_arm() permitted a sleep, both ports would sleep for ever */
	if (how == 2)
		ck_assert_int_eq(near_arm(other->port), -EAGAIN);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert(!ready(0));
	if (!how)
		ck_assert_int_eq(rig_send(other, to_us, 3, big, 8), 0);
	while (how == 1 && !ready(0) && duo_now_ms() < end)
		rig_poll(other, 1);
	while (how == 2 && near_arm(other->port) && duo_now_ms() < end)
		near_woken(other->port);
	ck_assert(ready(1000));
	ck_assert(near_woken(us->port));
	rig_until(us, NULL, how ? 2 : 3);
}

UNIT_TEST(polls_leave_byte_for_sleeper)
{
	uint64_t end;

	ck_assert_int_eq(near_arm(us->port), 0);
	ck_assert_int_eq(rig_send(other, to_us, 1, big, 8), 0);
	end = duo_now_ms() + 3 * NEAR_CHECK_MS;
	rig_until(us, NULL, 1);
	while (duo_now_ms() < end)
		near_poll(us->port, us->port->sink);
	ck_assert(ready(0));
	ck_assert(near_woken(us->port));
	ck_assert(!ready(0));
	ck_assert_int_eq(near_arm(us->port), 0);
	ck_assert(!near_woken(us->port));
}

/*
 * Another thread begins to receive a large message (_i & 1 is 0), or finds a
 * failed peer (1). The sleeping thread must wake, once, even if a third thread
 * has called near_woken() before (_i & 2).
 */
UNIT_LOOP(added_work_wakes_sleeper, 0, 4)
{
	ck_assert_int_eq(rig_send_large(other, to_us, 1, big, sizeof(big), big),
			 0);
	rig_until(us, NULL, 1);
	ck_assert_int_eq(near_arm(us->port), 0);
	ck_assert(!ready(0));
	if (_i & 2)
		ck_assert(!near_woken(us->port));
	if (_i & 1)
		near_peer_fail(us->port, us->event[0].peer);
	else
		rig_take(us, 0, got, sizeof(big));
	ck_assert(ready(0));
	ck_assert_int_eq(near_arm(us->port), -EAGAIN);
	/*
	 * near_woken() may remove the byte: other threads call near_arm()
	 * before they sleep
	 */
	ck_assert(near_woken(us->port));
	ck_assert(!ready(0));
	if (_i & 1)
		return;
	rig_until_event(us, other, 2, RIG_RECEIVED, 0);
	/* no thread sleeps, so no byte is in the pipe */
	ck_assert(!ready(0));
}

UNIT_TEST(close_of_receiver_wakes_sender)
{
	struct near_peer *to_other = rig_peer(us, other);

	ck_assert_int_eq(rig_send_large(us, to_other, 1, big, sizeof(big), big),
			 0);
	rig_until(other, NULL, 1);
	sleep_now();
	rig_close(other);
	ck_assert(ready(1000));
	rig_until(us, NULL, 2);
	rig_ended(us, 0, RIG_SENT, ECONNRESET);
}

/* A process without a free file descriptor closes the port of a sender. */
UNIT_TEST(close_without_free_descriptor_wakes_receiver)
{
	int lowest = lowest_free();
	rlim_t limit;

	ck_assert_int_eq(rig_send(other, to_us, 1, big, 8), 0);
	rig_until(us, NULL, 1);
	sleep_now();
	limit = unit_limit(RLIMIT_NOFILE, (rlim_t)lowest);
	rig_close(other);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert(ready(1000));
}

/*
 * The sender has closed. The number of its segment's file descriptor now
 * belongs to another file. The close of the receiver must not cause a warning.
 */
UNIT_TEST(close_of_receiver_ignores_closed_sender)
{
	int fd = other->port->fd;

	ck_assert_int_eq(rig_send(other, to_us, 1, "", 0), 0);
	rig_until(us, NULL, 1);
	rig_close(other);
	ck_assert_int_eq(dup2(near_wait_fd(us->port), fd), fd);
	rig_stop(us);
	close(fd);
	ck_assert_int_eq(us->warnings, 0);
}
