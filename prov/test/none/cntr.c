/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_cntr_wait sleeps in poll(2). The poll() of this program replaces that of
 * the C library: before the first sleep it causes an event, and the event must
 * wake the thread.
 */

#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "base/proc.h"
#include "side.h"

#define LONG_MS 10000
#define SHORT_MS 300
#define THREADS 3

static struct fid_cntr *cntr;
static fi_addr_t self;
static char buf[64];

static void (*on_sleep)(void);	/* called before the first sleep only */
static unsigned int sleeps, short_sleeps, yields;

int poll(struct pollfd *fds, nfds_t count, int ms)
{
	int (*real_poll)(struct pollfd *, nfds_t, int) =
		(int (*)(struct pollfd *, nfds_t, int))
		dlsym(RTLD_NEXT, "poll");
	void (*now)(void) = on_sleep;

	if (ms)		/* a poll with timeout 0 is no sleep */
		__atomic_fetch_add(count ? &sleeps : &short_sleeps, 1,
				   __ATOMIC_RELAXED);
	if (ms && count && now) {
		on_sleep = NULL;
		now();
	}
	return real_poll(fds, count, ms);
}

int sched_yield(void)
{
	__atomic_fetch_add(&yields, 1, __ATOMIC_RELAXED);
	return 0;
}

/* Opens a counter and binds it to endpoint i only. */
static void count(int i)
{
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };

	if (i)
		return;
	ck_assert(!fi_cntr_open(domain, &attr, &cntr, NULL));
	ck_assert(!fi_ep_bind(ep[i], &cntr->fid, FI_SEND | FI_RECV));
}

static void setup_as(enum fi_threading threading)
{
	duo_params.cma = 0;
	recv_setup_as(threading, count);
	self = recv_insert(ep[0]);
	peer = recv_insert(ep[1]);
	sleeps = short_sleeps = yields = 0;
	on_sleep = NULL;
}

static void setup(void)
{
	setup_as(FI_THREAD_DOMAIN);
}

static void setup_locked(void)
{
	setup_as(FI_THREAD_SAFE);
}

static void teardown(void)
{
	if (ep[1])
		recv_close(1);
	recv_close(0);
	ck_assert(!fi_close(&cntr->fid));
	recv_close_domain();
}

UNIT_CASE("without a lock", setup, teardown);
UNIT_CASE("with a lock", setup_locked, teardown);

/* Without an event the thread sleeps for most of the time. */
UNIT_TEST(wait_without_event_sleeps)
{
	uint64_t begin = duo_now_ms();

	ck_assert_int_eq(fi_cntr_wait(cntr, 1, SHORT_MS), -FI_ETIMEDOUT);
	ck_assert_uint_ge(duo_now_ms() - begin, SHORT_MS - 10);
	ck_assert_uint_ge(sleeps, 1);
	ck_assert_uint_le(sleeps, SHORT_MS);
	ck_assert_uint_eq(short_sleeps + yields, 0);
	ck_assert_int_eq(fi_cntr_wait(cntr, 0, 0), 0);
	ck_assert_int_eq(fi_cntr_wait(cntr, 1, 0), -FI_ETIMEDOUT);
}

static void message(void)
{
	ck_assert(!fi_tinject(ep[1], buf, 8, self, 1));
}

/*
 * Another thread reads the CQ and gets the message: the wait for the counter
 * ends.
 */
static void message_read(void)
{
	struct fi_cq_tagged_entry entry;

	message();
	while (fi_cq_read(cq[0], &entry, 1) == -FI_EAGAIN)
		;
}

static void send(void)
{
	ck_assert(!fi_tinject(ep[0], buf, 8, peer, 1));
}

static void add(void)
{
	ck_assert(!fi_cntr_add(cntr, 1));
}

static void set(void)
{
	ck_assert(!fi_cntr_set(cntr, 7));
}

static void add_err(void)
{
	ck_assert(!fi_cntr_adderr(cntr, 1));
}

/* The peer ends: the waiting thread detects the peer failure. */
static void end(void)
{
	recv_close(1);
}

static const struct {
	void (*now)(void);
	int ret;
} wakes[] = {
	{ message, 0 },
	{ message_read, 0 },
	{ send, 0 },
	{ add, 0 },
	{ set, 0 },
	{ add_err, -FI_EAVAIL },
	{ end, -FI_EAVAIL },
};

UNIT_LOOP(event_wakes_wait, 0, ARRAY_SIZE(wakes))
{
	ck_assert(!fi_trecv(ep[0], buf, 64, NULL, peer, 1, 0, buf));
	on_sleep = wakes[_i].now;
	ck_assert_int_eq(fi_cntr_wait(cntr, 1, LONG_MS), wakes[_i].ret);
	ck_assert_ptr_null(on_sleep);
	ck_assert_uint_ge(sleeps, 1);
	ck_assert_uint_eq(short_sleeps, 0);
}

static void *wait_for(void *threshold)
{
	return (void *)(intptr_t)fi_cntr_wait(cntr, (uintptr_t)threshold,
					      LONG_MS);
}

UNIT_CASE("with a lock", setup_locked, teardown);

/* Several threads wait for different counts: each wakes. */
UNIT_TEST(waits_of_threads_end)
{
	pthread_t thread[THREADS];
	uintptr_t i;
	void *ret;

	for (i = 0; i < THREADS; i++)
		ck_assert(!pthread_create(&thread[i], NULL, wait_for,
					  (void *)(i + 1)));
	for (i = 0; i < THREADS; i++) {
		message();
		ck_assert(!fi_trecv(ep[0], buf, 64, NULL, peer, 1, 0, buf));
		ck_assert(!pthread_join(thread[i], &ret));
		ck_assert_ptr_null(ret);
	}
}

static void answer(void)
{
	ck_assert(!fi_tinject(ep[0], buf, 8, peer, 1));
}

static void bind_late(void)
{
	ck_assert(!fi_ep_bind(ep[1], &cntr->fid, FI_RECV));
	on_sleep = answer;
}

UNIT_CASE("without a lock", setup, teardown);
UNIT_CASE("with a lock", setup_locked, teardown);

/*
 * A counter is bound to a second endpoint later: an event of that endpoint
 * wakes the thread, too.
 */
UNIT_TEST(event_of_late_endpoint_wakes)
{
	ck_assert(!fi_trecv(ep[1], buf, 64, NULL, self, 1, 0, buf));
	on_sleep = bind_late;
	ck_assert_int_eq(fi_cntr_wait(cntr, 2, LONG_MS), 0);
}
