/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* A process whose main thread has exited by pthread_exit() has not failed. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

#define LEN 200000

static struct rig *us;
static struct near_addr theirs;
static uint8_t buf[LEN];
static int ends[2];
static pid_t child;
static bool closed_own;

/*
 * A thread of the child that stops sharing the file descriptors of the process,
 * and closes its copy of the port's. So peers find it only under other threads.
 */
static void *close_own(void *rig_arg)
{
	const struct rig *rig = rig_arg;

	if (unshare(CLONE_FILES))
		_exit(5);
	close(rig->port->fd);
	__atomic_store_n(&closed_own, true, __ATOMIC_RELEASE);
	for (;;)
		pause();
	return NULL;
}

/* Third thread of the child, which goes on after the main thread has exited */
static void *talk(void *rig_arg)
{
	struct near_peer *to_us;
	struct rig *rig = rig_arg;
	char byte;

	while (unit_state(getpid()) != 'Z')
		sched_yield();
	to_us = rig_peer(rig, us);
	if (rig_send(rig, to_us, 1, buf, 8) ||
	    rig_send_large(rig, to_us, 2, buf, LEN, buf))
		_exit(3);
	while (rig->count < 2)		/* RIG_SENT and the parent's message */
		rig_poll(rig, NEAR_TICK_POLLS);
	if (read(ends[0], &byte, 1) != 1)
		_exit(4);
	_exit(0);
}

static void start(void)
{
	pthread_t thread;
	struct rig *rig;
	int tells[2];

	ck_assert_int_eq(pipe(ends), 0);
	ck_assert_int_eq(pipe(tells), 0);
	child = fork();
	if (child) {
		ck_assert_int_eq(read(tells[0], &theirs, sizeof(theirs)),
				 sizeof(theirs));
		return;
	}
	rig = rig_open(false);
	if (pthread_create(&thread, NULL, close_own, rig))
		_exit(1);
	while (!__atomic_load_n(&closed_own, __ATOMIC_ACQUIRE))
		sched_yield();
	if (write(tells[1], &rig->addr, sizeof(rig->addr)) < 0 ||
	    pthread_create(&thread, NULL, talk, rig))
		_exit(1);
	pthread_exit(NULL);
}

static void setup(void)
{
	us = rig_open(false);
	rig_fill(buf, LEN, 3);
}

UNIT_CASE("leader", setup, rig_close_all);

/* _i is 1: near_peer_monitor() is called before the messages. */
UNIT_LOOP(process_without_main_thread_communicates, 0, 2)
{
	static uint8_t got[LEN];
	struct near_peer *peer;
	uint64_t start_ticks;

	start();
	peer = rig_peer_at(us, &theirs);
	if (_i)
		near_peer_monitor(us->port, peer);
	rig_until(us, NULL, 2);
	ck_assert_int_eq(unit_state(child), 'Z');
	ck_assert_int_eq(duo_proc_start(child, &start_ticks), 0);
	ck_assert_uint_eq(start_ticks, theirs.start);
	ck_assert_int_eq(us->event[0].kind, RIG_MSG);
	rig_take(us, 1, got, LEN);
	rig_until_event(us, NULL, 3, RIG_RECEIVED, 0);
	ck_assert_mem_eq(got, buf, LEN);
	ck_assert_int_eq(rig_send(us, peer, 3, buf, 8), 0);
	rig_poll_ms(us, 3 * NEAR_CHECK_MS);
	ck_assert_uint_eq(us->count, 3);
	ck_assert_int_eq(write(ends[1], "", 1), 1);
	rig_until_event(us, NULL, 4, RIG_GONE, 0);
	ck_assert_int_eq(duo_proc_start(child, &start_ticks), -ESRCH);
	unit_join(child);
}

/*
 * Runs in a second thread, like talk(). Ends the process with the exit status 0
 * or an errno value.
 */
static void *open_own(void *arg)
{
	int own;

	while (unit_state(getpid()) != 'Z')
		sched_yield();
	own = duo_proc_open_own(ends[0], O_RDONLY);
	_exit(own < 0 ? -own : 0);
}

UNIT_CASE("own", NULL, NULL);

UNIT_TEST(other_thread_opens_descriptors)
{
	pthread_t thread;
	pid_t pid;

	ck_assert_int_eq(pipe(ends), 0);
	pid = fork();
	if (!pid) {
		if (pthread_create(&thread, NULL, open_own, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	unit_join(pid);
}
