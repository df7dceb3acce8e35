/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The fast path of reads: messages that it receives, with and without a lock;
 * messages that it leaves to the slow path; and other work that fast path reads
 * must not delay forever.
 */

#include <poll.h>
#include <rdma/fi_tagged.h>

#include "base/params.h"
#include "near/link/port.h"
#include "base/proc.h"
#include "near_fixture.h"
#include "transport/near/near_ep.h"

#define MANY 40		/* more messages than one fast path read receives */
#define CHECKS_LIMIT_MS 5000	/* CPU time until near has made its checks */

static struct slot slot, slots[MANY];

static struct duo_cq *cq_now(void)
{
	return duo_cq_of(fx.cq);
}

/* Returns the number of fast path reads since the last slow path read. */
static uint32_t fast_path_reads(void)
{
	return cq_now()->granted - cq_now()->left;
}

static void until_fast_path(void)
{
	struct fi_cq_tagged_entry none;
	int i;

	/*
	 * Only the reads between two ticks of near may take the fast path. If
	 * the process polls seldom, each poll has a tick. While the process
	 * polls often, near increases the number of polls between two ticks. So
	 * read until at least 4 further reads may take the fast path.
	 */
	for (i = 0; i < 1000 * NEAR_TICK_POLLS && cq_now()->left < 4; i++)
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_ge(cq_now()->left, 4);
}

static void first_message(void)
{
	post_recv(&slot, peer, TAG);
	rig_send("first");
	both_entry(&slot);
	until_fast_path();
}

static void warm_up(void)
{
	near_setup_unlocked();
	first_message();
}

static void warm_up_locked(void)
{
	near_setup();
	ck_assert(fixture_ep()->group->lock.on);
	duo_params.core_poll_interval = 64;	/* allow fast path reads */
	first_message();
}

static void rig_send_of(size_t len, unsigned int flags)
{
	static const char text[200] = "sixty-four bytes";
	const struct near_msg msg = {
		.payload = text, .len = len, .tag = TAG, .flags = flags,
		.data = 7,
	};

	ck_assert_int_eq(near_send(rig.port, rig.us, &msg), 0);
}

UNIT_CASE("open", warm_up, near_teardown);
UNIT_CASE("locked", warm_up_locked, near_teardown);

/*
 * The bits NEAR_TAGGED and NEAR_DATA of _i are the flags of the message. If
 * _i & 4 is set, the message is in the data ring, otherwise in a slot.
 */
UNIT_LOOP(fast_path_receives_small_message, 0, 8)
{
	unsigned int flags = _i & (NEAR_TAGGED | NEAR_DATA);
	size_t len = _i & 4 ? 64 : 8;
	struct fi_cq_tagged_entry entry = { 0 };
	uint32_t before = fast_path_reads();
	fi_addr_t src = 0;

	memset(&slot, 0, sizeof(slot));
	if (flags & NEAR_TAGGED)
		post_recv(&slot, peer, TAG);
	else
		post_untagged(&slot, peer);
	rig_send_of(len, flags);
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(fast_path_reads(), before + 1);
	ck_assert_uint_eq(src, peer);
	ck_assert_ptr_eq(entry.op_context, &slot);
	ck_assert_ptr_eq(entry.buf, slot.buf);
	ck_assert_uint_eq(entry.len, len);
	ck_assert_uint_eq(entry.tag, flags & NEAR_TAGGED ? TAG : 0);
	ck_assert_uint_eq(entry.data, 7);
	ck_assert_uint_eq(entry.flags, FI_RECV |
			  (flags & NEAR_TAGGED ? FI_TAGGED : FI_MSG) |
			  (flags & NEAR_DATA ? FI_REMOTE_CQ_DATA : 0));
	ck_assert_mem_eq(slot.buf, "sixty-four bytes", 8);
	ck_assert_uint_eq(stats_now().path[FI_DUO_LOCAL].rx_msgs, 2);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
}

/*
 * The fast path receives a message of 20,000 bytes, untagged or (_i is 1)
 * tagged. A longer message takes the slow path.
 */
UNIT_LOOP(fast_path_reads_large_message, 0, 2)
{
	enum { LEN = 20000 };
	unsigned int flags = _i ? NEAR_TAGGED : 0;
	struct fi_cq_tagged_entry entry = { 0 };
	uint32_t before;
	fi_addr_t src = 0;

	memset(large, 's', LEN);
	memset(got, 0, LARGE);
	ck_assert_int_eq(fi_tinject(fx.ep, "ring", 4, peer, 0), 0);
	until_fast_path();
	before = fast_path_reads();
	if (flags)
		post_large(&slot);
	else
		ck_assert_int_eq(fi_recv(fx.ep, got, LARGE, NULL, peer, &slot),
				 0);
	rig_send_len(flags, LEN);
	ck_assert_int_eq(fi_cq_readfrom(fx.cq, &entry, 1, &src), 1);
	ck_assert_uint_eq(fast_path_reads(), before + 1);
	ck_assert_uint_eq(src, peer);
	ck_assert_ptr_eq(entry.op_context, &slot);
	ck_assert_ptr_eq(entry.buf, got);
	ck_assert_uint_eq(entry.len, LEN);
	ck_assert_uint_eq(entry.flags, FI_RECV | (flags ? FI_TAGGED : FI_MSG));
	ck_assert_mem_eq(got, large, LEN);
	ck_assert_uint_eq(got[LEN], 0);
	ck_assert_uint_eq(fixture_ep()->pool.live, 0);
	ck_assert_uint_eq(fixture_ep()->near->port->rx_ops.chunks, 0);
	near_poll(rig.port, &rig_sink);
	ck_assert_int_eq(rig.sent, 1);
	post_large(&slot);
	rig_send_large(NEAR_TAGGED);
	ck_assert_uint_eq(both_entry(&slot).len, LARGE);
	ck_assert_uint_eq(fixture_ep()->near->port->rx_ops.chunks, 1);
}

UNIT_TEST(fast_path_leaves_other_messages)
{
	static char text[200];
	struct fi_cq_tagged_entry entry;

	/* a message too long for its buffer, and a message behind this error */
	post_recv(&slot, peer, TAG);
	post_recv(&slots[0], peer, TAG);
	rig_send_of(65, NEAR_TAGGED);
	rig_send("next");
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), -FI_EAVAIL);
	both_error(&slot, FI_ETRUNC);
	both_entry(&slots[0]);
	/* a match with the later of two receives; a message without a match */
	until_fast_path();
	post_recv(&slots[1], peer, TAG + 1);
	post_recv(&slots[2], FI_ADDR_UNSPEC, TAG);
	rig_send("second");
	ck_assert_uint_eq(both_entry(&slots[2]).len, 6);
	rig_send("nobody's");
	poll_cq(2);
	ck_assert_uint_eq(stats_now().unexpected, 1);
	post_recv(&slots[3], peer, TAG);
	ck_assert_uint_eq(both_entry(&slots[3]).len, 8);
	/* a receive with several buffers */
	ck_assert_int_eq(fi_trecvv(fx.ep, (struct iovec[]) {
			{ text, 2 }, { text + 10, 20 } }, NULL, 2, peer, TAG, 0,
			&slots[4]), 0);
	until_fast_path();
	rig_send("split");
	ck_assert_uint_eq(both_entry(&slots[4]).len, 5);
	ck_assert_str_eq(text, "sp");
	ck_assert_str_eq(text + 10, "lit");
}

/*
 * A read that returns many messages of one sender must poll other senders, too:
 * it ends on the slow path.
 */
UNIT_TEST(busy_sender_does_not_exclude_others)
{
	struct fi_cq_tagged_entry entry[2 * MANY];
	struct near_port *port = fixture_ep()->near->port;
	const struct near_rx_ring *ring = port->active[0];
	uint64_t head = ring->rx.head;
	ssize_t ret;
	int i;

	for (i = 0; i < MANY; i++) {
		post_recv(&slots[i], peer, TAG);
		rig_send("many");
	}
	ret = fi_cq_read(fx.cq, entry, 20);
	ck_assert_int_eq(ret, 20);
	/* the slow path has consumed the remaining messages of the ring */
	ck_assert_uint_eq(ring->rx.head, head + MANY);
	ck_assert_int_eq(fi_cq_read(fx.cq, entry + 20, MANY), MANY - 20);
	for (i = 0; i < MANY; i++)
		ck_assert_ptr_eq(entry[i].op_context, &slots[i]);
}

/*
 * ofi_duo reads the clock, polls the core and yields after certain numbers of
 * polls. Fast path reads must count as polls.
 */
UNIT_TEST(fast_path_reads_count_as_polls)
{
	struct near_port *port = fixture_ep()->near->port;
	const uint32_t before = port->polls + fast_path_reads();
	const uint64_t core = cq_now()->core_polls;
	struct fi_cq_tagged_entry none;
	uint32_t i, most = 0;

	peer_insert(2); /* without a remote peer, reads do not poll the core */
	for (i = 0; i < 128; i++) {
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
		most = fast_path_reads() > most ? fast_path_reads() : most;
	}
	ck_assert_uint_eq(port->polls + fast_path_reads(), before + 128);
	ck_assert_uint_eq(cq_now()->core_polls - core,
			  128 / duo_params.core_poll_interval);
	ck_assert_uint_gt(most, 0);
	ck_assert_uint_lt(most, NEAR_TICK_POLLS);
	/* after a long time without messages each read polls the core */
	for (i = 0; i < 256; i++)
		ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_eq(fast_path_reads(), 0);
	ck_assert_uint_gt(cq_now()->core_polls - core, 100);
}

static struct fid_ep *another(struct fid_cq *cq)
{
	const struct fixture_attr attr = {
		.near = true, .threading = FI_THREAD_DOMAIN,
	};
	struct fid_ep *ep = fixture_unbound(&attr);

	ck_assert_int_eq(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	return ep;
}

/*
 * Two endpoints are bound to the CQ. A read on the fast path must poll the
 * ports of all enabled endpoints, not only the port of the first endpoint in
 * the CQ's list. After fi_close() of one endpoint, reads check only the other
 * one.
 */
UNIT_TEST(read_polls_ports_of_all_endpoints)
{
	struct duo_ep *ep = fixture_ep();
	uint32_t before;
	struct fid_ep *other;

	ck_assert(!cq_now()->several);
	other = another(fx.cq);
	ck_assert(cq_now()->several);
	/*
	 * In the CQ's list, the new endpoint is before ep. The new endpoint is
	 * not enabled and has no port. Reads must skip it and poll ep's port.
	 */
	ck_assert_ptr_eq(duo_cq_next_ep(cq_now(), duo_cq_first_ep(cq_now())),
			 ep);
	until_fast_path();
	before = fast_path_reads();
	post_recv(&slot, peer, TAG);
	rig_send("both");
	ck_assert_uint_eq(both_entry(&slot).len, 4);
	ck_assert_uint_eq(fast_path_reads(), before + 1);
	ck_assert_int_eq(fi_close(&other->fid), 0);
	ck_assert(!cq_now()->several);
}

static void set_flags(uint64_t flags)
{
	fixture_ep()->rx.op_flags[DUO_MSG] = flags;
	fixture_ep()->rx.op_flags[DUO_TAGGED] = flags & FI_COMPLETION;
	duo_ep_attend(fixture_ep());
}

UNIT_TEST(op_flags_change_attention_word)
{
	struct duo_ep *ep = fixture_ep();

	ck_assert_uint_eq(ep->attention, 0);
	set_flags(FI_MULTI_RECV);
	ck_assert_uint_eq(ep->attention, DUO_EP_MSG);
	ep->rx.special = DUO_RX_SELECTIVE;
	set_flags(FI_COMPLETION);
	ck_assert_uint_eq(ep->attention, 0);
	set_flags(0);
	ck_assert_uint_eq(ep->attention, DUO_EP_MSG | DUO_EP_TAGGED);
}

static void tsend(void)
{
	ck_assert_int_eq(fi_tsend(fx.ep, "8 bytes", 8, NULL, peer, TAG, NULL),
			 0);
}

UNIT_TEST(fast_path_returns_send_completion)
{
	struct fi_cq_tagged_entry entry;

	ck_assert_uint_eq(cq_now()->attention, 0);
	tsend();
	ck_assert_uint_eq(cq_now()->attention, DUO_CQ_ENTRIES);
	ck_assert_int_eq(fi_cq_read(fx.cq, &entry, 1), 1);
	ck_assert_uint_eq(entry.flags, FI_SEND | FI_TAGGED);
	ck_assert_uint_eq(cq_now()->attention, 0);
}

/*
 * While a deferred receive may have to be posted to the core, reads take the
 * slow path.
 */
UNIT_TEST(deferred_receive_forces_slow_path)
{
	struct fi_cq_tagged_entry none;

	post_recv(&slot, peer, TAG);
	rig_send("idle no more");
	both_entry(&slot);
	ck_assert_uint_eq(cq_now()->attention, 0);
	post_recv(&slot, FI_ADDR_UNSPEC, TAG);
	ck_assert_uint_eq(cq_now()->attention, DUO_CQ_DEFERRED);
	ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_eq(cq_now()->attention, DUO_CQ_DEFERRED);
	rig_send("for it");
	both_entry(&slot);
	ck_assert_int_eq(fi_cq_read(fx.cq, &none, 1), -FI_EAGAIN);
	ck_assert_uint_eq(cq_now()->attention, 0);
}

/* Messages that arrive during a failed fi_close() must be delivered later. */
UNIT_TEST(failed_close_delivers_messages)
{
	struct duo_ep *ep = fixture_ep();

	fake.core.close_err = FI_EBUSY;
	ck_assert_int_eq(fi_close(&fx.ep->fid), -FI_EBUSY);
	ck_assert_uint_eq(ep->attention, 0);
	ck_assert_uint_eq(cq_now()->attention & DUO_CQ_OTHERS, 0);
	post_recv(&slot, peer, TAG);
	rig_send("later");
	both_entry(&slot);
}

UNIT_CASE("two queues", near_setup_two_cqs, near_teardown);

/*
 * A read of the CQ for sends may receive a message, but must not return its
 * completion.
 */
UNIT_TEST(send_queue_has_no_receives)
{
	const struct duo_cq *cq = duo_cq_of(fx.tx_cq);
	struct fi_cq_tagged_entry entry;

	first_message();
	while (cq->left < 4)
		ck_assert_int_eq(fi_cq_read(fx.tx_cq, &entry, 1), -FI_EAGAIN);
	post_recv(&slot, peer, TAG);
	rig_send("second");
	ck_assert_int_eq(fi_cq_read(fx.tx_cq, &entry, 1), -FI_EAGAIN);
	ck_assert_str_eq(slot.buf, "second");
	both_entry(&slot);
}

/*
 * Alternating reads of two CQs must not prevent near's checks for peer failures
 * and resizes. _i selects the number of reads of fx.cq in a row, and the number
 * of reads of fx.tx_cq at the start. The limit is CPU time, which other
 * processes do not increase.
 */
UNIT_LOOP(alternating_reads_keep_periodic_checks, 0, 6)
{
	struct near_port *port = fixture_ep()->near->port;
	uint64_t checked = port->checked_ms;
	struct fi_cq_tagged_entry entry;
	const uint64_t start_ms = unit_cpu_ms();
	const int reads = 2 + _i % 3, before = 2 + _i / 3;
	int i, n = 0;

	for (i = 0; i < before; i++)
		fi_cq_read(fx.tx_cq, &entry, 1);
	until_fast_path();
	do {
		/*
		 * Send a message from time to time. After many reads that find
		 * no message, each read would poll the core, and no read would
		 * take the fast path.
		 */
		if (!(n++ % 16)) {
			post_recv(&slot, peer, TAG);
			rig_send("talk");
			near_poll(rig.port, &rig_sink);
		}
		for (i = 0; i < reads; i++)
			fi_cq_read(fx.cq, &entry, 1);
		fi_cq_read(fx.tx_cq, &entry, 1);
		ck_assert_uint_lt(unit_cpu_ms() - start_ms, CHECKS_LIMIT_MS);
	} while (port->checked_ms <= checked + NEAR_CHECK_MS + 50);
}
