/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sends of large messages from device memory of this process. The send
 * announces a message: its RTS has the key of the message's region. The peer
 * then fetches the message from the region, or requests fragments.
 */

#include "device/device.h"
#include "port_fixture.h"

#define LEN 300000

static size_t len;		/* of the message, bytes */
static bool frags;		/* the peer requests fragments */
static int fetch_err;		/* result of the peer's read */
static struct near_rndv rndv;
static struct near_rx_op *receiving;
static struct near_peer *sender;

static void fetched(void *cookie, int err)
{
	fetch_err = err;
	if (err)
		near_recv_frags(rig.port, receiving, got, len);
	else
		near_recv_end(rig.port, receiving, 0);
}

static void fetch_now(void)
{
	const struct iovec iov = { got, len };
	const struct near_rma_args args = {
		.verb = NEAR_READ, .flags = NEAR_RMA_MESSAGE, .addr = rndv.addr,
		.key = rndv.key, .local = { &iov, 1, NULL }, .len = len,
		.about = 1,
	};

	if (frags)
		near_recv_frags(rig.port, receiving, got, len);
	else if (near_rma(rig.port, sender, &args))
		fetched(NULL, FI_EIO);
}

static int fetch(struct near_peer *from, const struct near_msg *msg)
{
	sender = from;
	rndv = msg->rndv;
	receiving = near_recv_begin(rig.port, sender, &rndv, &rig);
	return receiving ? 0 : -FI_EAGAIN;
}

static void setup_as(const struct fixture_attr *as)
{
	int i;

	port_setup(as);
	fake_device_open(LARGE);
	port_region_open(FI_SEND);
	for (i = 0; i < LARGE; i++)
		fake.device.shadow[i] = (char) (i * 7 + i / 997);
	memset(got, 0, LARGE);
	fake.device.polls = 2;
	len = LEN;
	frags = false;
	fetch_err = 0;
	receiving = NULL;
	rig.fetch = fetch;
	port_ended = fetched;
}

FIXTURE_SETUP(setup, setup_as, .core = "efa", .device = true, .near = true);
FIXTURE_SETUP(setup_onesided, setup_as,
	      .core = "efa", .device = true, .near = true, .onesided = true);

static void send_device(void)
{
	ck_assert_int_eq(fi_tsend(fx.ep, fake.device.base + 5, len,
				  fi_mr_desc(mr), peer, TAG, &context), 0);
}

static void until_announced(void)
{
	while (!rig.arrived)
		near_poll(rig.port, &rig_sink);
}

static void expect_sent(void)
{
	ck_assert_uint_eq(both_entry(&context).flags, FI_SEND | FI_TAGGED);
	ck_assert_mem_eq(got, fake.device.shadow + 5, len);
	ck_assert_uint_eq(stats_now().device_tx_msgs, 1);
	ck_assert_int_eq(rig.received, 1);
	ck_assert_int_eq(rig.err, 0);
	ck_assert_uint_eq(fixture_ep()->tx.pending, 0);
	ck_assert_int_eq(fake.device.under_way, 0);
}

UNIT_CASE("messages", setup, port_device_teardown);
UNIT_CASE("one-sided", setup_onesided, port_device_teardown);

/*
 * The send itself copies nothing. If _i is odd, the peer requests fragments,
 * otherwise it fetches the message. If _i < 2, the message has LEN bytes,
 * otherwise 1 byte.
 */
UNIT_LOOP(message_is_announced, 0, 4)
{
	frags = _i % 2;
	len = _i < 2 ? LEN : 1;
	send_device();
	ck_assert_int_eq(fake.device.copies, 0);
	until_announced();
	ck_assert_ptr_nonnull(receiving);
	poll_cq(10);
	ck_assert_int_eq(fake.device.copies, 0);
	fetch_now();
	expect_sent();
	ck_assert_int_eq(fetch_err, 0);
}

/*
 * The key in the RTS permits only the fetch of the message: RMA by the
 * application must fail.
 */
UNIT_TEST(region_is_for_messages_only)
{
	const struct iovec iov = { got, 8 };
	struct near_rma_args args = {
		.verb = NEAR_READ, .len = 8, .local = { &iov, 1, NULL },
	};
	int ret;

	send_device();
	until_announced();
	args.addr = rndv.addr;
	args.key = rndv.key;
	ret = near_rma(rig.port, sender, &args);
	ck_assert_int_eq(ret, fixture_ep()->near->onesided ? -FI_EACCES :
						       -FI_EOPNOTSUPP);
	args.key = fi_mr_key(mr);
	ret = near_rma(rig.port, sender, &args);
	ck_assert_int_eq(ret, fixture_ep()->near->onesided ? -FI_EKEYREJECTED :
						       -FI_EOPNOTSUPP);
	fetch_now();
	expect_sent();
}

/*
 * The send does not announce the message, but copies it in the call. _i is the
 * reason:
 * - 0: the region lacks FI_SEND
 * - 1: the message has several buffers
 * - 2: the message exceeds the region
 */
UNIT_LOOP(message_is_copied, 0, 3)
{
	const struct iovec iov[] = {
		{ fake.device.base + 5, LEN - 100 },
		{ fake.device.base + 5 + LEN - 100, 100 },
	};
	void *desc[2];

	if (_i == 0) {
		port_region_close();
		port_region_open(FI_RECV);
	}
	desc[0] = desc[1] = fi_mr_desc(mr);
	if (_i == 1)
		ck_assert_int_eq(fi_tsendv(fx.ep, iov, desc, 2, peer, TAG,
					   &context), 0);
	if (_i == 2)
		duo_device_find(fixture_ep()->domain, desc[0])->region.len =
			LEN;
	if (_i != 1)
		ck_assert_int_eq(fi_tsend(fx.ep, fake.device.base + 5, len,
					  desc[0], peer, TAG, &context), 0);
	ck_assert_int_gt(fake.device.copies, 0);
	both_entry(&context);
	ck_assert_ptr_null(receiving);
	ck_assert_int_eq(rig.arrived, 1);
	ck_assert_uint_eq(stats_now().device_tx_msgs, 1);
}

UNIT_LOOP(closed_region_fails_message, 0, 2)
{
	frags = _i;
	send_device();
	until_announced();
	port_region_close();
	fetch_now();
	both_error(&context, FI_EIO);
	while (!rig.received)
		near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.err, EIO);
	ck_assert_int_eq(fetch_err, _i ? 0 : FI_EIO);
	ck_assert_int_eq(fake.device.copies, 0);
	ck_assert_uint_eq(fixture_ep()->tx.pending, 0);
}

/*
 * The core has returned the same region for two registrations. One registration
 * is closed after the send, while the other one stays open: the peer still gets
 * the message, by a fetch or (_i is 1) in fragments.
 */
UNIT_LOOP(other_registration_keeps_region, 0, 2)
{
	struct fid_mr *first = mr;

	port_region_again();
	frags = _i;
	send_device();
	until_announced();
	ck_assert_int_eq(fi_close(&first->fid), 0);
	fetch_now();
	expect_sent();
	ck_assert_int_eq(fetch_err, 0);
}

/*
 * Call number 1 + _i / 2 to this process's device fails. If this call
 * belongs to the peer's fetch, the peer requests fragments instead. If this
 * call belongs to a copy for fragments, both ends get an error. If _i is odd,
 * the peer requests fragments at once.
 */
UNIT_LOOP(failed_device_call, 0, 2 * 8)
{
	struct fi_cq_err_entry error = { 0 };
	ssize_t ret;

	frags = _i % 2;
	fake.device.fail_at = 1 + _i / 2;
	send_device();
	until_announced();
	fetch_now();
	do {
		near_poll(rig.port, &rig_sink);
		ret = fi_cq_read(fx.cq, &error, 1);
	} while (ret == -FI_EAGAIN || !rig.received);
	if (ret == 1) {
		ck_assert_int_eq(rig.err, 0);
		ck_assert_mem_eq(got, fake.device.shadow + 5, LEN);
	} else {
		ck_assert_int_eq(ret, -FI_EAVAIL);
		ck_assert_int_eq(fi_cq_readerr(fx.cq, &error, 0), 1);
		ck_assert_int_eq(error.err, FI_EIO);
		ck_assert_int_eq(rig.err, FI_EIO);
		ck_assert(frags);
	}
	ck_assert_uint_eq(fixture_ep()->tx.pending, 0);
}

/*
 * The peer fails before it fetches the message (_i is 0), or _i polls after the
 * start of the fetch.
 */
UNIT_LOOP(peer_fails, 0, 4)
{
	port_ended = NULL;
	send_device();
	until_announced();
	if (_i)
		fetch_now();
	poll_both(_i);
	port_close();
	until_reset(&context);
	ck_assert_int_eq(fake.device.under_way, 0);
	ck_assert_uint_eq(fixture_ep()->tx.pending, 0);
}

UNIT_TEST(cooperative_copy_disconnects)
{
	struct near_slot *slot;

	send_device();
	until_announced();
	slot = near_control_slot(rig.port, rig.us);
	slot->coop.id = rndv.id;
	slot->coop.len = LEN;
	slot->coop.addr = (uintptr_t) got;
	slot->coop.round = 1;
	near_control_send(rig.port, rig.us, slot, NEAR_KIND_COOP, 0);
	until_reset(&context);
	ck_assert_int_eq(fake.device.copies, 0);
}
