/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Processes start, communicate and are killed at random. Environment variables
 * set the numbers of clients (NEAR_CLIENTS), of killed processes (NEAR_DEATHS)
 * and of messages (NEAR_MESSAGES), for example 10000, 1000 and 10000000.
 */

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

#define TALKERS 4
#define UNDER_WAY 32
#define LONGEST 200000
#define TIMEOUT_MS 60000

static uint8_t pattern[LONGEST + 256];
static struct rig *us;
static pid_t child[TALKERS];

static void setup(void)
{
	rig_fill(pattern, sizeof(pattern), 11);
	us = rig_open(false);
}

/* A small ring budget: rings start with one page and grow. */
static void setup_growing(void)
{
	rig_fill(pattern, sizeof(pattern), 11);
	us = rig_open_with(false, 63 * near_page_size());
}

static void teardown(void)
{
	int i;

	for (i = 0; i < TALKERS; i++)
		unit_kill(child[i]);
	rig_close(us);
}

/*
 * Returns the length in a tag. The lower 8 bits of the tag are the offset of
 * the message's bytes in `pattern`.
 */
static size_t tag_len(uint64_t tag)
{
	return (size_t)(tag >> 8);
}

static int talk(struct rig *rig, struct near_peer *peer, unsigned int *seed)
{
	size_t len = rand_r(seed) % 4 ? rand_r(seed) % 600u :
		     rand_r(seed) % (unsigned int)LONGEST;
	uint64_t tag = len << 8 | (rand_r(seed) & 255);
	uint8_t *from = pattern + (tag & 255);
	int ret;

	ret = rig_send(rig, peer, tag, from, len);
	return ret == NEAR_LARGE ? rig_send_large(rig, peer, tag, from, len,
						  rig) : ret;
}

/* Handles all events. Returns the number of messages that are complete. */
static uint32_t receive_new(struct rig *rig)
{
	struct rig_event *event;
	struct iovec iov;
	uint32_t n = 0, i;
	uint8_t *to;

	for (i = 0; i < rig->count; i++) {
		event = &rig->event[i];
		if (event->kind == RIG_MSG) {
			ck_assert_uint_eq(event->msg.len,
					  tag_len(event->msg.tag));
			ck_assert_uint_eq(event->sum, rig_sum(
				pattern + (event->msg.tag & 255),
				event->msg.len));
			n++;
		} else if (event->kind == RIG_RNDV) {
			to = malloc(event->msg.len + sizeof(uint64_t));
			memcpy(to, &event->msg.tag, sizeof(uint64_t));
			iov.iov_base = to + sizeof(uint64_t);
			iov.iov_len = event->msg.len;
			ck_assert_int_eq(near_recv(rig->port, event->peer,
					 &event->msg.rndv, &iov, 1,
					 event->msg.len, to), 0);
		} else if (event->kind == RIG_RECEIVED) {
			to = event->cookie;
			ck_assert(!event->err || event->err == ECONNRESET);
			if (!event->err)
				ck_assert_mem_eq(to + 8, pattern + to[0],
						 tag_len(*(uint64_t *)to));
			n += !event->err;
			free(to);
		}
		if (event->kind != RIG_RECEIVED && event->kind != RIG_SENT)
			near_peer_put(rig->port, event->peer);
	}
	rig->count = 0;
	return n;
}

static uint32_t listen_to(struct rig *rig)
{
	rig_poll(rig, 1);
	return receive_new(rig);
}

static bool ops_left(const struct rig *rig)
{
	uint32_t tx = 0, rx = 0;

	return near_pool_next(&rig->port->tx_ops, &tx) ||
	       near_pool_next(&rig->port->rx_ops, &rx);
}

/* Polls until the port has no rx ring, no operation, no memory for rings. */
static void poll_until_idle(void)
{
	uint64_t end_ms = duo_now_ms() + TIMEOUT_MS;

	do {
		listen_to(us);
		sched_yield();
		ck_assert_msg(duo_now_ms() < end_ms, "%u lanes, operations %d, "
			      "%zu bytes", rig_rx_rings(us), ops_left(us),
			      rig_taken(us) - us->idle);
	} while (rig_rx_rings(us) || ops_left(us) ||
		 rig_taken(us) > us->idle);
}

/*
 * Client process: sends a request and receives the reply. Then it kills itself,
 * or closes its port and exits, or exits without near_close().
 */
static void client(const struct near_addr *service, unsigned int number)
{
	struct rig *rig;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig = rig_open(false);
	ck_assert_int_eq(rig_send(rig, rig_peer_at(rig, service), 40 << 8,
				  pattern, 40), 0);
	while (!listen_to(rig))
		sched_yield();
	if (number % 3 == 0)
		kill(getpid(), SIGKILL);
	if (number % 3 == 1)
		near_close(rig->port);
	_exit(0);
}

/* Receives the next request and sends the reply. */
static void answer(void)
{
	uint64_t end_ms = duo_now_ms() + TIMEOUT_MS;
	uint32_t i;

	for (;;) {
		rig_poll(us, 1);
		for (i = 0; i < us->count; i++)
			if (us->event[i].kind == RIG_MSG)
				break;
		if (i < us->count)
			break;
		receive_new(us);
		sched_yield();
		ck_assert_msg(duo_now_ms() < end_ms, "no request");
	}
	ck_assert_int_eq(rig_send(us, us->event[i].peer, 8 << 8, pattern, 8),
			 0);
	receive_new(us);
}

UNIT_LONG_CASE("life", setup, teardown, 3600);

UNIT_TEST(server_does_not_grow_with_clients)
{
	unsigned int count = unit_number("NEAR_CLIENTS", 300), i, files = 0;

	for (i = 0; i < count; i++) {
		child[0] = fork();
		if (!child[0])
			client(&us->addr, i);
		answer();
		waitpid(child[0], NULL, 0);
		child[0] = 0;
		/* find the exit now, not at the next check */
		near_woken(us->port);
		listen_to(us);
		ck_assert_uint_le(us->port->ring_count, 8);
		if (i % 50)
			continue;
		poll_until_idle();
		ck_assert(near_list_empty(&us->port->peers));
		if (files)
			ck_assert_uint_eq(rig_files(), files);
		files = rig_files();
	}
}

/*
 * True if UNDER_WAY large messages are pending. More of them would make polls
 * slow, because each poll checks all of them.
 */
static bool talked_enough(const struct rig *rig)
{
	uint32_t at = 0, count = 0;

	while (count < UNDER_WAY && near_pool_next(&rig->port->tx_ops, &at))
		count++;
	return count == UNDER_WAY;
}

/* Forks a process that sends messages to this one until it is killed. */
static pid_t talker(unsigned int seed)
{
	struct near_peer *peer;
	struct rig *rig;
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	rig = rig_open(seed % 5 == 0);
	peer = rig_peer(rig, us);
	for (;;) {
		if (talked_enough(rig) || talk(rig, peer, &seed))
			sched_yield();
		listen_to(rig);
	}
}

/* Sends a message to each peer, while no large message is pending. */
static void talk_to_all(unsigned int *seed)
{
	struct near_link *link;
	struct near_peer *peer;

	for (link = us->port->peers.next; link != &us->port->peers;
	     link = link->next) {
		peer = near_container(link, struct near_peer, link);
		if (peer->state != NEAR_PEER_GONE && !ops_left(us))
			talk(us, peer, seed);
	}
}

UNIT_LONG_CASE("life", setup, teardown, 3600);
UNIT_LONG_CASE("growing", setup_growing, teardown, 3600);

UNIT_TEST(killed_processes_leave_nothing)
{
	unsigned int count = unit_number("NEAR_DEATHS", 40), seed = 1, i, who;
	uint64_t until_ms, heard = 0;

	for (i = 0; i < TALKERS; i++)
		child[i] = talker(i);
	/* on a busy host, some time may pass until a talker runs */
	for (i = 0; i < count || !heard; i++) {
		until_ms = duo_now_ms() + rand_r(&seed) % 50;
		do {
			talk_to_all(&seed);
			heard += listen_to(us);
		} while (duo_now_ms() < until_ms);
		who = (unsigned int)rand_r(&seed) % TALKERS;
		unit_kill(child[who]);
		child[who] = talker(seed);
	}
	for (i = 0; i < TALKERS; i++) {
		unit_kill(child[i]);
		child[i] = 0;
	}
	poll_until_idle();
	ck_assert_uint_gt(heard, 0);
}

UNIT_TEST(many_messages_arrive_valid)
{
	unsigned int count = unit_number("NEAR_MESSAGES", 20000);
	unsigned int seed = 7, sent;
	uint64_t heard = 0, end_ms = 0, last = 0;
	struct near_peer *peer;
	struct rig *rig;

	child[0] = fork();
	if (!child[0]) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		rig = rig_open(false);
		peer = rig_peer(rig, us);
		for (sent = 0; sent < count; listen_to(rig))
			sent += !talked_enough(rig) && !talk(rig, peer, &seed);
		for (;;)
			listen_to(rig);
	}
	while (heard < count) {
		heard += listen_to(us);
		if (heard != last)
			end_ms = duo_now_ms() + TIMEOUT_MS;
		else
			sched_yield();
		last = heard;
		ck_assert_msg(!end_ms || duo_now_ms() < end_ms,
			      "%lu of %u messages", (unsigned long)heard,
			      count);
	}
	ck_assert_uint_eq(heard, count);
}

/* Makes pidfd_open() fail, as before Linux 5.3. */
static void refuse_pidfds(void)
{
	unit_reject(SYS_pidfd_open, SECCOMP_RET_ERRNO | ENOSYS);
	ck_assert_int_eq(duo_proc_pidfd(getpid()), -ENOSYS);
}

UNIT_LONG_CASE("life", setup, teardown, 3600);

/* The killed peer is a zombie (_i is 0), or its parent has reaped it (1). */
UNIT_LOOP(failure_is_found_without_pidfds, 0, 2)
{
	struct near_addr addr;
	struct near_peer *peer;
	siginfo_t info;

	refuse_pidfds();
	child[0] = rig_child(NULL, false, &addr);
	peer = rig_peer_at(us, &addr);
	near_peer_monitor(us->port, peer);
	ck_assert(peer->by_start);
	ck_assert_int_eq(duo_proc_check(addr.pid, addr.start), 0);
	kill(child[0], SIGKILL);
	waitid(P_PID, child[0], &info, WEXITED | (_i ? 0 : WNOWAIT));
	ck_assert_int_eq(duo_proc_check(addr.pid, addr.start), -ESRCH);
	if (_i)
		child[0] = 0;
	rig_until_event(us, NULL, 1, RIG_GONE, 0);
}
