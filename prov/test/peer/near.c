/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Local messages over near, in both directions, expected and unexpected */

#include <rdma/fi_rma.h>

#include "near/link/port.h"
#include "near_fixture.h"
#include "transport/near/near_ep.h"

static struct slot slot;

UNIT_CASE("peer", near_setup, near_teardown);
UNIT_CASE("unlocked", near_setup_unlocked, near_teardown);

UNIT_TEST(small_messages_are_received)
{
	post_recv(&slot, peer, TAG);
	rig_send("posted");
	ck_assert_uint_eq(both_entry(&slot).len, 6);
	ck_assert_str_eq(slot.buf, "posted");
	rig_send("before");
	poll_cq(2);
	ck_assert_uint_eq(stats_now().unexpected, 1);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	ck_assert_uint_eq(both_entry(&slot).len, 6);
	ck_assert_str_eq(slot.buf, "before");
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 2);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_bytes, 12);
}

/*
 * A message is longer than its receive: a small expected one, a small
 * unexpected one, and one sent by rendezvous. Each receive gets the bytes that
 * fit, and ends with FI_ETRUNC.
 */
UNIT_TEST(long_message_is_truncated)
{
	static char text[200];
	struct fi_cq_err_entry error;
	int late;

	memset(text, 't', sizeof(text) - 1);
	for (late = 0; late < 2; late++) {
		if (!late)
			post_recv(&slot, peer, TAG);
		rig_send(text);
		poll_cq(late);
		if (late)
			post_recv(&slot, peer, TAG);
		error = both_error(&slot, FI_ETRUNC);
		ck_assert_uint_eq(error.len, sizeof(slot));
		ck_assert_uint_eq(error.olen, 199 - sizeof(slot));
		ck_assert_mem_eq(slot.buf, text, sizeof(slot));
	}
	post_recv(&slot, peer, TAG);
	rig_send_large(NEAR_TAGGED);
	error = both_error(&slot, FI_ETRUNC);
	ck_assert_uint_eq(error.olen, LARGE - sizeof(slot));
}

UNIT_LOOP(large_message_is_received, 0, 2)
{
	int late = _i;

	memset(large, 'L', LARGE);
	memset(got, 0, LARGE);
	if (late) {
		rig_send_large(NEAR_TAGGED);
		poll_cq(2);
	}
	post_large(&slot);
	if (!late)
		rig_send_large(NEAR_TAGGED);
	ck_assert_uint_eq(both_entry(&slot).len, LARGE);
	ck_assert_mem_eq(got, large, LARGE);
	until_sent();
}

/*
 * The receive copies the message at once: in the poll that finds the message
 * or, if it is unexpected (_i is 1), in fi_trecv(). No operation stays pending.
 */
UNIT_LOOP(large_message_is_copied_immediately, 0, 2)
{
	enum { LEN = 20000 };
	struct near_port *port = fixture_ep()->near->port;
	struct fi_cq_tagged_entry entry;
	int late = _i;

	memset(large, 'n', LEN);
	memset(got, 0, LARGE);
	ck_assert_int_eq(fi_tinject(fx.ep, "ring", 4, peer, 0), 0);
	if (late) {
		rig_send_len(NEAR_TAGGED, LEN);
		poll_cq(2);
	}
	post_large(&slot);
	if (!late)
		rig_send_len(NEAR_TAGGED, LEN);
	entry = both_entry(&slot);
	ck_assert_uint_eq(entry.len, LEN);
	ck_assert_uint_eq(entry.flags, FI_RECV | FI_TAGGED);
	ck_assert_mem_eq(got, large, LEN);
	ck_assert_uint_eq(got[LEN], 0);
	ck_assert_uint_eq(port->rx_ops.chunks, 0);
	ck_assert_uint_eq(stats_now().unexpected, late);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 1);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_bytes, LEN);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.sent, 1);
}

/*
 * The peer sends many unexpected messages: 25,000 of 4,000 bytes or, if bit 0
 * of _i is set, 300,000 of 8 bytes. near must not limit their number: if a send
 * of the peer returns -FI_EAGAIN, it must succeed after fewer than 1,000 polls
 * of the receiver. The last message has a tag that no other message has. A
 * receive with this tag must find the last message. If bit 1 of _i is set, a
 * peek before the receive must find the last message, too.
 */
UNIT_LOOP(directed_message_behind_many_is_found, 0, 4)
{
	struct near_msg msg = {
		.payload = large, .len = _i & 1 ? 8 : 4000, .tag = TAG + 1,
		.flags = NEAR_TAGGED,
	};
	int i, retries, count = _i & 1 ? 300000 : 25000;

	for (i = 0; i <= count; i++) {
		msg.tag = i < count ? TAG + 1 : TAG;
		for (retries = 0; near_send(rig.port, rig.us, &msg); poll_cq(1))
			ck_assert_int_lt(++retries, 1000);
	}
	while (stats_now().unexpected <= (uint64_t) count)
		poll_cq(1);
	if (_i & 2) {
		ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer, FI_PEEK), 0);
		ck_assert_uint_eq(both_entry(&slot).len, msg.len);
	}
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(fi_trecv(fx.ep, got, LARGE, NULL, peer,
					  TAG + i, 0, &slot), 0);
		ck_assert_uint_eq(both_entry(&slot).len, msg.len);
	}
}

static const struct fi_cq_tagged_entry *send_and_read(void)
{
	static struct fi_cq_tagged_entry entry;

	while (fi_tsend(fx.ep, "go on", 5, NULL, peer, TAG, large))
		near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	return &entry;
}

/*
 * Each read finds the completion of a send, and might never poll for messages.
 * A message must be received within 128 reads or, if 100 ms pass before each
 * read (_i is 1), within two.
 */
UNIT_LOOP(reads_beside_sends_make_progress, 0, 2)
{
	int i, reads = _i ? 2 : 128;

	for (i = 0; i < 1000; i++)
		ck_assert_ptr_eq(send_and_read()->op_context, large);
	for (i = 0; _i && i < 130; i++) {
		unit_pass(100000);
		send_and_read();
	}
	post_recv(&slot, peer, TAG);
	rig_send("stop");
	for (i = 0; i <= reads; i++) {
		unit_pass(_i * 100000);
		if (send_and_read()->op_context == &slot)
			return;
	}
	ck_abort_msg("no progress in %d reads", reads);
}

UNIT_TEST(peeked_message_is_discarded)
{
	rig_send("looked at");
	poll_cq(2);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer, FI_PEEK), 0);
	ck_assert_uint_eq(both_entry(&slot).len, 9);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer, FI_PEEK | FI_CLAIM),
			 0);
	ck_assert_uint_eq(both_entry(&slot).len, 9);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer,
				    FI_CLAIM | FI_DISCARD), 0);
	ck_assert_uint_eq(both_entry(&slot).len, 9);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 0);
	/* the sender of a large message must get a completion */
	rig_send_large(NEAR_TAGGED);
	poll_cq(2);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer,
				    FI_PEEK | FI_DISCARD), 0);
	ck_assert_uint_eq(both_entry(&slot).len, LARGE);
	until_sent();
	ck_assert_int_eq(rig.err, 0);
}

/*
 * A small message arrives completely before a large one that was sent earlier.
 * Their completions must have the order of the sends.
 */
UNIT_TEST(buffers_are_filled_in_order)
{
	static char buf[2 * LARGE];
	const struct near_msg small = { .payload = "small", .len = 5 };
	struct fi_cq_tagged_entry entry;

	post_multi(&slot, buf, sizeof(buf), NULL, peer);
	rig_send_large(0);
	ck_assert_int_eq(near_send(rig.port, rig.us, &small), 0);
	entry = both_entry(&slot);
	ck_assert_uint_eq(entry.len, LARGE);
	ck_assert_ptr_eq(entry.buf, buf);
	entry = both_entry(&slot);
	ck_assert_uint_eq(entry.len, 5);
	ck_assert_ptr_eq(entry.buf, buf + LARGE);
}

/*
 * A long message waits for the remainder of a multi-receive buffer, and there
 * is no memory to begin to receive it. The receive ends with FI_ENOMEM, the
 * message remains. If _i is 1, the long message would fit into the remainder.
 */
UNIT_LOOP(remainder_without_memory_fails, 0, 2)
{
	static char buf[3 * LARGE];
	struct duo_ep *ep = fixture_ep();

	post_multi(&slot, buf, _i ? sizeof(buf) : 128, NULL, FI_ADDR_UNSPEC);
	ck_assert_int_eq(duo_lazy_flush(ep), 0);
	fake.core.hold = true;
	fake_core_arrive(DUO_MSG, peer, 0, "far");
	rig_send_large(0);
	while (!ep->match[DUO_MSG].unexp_count)
		ck_assert_int_eq(fi_cq_read(fx.cq, NULL, 0), -FI_EAGAIN);
	ep->near->port->rx_ops.limit = 0;
	fake_core_release();
	both_entry(&slot);
	both_error(&slot, FI_ENOMEM);
	ck_assert_uint_eq(expect_entry(&slot, FI_ADDR_NOTAVAIL).flags,
			  FI_MULTI_RECV);
	ck_assert_uint_eq(ep->match[DUO_MSG].unexp_count, 1);
	ck_assert_uint_eq(ep->match[DUO_MSG].posted_count, 0);
	ck_assert(TAILQ_EMPTY(&ep->multi.buffers));
	ck_assert_uint_eq(ep->pool.live, 1);
}

UNIT_TEST(sends)
{
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	ck_assert_int_eq(fi_tsenddata(fx.ep, "data", 4, NULL, 77, peer, TAG,
				      &slot), 0);
	ck_assert_uint_eq(both_entry(&slot).flags, FI_SEND | FI_TAGGED);
	ck_assert_str_eq(rig.payload, "data");
	ck_assert_uint_eq(rig.msg.data, 77);
	ck_assert_uint_eq(rig.msg.flags, NEAR_TAGGED | NEAR_DATA);
	ck_assert_int_eq(fi_inject(fx.ep, "quiet", 5, peer), 0);
	memset(large, 's', LARGE);
	ck_assert_int_eq(fi_send(fx.ep, large, LARGE, NULL, peer, &large), 0);
	ck_assert_uint_eq(both_entry(&large).flags, FI_SEND | FI_MSG);
	ck_assert_int_eq(rig.arrived, 3);
	ck_assert_mem_eq(got, large, LARGE);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 3);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}

UNIT_TEST(sends_of_all_sizes)
{
	const uint64_t wide = 1ULL << 40 | 7;
	size_t len;

	for (len = 0; len < sizeof(rig.payload); len++) {
		memset(large, (int) len, len);
		ck_assert_int_eq(fi_tsenddata(fx.ep, large, len, NULL, 5 + len,
					      peer, TAG + len, &slot), 0);
		ck_assert_uint_eq(both_entry(&slot).flags,
				  FI_SEND | FI_TAGGED);
		ck_assert_int_eq(rig.arrived, (int) len + 1);
		ck_assert_uint_eq(rig.msg.len, len);
		ck_assert_uint_eq(rig.msg.tag, TAG + len);
		ck_assert_uint_eq(rig.msg.data, 5 + len);
		ck_assert_mem_eq(rig.payload, large, len);
	}
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, len);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_bytes,
			  len * (len - 1) / 2);
	ck_assert_int_eq(fi_senddata(fx.ep, "wide", 4, NULL, wide, peer,
				     &slot), 0);
	ck_assert_uint_eq(both_entry(&slot).flags, FI_SEND | FI_MSG);
	ck_assert_uint_eq(rig.msg.data, wide);
	ck_assert_int_eq(fi_inject(fx.ep, large,
				   fixture_ep()->inject_size + 1, peer),
			 -FI_EMSGSIZE);
	ck_assert_int_eq(fi_tinject(fx.ep, large, fixture_ep()->inject_size,
				    peer, TAG), 0);
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer + 1, TAG),
			 -FI_EINVAL);
	ck_assert_int_eq(fi_cq_read(fx.cq, got, 1), -FI_EAGAIN);
}

UNIT_TEST(send_to_full_ring_returns_eagain)
{
	ssize_t ret;
	int n = 0;

	while (!(ret = fi_tsend(fx.ep, &n, sizeof(n), NULL, peer, TAG, &slot)))
		n++;
	ck_assert_int_eq(ret, -FI_EAGAIN);
	ck_assert_int_gt(n, 1);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, n);
	do
		near_poll(rig.port, &rig_sink);
	while (rig.arrived < n);
	ck_assert_int_eq(rig.arrived, n);
	for (; n; n--)
		both_entry(&slot);
	ck_assert_int_eq(fi_cq_read(fx.cq, large, 1), -FI_EAGAIN);
}

/*
 * The counter's value is the number of completed sends, its error value that of
 * failed sends.
 */
UNIT_TEST(sends_are_counted)
{
	int i;

	ck_assert_int_eq(fi_tinject(fx.ep, "quiet", 5, peer, TAG), 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 1);
	ck_assert_int_eq(fi_send(fx.ep, large, LARGE, NULL, peer, &large), 0);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 1);
	both_entry(&large);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 2);
	ck_assert_int_eq(fi_send(fx.ep, large, LARGE, NULL, peer, &large), 0);
	rig_end();
	for (i = 0; i < 10000000 && !fi_cntr_readerr(fx.cntr); i++)
		;
	ck_assert_uint_eq(fi_cntr_readerr(fx.cntr), 1);
	expect_error(&large, FI_ECONNRESET);
	ck_assert_uint_eq(fi_cntr_read(fx.cntr), 2);
}

UNIT_TEST(delivery_complete_waits_for_peer)
{
	const struct iovec iov = { "small", 5 };
	const struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = peer,
		.context = &slot,
	};

	ck_assert_int_eq(fi_sendmsg(fx.ep, &msg, FI_DELIVERY_COMPLETE), 0);
	poll_cq(10);
	both_entry(&slot);
	ck_assert_int_eq(rig.received, 1);
	ck_assert_mem_eq(got, "small", 5);
}

UNIT_CASE("found", near_setup_alone, near_teardown);

/*
 * The peer's record has the nonce of a port that does not exist any more. The
 * first send finds this, and returns -FI_EAGAIN. The peer then counts as
 * failed: sends end in an error, and do not use the core.
 */
UNIT_TEST(record_of_closed_port_means_failed_peer)
{
	struct near_addr addr;

	near_address(rig.port, &addr);
	addr.nonce++;
	rig_publish(DUO_TRANSPORT_NEAR, &addr);
	peer = peer_insert(PEER);
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	ck_assert_int_eq(fi_send(fx.ep, "x", 1, NULL, peer, NULL),
			 -FI_EAGAIN);
	poll_cq(2);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_EXITED);
	ck_assert_int_eq(fi_send(fx.ep, "x", 1, NULL, peer, NULL),
			 -FI_ECONNRESET);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}

UNIT_TEST(peer_with_shm_uses_core)
{
	static const struct near_addr none;

	rig_publish(DUO_TRANSPORT_SHM, &none);
	peer = peer_insert(PEER);
	ck_assert_int_eq(fi_send(fx.ep, "x", 1, NULL, peer, NULL), 0);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_TRANSPORT_MISMATCH);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}

/*
 * A message arrives before its sender's address is inserted. The completion
 * must have the source all the same.
 */
UNIT_TEST(late_insert_resolves_source)
{
	rig_publish_port();
	rig_send("early");
	poll_cq(2);
	peer = peer_insert(PEER);
	post_recv(&slot, peer, TAG);
	ck_assert_uint_eq(both_entry(&slot).len, 5);
}

UNIT_CASE("memory", NULL, NULL);

/*
 * If _i is 0, FI_OFI_DUO_RING_MEMORY has its default, and the port must have a
 * ring budget of at least 1 page. If _i is 1, FI_OFI_DUO_RING_MEMORY is 0, and
 * the ring budget must have 0 pages.
 */
UNIT_LOOP(ring_memory_sets_budget, 0, 2)
{
	static const struct fixture_attr attr = { .near = true };
	fixture_open(&attr);
	if (_i)
		duo_params.ring_memory = 0;
	ck_assert_int_eq(fixture_try(&attr), 0);
	ck_assert_int_eq(!fixture_ep()->near->port->budget.pages_max, _i);
	fixture_close();
}

UNIT_CASE("no order", near_setup_ordered, near_teardown);

/*
 * The peer has no region table, so RMA to the peer uses the core. To keep the
 * order, messages to the peer use the core as well. Messages from the peer may
 * arrive over near.
 */
UNIT_TEST(peer_without_table_uses_core_for_messages)
{
	static char buf[8];

	ck_assert(fixture_ep()->opts.mixed_order);
	post_recv(&slot, peer, TAG);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_ORDER_UNSUPPORTED);
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	ck_assert_int_eq(fi_inject_write(fx.ep, buf, 8, peer, 0, 1), 0);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].tx_msgs, 0);
	ck_assert_uint_eq(stats_now().path[FI_DUO_CORE].tx_msgs, 1);
	ck_assert_uint_eq(stats_now().rma_ops[FI_DUO_CORE], 1);
	rig_send("near");
	both_entry(&slot);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 1);
}

UNIT_CASE("no ring", near_setup_onesided, near_teardown);

/*
 * The peer has no ring left for a new sender. The first RMA write returns
 * -FI_EAGAIN; then the core executes RMA to this peer.
 */
UNIT_TEST(write_without_ring_uses_core)
{
	struct near_segment *region = rig.port->segment;
	static char buf[8];
	uint32_t i;

	for (i = 0; i < NEAR_SENDERS; i++)
		region->claim[i].state = NEAR_CLAIM_TAKEN;
	expect_path(fx.ep, peer, FI_DUO_LOCAL, FI_DUO_OK);
	ck_assert_int_eq(fi_inject_write(fx.ep, buf, 8, peer, 0, 1),
			 -FI_EAGAIN);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_NOT_MAPPED);
	ck_assert_int_eq(fi_inject_write(fx.ep, buf, 8, peer, 0, 1), 0);
	ck_assert_uint_eq(stats_now().rma_ops[FI_DUO_CORE], 1);
}
