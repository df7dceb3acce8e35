/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Peers whose process is killed or stopped, and peers with a reused pid */

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

#define LEN 300000

static struct rig *us;
static struct near_addr theirs;
static pid_t child;
static uint8_t buf[LEN];

static void start(void (*act)(struct rig *rig), bool no_cma)
{
	child = rig_child(act, no_cma, &theirs);
}

/* Calls start(), and returns the child's port as a peer of us. */
static struct near_peer *start_peer(void (*act)(struct rig *rig))
{
	start(act, false);
	return rig_peer_at(us, &theirs);
}

/* Kills the child without reaping it: even a zombie counts as failed. */
static void kill_child(void)
{
	siginfo_t info;

	kill(child, SIGKILL);
	waitid(P_PID, child, &info, WEXITED | WNOWAIT);
}

static void setup(void)
{
	us = rig_open(false);
	rig_fill(buf, LEN, 3);
	child = 0;
}

static void teardown(void)
{
	unit_kill(child);
	rig_close(us);
}

static void act_send(struct rig *rig)
{
	struct near_peer *to_us = rig_peer(rig, us);
	uint32_t i;

	for (i = 0; i < 100; i++)
		rig_send(rig, to_us, i, buf, i * 10);
	rig_send_large(rig, to_us, 100, buf, LEN, buf);
}

UNIT_CASE("peer failure", setup, teardown);

UNIT_TEST(messages_of_killed_sender_arrive)
{
	static uint8_t got[LEN];
	const struct iovec iov = { got, LEN };
	uint32_t i;

	start(act_send, false);
	kill_child();
	rig_until_gone(us, 102);
	for (i = 0; i < 100; i++) {
		ck_assert_uint_eq(us->event[i].msg.tag, i);
		ck_assert_uint_eq(us->event[i].sum, rig_sum(buf, i * 10));
	}
	ck_assert_int_eq(us->event[100].kind, RIG_RNDV);
	/* a receive of an announced message fails now */
	ck_assert_int_eq(near_recv(us->port, us->event[100].peer,
				   &us->event[100].msg.rndv, &iov, 1, LEN, us),
			 0);
	rig_until(us, NULL, 103);
	ck_assert_int_eq(us->event[102].err, ECONNRESET);
}

/*
 * A child sends an invalid slot. us disconnects the child, but keeps a
 * reference to it. The child attaches again, and us rejects the new claim. The
 * child is killed before it closes this claim. Then both claims must become
 * free.
 */
UNIT_TEST(ring_of_killed_sender_that_attached_again_is_freed)
{
	const struct near_claim *claim = us->port->segment->claim;
	struct near_peer *to_us;
	struct rig *rig;

	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rig = rig_open(false);
		to_us = rig_peer(rig, us);
		rig_send(rig, to_us, 1, buf, 8);
		near_tx_publish(&to_us->tx, near_tx_slot(&to_us->tx),
				near_word(15, 0, 0, 0));
		rig_until(rig, NULL, 1);
		near_peer_put(rig->port, rig->event[0].peer);
		near_peer_put(rig->port, to_us);
		rig_send(rig, rig_peer(rig, us), 2, buf, 8);
		for (;;)
			pause();
	}
	rig_until(us, NULL, 3);
	ck_assert_int_eq(us->event[1].kind, RIG_GONE);
	ck_assert_uint_eq(us->event[2].msg.tag, 2);
	kill_child();
	rig_poll_while(us, rig_rx_rings(us));
	ck_assert_uint_eq(claim[0].state, NEAR_CLAIM_FREE);
	ck_assert_uint_eq(claim[1].state, NEAR_CLAIM_FREE);
}

/*
 * Kills a sender while the port cannot map its ring, and polls until near has
 * detected the failure. Returns the value that port->fd must have before the
 * port can map the ring.
 */
static int kill_without_ring(void)
{
	struct near_peer *peer = start_peer(act_send);
	int fd = us->port->fd;

	near_peer_monitor(us->port, peer);
	us->port->fd = -1;
	kill_child();
	rig_poll_while(us, !peer->draining);
	return fd;
}

UNIT_TEST(messages_arrive_if_rx_ring_is_late)
{
	int fd = kill_without_ring();
	uint32_t i;

	rig_poll(us, 10 * NEAR_TICK_POLLS);
	ck_assert_uint_eq(us->count, 0);
	us->port->fd = fd;
	rig_until_gone(us, 102);
	for (i = 0; i <= 100; i++)
		ck_assert_uint_eq(us->event[i].msg.tag, i);
}

/*
 * The claim of a faulty sender gets an invalid value. The port must not wait
 * until it can map the ring.
 */
UNIT_TEST(claim_becomes_invalid_while_rx_ring_is_late)
{
	int fd = kill_without_ring();

	us->port->segment->claim[0].tier = UINT32_MAX;
	us->port->fd = fd;
	rig_until_gone(us, 1);
}

UNIT_TEST(messages_wait_for_sink_after_failure)
{
	start(act_send, false);
	rig_poll(us, 0);
	us->reject = INT_MAX;
	kill_child();
	rig_poll_ms(us, 300);
	ck_assert_uint_eq(us->count, 0);
	us->reject = 0;
	rig_until_gone(us, 102);
}

UNIT_TEST(send_to_failed_peer_fails)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;
	struct near_peer *peer = start_peer(act_send);
	int ret;

	us->reject = INT_MAX;
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), 0);
	kill_child();
	do {
		rig_poll(us, 1);
		ret = rig_send(us, peer, 2, buf, 8);
	} while ((!ret || ret == -EAGAIN) && duo_now_ms() < end);
	ck_assert_int_eq(ret, -ECONNRESET);
	ck_assert_int_eq(rig_send_large(us, peer, 2, buf, LEN, buf),
			 -ECONNRESET);
	ck_assert_uint_eq(us->count, 0);
	us->reject = 0;
	rig_until_gone(us, 102);
}

/*
 * The sender is stopped, and later killed. _i is 0: the receiver reads from the
 * stopped sender. 1: fragments, so that the receive fails after the kill.
 */
UNIT_LOOP(large_message_of_killed_sender_fails, 0, 2)
{
	static uint8_t got[LEN];

	start(act_send, _i);
	rig_until(us, NULL, 101);
	kill(child, SIGSTOP);
	rig_take(us, 100, got, LEN);
	if (!_i) {
		rig_until(us, NULL, 102);
		ck_assert_int_eq(us->event[101].err, 0);
		kill_child();
		rig_until_gone(us, 103);
		return;
	}
	rig_poll_ms(us, 1500);
	ck_assert_msg(us->count == 101, "stopped is not dead");
	kill_child();
	rig_until_gone(us, 103);
	rig_ended(us, 101, RIG_RECEIVED, ECONNRESET);
}

UNIT_TEST(send_to_killed_receiver_fails)
{
	struct near_peer *peer = start_peer(NULL);
	int ret;

	ck_assert_int_eq(rig_send_large(us, peer, 1, buf, LEN, buf), 0);
	while (!(ret = rig_send(us, peer, 2, buf, 8)))
		;
	ck_assert_int_eq(ret, -EAGAIN);
	rig_poll_ms(us, 300);
	ck_assert_uint_eq(us->count, 0);
	kill_child();
	rig_until_gone(us, 2);
	rig_ended(us, 0, RIG_SENT, ECONNRESET);
	ck_assert_int_eq(rig_send(us, peer, 2, buf, 8), -ECONNRESET);
}

/*
 * Shifts the times of the port's last tick and last check of peers back by ms.
 */
static void pause_ms(unsigned int ms)
{
	us->port->ticked_ms -= ms;
	us->port->checked_ms -= ms;
}

UNIT_TEST(late_monitoring_finds_failure)
{
	struct near_peer *peer = start_peer(NULL);
	rlim_t limit = unit_limit(RLIMIT_NOFILE, 0);

	near_peer_monitor(us->port, peer);
	ck_assert(!near_peer_exists(peer));
	unit_limit(RLIMIT_NOFILE, limit);
	rig_poll_while(us, !near_peer_exists(peer));
	kill_child();
	rig_until_gone(us, 1);
}

/*
 * With three polls a second, the failure of an unused peer must be found within
 * three polls, whatever the number of earlier polls is: NEAR_TICK_POLLS + _i.
 */
UNIT_LOOP(rare_polls_find_failure, 0, NEAR_TICK_POLLS)
{
	int polls;

	near_peer_monitor(us->port, start_peer(NULL));
	for (polls = 0; polls < NEAR_TICK_POLLS + _i; polls++) {
		pause_ms(333);
		rig_poll(us, 1);
	}
	ck_assert_uint_eq(us->count, 0);
	kill_child();
	for (polls = 0; !us->count; polls++) {
		ck_assert_int_lt(polls, 3);
		pause_ms(333);
		rig_poll(us, 1);
	}
	rig_until_gone(us, 1);
}

UNIT_TEST(clock_reads_become_rarer)
{
	const uint64_t start_ms = duo_now_ms();
	uint32_t i, looks = 0, before;

	pause_ms(1000);
	rig_poll(us, us->port->tick_at - us->port->polls);
	ck_assert_uint_eq(us->port->tick_polls, 1);
	for (i = 0; i < 1000; i++) {
		before = us->port->tick_at;
		rig_poll(us, 1);
		looks += us->port->tick_at != before;
	}
	if (duo_now_ms() - start_ms < NEAR_CHECK_MS) {
		ck_assert_uint_eq(us->port->tick_polls, NEAR_TICK_POLLS);
		ck_assert_uint_le(looks, 4 + 1000 / NEAR_TICK_POLLS);
	}
	ck_assert_uint_ge(looks, 1000 / NEAR_TICK_POLLS);
}

/* near reports the failure before it finds the ring, which it must free. */
UNIT_TEST(failure_before_doorbell_frees_ring)
{
	struct near_claim *claim = &us->port->segment->claim[5];

	near_peer_monitor(us->port, start_peer(NULL));
	kill_child();
	rig_until_gone(us, 1);
	claim->addr = theirs;
	claim->tier = near_tier_least();
	claim->state = NEAR_CLAIM_OPEN;
	rig_poll_while(us, __atomic_load_n(&claim->state, __ATOMIC_ACQUIRE) !=
		       NEAR_CLAIM_FREE);
	ck_assert_uint_eq(rig_rx_rings(us), 0);
}

/* A send, not a poll, is the first to find the peer's failure. */
UNIT_TEST(failure_at_reply_ends_operations)
{
	static uint8_t got[LEN];
	struct iovec iov = { got, LEN };
	struct near_peer *peer;

	start(act_send, true);
	rig_until(us, NULL, 101);
	peer = us->event[100].peer;
	ck_assert_int_eq(near_recv(us->port, peer, &us->event[100].msg.rndv,
				   &iov, 1, LEN, us), 0);
	kill_child();
	waitpid(child, NULL, 0);
	child = 0;
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
	rig_until_gone(us, 103);
	rig_ended(us, 101, RIG_RECEIVED, ECONNRESET);
}

/* Closes the segment's descriptor, as the kernel does when a process exits. */
static void act_close(struct rig *rig)
{
	close(rig->port->fd);
}

/* The number of the segment's descriptor becomes that of another segment. */
static void act_reopen(struct rig *rig)
{
	int fd = rig->port->fd;

	rig_stop(rig);
	ck_assert_int_eq(rig_open(false)->port->fd, fd);
}

/* The number of the segment's descriptor becomes that of the file fd. */
static void become(struct rig *rig, int fd)
{
	ck_assert_int_eq(dup2(fd, rig->port->fd), rig->port->fd);
}

/* open() with O_RDWR returns ENXIO. */
static void act_socket(struct rig *rig)
{
	become(rig, socket(AF_UNIX, SOCK_DGRAM, 0));
}

/* ... EISDIR. */
static void act_directory(struct rig *rig)
{
	become(rig, open("/", O_RDONLY));
}

/* ... ETXTBSY. */
static void act_program(struct rig *rig)
{
	become(rig, open("/proc/self/exe", O_RDONLY));
}

/* ... EACCES, unless the user is root. */
static void act_file(struct rig *rig)
{
	become(rig, open("/etc/passwd", O_RDONLY));
}

/*
 * The process was killed (_i is 0), or its pid reused (1). Or it is exiting
 * (2), or its port has closed, and the number of the segment's descriptor has
 * been reused (from 3).
 */
UNIT_LOOP(send_to_exited_process_fails, 0, 8)
{
	static void (*const act[])(struct rig *rig) = {
		NULL, NULL, act_close, act_reopen, act_socket, act_directory,
		act_program, act_file,
	};
	struct near_peer *peer;

	start(act[_i], false);
	if (_i == 0)
		kill_child();
	theirs.start -= _i == 1;
	peer = rig_peer_at(us, &theirs);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
	ck_assert(near_peer_exited(peer));
	rig_until_gone(us, 1);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
}

UNIT_CASE("disconnected", NULL, rig_close_all);

/*
 * b disconnects a, but a has not noticed this yet and still writes to its ring
 * at b. _i is 1: b has rejected a's claim before, because b cannot send to a.
 */
UNIT_LOOP(ring_of_disconnected_peer_has_one_owner, 0, 2)
{
	struct rig *a, *b, *c;
	struct near_peer *a_to_b = rig_pair(&a, &b, false), *c_to_b;

	ck_assert_int_eq(rig_send(a, a_to_b, 1, buf, 8), 0);
	rig_until(b, NULL, 1);
	if (_i)
		ck_assert(near_claim_reject(b->port, a_to_b->index));
	near_peer_fail(b->port, b->event[0].peer);
	rig_until_event(b, NULL, 2, RIG_GONE, 0);
	near_peer_put(b->port, b->event[0].peer);
	near_peer_put(b->port, b->event[1].peer);
	c = rig_open(false);
	c_to_b = rig_peer(c, b);
	ck_assert_int_eq(rig_send(c, c_to_b, 2, buf, 8), 0);
	ck_assert_int_eq(rig_send(a, a_to_b, 3, buf, 8), 0);
	ck_assert_int_eq(rig_send(c, c_to_b, 4, buf, 8), 0);
	rig_until(b, NULL, 4);
	ck_assert_uint_eq(b->event[2].msg.tag, 2);
	ck_assert_uint_eq(b->event[3].msg.tag, 4);
	rig_until_event(a, b, 1, RIG_GONE, 0);
	ck_assert_int_eq(rig_send(c, c_to_b, 5, buf, 8), 0);
	rig_until(b, NULL, 6);
	ck_assert_int_eq(b->event[4].kind, RIG_MSG);
	ck_assert_uint_eq(b->event[4].msg.tag, 5);
	ck_assert_int_eq(b->event[5].kind, RIG_GONE);
	ck_assert_uint_eq(b->port->segment->claim[0].state, NEAR_CLAIM_FREE);
}

UNIT_CASE("disconnected child", setup, teardown);

UNIT_TEST(ring_of_killed_disconnected_peer_is_freed)
{
	struct near_claim *claim = us->port->segment->claim;

	start(act_send, false);
	rig_until(us, NULL, 101);
	near_peer_fail(us->port, us->event[0].peer);
	rig_until_gone(us, 102);
	ck_assert_uint_eq(claim->state, NEAR_CLAIM_REJECTED);
	kill_child();
	rig_poll_while(us, claim->state != NEAR_CLAIM_FREE);
}
