/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Immediate copies. near_recv_now() copies a rendezvous message and returns
 * true if
 * - the message is short enough, and the receiver can read it,
 * - no other receive is pending, and
 * - a slot for the ACK is free.
 * Otherwise it changes nothing and returns false, and near_recv() receives the
 * message.
 */

#include <linux/seccomp.h>
#include <sys/syscall.h>

#include "base/proc.h"
#include "unit.h"

#define LEN 16384
#define BIG (NEAR_STEP + 1)

static struct rig *a, *b;
static struct near_peer *to_b, *from_a;
static uint8_t *big, *got;

/* Lets each port send to the other. */
static void setup(void)
{
	to_b = rig_pair(&a, &b, false);
	from_a = rig_peer(b, a);
	ck_assert_int_eq(rig_send(b, from_a, 1, "b", 1), 0);
	rig_until(a, NULL, 1);
	big = malloc(BIG);
	got = calloc(1, BIG);
	rig_fill(big, BIG, 5);
}

/* Sends the RTS of a message from a to b; returns the message at b. */
static struct near_rndv *arrives(size_t len)
{
	int ret, tries = 0;

	while ((ret = rig_send_large(a, to_b, 9, big, len, big)) == -EAGAIN) {
		ck_assert_int_lt(tries++, 10);
		rig_poll(b, 1);		/* a resize is pending */
	}
	ck_assert_int_eq(ret, 0);
	rig_until(b, NULL, b->count + 1);
	ck_assert_ptr_eq(b->event[b->count - 1].peer, from_a);
	return &b->event[b->count - 1].msg.rndv;
}

static bool now(struct near_rndv *rndv, size_t len)
{
	memset(got, 0, len);
	return near_recv_now(b->port, from_a, rndv, got, len);
}

/* Asserts that b has copied the message, and that a has received the ACK. */
static void was_read(size_t len)
{
	ck_assert_mem_eq(got, big, len);
	rig_until(a, NULL, a->count + 1);
	rig_ended(a, a->count - 1, RIG_SENT, 0);
	ck_assert_uint_eq(from_a->large, 0);
}

static void later(const struct near_rndv *rndv, size_t len)
{
	const struct iovec iov = { got, len };

	ck_assert_int_eq(near_recv(b->port, from_a, rndv, &iov, 1, len, got),
			 0);
}

/* Asserts that near_recv() receives the message, once. */
static void comes_later(const struct near_rndv *rndv, size_t len)
{
	uint32_t sent = a->count, received = b->count;

	later(rndv, len);
	rig_until_event(b, a, received + 1, RIG_RECEIVED, 0);
	ck_assert_mem_eq(got, big, len);
	rig_until_event(a, b, sent + 1, RIG_SENT, 0);
}

UNIT_CASE("now", setup, rig_close_all);

UNIT_TEST(message_is_copied_immediately)
{
	int i;

	for (i = 0; i < 100; i++) {
		ck_assert(now(arrives(LEN), LEN));
		was_read(LEN);
	}
	ck_assert_uint_eq(b->port->rx_ops.chunks, 0);
	ck_assert(near_list_empty(&b->port->receiving));
}

UNIT_TEST(shorter_buffer_gets_first_bytes)
{
	ck_assert(now(arrives(LEN + 5000), LEN));
	was_read(LEN);
	ck_assert_uint_eq(got[LEN], 0);
}

UNIT_TEST(empty_message_completes)
{
	ck_assert(now(arrives(0), 0));
	was_read(0);
}

/*
 * Both ends copy a message of NEAR_COOP_MIN bytes or more, so near_recv_now()
 * does not copy it. If the sender cannot take part in the copy, near_recv_now()
 * copies the message.
 */
UNIT_TEST(long_message_is_not_copied_immediately)
{
	struct near_rndv *rndv = arrives(NEAR_COOP_MIN);

	ck_assert(!now(rndv, NEAR_COOP_MIN));
	ck_assert(now(rndv, NEAR_COOP_MIN - 1));
	was_read(NEAR_COOP_MIN - 1);
	from_a->coop = false;
	ck_assert(now(arrives(NEAR_COOP_MIN), NEAR_COOP_MIN));
	was_read(NEAR_COOP_MIN);
}

/*
 * near_recv_now() does not copy a message if it has no address, or if its
 * sender does not permit reading. near_recv() receives such a message.
 */
UNIT_TEST(unreadable_message_is_left)
{
	struct near_rndv *rndv = arrives(LEN);
	struct near_rndv nowhere = { .id = rndv->id };

	ck_assert(!now(&nowhere, LEN));
	from_a->reads = false;
	ck_assert(!now(rndv, LEN));
	comes_later(rndv, LEN);
}

/*
 * The message has an invalid address. near_recv_now() fails, and clears the
 * address, so that near_recv() uses fragments. Later messages of this sender
 * may still be read.
 */
UNIT_TEST(invalid_address_uses_fragments)
{
	struct near_rndv *rndv = arrives(LEN);
	struct near_rndv bad = { .id = rndv->id, .addr = 64 };
	uint64_t tail = from_a->tx.tail;

	ck_assert(!now(&bad, LEN));
	ck_assert_uint_eq(from_a->tx.tail, tail);
	ck_assert_uint_eq(bad.addr, 0);
	comes_later(&bad, LEN);
	ck_assert(from_a->reads && from_a->coop);
}

UNIT_TEST(pending_copy_excludes_immediate_copy)
{
	struct near_rndv *first = arrives(LEN), *rndv;

	rndv = arrives(LEN);
	later(first, LEN);
	ck_assert(!now(rndv, LEN));
	rig_until(b, a, b->count + 1);
	ck_assert(now(rndv, LEN));
	rig_until(a, b, a->count + 1);
}

/* Between two polls, near_recv_now() copies at most NEAR_STEP bytes in all. */
UNIT_TEST(immediate_copies_are_limited_per_poll)
{
	struct near_rndv *rndv = arrives(BIG);
	uint32_t i;

	ck_assert(!now(rndv, BIG));
	comes_later(rndv, BIG);
	rig_poll(b, 1);
	for (i = 0; i < NEAR_STEP / LEN; i++)
		ck_assert_int_eq(rig_send_large(a, to_b, 9, big, LEN, big), 0);
	rig_until(b, NULL, b->count + NEAR_STEP / LEN);
	for (i = 0; i < NEAR_STEP / LEN; i++)
		ck_assert(now(&b->event[b->count - 1 - i].msg.rndv, LEN));
	rndv = arrives(LEN);
	b->port->polls--;	/* as if in the same poll */
	ck_assert(!now(rndv, LEN));
	rig_poll(b, 1);
	ck_assert(now(rndv, LEN));
}

UNIT_TEST(without_slot_nothing_is_read)
{
	struct near_rndv *rndv;

	rndv = arrives(LEN);
	near_tx_gate(&from_a->tx, NEAR_GATE_QUEUE);
	ck_assert(!now(rndv, LEN));
	near_tx_open_gate(&from_a->tx, NEAR_GATE_QUEUE);
	ck_assert(now(rndv, LEN));
	was_read(LEN);
}

UNIT_TEST(without_ring_nothing_is_read)
{
	struct rig *c = rig_open(false);
	struct near_peer *peer = rig_peer(c, b);

	ck_assert_int_eq(rig_send_large(c, peer, 9, big, LEN, big), 0);
	rig_until(b, NULL, 1);
	from_a = b->event[0].peer;
	ck_assert(!now(&b->event[0].msg.rndv, LEN));
	ck_assert_ptr_null(from_a->tx.slots);
}

/*
 * Another process may get the pid of a failed sender. So near must not read the
 * failed sender's message.
 */
UNIT_TEST(message_of_failed_sender_is_not_read)
{
	struct near_rndv *rndv = arrives(LEN);
	uint32_t at = b->count;

	near_peer_fail(b->port, from_a);
	ck_assert(!now(rndv, LEN));
	ck_assert_uint_eq(got[0], 0);
	later(rndv, LEN);
	rig_until(b, NULL, at + 2);
	rig_ended(b, at, RIG_RECEIVED, ECONNRESET);
}

/*
 * The sender closes its port and reuses the buffer before the receiver copies
 * the message: in near_recv_now() (_i is 0), or in a step of an earlier
 * near_recv() (1). The receiver has not detected the close before the copy, but
 * must detect it after the copy. The receive must fail.
 */
UNIT_LOOP(message_of_closed_sender_is_not_completed, 0, 2)
{
	struct near_rndv *rndv = arrives(LEN);
	size_t budget = LEN;
	uint32_t at = b->count;

	if (_i)
		later(rndv, LEN);
	rig_close(a);
	memset(big, 0, LEN);
	if (_i) {
		near_rx_step(b->port, b->port->receiving.next, &budget);
	} else {
		ck_assert(!now(rndv, LEN));
		later(rndv, LEN);
	}
	rig_until(b, NULL, at + 2);
	rig_ended(b, at, RIG_RECEIVED, ECONNRESET);
}

/*
 * The receiver cannot send to a message's sender (NEAR_PEER_CLOSED_OFF), so the
 * receive fails. _i is 1: the sender also fails before the next poll. No list
 * may keep the ended receive.
 */
UNIT_LOOP(unreachable_sender_loses_message, 0, 2)
{
	struct near_rndv *rndv = arrives(LEN);
	uint32_t events = b->count;

	from_a->state = NEAR_PEER_CLOSED_OFF;
	later(rndv, LEN);
	if (_i) {
		near_peer_fail(b->port, from_a);
		near_port_tick(b->port);
	}
	rig_until_event(b, NULL, events + 1, RIG_RECEIVED, ECONNRESET);
	ck_assert(near_list_empty(&b->port->receiving));
}

/*
 * b copies the message, but cannot send the ACK before a has answered b's
 * request for a larger ring.
 */
static void waits_for_ack(void)
{
	const struct near_rndv *rndv = arrives(LEN);
	uint32_t before = b->count;

	near_too_small(b->port, from_a, NEAR_EAGER_MAX);
	ck_assert(from_a->tx.gated & NEAR_GATE_RESIZE);
	later(rndv, LEN);
	rig_poll(b, 100);
	ck_assert_mem_eq(got, big, LEN);
	ck_assert_uint_eq(b->count, before);
}

/*
 * If a receive ended before its ACK, the application might not poll again, and
 * the sender would wait for the ACK.
 */
UNIT_TEST(receive_ends_after_its_ack)
{
	uint32_t sent = a->count;

	waits_for_ack();
	rig_until_event(b, a, b->count + 1, RIG_RECEIVED, 0);
	rig_until_event(a, b, sent + 1, RIG_SENT, 0);
}

/* number of slots that b had sent to a when the receive ended */
static uint64_t tail_at_end;

/* Replaces near_sink.received() of b. */
static void note_tail(void *ctx, void *cookie, int err)
{
	(void) ctx;
	ck_assert_ptr_eq(cookie, got);
	ck_assert_int_eq(err, 0);
	tail_at_end = from_a->tx.tail;
}

/*
 * The ACK completes a send with FI_DELIVERY_COMPLETE. near_sink.received(),
 * which may copy the bytes to device memory, must be called before.
 */
UNIT_TEST(ack_follows_end_of_receive)
{
	static struct near_sink sink;
	struct near_rndv *rndv = arrives(LEN);
	uint64_t tail_before;

	sink = *b->port->sink;
	sink.received = note_tail;
	b->port->sink = &sink;
	tail_before = from_a->tx.tail;
	later(rndv, LEN);
	rig_until_event(a, b, a->count + 1, RIG_SENT, 0);
	ck_assert_uint_eq(tail_at_end, tail_before);
	ck_assert_uint_gt(from_a->tx.tail, tail_before);
}

/* The ACK can never be sent, but all bytes are there. */
UNIT_TEST(complete_receive_from_failed_sender_succeeds)
{
	uint32_t before;

	waits_for_ack();
	before = b->count;
	near_peer_fail(b->port, from_a);
	rig_until(b, NULL, before + 2);
	rig_ended(b, before, RIG_RECEIVED, 0);
}

/* Lets the port a send to itself. */
static void setup_itself(void)
{
	a = b = rig_open(false);
	to_b = from_a = rig_peer(a, a);
	ck_assert_int_eq(rig_send(a, to_b, 1, "a", 1), 0);
	rig_until(a, NULL, 1);
	big = malloc(BIG);
	got = calloc(1, BIG);
	rig_fill(big, BIG, 5);
}

UNIT_CASE("itself", setup_itself, rig_close_all);

/* Also if the message is longer than the buffer, or takes several polls. */
UNIT_TEST(message_to_itself_needs_no_system_call)
{
	uint32_t count;

	unit_reject(SYS_process_vm_readv, SECCOMP_RET_ERRNO | ENOSYS);
	ck_assert(now(arrives(LEN), LEN));
	was_read(LEN);
	ck_assert(now(arrives(LEN + 5000), LEN));
	was_read(LEN);
	later(arrives(BIG), BIG);
	count = a->count;
	rig_until(a, NULL, count + 2);
	rig_ended(a, count, RIG_RECEIVED, 0);
	rig_ended(a, count + 1, RIG_SENT, 0);
	ck_assert_mem_eq(got, big, BIG);
	ck_assert(from_a->reads);
}

/*
 * Another process has changed the address or the length of a message to itself
 * in shared memory. No access to this address crashes the port.
 */
UNIT_TEST(changed_message_to_itself_is_no_crash)
{
	struct near_rndv *rndv = arrives(LEN);

	rndv->addr = 8;
	ck_assert(now(rndv, LEN));
	was_read(LEN);
	rndv = arrives(LEN);
	rndv->addr = 8;
	ck_assert(!now(rndv, LEN + 1));
	rndv->id++;
	rndv->addr = 8;
	ck_assert(!now(rndv, LEN));
}

/*
 * Another process requests the port to copy a message to itself to any address.
 * The receiver never requests this, because it is itself sending a message.
 */
UNIT_TEST(cooperative_copy_with_itself_is_refused)
{
	struct near_rndv *rndv = arrives(LEN);
	struct near_slot *slot = near_tx_slot(&to_b->tx);

	near_coop_begin(to_b->tx.ctl, 1);
	slot->coop.id = rndv->id;
	slot->coop.len = LEN;
	slot->coop.addr = (uintptr_t)got;
	slot->coop.round = 1;
	near_tx_publish(&to_b->tx, slot, near_word(NEAR_KIND_COOP, 0, 0, 0));
	rig_poll(a, 2);
	ck_assert_mem_ne(got, big, LEN);
	rig_until_event(a, NULL, 3, RIG_SENT, ECONNRESET);
}
