/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near. The peer, a port of near, is target or initiator.
 */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <unistd.h>

#include "near/rma/state.h"
#include "port_fixture.h"

FIXTURE_SETUP(setup, port_setup,
	      .core = "efa", .near = true, .onesided = true,
	      .cntr_flags = FI_READ | FI_WRITE | FI_REMOTE_READ |
			    FI_REMOTE_WRITE);

/*
 * A core whose NIC executes atomics. The atomics of a CPU and those of the NIC
 * are not atomic with respect to each other.
 */
FIXTURE_SETUP(setup_other_core, port_setup,
	      .core = "verbs", .near = true, .onesided = true);
FIXTURE_SETUP(setup_ordered, port_setup,
	      .core = "efa", .near = true, .onesided = true,
	      .order = FI_ORDER_WAS | FI_ORDER_SAW,
	      .cntr_flags = FI_READ | FI_WRITE);

static void setup_one_path(void)
{
	static const struct fixture_attr ordered = {
		.core = "verbs", .near = true, .onesided = true,
		.order = FI_ORDER_WAS,
	};

	fixture_start(&ordered);
	rig.pub = (struct duo_publication) { .fd = -1 };
	peer = peer_insert(PEER);
}

/* The attributes that Open MPI's btl/ofi requests */
FIXTURE_SETUP(setup_alone, port_setup,
	      .core = "efa", .near = true, .onesided = true,
	      .no_caps = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV,
	      .cntr_flags = FI_READ | FI_WRITE | FI_REMOTE_WRITE);

UNIT_CASE("peer", setup, port_teardown);
UNIT_CASE("without messages", setup_alone, port_teardown);
UNIT_CASE("with an order", setup_ordered, port_teardown);

UNIT_TEST(writes_and_reads)
{
	int i;

	ck_assert_int_eq(fi_write(fx.ep, ours, 64, NULL, peer, START + 8, KEY,
				  &context), 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_mem_eq(theirs + 1, ours, 64);
	ck_assert_uint_eq(theirs[0], 0);
	ck_assert_uint_eq(theirs[9], 0);
	theirs[1] = 77;
	ck_assert_int_eq(fi_read(fx.ep, ours, 64, NULL, peer, START + 8, KEY,
				 &context), 0);
	ended(FI_RMA | FI_READ);
	ck_assert_uint_eq(ours[0], 77);
	ck_assert_int_eq(fi_inject_write(fx.ep, ours, 8, peer, START, KEY), 0);
	/* the peer does not poll: the initiator executes the operation */
	for (i = 0; i < 100000 && theirs[0] != 77; i++)
		poll_cq(1);
	ck_assert_uint_eq(theirs[0], 77);
	expect_nothing();
	carried(3, 0, 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 3);
}

UNIT_CASE("peer", setup, port_teardown);
UNIT_CASE("without messages", setup_alone, port_teardown);

/* Operations that near rejects or does not support are executed by the core. */
UNIT_TEST(unsupported_operations_use_core)
{
	const struct iovec iov = { ours, 16 };
	const struct fi_rma_iov two[] = {
		{ START, 8, KEY }, { START + 16, 8, KEY },
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
		.rma_iov = two, .rma_iov_count = 2,
	};

	ck_assert_int_eq(fi_write(fx.ep, ours, 8, NULL, peer, START, KEY + 1,
				  NULL), 0);
	carried(0, 0, 1);
	ck_assert_int_eq(fi_write(fx.ep, ours, sizeof(theirs) + 1, NULL, peer,
				  START, KEY, NULL), 0);
	carried(0, 0, 2);
	ck_assert_int_eq(fi_read(fx.ep, ours, 8, NULL, peer, START - 1, KEY,
				 NULL), 0);
	carried(0, 0, 3);
	/*
	 * FI_NOOP is 256. near stores the operation in one byte: if ofi_duo
	 * truncated FI_NOOP to a byte, near would execute FI_MIN, which is 0.
	 */
	ck_assert_int_eq(fi_atomic(fx.ep, ours, 1, NULL, peer, START, KEY,
				   FI_UINT64, FI_NOOP, NULL), 0);
	carried(0, 0, 4);
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, 0), 0);
	carried(0, 0, 5);
	ck_assert_int_eq(fi_fetch_atomic(fx.ep, ours, 1, NULL, ours + 8, NULL,
					 peer, START, KEY, FI_LONG_DOUBLE,
					 FI_SUM, NULL), 0);
	carried(0, 0, 6);
	ck_assert_uint_eq(theirs[0], 0);
	ck_assert_uint_eq(theirs[2], 0);
}

/*
 * near cannot flush data to persistent memory. So the core must execute writes
 * with FI_COMMIT_COMPLETE. If _i is 1, this is a default flag of the endpoint,
 * otherwise the argument of fi_writemsg().
 */
UNIT_LOOP(committed_write_uses_core, 0, 2)
{
	const struct iovec iov = { ours, 8 };
	const struct fi_rma_iov at = { START, 8, KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1, .context = &context,
	};

	/* fills near's cache of the region, which its fast path requires */
	write_ours(8);
	ended(FI_RMA | FI_WRITE);
	if (_i) {
		fixture_ep()->tx.op_flags |= FI_COMMIT_COMPLETE;
		duo_near_onesided_start(fixture_ep());
		ck_assert_int_eq(fi_write(fx.ep, ours, 8, NULL, peer, START,
					  KEY, NULL), 0);
	} else {
		ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_COMMIT_COMPLETE),
				 0);
	}
	carried(1, 0, 1);
	ck_assert(fake.core.onesided.flags & FI_COMMIT_COMPLETE);
}

UNIT_TEST(atomics)
{
	uint64_t one = 1, two = 2, was = 55;

	fetch_add(&one, 1, &was);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(was, 0);
	ck_assert_uint_eq(theirs[0], 1);
	add(&two);
	ended(FI_ATOMIC | FI_WRITE);
	ck_assert_uint_eq(theirs[0], 3);
	was = 3;
	ck_assert_int_eq(fi_compare_atomic(fx.ep, &one, 1, NULL, &was, NULL,
					   &two, NULL, peer, START, KEY,
					   FI_UINT64, FI_CSWAP, &context), 0);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(two, 3);
	ck_assert_uint_eq(theirs[0], 1);
	carried(0, 3, 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 3);
}

UNIT_CASE("peer", setup, port_teardown);

/*
 * fi_atomic(3) does not have the flag FI_REMOTE_CQ_DATA: near ignores the flag.
 */
UNIT_TEST(atomics_have_no_cq_data)
{
	const struct fi_ioc ioc = { ours, 1 };
	const struct fi_rma_ioc at = { START, 1, KEY };
	const struct fi_msg_atomic msg = {
		.msg_iov = &ioc, .iov_count = 1, .addr = peer, .rma_iov = &at,
		.rma_iov_count = 1, .datatype = FI_UINT64, .op = FI_SUM,
		.context = &context, .data = 4242,
	};

	ck_assert_int_eq(fi_atomicmsg(fx.ep, &msg, FI_REMOTE_CQ_DATA), 0);
	ended(FI_ATOMIC | FI_WRITE);
	ck_assert_uint_eq(port_data, 0);
}

/*
 * Operations with several local buffers. The length is in bytes for RMA, in
 * elements for atomics.
 */
UNIT_TEST(buffer_vectors_are_executed)
{
	const struct iovec iov[] = { { ours + 4, 8 }, { ours, 16 } };
	const struct fi_ioc ioc[] = { { ours, 1 }, { ours + 2, 2 } };
	struct fi_ioc to[] = { { ours + 8, 2 }, { ours + 16, 1 } };

	ours[4] = 44;
	ck_assert_int_eq(fi_writev(fx.ep, iov, NULL, 2, peer, START, KEY,
				   &context), 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_uint_eq(theirs[0], 44);
	ck_assert_mem_eq(theirs + 1, ours, 16);
	theirs[0] = 55;
	ck_assert_int_eq(fi_readv(fx.ep, iov, NULL, 2, peer, START, KEY,
				  &context), 0);
	ended(FI_RMA | FI_READ);
	ck_assert_uint_eq(ours[4], 55);
	memset(theirs, 0, sizeof(theirs));
	ours[0] = 1;
	ours[2] = 2;
	ours[3] = 3;
	ck_assert_int_eq(fi_atomicv(fx.ep, ioc, NULL, 2, peer, START, KEY,
				    FI_UINT64, FI_SUM, &context), 0);
	ended(FI_ATOMIC | FI_WRITE);
	ck_assert_int_eq(fi_fetch_atomicv(fx.ep, ioc, NULL, 2, to, NULL, 2,
					  peer, START, KEY, FI_UINT64, FI_SUM,
					  &context), 0);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(ours[8], 1);
	ck_assert_uint_eq(ours[9], 2);
	ck_assert_uint_eq(ours[16], 3);
	ck_assert_uint_eq(theirs[2], 6);
	ck_assert_int_eq(fi_compare_atomicv(fx.ep, ioc, NULL, 2, to, NULL, 2,
					    to, NULL, 2, peer, START, KEY,
					    FI_UINT64, FI_CSWAP, &context), 0);
	ended(FI_ATOMIC | FI_READ);
	ck_assert_uint_eq(ours[16], 6);
	ck_assert_uint_eq(theirs[2], 6);
	carried(2, 3, 0);
}

/*
 * Calls with too many buffers, or with different total lengths of local and
 * remote buffers, return -FI_EINVAL.
 */
UNIT_TEST(invalid_calls_are_rejected)
{
	const struct iovec iov[5] = { { ours, 8 } };
	const struct fi_ioc ioc[5] = { { ours, 2 } };
	struct fi_ioc to = { ours + 8, 1 };
	const struct fi_rma_iov at = { START, 16, KEY };
	const struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 1, .addr = peer, .rma_iov = &at,
		.rma_iov_count = 1,
	};

	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_readmsg(fx.ep, &msg, 0), -FI_EINVAL);
	ck_assert_int_eq(fi_writev(fx.ep, iov, NULL, 5, peer, START, KEY,
				   NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_atomicv(fx.ep, ioc, NULL, 5, peer, START, KEY,
				    FI_UINT64, FI_SUM, NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_fetch_atomicv(fx.ep, ioc, NULL, 1, &to, NULL, 1,
					  peer, START, KEY, FI_UINT64, FI_SUM,
					  NULL), -FI_EINVAL);
	ck_assert_int_eq(fi_compare_atomicv(fx.ep, ioc, NULL, 1, &to, NULL, 1,
					    &to, NULL, 1, peer, START, KEY,
					    FI_UINT64, FI_CSWAP, NULL),
			 -FI_EINVAL);
	carried(0, 0, 0);
	ck_assert_uint_eq(theirs[0], 0);
}

UNIT_CASE("other core", setup_other_core, port_teardown);

UNIT_TEST(core_atomics_keep_rma_on_near)
{
	ck_assert_int_eq(fi_inject_atomic(fx.ep, ours, 1, peer, START, KEY,
					  FI_UINT64, FI_SUM), 0);
	carried(0, 0, 1);
	ck_assert_int_eq(fi_inject_write(fx.ep, ours, 8, peer, START, KEY), 0);
	carried(1, 0, 1);
}

static int their_write(uint64_t key, uint32_t flags)
{
	const struct iovec iov = { theirs, sizeof(theirs) };
	const struct near_rma_args args = {
		.verb = NEAR_WRITE, .flags = flags, .addr = 0, .key = key,
		.local = { &iov, 1 }, .len = sizeof(theirs), .data = 4242,
	};

	/* do not delegate the next operation */
	near_rma_peer(rig.us)->skip = 1;
	return near_rma(rig.port, rig.us, &args);
}

UNIT_CASE("peer", setup, port_teardown);
UNIT_CASE("without messages", setup_alone, port_teardown);

UNIT_TEST(peer_writes_to_registered_region)
{
	const struct near_table_head *head;
	struct fi_cq_tagged_entry entry;
	uint64_t key, generation;
	struct fid_mr *region;
	fi_addr_t src;

	region = host_region(ours, sizeof(ours), FI_REMOTE_WRITE, 7);
	key = fi_mr_key(region);
	/* fi_mr_refresh must never remove the region, not even for a moment */
	head = fixture_ep()->domain->table->shared;
	generation = head->generation;
	ck_assert_int_eq(fi_mr_refresh(region, NULL, 0, 0), -FI_ENOSYS);
	ck_assert_uint_eq(head->generation, generation);
	theirs[7] = 88;
	ck_assert_int_eq(their_write(key, NEAR_RMA_DATA), NEAR_RMA_DONE);
	ck_assert_mem_eq(ours, theirs, sizeof(theirs));
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(entry.flags, FI_RMA | FI_REMOTE_WRITE |
			  FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, 4242);
	ck_assert_uint_eq(entry.len, sizeof(theirs));
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 1);
	ck_assert_int_eq(their_write(key, 0), NEAR_RMA_DONE);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 2);
	expect_nothing();
	/* fi_mr_enable may change the key */
	ck_assert_int_eq(fi_mr_enable(region), 0);
	ck_assert_uint_ne(fi_mr_key(region), key);
	ck_assert_int_eq(their_write(key, 0), -EKEYREJECTED);
	key = fi_mr_key(region);
	ck_assert_int_eq(their_write(key, 0), NEAR_RMA_DONE);
	/*
	 * only the core increments a region's counter, so the core must execute
	 * all operations on the region
	 */
	ck_assert_int_eq(fi_mr_bind(region, &fx.cntr->fid, FI_REMOTE_WRITE), 0);
	ck_assert_int_eq(their_write(key, 0), -EKEYREJECTED);
	ck_assert_int_eq(fi_close(&region->fid), 0);
}

UNIT_CASE("peer", setup, port_teardown);

/* The peer's writes fail if the region is closed or has no remote access. */
UNIT_TEST(peer_write_to_closed_region_fails)
{
	struct fid_mr *region;

	region = host_region(ours, sizeof(ours), FI_REMOTE_WRITE, 7);
	ck_assert_int_eq(their_write(fi_mr_key(region), 0), NEAR_RMA_DONE);
	ck_assert_int_eq(fi_close(&region->fid), 0);
	ck_assert_int_eq(their_write(7, 0), -EKEYREJECTED);
	region = host_region(ours, sizeof(ours), FI_SEND, 7);
	ck_assert_int_eq(their_write(fi_mr_key(region), 0), -EKEYREJECTED);
	ck_assert_int_eq(fi_close(&region->fid), 0);
}

UNIT_CASE("with an order", setup_ordered, port_teardown);

UNIT_TEST(write_takes_effect_after_send)
{
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	write_ours(64);
	poll_cq(100);
	ck_assert_uint_eq(theirs[0], 0);
	ended(FI_RMA | FI_WRITE);
	ck_assert_mem_eq(theirs, ours, 64);
	carried(1, 0, 0);
}

/*
 * near does not support an atomic of this type. The core gets the atomic only
 * after the peer has consumed the earlier message from its ring, because the
 * endpoint requires an order.
 */
UNIT_TEST(core_operation_waits_for_message)
{
	ssize_t ret = -FI_EAGAIN;
	int i;

	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	for (i = 0; i < 100; i++) {
		ret = fi_inject_atomic(fx.ep, ours, 1, peer, START, KEY,
				       FI_LONG_DOUBLE, FI_SUM);
		ck_assert_int_eq(ret, -FI_EAGAIN);
		poll_cq(1);
	}
	carried(0, 0, 0);
	for (i = 0; i < 100 && ret; i++) {
		near_poll(rig.port, &rig_sink);
		poll_cq(1);
		ret = fi_inject_atomic(fx.ep, ours, 1, peer, START, KEY,
				       FI_LONG_DOUBLE, FI_SUM);
	}
	ck_assert_int_eq(ret, 0);
	carried(0, 0, 1);
}

UNIT_CASE("peer", setup, port_teardown);

/*
 * near does not support several remote buffers. The core gets such an operation
 * after near's earlier operations have ended. From then on the core gets all
 * operations. If _i is 0, the operation is an RMA write, otherwise an atomic.
 */
UNIT_LOOP(several_remote_buffers_use_core, 0, 2)
{
	const struct iovec iov = { ours, 16 };
	const struct fi_ioc ioc = { ours, 2 };
	const struct fi_rma_iov at[] = {
		{ START, 8, KEY }, { START + 16, 8, KEY },
	};
	const struct fi_rma_ioc atomic_at[] = {
		{ START, 1, KEY }, { START + 16, 1, KEY },
	};
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer, .rma_iov = at,
		.rma_iov_count = 2,
	};
	const struct fi_msg_atomic atomic = {
		.msg_iov = &ioc, .iov_count = 1, .addr = peer,
		.rma_iov = atomic_at, .rma_iov_count = 2,
		.datatype = FI_UINT64, .op = FI_SUM,
	};
	uint64_t one = 1;
	ssize_t ret;

	add(&one);
	ret = _i ? fi_atomicmsg(fx.ep, &atomic, 0) :
		   fi_writemsg(fx.ep, &msg, 0);
	ck_assert_int_eq(ret, -FI_EAGAIN);
	ck_assert_int_eq(fi_inject_write(fx.ep, ours, 8, peer, START, KEY),
			 -FI_EAGAIN);
	carried(0, 1, 0);
	ended(FI_ATOMIC | FI_WRITE);
	ret = _i ? fi_atomicmsg(fx.ep, &atomic, 0) :
		   fi_writemsg(fx.ep, &msg, 0);
	ck_assert_int_eq(ret, 0);
	carried(0, 1, 1);
	ck_assert_int_eq(fi_inject_write(fx.ep, ours, 8, peer, START, KEY), 0);
	ck_assert_int_eq(fi_write(fx.ep, ours, 64, NULL, peer, START, KEY,
				  NULL), 0);
	carried(0, 1, 3);
	ck_assert_uint_eq(theirs[0], 1);
}

UNIT_CASE("one path", setup_one_path, port_teardown);

/*
 * The endpoint requires an order that near cannot keep over this core. So
 * messages use the core, as RMA does.
 */
UNIT_TEST(unsupported_order_uses_core_for_messages)
{
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_LOCAL_OFF);
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	ck_assert_int_eq(fi_inject_write(fx.ep, ours, 8, peer, START, KEY), 0);
	carried(0, 0, 1);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 0);
}

UNIT_CASE("peer", setup, port_teardown);
UNIT_CASE("without messages", setup_alone, port_teardown);

UNIT_TEST(failed_peer_ends_rma)
{
	struct fi_cq_tagged_entry entry;
	uint64_t one = 1, was;
	ssize_t ret = -FI_EAGAIN;
	int i;

	fetch_add(&one, 1, &was);
	port_close();
	for (i = 0; i < 3000 && ret == -FI_EAGAIN; usleep(1000), i++)
		ret = fi_cq_read(fx.cq, &entry, 1);
	ck_assert_int_eq(ret, -FI_EAVAIL);
	expect_error(&context, FI_ECONNRESET);
	ck_assert_uint_eq(fi_cntr_readerr(fx.cntr), 1);
}
