/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer of near has failed, and near still has it, because of an unexpected
 * message. Then another peer fails.
 */

#include "near/link/port.h"
#include "near_fixture.h"

static struct slot slot;

UNIT_CASE("only local", near_setup, near_teardown);

/*
 * Sends a message to fx.ep. Reads fx.cq until ofi_duo has put the message into
 * the queue of unexpected messages.
 */
static void until_unexpected(struct near_port *from, struct near_peer *us,
			     unsigned int flags)
{
	const struct near_msg msg = {
		.payload = "12345678", .len = 8, .flags = flags,
	};
	uint64_t before = fixture_ep()->stats.unexpected;

	ck_assert_int_eq(near_send(from, us, &msg), 0);
	while (fixture_ep()->stats.unexpected == before)
		poll_cq(1);
}

/*
 * The peer "gone" has failed, and near keeps it only for its unexpected
 * message. When the peer "failing" fails, a multi-receive buffer gets this
 * message. near then frees "gone", which is behind "failing" in near's list of
 * peers.
 */
UNIT_TEST(gone_peer_is_freed_while_another_fails)
{
	struct near_port *port = fixture_ep()->near->port, *failing, *gone;
	struct near_peer *us[2];
	size_t min = 8;

	ck_assert_int_eq(ep_set(fx.ep, FI_OPT_MIN_MULTI_RECV, min), 0);
	post_recv(&slot, peer, TAG);
	rig_send("first");
	both_entry(&slot);
	failing = rig_open_port(&us[0]);
	until_unexpected(failing, us[0], NEAR_TAGGED);
	post_multi(got, got, 12, NULL, FI_ADDR_UNSPEC);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	fake_core_arrive(DUO_MSG, 0, 0, "far!");
	gone = rig_open_port(&us[1]);
	until_unexpected(gone, us[1], 0);
	near_close(gone);
	while (fixture_ep()->near->peer[2]->state != NEAR_PEER_GONE)
		poll_cq(1);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	expect_posted(1);
	fake_core_release();
	rig_send("second");
	ck_assert_int_eq(near_send(failing, us[0], &(struct near_msg) {
				   .flags = NEAR_TAGGED }), 0);
	near_close(failing);
	port->tick_at = port->polls + 1;
	expect_entry(got, 0);
	expect_recv(&slot, "second", peer);
	ck_assert_uint_eq(expect_entry(got, FI_ADDR_NOTAVAIL).flags &
			  FI_MULTI_RECV, FI_MULTI_RECV);
	ck_assert_ptr_null(fixture_ep()->near->peer[2]);
}
