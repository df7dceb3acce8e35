/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small RMA and atomics, with and without a lock. near counts the operations
 * that take the fast path. Operations on the slow path have the same effects.
 */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "port_fixture.h"

#define FIRST 1	/* number of operations at the start that look up the key */

static const struct near_rma *rma(void)
{
	return fixture_ep()->near->port->rma;
}

/* Makes near delegate the next operation, however long the last one took. */
static void delegate_next(void)
{
	struct near_rma_peer *at = fixture_ep()->near->peer[0]->rma;

	if (at)
		at->skip = 0;
}

static void put(size_t len)
{
	delegate_next();
	write_ours(len);
}

static void get(void)
{
	delegate_next();
	ck_assert_int_eq(fi_read(fx.ep, ours, 8, NULL, peer, START, KEY,
				 &context), 0);
	ended(FI_RMA | FI_READ);
}

/*
 * The first operation looks up the key. The first atomic attaches the peer to a
 * ring.
 */
static void first(void)
{
	uint64_t was;

	put(8);
	ended(FI_RMA | FI_WRITE);
	fetch_add(ours, 1, &was);
	ended(FI_ATOMIC | FI_READ);
}

#define ONESIDED .near = true, .onesided = true, \
		 .cntr_flags = FI_READ | FI_WRITE

FIXTURE_SETUP(open_unlocked, port_setup, .core = "efa", ONESIDED,
	      .threading = FI_THREAD_DOMAIN);
FIXTURE_SETUP(open_locked, port_setup, .core = "efa", ONESIDED,
	      .threading = FI_THREAD_SAFE);
FIXTURE_SETUP(setup_ordered, port_setup, .core = "efa", ONESIDED,
	      .threading = FI_THREAD_DOMAIN,
	      .order = FI_ORDER_WAS | FI_ORDER_RAS);
FIXTURE_SETUP(setup_other_core, port_setup, .core = "verbs", ONESIDED,
	      .threading = FI_THREAD_DOMAIN);

static void setup(void)
{
	open_unlocked();
	first();
}

static void setup_locked(void)
{
	open_locked();
	first();
}

UNIT_CASE("unlocked", setup, port_teardown);
UNIT_CASE("locked", setup_locked, port_teardown);

UNIT_TEST(small_operations_take_fast_path)
{
	uint64_t small = rma()->small, was = 0;

	ours[0] = 4242;
	put(8);
	ended(FI_RMA | FI_WRITE);
	ck_assert_uint_eq(theirs[0], 4242);
	theirs[0] = 17;
	get();
	ck_assert_uint_eq(ours[0], 17);
	fetch_add(ours, 1, &was);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(was, 17);
	ck_assert_uint_eq(theirs[0], 34);
	ck_assert_uint_eq(rma()->small, small + 3);
	carried(FIRST + 2, 2, 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), FIRST + 4);
}

/* As with the cores, an atomic on no elements completes and changes nothing. */
UNIT_TEST(atomic_on_no_elements_completes)
{
	uint64_t was = 5;

	theirs[0] = 17;
	ck_assert_int_eq(fi_atomic(fx.ep, ours, 0, NULL, peer, START, KEY,
				   FI_UINT64, FI_SUM, &context), 0);
	ended(FI_ATOMIC | FI_WRITE);
	fetch_add(ours, 0, &was);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(was, 5);
	ck_assert_uint_eq(theirs[0], 17);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), FIRST + 3);
}

/* After an injected write the buffer can be reused at once. */
UNIT_TEST(injected_write_reports_nothing)
{
	uint64_t small = rma()->small, value = 77;
	int i;

	delegate_next();
	ck_assert_int_eq(fi_inject_write(fx.ep, &value, 8, peer, START, KEY),
			 0);
	value = 0;
	for (i = 0; i < 100 && theirs[0] != 77; i++) {
		near_poll(rig.port, &rig_sink);
		poll_cq(1);
	}
	ck_assert_uint_eq(theirs[0], 77);
	expect_nothing();
	ck_assert_uint_eq(rma()->small, small + 1);
	carried(FIRST + 1, 1, 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), FIRST + 2);
}

UNIT_CASE("unlocked", setup, port_teardown);

/* Longer operations, remote CQ data and FI_FENCE take the slow path. */
UNIT_TEST(other_operations_take_slow_path)
{
	uint64_t small = rma()->small;
	const struct iovec iov = { ours, 8 };
	const struct fi_rma_iov at = { START, 8, KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1, .context = &context,
	};

	put(25);
	ended(FI_RMA | FI_WRITE);
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_FENCE | FI_COMPLETION),
			 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_int_eq(fi_writedata(fx.ep, ours, 8, NULL, 1, peer, START,
				      KEY, &context), 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_uint_eq(rma()->small, small);
	/* near does not find this key, so the core gets the operation */
	ck_assert_int_eq(fi_write(fx.ep, ours, 8, NULL, peer, START, KEY + 1,
				  NULL), 0);
	carried(FIRST + 3, 1, 1);
	ck_assert_uint_eq(rma()->small, small);
}

UNIT_CASE("locked", setup_locked, port_teardown);

UNIT_TEST(remote_operations_need_no_lock)
{
	struct duo_lock *lock = &fixture_ep()->group->lock;

	remote = peer_insert(2);
	/* the first write chooses the path */
	ck_assert_int_eq(fi_write(fx.ep, ours, 8, NULL, remote, START, KEY,
				  NULL), 0);
	duo_lock(lock);
	ck_assert_int_eq(fi_write(fx.ep, ours, 8, NULL, remote, START, KEY,
				  NULL), 0);
	duo_unlock(lock);
	ck_assert_uint_eq(stats_now().rma_ops[FI_DUO_CORE], 2);
}

UNIT_CASE("ordered", setup_ordered, port_teardown);

UNIT_TEST(ordered_messages_exclude_fast_path)
{
	int i;

	for (i = 0; i <= FIRST; i++) {
		put(8);
		ended(FI_RMA | FI_WRITE);
	}
	get();
	ck_assert_uint_eq(rma()->small, 0);
	carried(FIRST + 2, 0, 0);
}

UNIT_CASE("other core", setup_other_core, port_teardown);

/*
 * The core's atomics are not atomic with respect to those of a CPU. So the core
 * executes the application's atomics, and near's fast path must be off.
 */
UNIT_TEST(core_atomics_exclude_fast_path)
{
	uint64_t was;
	int i;

	/* the first operation takes the slow path: it makes the pool grow */
	for (i = 0; i <= FIRST; i++) {
		put(8);
		ended(FI_RMA | FI_WRITE);
	}
	ck_assert_uint_eq(rma()->small, 1);
	fetch_add(ours, 1, &was);
	ck_assert_uint_eq(rma()->small, 1);
	carried(FIRST + 1, 0, 1);
}
