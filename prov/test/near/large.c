/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Cooperative copies of large messages, one step at a time */

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "unit.h"

#define LARGE (3 * NEAR_STEP + 777)

static struct rig *a, *b;
static struct near_peer *to_b;
static uint8_t *big, *got;

static void setup(void)
{
	to_b = rig_pair(&a, &b, false);
	big = malloc(LARGE);
	got = calloc(1, LARGE);
	rig_fill(big, LARGE, 5);
}

/* Sends len bytes from a to b, which begins to receive them into "to". */
static void begin(size_t len, void *to)
{
	int ret;

	a->count = b->count = 0;
	while ((ret = rig_send_large(a, to_b, 9, big, len, big)) == -EAGAIN)
		rig_poll(b, 1);		/* a resize is pending */
	ck_assert_int_eq(ret, 0);
	rig_until(b, NULL, 1);
	rig_take(b, 0, to, len);
}

static void ends(size_t len)
{
	rig_until_event(b, a, 2, RIG_RECEIVED, 0);
	ck_assert_mem_eq(got, big, len);
	rig_until_event(a, b, 1, RIG_SENT, 0);
	near_peer_put(b->port, b->event[0].peer);
}

static struct near_tx_op *tx_op(void)
{
	return near_pool_at(&a->port->tx_ops, 0);
}

static struct near_rx_op *rx_op(void)
{
	return near_pool_at(&b->port->rx_ops, 0);
}

/* Lets the receiver copy up to `budget` bytes. */
static void step(size_t budget)
{
	near_rx_step(b->port, &rx_op()->link, &budget);
}

/* Begins a cooperative copy: sends COOP, but copies nothing. */
static void begin_coop(void)
{
	begin(LARGE, got);
	step(0);
}

/* Takes a step of the pending cooperative copy, as the sender. */
static int32_t take_step(void)
{
	return near_coop_take(rx_op()->peer->ring->rx.ctl,
			      rx_op()->peer->round, rx_op()->steps, true);
}

/* Forks a process that ends the sender's only step after 100 ms. */
static pid_t fork_writer(bool *written)
{
	struct near_ctl *ctl = rx_op()->peer->ring->rx.ctl;
	pid_t writer = fork();

	if (writer)
		return writer;
	usleep(100000);
	*written = true;
	near_coop_wrote(ctl, rx_op()->peer->round, 1, false);
	_exit(0);
}

UNIT_CASE("share", setup, rig_close_all);

UNIT_TEST(coop_sizes)
{
	size_t len;

	for (len = 1; len <= LARGE; len = len * 9 / 8 + 1) {
		memset(got, 0, len);
		begin(len, got);
		ck_assert_int_eq(rx_op()->state, len >= NEAR_COOP_MIN
							 ? NEAR_RX_COOP_PENDING
							 : NEAR_RX_READ);
		ends(len);
	}
}

/*
 * b is sending a large message, to a (_i is 0) or to another port (1). So b
 * must receive a's message by single copy. When b's send has ended, b must
 * request a cooperative copy for the next message.
 */
UNIT_LOOP(sending_port_reads_alone, 0, 2)
{
	struct rig *other = _i ? rig_open(false) : a;
	struct near_peer *to = rig_peer(b, other);
	void *copy = malloc(LARGE);

	ck_assert_int_eq(rig_send_large(b, to, 9, big, LARGE, big), 0);
	begin(LARGE, got);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_READ);
	rig_until_event(b, NULL, 2, RIG_RECEIVED, 0);
	ck_assert_mem_eq(got, big, LARGE);
	rig_until(other, NULL, 1);
	rig_take(other, 0, copy, LARGE);
	rig_until(other, b, _i ? 2 : 3);
	rig_until_event(b, other, 3, RIG_SENT, 0);
	near_peer_put(b->port, b->event[0].peer);
	near_peer_put(other->port, other->event[0].peer);
	begin(LARGE, got);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_COOP_PENDING);
	ends(LARGE);
	near_peer_put(b->port, to);
	free(copy);
}

/* The sender does not poll: the receiver copies all steps. */
UNIT_TEST(receiver_copies_for_idle_sender)
{
	begin(LARGE, got);
	rig_until(b, NULL, 2);
	ck_assert_uint_eq(rx_op()->sender_steps, 0);
	ends(LARGE);
	ck_assert_uint_eq(tx_op()->wrote, 0);
}

/* The receiver requests the copy and then does not poll: a copies all steps. */
UNIT_TEST(sender_copies_for_idle_receiver)
{
	begin_coop();
	rig_poll(a, 10);
	ck_assert_uint_eq(tx_op()->wrote, tx_op()->steps);
	ck_assert_mem_eq(got, big, LARGE);
	ends(LARGE);
}

UNIT_TEST(both_ends_copy_in_turn)
{
	uint32_t i;

	begin_coop();
	near_poll(a->port, a->port->sink);
	ck_assert_uint_gt(tx_op()->wrote, 0);
	ck_assert_uint_lt(tx_op()->wrote, tx_op()->steps);
	for (i = 0; rx_op()->state == NEAR_RX_COOP; i++) {
		step(1);
		ck_assert_uint_lt(i, 1000);
	}
	ck_assert_uint_gt(rx_op()->sender_steps, 0);
	ends(LARGE);
}

/*
 * The sender has taken a step, but cannot write to the receiver. The receiver
 * must read this step itself.
 */
UNIT_TEST(receiver_reads_failed_step)
{
	begin_coop();
	while (tx_op()->state != NEAR_TX_COOP)
		near_poll(a->port, a->port->sink);
	tx_op()->there = 64;
	rig_poll(a, 10);
	ends(LARGE);
	ck_assert_msg(!b->event[0].peer->coop, "not tried again");
}

/*
 * The receiver cannot read from the sender, and the sender has taken step 0.
 * Only after the sender's write may the receiver request fragments.
 */
UNIT_TEST(unreadable_message_uses_fragments)
{
	begin_coop();
	ck_assert_int_eq(take_step(), 0);
	rx_op()->rndv.addr = 64;
	step(1);
	rig_poll(b, 100);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_COOP_RUNNING);
	near_coop_wrote(rx_op()->peer->ring->rx.ctl, rx_op()->peer->round, 0,
			true);
	rig_poll(b, 1);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_FRAGS);
	ends(LARGE);
}

/*
 * A receiver closes while the sender writes a step: near_ops_stop() must wait
 * for this write, and the sender can take no further step.
 */
UNIT_TEST(closing_receiver_waits_for_writer)
{
	bool written;
	uint64_t start_ms;
	pid_t writer;

	begin_coop();
	take_step();
	start_ms = duo_now_ms();
	writer = fork_writer(&written);
	near_ops_stop(b->port);
	ck_assert_uint_ge(duo_now_ms() - start_ms, 90);
	waitpid(writer, NULL, 0);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_COOP_RUNNING);
	ck_assert_int_eq(take_step(), -1);
}

/*
 * The receiver disconnects a sender that is alive, while the sender writes a
 * step. The receive must end only after this write, because the application may
 * then reuse the buffer.
 */
UNIT_TEST(disconnecting_receiver_waits_for_writer)
{
	bool *written = mmap(NULL, sizeof(*written), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t writer;

	begin_coop();
	take_step();
	near_peer_fail(b->port, rx_op()->peer);
	writer = fork_writer(written);
	rig_until(b, NULL, 3);
	rig_ended(b, 1, RIG_RECEIVED, ECONNRESET);
	ck_assert(__atomic_load_n(written, __ATOMIC_RELAXED));
	waitpid(writer, NULL, 0);
	munmap(written, sizeof(*written));
}

/*
 * Large messages at the same time must all arrive: too short for cooperative
 * copies (_i is 0), or long enough (1), so that some wait for others.
 */
UNIT_LOOP(concurrent_large_messages_arrive, 0, 2)
{
	enum { MANY = 100 };
	const uint32_t LEN = _i ? 100000 : 40000;
	uint8_t *to = calloc(MANY, LEN);
	uint32_t i;

	for (i = 0; i < MANY; i++)
		ck_assert_int_eq(rig_send_large(a, to_b, i, big + i, LEN, big),
				 0);
	rig_until(b, NULL, MANY);
	for (i = 0; i < MANY; i++)
		rig_take(b, i, to + (size_t)i * LEN, LEN);
	rig_until(b, a, 2 * MANY);
	rig_until(a, b, MANY);
	for (i = 0; i < MANY; i++) {
		rig_ended(b, MANY + i, RIG_RECEIVED, 0);
		ck_assert_mem_eq(to + (size_t)i * LEN, big + i, LEN);
	}
	free(to);
}

UNIT_TEST(waiting_copy_costs_no_poll_time)
{
	enum { MANY = 100, LEN = 100000 };
	const struct near_link *link;
	uint32_t i, polled = 0;

	for (i = 0; i < MANY; i++)
		rig_send_large(a, to_b, i, big, LEN, big);
	rig_until(b, NULL, MANY);
	for (i = 0; i < MANY; i++)
		rig_take(b, i, got, LEN);
	for (link = b->port->receiving.next; link != &b->port->receiving;
	     link = link->next)
		polled++;
	ck_assert_uint_eq(polled, 1);
	rig_until(b, a, 2 * MANY);
	rig_until(a, b, MANY);
}

/* A send in fragments, too, completes only when the receiver's ACK arrives. */
UNIT_TEST(fragments_end_with_ack)
{
	enum { LEN = 4096 };	/* one fragment */
	struct near_rx_ring *ring;
	struct near_slot *slot;
	uint64_t word;

	rig_peer(b, a)->reads = false;
	begin(LEN, got);
	rig_poll(b, 1);
	ck_assert_int_eq(rx_op()->state, NEAR_RX_FRAGS);
	rig_poll(a, 10);
	ck_assert_uint_eq(tx_op()->done, LEN);
	ck_assert_uint_eq(a->count, 0);
	/* the receive completes in the poll that consumes the last fragment */
	ring = rig_rx_ring(b, a);
	ck_assert(near_rx_ready(&ring->rx, &slot, &word));
	ck_assert_int_eq(near_rx_ring_poll(b->port, ring, slot, word,
					   b->port->sink), 1);
	ck_assert_uint_eq(b->count, 2);
	rig_until(a, NULL, 1);
	ends(LEN);
}

/* Even without a tick, a poll that copies checks the peers' processes. */
UNIT_TEST(copying_poll_checks_peers)
{
	enum { LEN = 100000 };

	rig_send_large(a, to_b, 0, big, LEN, big);
	rig_until(b, NULL, 1);
	rig_take(b, 0, got, LEN);
	b->port->tick_at = b->port->polls + NEAR_TICK_POLLS;
	b->port->checked_ms = 0;
	near_poll(b->port, b->port->sink);
	ck_assert_uint_ne(b->port->checked_ms, 0);
	rig_until(b, a, 2);
}

UNIT_CASE("pure", NULL, NULL);

UNIT_TEST(coop_steps)
{
	ck_assert_uint_eq(near_coop_step(0), 0);
	ck_assert_uint_eq(near_coop_step(1), NEAR_PAGE);
	ck_assert_uint_eq(near_coop_step(1 << 20), NEAR_COOP_PART);
	ck_assert_uint_eq(near_coop_step(200001) % NEAR_PAGE, 0);
	ck_assert_uint_eq(near_coop_steps(200001, near_coop_step(200001)), 2);
	ck_assert_uint_eq(near_coop_step(65536), 32768);
	ck_assert_uint_eq(near_coop_steps(NEAR_PAGE + 1, NEAR_PAGE), 2);
	ck_assert_uint_eq(near_coop_step(SIZE_MAX / 2), 0);
}
