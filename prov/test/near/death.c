/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Processes that fail, are stopped, or have a reused pid. */

#include <limits.h>
#include <signal.h>
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

/* Kill without reaping: the process counts as failed before that. */
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

UNIT_CASE("death", setup, teardown);

/* All messages that were sent completely arrive before RIG_GONE. */
UNIT_TEST(sender)
{
	uint32_t i;

	start(act_send, false);
	kill_child();
	rig_until_gone(us, 102);
	for (i = 0; i < 100; i++) {
		ck_assert_uint_eq(us->event[i].msg.tag, i);
		ck_assert_uint_eq(us->event[i].sum, rig_sum(buf, i * 10));
	}
	ck_assert_int_eq(us->event[100].kind, RIG_RNDV);
	/* a receive of it ends with an error now */
	ck_assert_int_eq(near_recv(us->port, us->event[100].peer,
				   &us->event[100].msg.rndv, NULL, 0, 0, us),
			 0);
	rig_until(us, NULL, 103);
	ck_assert_int_eq(us->event[102].err, ECONNRESET);
}

/* The sink has space only after the failure: no message is lost. */
UNIT_TEST(sender_without_room)
{
	start(act_send, false);
	rig_poll(us, 0);
	us->no_room = true;
	kill_child();
	rig_poll_ms(us, 300);
	ck_assert_uint_eq(us->count, 0);
	us->no_room = false;
	rig_until_gone(us, 102);
}

/* Sends to a failed peer with undelivered messages return -ECONNRESET. */
UNIT_TEST(dying)
{
	uint64_t end = duo_now_ms() + 10000;
	struct near_peer *peer;
	int ret;

	start(act_send, false);
	near_peer_get(us->port, &theirs, &peer);
	us->refuse = INT_MAX;
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
	us->refuse = 0;
	rig_until_gone(us, 102);
}

/* The sender fails amid a large message; _i is 1: in fragments. */
UNIT_LOOP(sender_of_large, 0, 2)
{
	static uint8_t got[LEN];

	start(act_send, _i);
	rig_until(us, NULL, 101);
	kill(child, SIGSTOP);
	rig_take(us, 100, got, LEN);
	if (!_i) {
		/* it can be read although it is stopped */
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

UNIT_TEST(receiver)
{
	struct near_peer *peer;
	int ret;

	start(NULL, false);
	near_peer_get(us->port, &theirs, &peer);
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

/* A monitored peer fails without any message before. */
UNIT_TEST(watched)
{
	struct near_peer *peer;

	start(NULL, false);
	near_peer_get(us->port, &theirs, &peer);
	near_peer_watch(us->port, peer);
	rig_poll_ms(us, 300);
	ck_assert_uint_eq(us->count, 0);
	kill_child();
	rig_until_gone(us, 1);
}

/* Make the port's last poll and last check seem ms earlier. */
static void pause_ms(unsigned int ms)
{
	us->port->ticked_ms -= ms;
	us->port->checked_ms -= ms;
}

/*
 * A process that polls three times a second finds a failure within three polls,
 * regardless of the number of polls before.
 */
UNIT_LOOP(seldom, 0, NEAR_TICK_POLLS)
{
	struct near_peer *peer;
	int polls;

	start(NULL, false);
	near_peer_get(us->port, &theirs, &peer);
	near_peer_watch(us->port, peer);
	for (polls = 0; polls < NEAR_TICK_POLLS + _i; polls++) {
		pause_ms(333);
		rig_poll(us, 1);
	}
	kill_child();
	for (polls = 0; !us->count; polls++) {
		ck_assert_int_lt(polls, 3);
		pause_ms(333);
		rig_poll(us, 1);
	}
	rig_until_gone(us, 1);
}

/* The clock is read in each poll after a pause, then less and less often. */
UNIT_TEST(looks_less_often)
{
	const uint64_t start_ms = duo_now_ms();
	uint32_t i, looks = 0, before;

	pause_ms(1000);
	rig_poll(us, NEAR_TICK_POLLS);
	ck_assert_uint_le(us->port->tick_polls, 1);
	for (i = 0; i < 1000; i++) {
		before = us->port->tick_at;
		rig_poll(us, 1);
		looks += us->port->tick_at != before;
	}
	if (duo_now_ms() - start_ms < NEAR_CHECK_MS) {
		ck_assert_uint_eq(us->port->tick_polls, NEAR_TICK_POLLS);
		ck_assert_uint_le(looks, 4 * NEAR_TICK_QUICK + 1000 /
				  NEAR_TICK_POLLS);
	}
	ck_assert_uint_ge(looks, 1000 / NEAR_TICK_POLLS);
}

/*
 * The peer opened a ring of ours, and was killed before it rang the doorbell. We have a
 * reference of it, and its end was reported before we find the ring.
 */
UNIT_TEST(before_its_doorbell)
{
	struct near_claim *claim = &us->port->segment->claim[5];
	uint64_t end = duo_now_ms() + 10000;
	struct near_peer *peer;

	start(NULL, false);
	near_peer_get(us->port, &theirs, &peer);
	near_peer_watch(us->port, peer);
	kill_child();
	rig_until_gone(us, 1);
	claim->who = theirs;
	claim->tier = near_tier_least();
	claim->state = NEAR_CLAIM_OPEN;
	while (__atomic_load_n(&claim->state, __ATOMIC_ACQUIRE) !=
	       NEAR_CLAIM_FREE && duo_now_ms() < end)
		rig_poll(us, 1);
	ck_assert_uint_eq(claim->state, NEAR_CLAIM_FREE);
	ck_assert_uint_eq(rig_rx_rings(us), 0);
}

UNIT_TEST(dead_before)
{
	struct near_peer *peer;

	start(NULL, false);
	kill_child();
	near_peer_get(us->port, &theirs, &peer);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
	rig_until_gone(us, 1);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
}

/* A reply finds the failure first: pending operations end nevertheless. */
UNIT_TEST(dead_when_answered)
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
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -EHOSTUNREACH);
	rig_until_gone(us, 103);
	rig_ended(us, 101, RIG_RECEIVED, ECONNRESET);
}

/* A process with the pid of an exited one is another process. */
UNIT_TEST(pid_reused)
{
	struct near_peer *peer;

	start(NULL, false);
	theirs.start--;
	near_peer_get(us->port, &theirs, &peer);
	ck_assert_int_eq(rig_send(us, peer, 1, buf, 8), -ECONNRESET);
	rig_until_gone(us, 1);
}
