/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer writes arbitrary values to shared memory. The port must disconnect the
 * peer with one warning, deliver its earlier messages, and serve other peers.
 */

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

static struct rig *bad, *good, *us;
static struct near_peer *bad_to_us, *good_to_us, *us_to_bad;
static uint8_t big[100000];

static void setup(void)
{
	bad = rig_open(true);
	good = rig_open(true);
	us = rig_open(true);
	bad_to_us = rig_peer(bad, us);
	good_to_us = rig_peer(good, us);
	us_to_bad = rig_peer(us, bad);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 1, big, 8), 0);
	ck_assert_int_eq(rig_send(good, good_to_us, 2, big, 8), 0);
	rig_until(us, NULL, 2);
}

static struct near_slot *slot(void)
{
	return near_tx_slot(&bad_to_us->tx);
}

static void publish(enum near_kind kind, size_t len)
{
	near_tx_publish(&bad_to_us->tx, slot(), near_word(kind, 0, len, 0));
}

/*
 * Asserts that "us" gets this number of events, then RIG_GONE of "bad", with
 * one warning, and that "good" can still send.
 */
static void expect_disconnected(uint32_t events)
{
	rig_until_event(us, NULL, 2 + events + 1, RIG_GONE, 0);
	ck_assert_ptr_eq(us->event[2 + events].peer, us_to_bad);
	ck_assert_int_eq(us->warnings, 1);
	ck_assert_uint_eq(rig_rx_rings(us), 1);
	ck_assert_int_eq(rig_send(good, good_to_us, 3, big, 100), 0);
	rig_until(us, NULL, 2 + events + 2);
	ck_assert_uint_eq(us->event[2 + events + 1].msg.tag, 3);
	ck_assert_int_eq(rig_send(us, us_to_bad, 1, big, 8), -ECONNRESET);
}

UNIT_CASE("peer", setup, rig_close_all);

/* Slots that no correct sender writes. Earlier messages are delivered. */
static const struct {
	const char *name;
	enum near_kind kind;
	size_t len;
	struct near_slot slot;
} impossible[] = {
	{"kind", 15, 0, {0}},
	{"length in a slot", NEAR_KIND_INLINE, NEAR_INLINE + 1, {0}},
	{"length", NEAR_KIND_EAGER, 0, {.eager = {.len = UINT32_MAX}}},
	{"acknowledged", NEAR_KIND_ACK, 0, {.ack = {.id = 1ull << 32}}},
	{"asked for", NEAR_KIND_CTS, 0, {.cts = {.id = 1ull << 32}}},
	{"shared", NEAR_KIND_COOP, 0, {.coop = {.id = 1ull << 32}}},
	{"a piece", NEAR_KIND_FRAG, 0, {.frag = {.answer = 7, .len = 64}}},
};

UNIT_ROUNDS(cannot_be, 0, ARRAY_SIZE(impossible))
{
	ck_assert_int_eq(rig_send(bad, bad_to_us, 9, big, 8), 0);
	memcpy(slot()->bytes, impossible[_i].slot.bytes, sizeof(slot()->bytes));
	publish(impossible[_i].kind, impossible[_i].len);
	expect_disconnected(1);
}

/* "bad" writes an eager message longer than the ring permits. */
UNIT_TEST(eager_above_limit_disconnects)
{
	slot()->eager.len = bad_to_us->tx.medium_max + 1;
	publish(NEAR_KIND_EAGER, 0);
	expect_disconnected(0);
}

/* "bad" acknowledges a message that "us" has sent to "good". */
UNIT_TEST(ack_for_other_peer_disconnects)
{
	struct near_peer *us_to_good = rig_peer(us, good);

	ck_assert_int_eq(rig_send_large(us, us_to_good, 1, big, sizeof(big),
					big), 0);
	slot()->ack.id = (1ull << 32);
	publish(NEAR_KIND_ACK, 0);
	expect_disconnected(0);
}

UNIT_TEST(cts_beyond_message_disconnects)
{
	ck_assert_int_eq(rig_send_large(us, us_to_bad, 1, big, 50000, big), 0);
	rig_until(bad, NULL, 1);
	slot()->cts.id = bad->event[0].msg.rndv.id;
	slot()->cts.answer = 1;
	slot()->cts.len = 50001;
	publish(NEAR_KIND_CTS, 0);
	/* the send of "us" fails when "bad" is disconnected */
	expect_disconnected(1);
	rig_ended(us, 2, RIG_SENT, ECONNRESET);
}

/*
 * A fragment is a byte longer than the CTS permits. The port must copy none of
 * its bytes, neither to the buffer nor behind the buffer.
 */
UNIT_TEST(fragment_beyond_cts_disconnects)
{
	static uint8_t space[2000];
	struct iovec iov = { space, 1000 };
	struct rig_event *event = &us->event[2];
	uint64_t id, end;

	ck_assert_int_eq(rig_send_large(bad, bad_to_us, 1, big, 50000, NULL),
			 0);
	rig_until(us, NULL, 3);
	ck_assert_int_eq(near_recv(us->port, event->peer, &event->msg.rndv,
				   &iov, 1, 50000, space), 0);
	rig_poll(us, 2);
	id = ((struct near_pooled *)near_pool_at(&us->port->rx_ops, 0))->use;
	slot()->frag.answer = id << 32;
	slot()->frag.len = 1001;
	memset(near_tx_data(&bad_to_us->tx, 1001, &end), 0xff, 1001);
	bad_to_us->tx.dtail = end;
	publish(NEAR_KIND_FRAG, 0);
	expect_disconnected(2);
	rig_ended(us, 3, RIG_RECEIVED, ECONNRESET);
	ck_assert_int_eq(space[0], 0);
	ck_assert_int_eq(space[1000], 0);
}

/* Opens a claim and rings its doorbell. Asserts that "us" frees the claim. */
static void expect_freed(struct near_claim *claim)
{
	struct near_segment *segment = us->port->segment;
	uint32_t index = (uint32_t)(claim - segment->claim);

	claim->state = NEAR_CLAIM_OPEN;
	segment->doorbell[index / 64] |= 1ull << index % 64;
	segment->doorbell_words |= 1ull << index / 64;
	rig_poll(us, 1);
	ck_assert_int_eq(us->warnings, 1);
	ck_assert_uint_eq(claim->state, NEAR_CLAIM_FREE);
	ck_assert_uint_eq(rig_rx_rings(us), 2);
}

UNIT_TEST(claim_with_invalid_address_is_freed)
{
	struct near_claim *claim = &us->port->segment->claim[5];

	memset(&claim->addr, 0xff, sizeof(claim->addr));
	expect_freed(claim);
}

static void until_free(const struct near_claim *claim)
{
	uint64_t end = duo_now_ms() + RIG_TIMEOUT_MS;

	while (__atomic_load_n(&claim->state, __ATOMIC_ACQUIRE) !=
	       NEAR_CLAIM_FREE && duo_now_ms() < end)
		rig_poll(us, 1);
	ck_assert_uint_eq(claim->state, NEAR_CLAIM_FREE);
}

/*
 * A sender exits before it has rung the doorbell. The port must free the
 * sender's ring
 * - if the claim is TAKEN, and the sender is still a zombie
 * - if the claim is OPEN
 */
UNIT_TEST(claim_of_exited_sender_is_freed)
{
	struct near_segment *segment = us->port->segment;
	struct near_claim *claim = &segment->claim[5];
	struct near_place place;
	struct stat before, after;
	siginfo_t info;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	fstat(us->port->fd, &before);
	ck_assert(near_place(us->port->budget.growing, 5, NEAR_TIERS - 1,
			     &place));
	near_segment_reserve(us->port->fd, place.offset, place.size);
	claim->state = NEAR_CLAIM_TAKEN | (uint32_t)getpid() << NEAR_CLAIM_PID;
	rig_poll_ms(us, 300);
	ck_assert_uint_ne(claim->state, NEAR_CLAIM_FREE);
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	claim->state = NEAR_CLAIM_TAKEN | (uint32_t)pid << NEAR_CLAIM_PID;
	until_free(claim);
	waitpid(pid, NULL, 0);
	fstat(us->port->fd, &after);
	ck_assert_int_eq(after.st_blocks, before.st_blocks);

	claim->addr = good->addr;
	claim->addr.nonce++;
	claim->addr.pid = pid;
	claim->state = NEAR_CLAIM_OPEN;
	until_free(claim);
	ck_assert_uint_eq(rig_rx_rings(us), 2);
}

UNIT_LOOP(claim_with_invalid_size_disconnects, 0, 4)
{
	static const uint32_t size[] = { NEAR_TIERS, 255, 1u << 31, 1 };
	uint32_t index = _i < 3 ? 5 : us->port->budget.growing;
	struct near_claim *claim = &us->port->segment->claim[index];

	claim->addr = good->addr;
	claim->tier = size[_i];
	expect_freed(claim);
}

/*
 * A sender requests impossible ring sizes, and does not wait for replies. The
 * port must keep its limits and receive later messages.
 */
UNIT_TEST(impossible_resizes_are_handled)
{
	static const uint32_t more[] = { UINT32_MAX, 1u << 31, 9000, 0, 1 };
	uint32_t i;

	for (i = 0; i < 1000; i++) {
		slot()->resize.more = more[i % 5];
		publish(NEAR_KIND_RESIZE, 0);
		rig_poll(us, 1);
		near_tx_init(&bad_to_us->tx, bad_to_us->tx.ctl,
			     &(struct near_place){
				     .slots = us->port->ring[0]->rx.mask + 1,
				     .data = us->port->ring[0]->rx.dsize});
	}
	ck_assert_uint_eq(rig_rx_ring(us, bad)->resizes, 1000);
	ck_assert_uint_lt(rig_rx_ring(us, bad)->tier, NEAR_TIERS);
	ck_assert_uint_lt(us->port->budget.extra, us->port->budget.pages_max);
	ck_assert_int_eq(us->warnings, 0);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 7, big, 8), 0);
	rig_until(us, NULL, 3);
	ck_assert_uint_eq(us->event[2].msg.tag, 7);
}

/*
 * The receiver replies to a resize request with an impossible size: the sender
 * must disconnect the receiver.
 */
UNIT_LOOP(resize_reply_with_invalid_size_disconnects, 0, 2)
{
	static const uint32_t size[] = { NEAR_TIERS, NEAR_SIZE_TIER };
	struct near_ctl *ctl = bad_to_us->tx.ctl;

	near_tx_gate(&bad_to_us->tx, NEAR_GATE_RESIZE);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 3, big, 8), -EAGAIN);
	ck_assert(bad_to_us->resize.posted);
	/* the sender ignores a reply to another request */
	ctl->size = 7u << NEAR_SIZE_RESIZES | 1;
	ck_assert_int_eq(rig_send(bad, bad_to_us, 3, big, 8), -EAGAIN);
	ck_assert(!bad_to_us->draining);
	ctl->size = 1u << NEAR_SIZE_RESIZES | size[_i];
	ck_assert_int_eq(rig_send(bad, bad_to_us, 3, big, 8), -EAGAIN);
	ck_assert(bad_to_us->draining);
	ck_assert_int_eq(bad->warnings, 1);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 3, big, 8), -ECONNRESET);
	rig_until_event(bad, NULL, 1, RIG_GONE, 0);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 3, big, 8), -ECONNRESET);
}

UNIT_LOOP(invalid_advertised_size_is_one_page, 0, 2)
{
	static const uint32_t adv[] = {UINT32_MAX,
				       UINT32_MAX << 8 | NEAR_TIERS};
	struct rig *other = rig_open(true);
	struct near_peer *peer = rig_peer(other, us);

	us->port->segment->adv = adv[_i];
	ck_assert_int_eq(rig_send(other, peer, 3, big, 8), 0);
	ck_assert_uint_eq(peer->resize.tier, near_tier_least());
	rig_until(us, NULL, 3);
	ck_assert_uint_eq(us->event[2].msg.tag, 3);
}

/*
 * Replies that no correct receiver sends, in this state of the send of a
 * message of 5000 bytes. After all fragments (NEAR_TX_SENT) only an ACK may
 * follow. A cooperative copy must have 1 to 5000 bytes.
 */
static const struct {
	enum near_tx_state state;
	enum near_kind kind;
	uint64_t len;
} answers[] = {
	{NEAR_TX_SENT, NEAR_KIND_CTS, 1},
	{NEAR_TX_SENT, NEAR_KIND_COOP, 1},
	{NEAR_TX_ANNOUNCED, NEAR_KIND_COOP, 0},
	{NEAR_TX_ANNOUNCED, NEAR_KIND_COOP, 5001},
	{NEAR_TX_ANNOUNCED, NEAR_KIND_COOP, UINT64_MAX},
};

UNIT_LOOP(invalid_reply_disconnects, 0, ARRAY_SIZE(answers))
{
	struct near_tx_op *op;

	ck_assert_int_eq(rig_send_large(us, us_to_bad, 1, big, 5000, big), 0);
	rig_until(bad, NULL, 1);
	op = near_pool_at(&us->port->tx_ops, 0);
	op->state = answers[_i].state;
	if (answers[_i].kind == NEAR_KIND_CTS)
		slot()->cts.len = answers[_i].len;
	else
		slot()->coop.len = answers[_i].len;
	slot()->ack.id = near_pool_id(op);
	publish(answers[_i].kind, 0);
	expect_disconnected(1);
	rig_ended(us, 2, RIG_SENT, ECONNRESET);
}

/*
 * "us" has disconnected "bad", and still has a reference to it. "bad" attaches
 * again, and sends a large message. "us" cannot acknowledge this message, so it
 * must reject the new claim, and the send must end.
 */
UNIT_TEST(disconnected_peer_that_attaches_again_is_rejected)
{
	publish(15, 0);
	expect_disconnected(0);
	rig_until_event(bad, us, 1, RIG_GONE, 0);
	near_peer_put(bad->port, bad->event[0].peer);
	near_peer_put(bad->port, bad_to_us);
	bad_to_us = rig_peer(bad, us);
	ck_assert_int_eq(rig_send_large(bad, bad_to_us, 5, big, sizeof(big),
					big), 0);
	rig_until_event(bad, us, 2, RIG_SENT, ECONNRESET);
}

/*
 * A sender gives a wrong nonce. When "us" replies, it takes the sender for
 * failed, because the sender's segment has another nonce. But the sender's
 * process is alive and can still write to the ring, so no other sender may get
 * this ring.
 */
UNIT_TEST(ring_of_live_sender_with_wrong_nonce_is_kept)
{
	struct rig *odd = rig_open(true);
	struct near_peer *odd_to_us;

	odd->port->addr.nonce++;
	odd_to_us = rig_peer(odd, us);
	ck_assert_int_eq(rig_send(odd, odd_to_us, 4, big, 8), 0);
	rig_until(us, NULL, 3);
	ck_assert_int_eq(rig_send(us, us->event[2].peer, 1, big, 8),
			 -ECONNRESET);
	rig_until_event(us, NULL, 4, RIG_GONE, 0);
	ck_assert_uint_eq(rig_rx_rings(us), 2);
	ck_assert_uint_eq(us->port->segment->claim[odd_to_us->index].state,
			  NEAR_CLAIM_REJECTED);
}

UNIT_TEST(doorbells_without_sender_are_ignored)
{
	struct near_segment *segment = us->port->segment;

	memset(segment->doorbell, 0xff, sizeof(segment->doorbell));
	segment->doorbell_words = UINT64_MAX;
	rig_poll(us, 1);
	ck_assert_uint_eq(rig_rx_rings(us), 2);
	ck_assert_int_eq(rig_send(bad, bad_to_us, 1, big, 8), 0);
	rig_until(us, NULL, 3);
}
