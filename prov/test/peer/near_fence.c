/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Messages, RMA and atomics with FI_FENCE, to a peer over near. */

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "port_fixture.h"

FIXTURE_SETUP(setup, port_setup,
	      .core = "efa", .near = true, .onesided = true,
	      .order = FI_ORDER_WAS | FI_ORDER_SAW,
	      .cntr_flags = FI_READ | FI_WRITE);

static void setup_device(void)
{
	static const struct fixture_attr as = {
		.core = "efa", .device = true, .near = true, .onesided = true,
		.order = FI_ORDER_WAS,
	};

	port_setup(&as);
	fake_device_open(LARGE);
	port_region_open(FI_WRITE);
}

UNIT_CASE("device", setup_device, port_device_teardown);

/*
 * All stages are in use, so the core executes a write. A warning says that
 * later messages may overtake the write.
 */
UNIT_TEST(write_without_stage_is_unordered)
{
	struct near_table *table = fixture_ep()->domain->table;

	memset(table->stages, 0xff, sizeof(table->stages));
	ck_assert_int_eq(fi_write(fx.ep, fake.device.base, 8, fi_mr_desc(mr),
				  peer, START, KEY, &context), 0);
	carried(0, 0, 1);
	ck_assert(fixture_ep()->near->unordered);
	memset(table->stages, 0, sizeof(table->stages));
}

UNIT_CASE("fence", setup, port_teardown);

/*
 * A message with FI_FENCE waits for pending operations; other messages do not
 * wait.
 */
UNIT_TEST(fenced_message_waits)
{
	const struct iovec iov = { ours, 8 };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
	};
	uint64_t one = 1;

	add(&one);
	ck_assert_int_eq(fi_sendmsg(fx.ep, &msg, FI_FENCE), -FI_EAGAIN);
	ck_assert_int_eq(fi_inject(fx.ep, ours, 8, peer), 0);
	ended(FI_ATOMIC | FI_WRITE);
	ck_assert_int_eq(fi_sendmsg(fx.ep, &msg, FI_FENCE), 0);
}

/*
 * The peer has no region with this key, so the core executes the write. The
 * write has FI_FENCE, and must wait until the peer has received the earlier
 * large message. It is not enough that the peer has consumed the message's RTS.
 */
UNIT_TEST(fenced_operation_of_core_waits_for_large_message)
{
	const struct iovec iov = { ours, 8 };
	const struct fi_rma_iov at = { START, 8, KEY + 1 };
	const struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
		.rma_iov = &at, .rma_iov_count = 1,
	};
	ssize_t ret = -FI_EAGAIN;
	int i;

	ck_assert_int_eq(fi_tsend(fx.ep, large, LARGE, NULL, peer, TAG,
				  &context), 0);
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_FENCE), -FI_EAGAIN);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.arrived, 1);
	ck_assert_int_eq(rig.received, 0);
	poll_cq(2);
	ck_assert_int_eq(fi_writemsg(fx.ep, &msg, FI_FENCE), -FI_EAGAIN);
	carried(0, 0, 0);
	both_entry(&context);
	for (i = 0; i < 100 && ret; i++) {
		near_poll(rig.port, &rig_sink);
		poll_cq(1);
		ret = fi_writemsg(fx.ep, &msg, FI_FENCE);
	}
	ck_assert_int_eq(ret, 0);
	carried(0, 0, 1);
}
