/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Receives of large messages whose source or destination is device memory. The
 * receiver (this process) fetches a message by near's RMA, or gets fragments.
 */

#include "port_fixture.h"

#define NEAR_END 32		/* length of a too short receive, bytes */
#define LEN (MESSAGE_LEN - 60000)
#define HALF (LARGE / 2)

static int unloaded, unload_err, unload_waits;
static struct near_rndv region = { .addr = START, .key = DEVICE_KEY };

static int unload(const void *from, void *host, size_t len)
{
	if (unload_waits && unload_waits--)
		return ENOMEM;
	unloaded++;
	memcpy(host, port_device(from), len);
	return unload_err;
}

static void setup_as(const struct fixture_attr *as)
{
	int i;

	port_setup(as);
	fake_device_open(LARGE);
	port_region_open(FI_SEND | FI_RECV);
	for (i = 0; i < LARGE; i++)
		fake.device.shadow[i] = i < HALF ? 5 : (char) (i * 7 + i / 997);
	fake.device.polls = 3;
	port_device_polls = 2;
	rig.unload = unload;
	unloaded = unload_err = 0;
	region = (struct near_rndv) { .addr = START, .key = DEVICE_KEY };
}

FIXTURE_SETUP(setup, setup_as, .core = "efa", .device = true, .near = true);
FIXTURE_SETUP(setup_onesided, setup_as,
	      .core = "efa", .device = true, .near = true, .onesided = true);

static void add_region(bool mapped)
{
	port_add_messages(mapped ? "fake" : "other", NEAR_MAY_MESSAGE);
}

/* Sends the RTS of a message in the peer's device memory. */
static void announce(unsigned int flags, size_t len)
{
	const struct near_msg msg = {
		.len = len, .tag = TAG, .flags = flags | NEAR_DEVICE,
		.rndv = region,
	};
	const struct iovec iov = { (void *) (uintptr_t) DEVICE_AT, len };
	const struct near_large how = { .iov = &iov, .count = 1,
					.cookie = &rig };

	ck_assert_int_eq(near_send_large(rig.port, rig.us, &msg, &how), 0);
}

static void post_device(size_t len)
{
	ck_assert_int_eq(fi_trecv(fx.ep, fake.device.base, len, fi_mr_desc(mr),
				  peer, TAG, 0, &context), 0);
}

static const char *theirs_now(void)
{
	return port_device((void *) (uintptr_t) DEVICE_AT);
}

static void expect_bytes(const char *at, size_t len)
{
	ck_assert_mem_eq(at, theirs_now(), len);
}

/* Asserts the numbers of fetches, mapped fetches, and copies by the peer. */
static void paths(uint64_t fetches, uint64_t mapped, int copies)
{
	ck_assert_uint_eq(stats_now().device_rma_ops, fetches);
	ck_assert_uint_eq(stats_now().device_rma_mapped, mapped);
	ck_assert_int_eq(unloaded, copies);
}

/* Asserts that the peer's send ended with err and that nothing is pending. */
static void expect_ended(int err)
{
	poll_both(20);
	ck_assert_int_eq(rig.sent, 1);
	ck_assert_int_eq(rig.err, err);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	ck_assert_int_eq(fake.device.under_way, 0);
	ck_assert_int_eq(near_port_has_work(fixture_ep()->near->port), 0);
}

UNIT_CASE("messages", setup, port_device_teardown);
UNIT_CASE("one-sided", setup_onesided, port_device_teardown);

/*
 * If _i & 1 is set, the fetch is a mapped operation. If _i & 2 is set, the
 * message is unexpected. If _i & 2 or _i & 4 is set, the receive is directed.
 */
UNIT_LOOP(message_is_fetched, 0, 8)
{
	bool late = _i & 2;

	add_region(_i & 1);
	if (!late)
		ck_assert_int_eq(fi_trecv(fx.ep, fake.device.base, LEN,
					  fi_mr_desc(mr), _i & 4 ? peer :
					  FI_ADDR_UNSPEC, TAG, 0, &context), 0);
	announce(NEAR_TAGGED, LEN);
	if (late) {
		poll_both(20);
		post_device(LEN);
	}
	ck_assert_uint_eq(both_entry(&context).len, LEN);
	expect_bytes(fake.device.shadow, LEN);
	ck_assert_int_eq(fake.device.shadow[LEN], 5);
	paths(1, _i & 1, 0);
	ck_assert_uint_eq(stats_now().device_rx_msgs, 1);
	ck_assert_uint_eq(stats_now().unexpected, late);
	expect_ended(0);
}

/* A receive in host memory fetches from the peer's device memory, too. */
UNIT_TEST(host_buffer_fetches)
{
	add_region(true);
	post_large(&context);
	announce(NEAR_TAGGED, LEN);
	ck_assert_uint_eq(both_entry(&context).len, LEN);
	expect_bytes(got, LEN);
	paths(1, 0, 0);
	ck_assert_uint_eq(stats_now().device_rx_msgs, 0);
	expect_ended(0);
}

UNIT_LOOP(several_buffers_fetch, 0, 4)
{
	void *desc[] = { fi_mr_desc(mr), _i & 1 ? NULL : fi_mr_desc(mr),
			 fi_mr_desc(mr) };
	const struct iovec iov[] = {
		{ fake.device.base, 1000 },
		{ _i & 1 ? got : fake.device.base + 2000, 100 },
		{ fake.device.base + 3000, LARGE / 2 - 3000 },
	};

	add_region(true);
	if (!(_i & 2))
		ck_assert_int_eq(fi_trecvv(fx.ep, iov, desc, 3, peer, TAG, 0,
					   &context), 0);
	announce(NEAR_TAGGED, LEN);
	if (_i & 2) {
		poll_both(20);
		ck_assert_int_eq(fi_trecvv(fx.ep, iov, desc, 3, peer, TAG, 0,
					   &context), 0);
	}
	both_entry(&context);
	expect_bytes(fake.device.shadow, 1000);
	ck_assert_mem_eq(_i & 1 ? got : fake.device.shadow + 2000,
			 theirs_now() + 1000, 100);
	ck_assert_mem_eq(fake.device.shadow + 3000, theirs_now() + 1100,
			 LEN - 1100);
	paths(1, !(_i & 1), 0);
	expect_ended(0);
}

UNIT_LOOP(truncated_message_is_fetched, 0, 4)
{
	bool late = _i & 2;

	add_region(_i & 1);
	if (!late)
		post_device(NEAR_END);
	announce(NEAR_TAGGED, LEN);
	if (late) {
		poll_both(20);
		post_device(NEAR_END);
	}
	ck_assert_uint_eq(both_error(&context, FI_ETRUNC).olen,
			  LEN - NEAR_END);
	expect_bytes(fake.device.shadow, NEAR_END);
	ck_assert_int_eq(fake.device.shadow[NEAR_END], 5);
	expect_ended(0);
}

UNIT_LOOP(multi_receive_fetches, 0, 2)
{
	struct fi_cq_tagged_entry entry;
	int i;

	add_region(_i);
	post_multi(&context, fake.device.base, LARGE / 2, fi_mr_desc(mr), peer);
	for (i = 0; i < 2; i++)
		announce(0, 20000);
	for (i = 0; i < 2; i++) {
		entry = both_entry(&context);
		ck_assert_ptr_eq(entry.buf, fake.device.base + 20000 * i);
		expect_bytes(fake.device.shadow + 20000 * i, 20000);
	}
	poll_both(20);
	ck_assert_int_eq(rig.sent, 2);
	paths(2, 2 * _i, 0);
}

/*
 * The receive is canceled before the message arrives, and must not fetch the
 * message. The next receive must fetch it.
 */
UNIT_TEST(canceled_receive_fetches_nothing)
{
	add_region(true);
	post_device(LEN);
	ck_assert_int_eq(fi_cancel(&fx.ep->fid, &context), 0);
	both_error(&context, FI_ECANCELED);
	announce(NEAR_TAGGED, LEN);
	poll_both(20);
	paths(0, 0, 0);
	ck_assert_int_eq(rig.sent, 0);
	post_device(LEN);
	both_entry(&context);
	expect_bytes(fake.device.shadow, LEN);
	expect_ended(0);
}

/*
 * A call with FI_PEEK and FI_CLAIM finds the peer's message and claims it. The
 * next call has FI_CLAIM and must consume the claimed message. If _i is 0, this
 * call is a receive, which must fetch the message. If _i is 1, this call also
 * has FI_DISCARD: it must discard the message, and must fetch nothing.
 */
UNIT_LOOP(peeked_message_is_fetched_or_discarded, 0, 2)
{
	static struct fi_context2 claim;
	const struct iovec iov = { fake.device.base, LEN };
	void *desc = fi_mr_desc(mr);
	struct fi_msg_tagged msg = {
		.addr = peer, .tag = TAG, .context = &claim,
	};

	add_region(true);
	announce(NEAR_TAGGED, LEN);
	poll_both(20);
	ck_assert_int_eq(fi_trecvmsg(fx.ep, &msg, FI_PEEK | FI_CLAIM), 0);
	ck_assert_uint_eq(both_entry(&claim).len, LEN);
	msg.msg_iov = &iov;
	msg.desc = &desc;
	msg.iov_count = _i ? 0 : 1;
	ck_assert_int_eq(fi_trecvmsg(fx.ep, &msg, FI_CLAIM |
				     (_i ? FI_DISCARD : 0)), 0);
	both_entry(&claim);
	if (!_i)
		expect_bytes(fake.device.shadow, LEN);
	paths(!_i, !_i, 0);
	expect_ended(0);
}

/*
 * The receiver cannot fetch the message. So the peer copies the message to host
 * memory, and sends it from there. If _i is odd, the receive's buffer is device
 * memory. _i / 2 is the reason:
 * - 0: the key is unknown
 * - 1: the region does not permit the fetch
 * - 2: the range is beyond the region
 * - 3: there is no memory for a stage
 * - 4: fetches are disabled
 */
UNIT_LOOP(message_falls_back, 0, 2 * 5)
{
	struct near_table *table = fixture_ep()->domain->table;
	char *buf = _i % 2 ? fake.device.base : got;

	memset(got, 5, LARGE);
	switch (_i / 2) {
	case 0:
		break;
	case 1:
		port_add_messages("fake", NEAR_MAY_READ << NEAR_MAY_DEVICE);
		break;
	case 2:
		add_region(true);
		region.addr += MESSAGE_LEN - LEN + 1;
		break;
	case 3:
		add_region(false);
		memset(table->stages, 0xff, sizeof(table->stages));
		break;
	case 4:
		add_region(true);
		fixture_ep()->near->fetches = false;
		break;
	}
	ck_assert_int_eq(fi_trecv(fx.ep, buf, LEN, _i % 2 ? fi_mr_desc(mr) :
				  NULL, peer, TAG, 0, &context), 0);
	announce(NEAR_TAGGED, LEN);
	ck_assert_uint_eq(both_entry(&context).len, LEN);
	expect_bytes(_i % 2 ? fake.device.shadow : got, LEN);
	ck_assert_int_eq((_i % 2 ? fake.device.shadow : got)[LEN], 5);
	paths(0, 0, 1);
	expect_ended(0);
	memset(table->stages, 0, sizeof(table->stages));
}

UNIT_LOOP(closed_region_falls_back, 0, 8)
{
	add_region(false);
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	poll_both(_i);
	port_remove_device();
	both_entry(&context);
	expect_bytes(fake.device.shadow, LEN);
	expect_ended(0);
}

/* The key is unknown and the peer's copy fails, too: both ends get an error. */
UNIT_TEST(unreadable_message_fails)
{
	unload_err = EIO;
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	both_error(&context, FI_EIO);
	ck_assert_int_eq(fake.device.shadow[0], 5);
	expect_ended(EIO);
	unload_err = 0;
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	both_entry(&context);
	expect_bytes(fake.device.shadow, LEN);
}

/* The first two attempts of the peer to copy the message find no memory. */
UNIT_TEST(peer_without_memory_copies_later)
{
	unload_waits = 2;
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	both_entry(&context);
	ck_assert_int_eq(unload_waits, 0);
	expect_bytes(fake.device.shadow, LEN);
	expect_ended(0);
	ck_assert_int_eq(unloaded, 1);
}

/*
 * One call of a device fails, and the message must nevertheless arrive. If
 * _i & 2 is set, the call of the peer's device fails, otherwise that of the
 * receiver's device. If _i & 1 is set, the fetch is a mapped operation.
 * _i / 4 + 1 is the number of the failing call.
 */
UNIT_LOOP(failed_device_call, 0, 2 * 2 * 12)
{
	struct fi_cq_tagged_entry entry;
	ssize_t ret;

	add_region(_i & 1);
	post_device(LEN);
	if (_i & 2)
		port_device_fails = 1 + _i / 4;
	else
		fake.device.fail_at = 1 + _i / 4;
	announce(NEAR_TAGGED, LEN);
	do {
		near_poll(rig.port, &rig_sink);
		ret = fi_cq_read(fx.cq, &entry, 1);
	} while (ret == -FI_EAGAIN);
	ck_assert_int_eq(ret, 1);
	expect_bytes(fake.device.shadow, LEN);
	expect_ended(0);
	port_device_fails = fake.device.fail_at = 0;
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	both_entry(&context);
}

/* Begins a fetch with slow copies; polls both sides this number of times. */
static void begin_fetch(bool mapped, int polls)
{
	add_region(mapped);
	fake.device.polls = 8;
	post_device(LEN);
	announce(NEAR_TAGGED, LEN);
	poll_both(polls);
}

UNIT_LOOP(region_of_fetch_stays_open, 0, 2)
{
	begin_fetch(_i, 1);
	ck_assert_int_eq(fi_close(&mr->fid), -FI_EBUSY);
	both_entry(&context);
	expect_bytes(fake.device.shadow, LEN);
	expect_ended(0);
	port_region_close();
}

/*
 * The peer fails after _i / 2 polls of a fetch. If _i is odd, the fetch is a
 * mapped operation. Polls after the failure must not write to the receive's
 * buffer.
 */
UNIT_LOOP(peer_fails_during_fetch, 0, 2 * 6)
{
	begin_fetch(_i % 2, _i / 2);
	port_close();
	until_reset(&context);
	ck_assert_int_eq(fake.device.under_way, 0);
	memset(fake.device.shadow, 6, LEN);
	poll_cq(100);
	ck_assert_int_eq(fake.device.shadow[0], 6);
	ck_assert_mem_eq(fake.device.shadow, fake.device.shadow + 1, LEN - 1);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

UNIT_LOOP(endpoint_closes_during_fetch, 0, 2 * 6)
{
	begin_fetch(_i % 2, _i / 2);
	fixture_close_ep();
	ck_assert_int_eq(fake.device.under_way, 0);
}

/*
 * The peer writes invalid lengths, addresses and keys to its RTS. ofi_duo must
 * not access a byte outside of the receive's buffer. If _i is odd, the fetch is
 * a mapped operation.
 */
UNIT_LOOP(hostile_values_are_harmless, 0, 2 * 7)
{
	static const struct {
		uint64_t len, addr, key;
	} evil[] = {
		{ UINT64_MAX, START, DEVICE_KEY },
		{ UINT64_MAX, UINT64_MAX, DEVICE_KEY },
		{ LEN, START - 1, DEVICE_KEY },
		{ LEN, START + MESSAGE_LEN, DEVICE_KEY },
		{ LEN, UINT64_MAX - 5, DEVICE_KEY },
		{ LEN, 0, UINT64_MAX },
		{ LEN, START, KEY },
	};
	struct near_slot *slot;
	int i;

	add_region(_i % 2);
	post_device(NEAR_END);
	announce(NEAR_TAGGED, LEN);
	/* the ring is in shared memory, where the peer may change it */
	slot = &rig.us->tx.slots[(rig.us->tx.tail - 1) & rig.us->tx.mask];
	slot->rts.len = evil[_i / 2].len;
	slot->rts.addr = evil[_i / 2].addr;
	slot->rts.key = evil[_i / 2].key;
	both_error(&context, FI_ETRUNC);
	expect_bytes(fake.device.shadow, NEAR_END);
	for (i = NEAR_END; i < HALF; i++)
		if (fake.device.shadow[i] != 5)
			ck_abort_msg("byte %d was written", i);
	expect_ended(0);
}

/*
 * The peer sends from host memory to device memory. No call waits for the
 * copies. If _i & 1 is set, the message is unexpected. If _i & 2 is set, a copy
 * of the receiver's device fails.
 */
UNIT_LOOP(host_message_is_fetched, 0, 4)
{
	struct fi_cq_tagged_entry entry;
	int i;

	memset(large, 'h', LARGE);
	fake.device.polls = 10;
	fake.device.fail_at = _i & 2 ? 2 : 0;
	if (!(_i & 1))
		post_device(LARGE);
	rig_send_large(NEAR_TAGGED);
	if (_i & 1) {
		poll_cq(1);
		post_device(LARGE);
	}
	for (i = 0; i < 10; i++) {
		ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), -FI_EAGAIN);
		near_poll(rig.port, &rig_sink);
	}
	ck_assert_int_gt(fake.device.under_way, 0);
	ck_assert_uint_eq(both_entry(&context).len, LARGE);
	ck_assert_mem_eq(fake.device.shadow, large, LARGE);
	ck_assert_uint_eq(stats_now().device_rx_msgs, 1);
	paths(1, 0, 0);
	expect_ended(0);
}
