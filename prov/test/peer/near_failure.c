/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer of near fails: pending operations with this peer fail, in any state.
 */

#include <fcntl.h>
#include <unistd.h>

#include "av/route.h"
#include "near/link/port.h"
#include "near_fixture.h"

static struct slot slot;

/*
 * Inserts another address first, so that the peer's fi_addr is not 0, the value
 * in an error entry without a source.
 */
static void setup(void)
{
	near_setup_alone();
	peer_insert(1000);
	near_publish();
	ck_assert_uint_ne(peer, 0);
}

/* Receives a first message from the peer. */
static void recv_first(void)
{
	post_recv(&slot, peer, TAG);
	rig_send("first");
	both_entry(&slot);
}

static void expect_reset(void *context)
{
	struct fi_cq_err_entry entry = until_reset(context);

#if FI_MAJOR_VERSION >= 2
	ck_assert_uint_eq(entry.src_addr, peer);
#else
	(void) entry;
#endif
}

UNIT_CASE("peer", setup, near_teardown);

/*
 * Pending operations with the failed peer fail. Later operations use the core.
 */
UNIT_TEST(failed_peer_ends_operations)
{
	recv_first();
	rig_send_large(NEAR_TAGGED);	/* stays pending until the peer fails */
	poll_cq(2);
	post_recv(&slot, peer, TAG + 1);
	ck_assert_int_eq(fi_send(fx.ep, large, LARGE, NULL, peer, large), 0);
	rig_end();
	expect_reset(large);
	expect_reset(&slot);
	ck_assert_uint_eq(fixture_ep()->match[DUO_TAGGED].unexp_count, 0);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_UNDECIDED);
	ck_assert_int_eq(fi_send(fx.ep, "x", 1, NULL, peer, NULL), 0);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 1);
}

/*
 * The peer's segment is mapped, but no message from the peer has confirmed it
 * as a source. So the receives that name the peer are posted to the core, or
 * (_i is 1) are still deferred. They fail in the order of posting. A wildcard
 * receive stays.
 */
UNIT_LOOP(failed_peer_ends_receives_on_core, 0, 2)
{
	bool lazy = _i;
	struct slot other, any;

	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	post_recv(&slot, peer, TAG);
	post_recv(&other, peer, TAG + 1);
	post_recv(&any, FI_ADDR_UNSPEC, TAG);
	if (!lazy)
		poll_cq(2 * LAZY_POLLS);
	ck_assert_uint_eq(fake_core_posted(), lazy ? 0 : 3);
	rig_end();
	expect_reset(&slot);
	expect_reset(&other);
	expect_posted(1);
	ck_assert_uint_eq(fixture_ep()->match[DUO_TAGGED].posted_count, 1);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &any), 0);
	expect_error(&any, FI_ECANCELED);
}

/*
 * The peer sent a message over the core before it failed. The receive that has
 * matched this message at the core must complete.
 */
UNIT_TEST(receive_matched_by_core_completes)
{
	struct fi_cq_tagged_entry entry;

	/* without a remote peer, the core would get the receive after 1 s */
	peer_insert(2);
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	post_recv(&slot, peer, TAG);
	poll_cq(2 * LAZY_POLLS);
	fake.core.hold = true;
	fake_core_arrive(DUO_TAGGED, peer, TAG, "far");
	rig_end();
	while (!fake.core.cancels)
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), -FI_EAGAIN);
	fake_core_release();
	expect_recv(&slot, "far", peer);
}

/* The error of a matched receive has the message's remote CQ data. */
UNIT_TEST(error_of_matched_receive_has_data)
{
	const struct near_msg msg = {
		.len = LARGE, .tag = TAG, .data = 0x12345678,
		.flags = NEAR_TAGGED | NEAR_DATA,
	};
	const struct iovec iov = { large, LARGE };
	const struct near_large how = { .iov = &iov, .count = 1 };
	struct fi_cq_err_entry entry;

	ck_assert_int_eq(near_send_large(rig.port, rig.us, &msg, &how), 0);
	poll_cq(2);
	post_recv(&slot, peer, TAG);
	rig_end();
	entry = until_reset(&slot);
	ck_assert(entry.flags & FI_REMOTE_CQ_DATA);
	ck_assert_uint_eq(entry.data, msg.data);
}

/*
 * The core has a multi-receive buffer that names the peer. The peer's failure
 * releases the buffer, because no other process could fill it.
 */
UNIT_TEST(failed_peer_releases_multi_receive)
{
	static char buf[2 * LARGE];

	ck_assert_int_eq(fi_inject(fx.ep, "x", 1, peer), 0);
	post_multi(&slot, buf, sizeof(buf), NULL, peer);
	poll_cq(2 * LAZY_POLLS);
	rig_end();
	until_reset(&slot);
	ck_assert(TAILQ_EMPTY(&fixture_ep()->multi.buffers));
}

/*
 * The peer fails after FI_PEEK | FI_DISCARD of its message. The peek completes
 * without an error, and there is no second completion.
 */
UNIT_TEST(discarded_message_of_failed_peer_has_no_error)
{
	rig_send_large(NEAR_TAGGED);
	poll_cq(2);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer,
				    FI_PEEK | FI_DISCARD), 0);
	rig_end();
	expect_entry(&slot, peer);
	while (fixture_ep()->pool.live)
		poll_cq(1);
	expect_nothing();
}

UNIT_TEST(held_messages_keep_their_source)
{
	struct near_port *sender;
	struct near_peer *us;

	recv_first();
	sender = rig_open_port(&us);
	fixture_ep()->near->port->tick_at = fixture_ep()->near->port->polls + 1;
	post_recv(&slot, peer, TAG);
	ck_assert_int_eq(near_send(sender, us, &(struct near_msg) {
		.payload = "?", .len = 1 }), 0);
	rig_send("last");
	rig_end();
	expect_recv(&slot, "last", peer);
	near_close(sender);
}

/*
 * Gives the file descriptor of the peer's segment a number of at least 300, so
 * that no other file gets this number after rig_exits().
 */
static void setup_unknown(void)
{
	near_setup_alone();
	peer_insert(1000);
	rig.port->addr.fd = fcntl(rig.port->fd, F_DUPFD_CLOEXEC, 300);
	close(rig.port->fd);
	rig.port->fd = rig.port->addr.fd;
}

static void setup_exit(void)
{
	setup_unknown();
	near_publish();
}

/*
 * Closes the file descriptor of the peer's segment. This is the state of an
 * exiting process whose pid still exists.
 */
static void rig_exits(void)
{
	close(rig.port->fd);
	rig.port->fd = -1;
}

static ssize_t inject(void)
{
	ssize_t ret;

	while ((ret = fi_tinject(fx.ep, "x", 1, peer, TAG)) == -FI_EAGAIN)
		poll_cq(1);
	return ret;
}

UNIT_CASE("exiting peer", setup_exit, near_teardown);

/*
 * Sends to the failed peer's address fail while the peer's record exists, and
 * after (_i is 1) a sweep has removed the record. They must not use the core.
 */
UNIT_LOOP(address_of_failed_peer_stays_failed, 0, 2)
{
	rig_exits();
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	if (_i)
		duo_registry_withdraw(&rig.pub);
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	expect_path(fx.ep, peer, FI_DUO_CORE, FI_DUO_EXITED);
	ck_assert_int_eq(fake.tx[FI_DUO_CORE].count, 0);
}

/*
 * A receive that is posted after the peer's failure fails; the core does not
 * get it.
 */
UNIT_TEST(receive_after_failure_ends)
{
	recv_first();
	rig_exits();
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	post_recv(&slot, peer, TAG);
	expect_reset(&slot);
	ck_assert_uint_eq(fake_core_posted(), 0);
}

UNIT_CASE("unknown peer", setup_unknown, near_teardown);

/*
 * A receive that is posted after the peer's failure fails, although ofi_duo had
 * no route to the peer when the peer's only message arrived. If _i is 0, the
 * application had not inserted the peer's address yet. If _i is 1, it had
 * inserted the address before the peer was published.
 */
UNIT_LOOP(receive_after_failure_of_unknown_peer_ends, 0, 2)
{
	if (_i) {
		peer = peer_insert(PEER);
		rig_publish_port();
	}
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	rig_send("first");
	expect_recv(&slot, "first", _i ? peer : FI_ADDR_NOTAVAIL);
	if (!_i)
		near_publish();
	rig_exits();
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	post_recv(&slot, peer, TAG);
	ck_assert_uint_eq(fake_core_posted(), 0);
	expect_reset(&slot);
}

UNIT_CASE("exiting peer", setup_exit, near_teardown);

UNIT_TEST(new_process_at_address_is_reached)
{
	rig_exits();
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	rig_end();
	rig_again();
	ck_assert_int_eq(inject(), 0);
	rig_send("second");
	post_recv(&slot, peer, TAG);
	both_entry(&slot);
	ck_assert_str_eq(rig.payload, "x");
}

/* Publishes the record of an exited process with another core address. */
static void publish_exited(uint64_t core_addr)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	duo_registry_withdraw(&rig.pub);
	ck_assert_int_eq(duo_registry_reserve(duo_params.registry_dir,
					      &core_addr, sizeof(core_addr),
					      false, &rig.pub), 0);
	ck_assert_int_eq(duo_registry_ready(&rig.pub), 0);
	/* releases the record's lock */
	ck_assert_int_eq(dup2(null, rig.pub.fd), rig.pub.fd);
	close(null);
}

/*
 * The failed peer's fi_addr is assigned to another process, which has exited,
 * too. Because that process has not sent over near, the core may have messages
 * from it.
 */
UNIT_TEST(new_address_with_same_fi_addr_may_be_received)
{
	recv_first();
	rig_exits();
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	ck_assert_int_eq(fi_av_remove(fx.av, &peer, 1, 0), 0);
	publish_exited(9);
	ck_assert_uint_eq(peer_insert(9), peer);
	ck_assert_int_eq(inject(), -FI_ECONNRESET);
	post_recv(&slot, peer, TAG);
	poll_cq(1);
	fake_core_arrive(DUO_TAGGED, peer, TAG, "far");
	expect_recv(&slot, "far", peer);
}

/*
 * A new process has the failed peer's address, and sends before the failure is
 * detected. A later receive that names the address gets the message.
 */
UNIT_TEST(message_before_failure_gets_source)
{
	struct near_port *port = fixture_ep()->near->port;

	post_recv(&slot, peer, TAG);
	rig_exits();
	rig_end();
	rig_again();
	rig_send("second");
	port->tick_at = port->polls + NEAR_TICK_POLLS;
	poll_cq(1);
	ck_assert_uint_eq(fixture_ep()->match[DUO_TAGGED].unexp_count, 1);
	fi_tinject(fx.ep, "x", 1, peer, TAG);	/* detects the failure */
	expect_reset(&slot);
	unit_pass(1000000);
	poll_cq(1);
	post_recv(&slot, peer, TAG);
	both_entry(&slot);
	ck_assert_str_eq(slot.buf, "second");
}

UNIT_CASE("only local", near_setup, near_teardown);

UNIT_TEST(failed_peer_leaves_core_unused)
{
	recv_first();
	post_recv(&slot, peer, TAG);
	ck_assert_int_eq(fake.core.polls, 0);
	rig_end();
	expect_reset(&slot);
	unit_pass(1000000);
	poll_cq(2 * LAZY_POLLS);
	ck_assert(!fixture_ep()->map->retry);
	ck_assert_int_eq(fake.core.polls, 0);
}

/*
 * Another process may have the failed peer's address, and may send over the
 * core. A peek finds its message, although no peer has made the core used.
 */
UNIT_TEST(peek_for_failed_peer_finds_message_at_core)
{
	ck_assert_int_eq(fi_tinject(fx.ep, "x", 1, peer, TAG), 0);
	post_recv(&slot, peer, TAG);
	rig_end();
	expect_reset(&slot);
	fake_core_arrive(DUO_TAGGED, peer, TAG, "far");
	ck_assert_int_eq(fake.core.polls, 0);
	ck_assert_int_eq(recv_flags(&slot, NULL, 0, peer, FI_PEEK), 0);
	expect_entry(&slot, peer);
	ck_assert_int_eq(fake.core.peeks, 1);
}

/*
 * A new process has the address of a peer with which no message was exchanged.
 * If the application inserts the address again, the old peer's index is free.
 */
UNIT_TEST(replaced_peer_frees_its_index)
{
	struct duo_near *near = fixture_ep()->near;
	fi_addr_t old = duo_route_index(fixture_ep()->route[peer]);

	ck_assert_ptr_nonnull(near->peer[old]);
	rig_end();
	rig_again();
	ck_assert_uint_eq(peer_insert(PEER), peer);
	ck_assert_uint_ne(duo_route_index(fixture_ep()->route[peer]), old);
	ck_assert_ptr_null(near->peer[old]);
}
