/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Counters of operations on both paths, with and without completions or a CQ */

#include <fcntl.h>
#include <unistd.h>

#include "fixture.h"

#define ALL_RMA (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define BOTH (FI_SEND | FI_RECV)

static struct slot slot[3];

FIXTURE_SETUP(setup_both, pair_open, .cntr_flags = BOTH);
FIXTURE_SETUP(setup_no_cqs, pair_open, .cntr_flags = BOTH, .no_cqs = true);

static void expect_count(uint64_t good, uint64_t bad)
{
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), good);
	ck_assert_uint_eq(fi_cntr_readerr(fx.cntr), bad);
}

static const struct {
	const char *name;
	uint64_t flags;
	int ret;
} binds[] = {
	{ "as MPICH does", FI_READ | FI_WRITE, 0 },
	{ "all of RMA", ALL_RMA, 0 },
	{ "sends", FI_SEND, 0 },
	{ "receives", FI_RECV, 0 },
	{ "sends among RMA", FI_SEND | FI_WRITE, 0 },
	{ "all", BOTH | ALL_RMA, 0 },
	{ "nothing", 0, -FI_EINVAL },
};

UNIT_CASE("cntr", NULL, NULL);

UNIT_LOOP(bound_counter_cannot_be_closed, 0, ARRAY_SIZE(binds))
{
	static const struct fixture_attr attr = { .cntr_flags = FI_RECV };
	struct fid_ep *ep;

	pair_open(&attr);
	ep = fixture_unbound(&attr);
	ck_assert_msg(fi_ep_bind(ep, &fx.cntr->fid, binds[_i].flags) ==
		      binds[_i].ret, "%s", binds[_i].name);
	ck_assert_int_eq(fi_close(&fx.cntr->fid), -FI_EBUSY);
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	fixture_close();
}

/*
 * OpenSHMEM libraries bind counters to enabled endpoints. Here the counter is
 * bound twice: before fi_enable() for reads, and afterwards for sends and
 * receives. It must count each operation once. If _i is 1, the sends use the
 * core, otherwise shm.
 */
UNIT_LOOP(counter_bound_after_enable_counts, 0, 2)
{
	static const struct fixture_attr attr = { .cntr_flags = FI_READ };
	struct fi_cq_tagged_entry entry;
	fi_addr_t dest;

	pair_open(&attr);
	dest = _i ? remote : local;
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], local, TAG);
	near("before");
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, dest), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &fx.cntr->fid, BOTH), 0);
	expect_count(0, 0);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, dest), 0);
	expect_count(1, 0);
	near("after");
	expect_count(2, 0);
	ck_assert_int_eq(fi_close(&fx.cntr->fid), -FI_EBUSY);
	fixture_close();
}

/*
 * An enabled endpoint rejects a second counter for the same operations, as an
 * endpoint that is not enabled does.
 */
UNIT_TEST(second_counter_after_enable_fails)
{
	static const struct fixture_attr attr = { .cntr_flags = FI_RECV };
	struct fid_cntr *cntr;

	pair_open(&attr);
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, NULL), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &cntr->fid, FI_RECV), -FI_EINVAL);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &cntr->fid, FI_SEND), 0);
	ck_assert_int_eq(fi_ep_bind(fx.ep, &cntr->fid, FI_SEND), -FI_EINVAL);
	fixture_close_ep();
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	fixture_close();
}

/*
 * The counter must include all sends, also injected sends, which have no
 * completion. If _i is 1, the sends use the core, otherwise shm.
 */
UNIT_LOOP(sends_are_counted, 0, 2)
{
	static const struct fixture_attr attr = { .cntr_flags = FI_SEND };
	fi_addr_t dest;

	pair_open(&attr);
	dest = _i ? remote : local;
	ck_assert_int_eq(send_x(fx.ep, dest, NULL), 0);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, dest), 0);
	expect_count(2, 0);
	ck_assert_int_eq(fake.tx[_i ? FI_DUO_CORE : FI_DUO_LOCAL].count, 2);
	ck_assert_int_eq(fake.tx[_i ? FI_DUO_LOCAL : FI_DUO_CORE].count, 0);
	post_recv(&slot[0], local, TAG);
	near("not counted");
	expect_count(2, 0);
	fixture_close();
}

/*
 * Three kinds of endpoints:
 * - its CQ gets completions of all receives
 * - its CQ gets completions only of receives with FI_COMPLETION
 * - it has no CQ
 */
static const struct fixture_attr receivers[] = {
	{ .cntr_flags = BOTH },
	{ .cntr_flags = BOTH, .rx_bind_flags = FI_SELECTIVE_COMPLETION },
	{ .cntr_flags = BOTH, .no_cqs = true },
};

UNIT_LOOP(receives_are_counted, 0, ARRAY_SIZE(receivers))
{
	struct fi_cq_tagged_entry entry[4];

	pair_open(&receivers[_i]);
	post_recv(&slot[0], local, TAG);
	post_recv(&slot[1], remote, TAG);
	post_recv(&slot[2], FI_ADDR_UNSPEC, TAG + 1);
	expect_count(0, 0);
	near("near");
	expect_count(1, 0);
	far("far");
	expect_count(2, 0);
	fake_shm_arrive(DUO_TAGGED, local_name, TAG + 1, "any");
	expect_count(3, 0);
	ck_assert_str_eq(slot[0].buf, "near");
	ck_assert_str_eq(slot[1].buf, "far");
	ck_assert_str_eq(slot[2].buf, "any");
	ck_assert_int_eq(fi_cq_read(fx.cq, entry, 4), _i ? -FI_EAGAIN : 3);
	fixture_close();
}

/* fi_enable requires a counter for the direction that has no CQ. */
UNIT_LOOP(counter_replaces_cq_of_one_direction, 0, 2)
{
	static const struct fixture_attr attr = { 0 };
	uint64_t counted = _i ? FI_RECV : FI_SEND;
	struct fid_cntr *cntr;
	struct fid_ep *ep;

	pair_open(&attr);
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, NULL), 0);
	ep = fixture_another(&attr, BOTH & ~counted);
	ck_assert_int_eq(fi_enable(ep), -FI_ENOCQ);
	ck_assert_int_eq(fi_ep_bind(ep, &cntr->fid, counted), 0);
	ck_assert_int_eq(fi_enable(ep), 0);
	ck_assert_ptr_nonnull(duo_ep_of(ep)->path_ep[FI_DUO_LOCAL]);
	ck_assert_int_eq(send_x(ep, local, &slot[0]), 0);
	ck_assert_uint_eq(fi_cntr_read(cntr), counted == FI_SEND);
	if (counted == FI_RECV)
		expect_entry(&slot[0], FI_ADDR_NOTAVAIL);
	else
		expect_nothing();
	ck_assert_int_eq(fi_close(&ep->fid), 0);
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
	fixture_close();
}

/*
 * ofi_duo binds no counter of receives to the core's endpoint. So it must not
 * read the core's counter: with FI_THREAD_COMPLETION, tcp crashes in a read of
 * a counter that was never bound.
 */
UNIT_TEST(unbound_counter_of_core_is_not_read)
{
	static const struct fixture_attr attr = { .cntr_flags = FI_RECV };

	pair_open(&attr);
	post_recv(&slot[0], remote, TAG);
	far("text");
	expect_count(1, 0);
	ck_assert_int_eq(fi_cntr_set(fx.cntr, 7), 0);
	expect_count(7, 0);
	ck_assert_int_eq(fake.core.cntr_reads, 0);
	fixture_close();
}

UNIT_CASE("no CQs", setup_no_cqs, fixture_close);

UNIT_TEST(reads_without_cq_make_progress)
{
	int i;

	ck_assert_ptr_nonnull(fixture_ep()->path_ep[FI_DUO_LOCAL]);
	post_recv(&slot[0], FI_ADDR_UNSPEC, TAG);
	ck_assert_int_eq(send_x(fx.ep, local, NULL), 0);
	ck_assert_int_eq(send_x(fx.ep, remote, NULL), 0);
	expect_count(2, 0);
	/*
	 * fi_cntr_wait() posts the receive before the thread sleeps, unless the
	 * timeout ends the call earlier
	 */
	for (i = 0; i < 1000 && !fake_core_posted(); i++)
		ck_assert_int_eq(fi_cntr_wait(fx.cntr, 3, 5), -FI_ETIMEDOUT);
	ck_assert_uint_eq(fake_core_posted(), 1);
	far("far");
	ck_assert_int_eq(fi_cntr_wait(fx.cntr, 3, -1), 0);
	ck_assert_str_eq(slot[0].buf, "far");
	ck_assert(duo_ring_empty(&fixture_ep()->rx_cq->ring));
}

/*
 * An operation that ends with an error in the CQ increments the counter's error
 * value, and ends fi_cntr_wait().
 */
UNIT_TEST(cq_error_is_counted)
{
	ck_assert_int_eq(fi_trecv(fx.ep, slot[0].buf, 2, NULL, local, TAG, 0,
				  &slot[0]), 0);
	near("too long");
	expect_count(0, 1);
	ck_assert_int_eq(fi_trecv(fx.ep, slot[0].buf, 2, NULL, remote, TAG, 0,
				  &slot[0]), 0);
	expect_count(0, 1);
	far("too long");
	expect_count(0, 2);
	post_recv(&slot[1], remote, TAG);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &slot[1]), 0);
	expect_count(0, 3);
	ck_assert_int_eq(recv_flags(&slot[2], NULL, 0, remote, FI_PEEK), 0);
	expect_count(0, 3);
	ck_assert_int_eq(fi_cntr_adderr(fx.cntr, 4), 0);
	expect_count(0, 7);
	ck_assert_int_eq(fi_cntr_seterr(fx.cntr, 1), 0);
	expect_count(0, 1);
}

/*
 * Each message in a multi-receive buffer is counted; the release of the buffer
 * is not.
 */
UNIT_TEST(multi_receive_release_is_not_counted)
{
	const struct iovec iov = { slot, 10 };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = local,
		.context = slot,
	};

	fixture_ep()->multi.min_space = 5;
	ck_assert_int_eq(fi_recvmsg(fx.ep, &msg, FI_MULTI_RECV), 0);
	fake_shm_arrive(DUO_MSG, local_name, 0, "one");
	expect_count(1, 0);
	fake_shm_arrive(DUO_MSG, local_name, 0, "three");
	expect_count(2, 0);
}

UNIT_CASE("both", setup_both, fixture_close);

/* Counting continues after fi_cntr_set, fi_cntr_add and fi_close(ep). */
UNIT_TEST(counting_continues_from_set_value)
{
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, remote), 0);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, local), 0);
	ck_assert_int_eq(fi_cntr_add(fx.cntr, 40), 0);
	expect_count(42, 0);
	ck_assert_int_eq(fi_cntr_set(fx.cntr, 7), 0);
	expect_count(7, 0);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, remote), 0);
	post_recv(&slot[0], local, TAG);
	near("x");
	expect_count(9, 0);
	fixture_close_ep();
	expect_count(9, 0);
}

UNIT_TEST(busy_shm_polls_core_once_per_interval)
{
	int before, i;

	duo_params.core_poll_interval = 10;
	fi_cntr_read(fx.cntr);
	fixture_ep()->tx_cq->core_poll_budget = 0;
	before = fake.core.cntr_reads;
	for (i = 0; i < 100; i++)
		fi_cntr_read(fx.cntr);
	ck_assert_int_eq(fake.core.cntr_reads, before + 10);
	/*
	 * while an operation is pending at the core, each read polls the core
	 */
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, remote), 0);
	expect_count(1, 0);
}

UNIT_TEST(core_errors_are_added)
{
	fake.core.cntr->bad = 3;
	expect_count(0, 3);
}

UNIT_CASE("pair", pair_setup, fixture_close);

/*
 * After fi_enable(), the core or shm (path _i) rejects the bind of a counter to
 * the endpoint. The counter must keep its value. If shm rejects the bind, the
 * core's endpoint is already bound to the core's counter. The counter can then
 * be closed only after fi_close() of the endpoint.
 */
UNIT_LOOP(failed_late_bind_binds_nothing, 0, FI_DUO_PATH_COUNT)
{
	struct fi_cq_tagged_entry entry;
	struct fid_cntr *cntr;

	post_recv(&slot[0], local, TAG);
	near("before");
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, local), 0);
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, NULL), 0);
	ck_assert_int_eq(fi_cntr_add(cntr, 40), 0);
	fake.path[_i].fail_at = fake.path[_i].calls + 1;
	ck_assert_int_eq(fi_ep_bind(fx.ep, &cntr->fid, BOTH), -FAKE_ERROR);
	ck_assert_uint_eq(fi_cntr_read(cntr), 40);
	ck_assert_uint_eq(fi_cntr_readerr(cntr), 0);
	if (_i == FI_DUO_LOCAL)
		fixture_close_ep();
	ck_assert_int_eq(fi_close(&cntr->fid), 0);
}

static const struct fi_cntr_attr unsupported[] = {
	{ .wait_obj = FI_WAIT_MUTEX_COND },
	{ .events = FI_CNTR_EVENTS_BYTES },
};

/*
 * A counter with these attributes is rejected. Then ofi_duo must not close a
 * file descriptor of the application, such as 0.
 */
UNIT_LOOP(unsupported_counter_is_rejected, 0, ARRAY_SIZE(unsupported))
{
	struct fi_cntr_attr cntr_attr = unsupported[_i];
	struct fid_cntr *cntr;

	ck_assert_int_eq(dup2(STDERR_FILENO, 0), 0);
	ck_assert_int_eq(fi_cntr_open(fx.domain, &cntr_attr, &cntr, NULL),
			 -FI_ENOSYS);
	ck_assert_int_ge(fcntl(0, F_GETFD), 0);
}

UNIT_LOOP(failed_open_returns_error, 0, FI_DUO_PATH_COUNT)
{
	struct fid_cntr *cntr = NULL;

	fake.path[_i].fail_at = fake.path[_i].calls + 1;
	ck_assert_int_eq(fi_cntr_open(fx.domain, NULL, &cntr, NULL),
			 -FAKE_ERROR);
	ck_assert_ptr_null(cntr);
}
