/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The locks of a domain: a CQ has its own while its endpoints have no other CQ
 * and no counter; otherwise it has the domain's.
 */

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait_fixture.h"

static struct duo_domain *domain_now(void)
{
	return duo_domain_of(fx.domain);
}

static struct duo_cq *cq_now(void)
{
	return duo_cq_of(fx.cq);
}

static void expect_own(void)
{
	ck_assert_ptr_eq(cq_now()->group, &cq_now()->own);
	ck_assert_ptr_eq(fixture_ep()->group, &cq_now()->own);
}

static void expect_shared(void)
{
	ck_assert_ptr_eq(cq_now()->group, &domain_now()->group);
	ck_assert_ptr_eq(fixture_ep()->group, &domain_now()->group);
}

FIXTURE_SETUP(setup_pair, wait_open, .near = true);
FIXTURE_SETUP(setup_two_cqs, fixture_start, .near = true, .two_cqs = true);
FIXTURE_SETUP(setup_device, fixture_start, .near = true, .device = true);
FIXTURE_SETUP(setup_counter, fixture_start, .near = true,
	      .cntr_flags = FI_RECV);
FIXTURE_SETUP(setup_no_peer, fixture_start, .no_shm = true);

static void bind_counter(void)
{
	struct fi_cntr_attr attr = { 0 };

	ck_assert_int_eq(fi_cntr_open(fx.domain, &attr, &fx.cntr, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.cntr->fid, FI_SEND), 0);
}

/* Receives a message from the other endpoint, which has another CQ. */
static void exchange(void)
{
	post_recv(&slot[0], local, TAG);
	say("text");
	expect_recv(&slot[0], "text", local);
}

UNIT_CASE("own group", setup_pair, wait_close);

/* Calls on the endpoints and their CQs do not wait for the domain's lock. */
UNIT_TEST(cq_and_endpoint_have_own_lock)
{
	expect_own();
	exchange();	/* chooses the path */
	duo_lock(&domain_now()->group.lock);
	exchange();
	duo_unlock(&domain_now()->group.lock);
	expect_own();
}

static atomic_int reader_tid;

static void *reader_run(void *arg)
{
	struct fi_cq_err_entry entry = { 0 };

	atomic_store(&reader_tid, syscall(SYS_gettid));
	return (void *) (intptr_t) fi_cq_readerr(fx.cq, &entry, 0);
}

/* A thread that waits for the CQ's own lock gets the lock of the domain. */
UNIT_TEST(waiting_thread_follows_cq)
{
	pthread_t reader;
	void *ret;

	atomic_store(&reader_tid, 0);
	duo_domain_lock(domain_now());
	ck_assert_int_eq(pthread_create(&reader, NULL, reader_run, NULL), 0);
	while (!unit_sleeps(atomic_load(&reader_tid)))
		sched_yield();
	ck_assert_int_eq(duo_cq_join(cq_now()), 0);
	duo_domain_unlock(domain_now());
	ck_assert_int_eq(pthread_join(reader, &ret), 0);
	ck_assert_int_eq((int) (intptr_t) ret, -FI_EAGAIN);
	expect_shared();
	ck_assert(duo_lock_try(&domain_now()->group.lock));
	duo_unlock(&domain_now()->group.lock);
}

UNIT_TEST(counter_joins_groups)
{
	expect_own();
	bind_counter();
	expect_shared();
	exchange();
}

UNIT_CASE("two CQs", setup_two_cqs, fixture_close);

UNIT_TEST(two_cqs_have_lock_of_domain)
{
	expect_shared();
	ck_assert_ptr_eq(duo_cq_of(fx.tx_cq)->group, &domain_now()->group);
}

UNIT_CASE("counter", setup_counter, fixture_close);

UNIT_TEST(counter_has_lock_of_domain)
{
	expect_shared();
}

UNIT_CASE("device", setup_device, fixture_close);

UNIT_TEST(device_memory_has_lock_of_domain)
{
	expect_shared();
}

UNIT_CASE("no local transport", setup_no_peer, fixture_close);

/* The core still returns a receive entry that was posted before. */
UNIT_TEST(receive_survives_join)
{
	expect_own();
	remote = peer_insert(2);
	post_recv(&slot[0], remote, TAG);
	poll_cq(1);
	bind_counter();
	expect_shared();
	far("text");
	expect_recv(&slot[0], "text", remote);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}
