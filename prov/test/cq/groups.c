/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The locks of a domain. By default a CQ and its endpoints use the CQ's own
 * lock. If one of these endpoints has another CQ or a counter, the CQ and all
 * its endpoints use the domain's lock.
 */

#include <linux/membarrier.h>
#include <sys/syscall.h>

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
FIXTURE_SETUP(setup_single, wait_open, .near = true,
	      .threading = FI_THREAD_COMPLETION);
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

UNIT_TEST(cq_and_endpoint_have_own_lock)
{
	expect_own();
	exchange();	/* the first send chooses the path */
	duo_lock(&domain_now()->group.lock);
	exchange();
	duo_unlock(&domain_now()->group.lock);
	expect_own();
}

static void *reader_run(void *arg)
{
	struct fi_cq_err_entry entry = { 0 };

	ck_assert_int_eq(fi_cq_readerr(fx.cq, &entry, 0), -FI_EAGAIN);
	return NULL;
}

/*
 * While a thread waits for the CQ's own lock, the CQ moves to the domain's
 * group. The thread must then lock the domain's lock.
 */
UNIT_TEST(waiting_thread_follows_cq)
{
	pthread_t reader;

	duo_domain_lock(domain_now());
	reader = unit_waiter(reader_run);
	ck_assert_int_eq(duo_cq_join(cq_now()), 0);
	duo_domain_unlock(domain_now());
	unit_thread_end(reader);
	expect_shared();
	ck_assert(duo_lock_try(&domain_now()->group.lock));
	duo_unlock(&domain_now()->group.lock);
}

static void *setter_run(void *arg)
{
	size_t min = 64;

	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_MIN_MULTI_RECV, min), 0);
	return NULL;
}

/*
 * While a thread waits for the domain's lock, the endpoint moves to the group
 * of its first CQ. The thread must then lock the CQ's lock.
 */
UNIT_TEST(waiting_thread_follows_endpoint)
{
	pthread_t setter;

	duo_domain_lock(domain_now());
	duo_ep_join(fixture_ep(), &domain_now()->group);
	setter = unit_waiter(setter_run);
	duo_ep_join(fixture_ep(), &cq_now()->own);
	duo_domain_unlock(domain_now());
	unit_thread_end(setter);
	ck_assert(duo_lock_try(&domain_now()->group.lock));
	duo_unlock(&domain_now()->group.lock);
}

static void *asker_run(void *arg)
{
	expect_path(fx.ep, remote, FI_DUO_CORE, FI_DUO_NOT_REGISTERED);
	return NULL;
}

/*
 * path() of fi_ops_duo waits for the lock, because a thread that holds the lock
 * might be choosing the path.
 */
UNIT_TEST(query_of_path_waits_for_send)
{
	pthread_t asker;

	ck_assert_int_eq(fi_tinject(fx.ep, "far", 3, remote, TAG), 0);
	duo_group_lock(&cq_now()->group);
	asker = unit_waiter(asker_run);
	duo_unlock(&cq_now()->group->lock);
	unit_thread_end(asker);
}

static struct fid_ep *unbound;

static void *binder_run(void *arg)
{
	ck_assert_int_eq(fi_ep_bind(unbound, &fx.av->fid, 0), 0);
	return NULL;
}

/*
 * The bind of an AV waits for the lock of the endpoint's CQ, because reads of
 * the CQ test whether the AV is empty.
 */
UNIT_TEST(binding_of_av_waits_for_read)
{
	static const struct fixture_attr attr = { .near = true };
	pthread_t binder;

	unbound = fixture_unbound(&attr);
	ck_assert_int_eq(fi_ep_bind(unbound, &fx.cq->fid,
				    FI_TRANSMIT | FI_RECV), 0);
	duo_group_lock(&cq_now()->group);
	binder = unit_waiter(binder_run);
	ck_assert_ptr_null(duo_ep_of(unbound)->av);
	duo_unlock(&cq_now()->group->lock);
	unit_thread_end(binder);
	ck_assert_ptr_eq(duo_ep_of(unbound)->av, duo_av_of(fx.av));
	ck_assert_int_eq(fi_close(&unbound->fid), 0);
}

/* fi_close() of a CQ does not wait for a thread that reads another CQ. */
UNIT_TEST(close_waits_for_no_reader)
{
	struct fi_cq_attr attr = { .format = FI_CQ_FORMAT_TAGGED };
	struct fid_cq *other;

	ck_assert_int_eq(fi_cq_open(fx.domain, &attr, &other, NULL), 0);
	ck_assert_ptr_eq(duo_cq_of(other)->group, &duo_cq_of(other)->own);
	duo_group_lock(&cq_now()->group);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	duo_unlock(&cq_now()->group->lock);
	exchange();
}

UNIT_TEST(counter_joins_groups)
{
	expect_own();
	bind_counter();
	expect_shared();
	exchange();
}

UNIT_CASE("single lock", setup_single, wait_close);

static void *inserter_run(void *arg)
{
	*(fi_addr_t *) arg = peer_insert(5);
	return NULL;
}

/*
 * The CQ has a single lock (base/lock.h), because the application uses the CQ
 * from one thread at a time. While a thread is inside this lock, fi_av_insert()
 * in another thread must wait.
 */
UNIT_TEST(insert_waits_for_user)
{
	fi_addr_t addr = FI_ADDR_NOTAVAIL;
	struct duo_lock *lock = &cq_now()->own.lock;
	fi_addr_t high = fixture_ep()->av->high;
	pthread_t inserter;

	expect_own();
	ck_assert(lock->single);
	duo_group_lock(&cq_now()->group);
	inserter = unit_thread(inserter_run, &addr);
	while (atomic_load(&lock->state) == DUO_LOCK_FREE)
		sched_yield();
	ck_assert_uint_eq(fixture_ep()->av->high, high);
	duo_unlock(lock);
	unit_thread_end(inserter);
	ck_assert_uint_eq(fixture_ep()->av->high, high + 1);
	exchange();
}

/*
 * fi_mr_reg() of a region without remote access changes no data that the CQ's
 * lock protects. So fi_mr_reg() must not wait for a thread that is inside the
 * CQ's single lock. In this test, the thread inside the lock calls fi_mr_reg(),
 * so a wait would never end.
 */
UNIT_TEST(registration_waits_for_no_user)
{
	struct fid_mr *mr;

	expect_own();
	duo_group_lock(&cq_now()->group);
	ck_assert_int_eq(fi_mr_reg(fx.domain, slot, sizeof(slot),
				   FI_SEND | FI_RECV, 0, 1, 0, &mr, NULL), 0);
	ck_assert_int_eq(fi_close(&mr->fid), 0);
	duo_unlock(&cq_now()->own.lock);
}

/*
 * An insert holds all locks of the domain. A read waits until the insert ends.
 */
UNIT_TEST(user_waits_for_insert)
{
	pthread_t reader;

	duo_domain_lock(domain_now());
	reader = unit_waiter(reader_run);
	duo_domain_unlock(domain_now());
	unit_thread_end(reader);
	exchange();
	expect_own();
}

/*
 * After the domain was opened, a seccomp filter rejects membarrier(2): the
 * barrier only (_i is 1), or also the registration for it. fi_av_insert() must
 * work all the same.
 */
UNIT_LOOP(insert_without_membarrier, 0, 2)
{
	fi_addr_t high = fixture_ep()->av->high;

	expect_own();
	unit_reject_if(SYS_membarrier, 0, MEMBARRIER_CMD_PRIVATE_EXPEDITED,
		       SECCOMP_RET_ERRNO | EPERM);
	if (!_i)
		unit_reject(SYS_membarrier, SECCOMP_RET_ERRNO | EPERM);
	peer_insert(5);
	ck_assert_uint_eq(fixture_ep()->av->high, high + 1);
	exchange();
}

/*
 * At first, the CQ has its own group, which has a single lock. bind_counter()
 * moves the CQ to the domain's group. Any thread may take the lock of the
 * domain's group. So this lock must not be a single lock, and the CQ must use
 * the functions that take a shared lock (DUO_LOCK_SHARED).
 */
UNIT_TEST(counter_ends_single_lock)
{
	bind_counter();
	expect_shared();
	ck_assert(!domain_now()->group.lock.single);
	ck_assert_ptr_eq(fx.cq->ops, &duo_cq_ops_locked);
	exchange();
}

UNIT_CASE("attributes", NULL, NULL);

static const struct fixture_attr shared[] = {
	{ .near = true, .two_cqs = true },
	{ .near = true, .device = true },
	{ .near = true, .cntr_flags = FI_RECV },
};

UNIT_LOOP(cq_has_lock_of_domain, 0, ARRAY_SIZE(shared))
{
	fixture_start(&shared[_i]);
	expect_shared();
	if (fx.tx_cq)
		ck_assert_ptr_eq(duo_cq_of(fx.tx_cq)->group,
				 &domain_now()->group);
	fixture_close();
}

static const struct {
	struct fixture_attr attr;
	enum fi_threading core;
} levels[] = {
	{ { .core = "tcp", .threading = FI_THREAD_COMPLETION },
	  FI_THREAD_COMPLETION },
	{ { .core = "efa", .threading = FI_THREAD_COMPLETION },
	  FI_THREAD_SAFE },
};

/*
 * The application requests FI_THREAD_COMPLETION. The core's domain gets this
 * level, but with efa it gets FI_THREAD_SAFE: polls of a CQ of efa change lists
 * that all CQs of the domain share. efa locks these lists only with
 * FI_THREAD_SAFE.
 */
UNIT_LOOP(core_has_level, 0, ARRAY_SIZE(levels))
{
	fixture_start(&levels[_i].attr);
	ck_assert_int_eq(fake.core_threading, levels[_i].core);
	fixture_close();
}

UNIT_CASE("no local transport", setup_no_peer, fixture_close);

/*
 * A receive is posted to the core. Then the receive's CQ moves to the domain's
 * group. The receive must still match.
 */
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
