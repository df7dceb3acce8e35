/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Races between the initiator (a) and the target (b) of a delegated operation.
 * Each test makes one order of steps: it stores the values that one side would
 * have stored at that time. The last test runs both sides in threads.
 *
 * "doing" and "done" are fields of near_ctl: the number of the last operation
 * that b has started, and of the last one that has ended.
 */

#include <sched.h>
#include <unistd.h>

#include "rma_side.h"

#define ROUNDS 20000
/* a and b must each execute at least this number of operations */
#define EACH 20

static struct near_rma_op *first_deleg(void)
{
	return near_container(to_b->rma->delegated.next, struct near_rma_op,
			      link);
}

static enum near_deleg state(const struct near_slot *slot)
{
	return __atomic_load_n(&slot->word, __ATOMIC_ACQUIRE) >>
	       NEAR_WORD_FLAGS & 0xf;
}

static void set_state(struct near_slot *slot, enum near_deleg deleg)
{
	slot->word = (slot->word & ~(0xfull << NEAR_WORD_FLAGS)) |
		     (uint64_t)deleg << NEAR_WORD_FLAGS;
}

/* Polls a for longer than the time after which a revokes an operation. */
static void a_polls(void)
{
	int i;

	for (i = 0; i < 5; i++) {
		rig_poll(a.rig, 100);
		usleep(100);
	}
}

UNIT_CASE("claims", side_setup_delegs, side_teardown);

/* The target has stored "doing": a does not revoke, and the target executes. */
UNIT_TEST(target_that_stored_doing_executes)
{
	struct near_slot *slot;

	side_put(0);
	slot = first_deleg()->slot;
	side_ctl()->doing = 1;
	a_polls();
	side_untouched();
	ck_assert_uint_eq(a.done, 0);
	ck_assert_int_eq(state(slot), NEAR_DELEG_OPEN);
	rig_poll(b.rig, 1);
	ck_assert_mem_eq(memory, local, 8);
	ck_assert_uint_eq(side_ctl()->done, 1);
	memset(memory, 0, 8);
	side_until(1, false);
	a_polls();
	side_untouched();
}

/*
 * The target resets "doing" without executing, and then does not poll. So a
 * executes.
 */
UNIT_TEST(doing_reset_lets_initiator_execute)
{
	side_put(0);
	side_put(8);
	side_ctl()->doing = 1;
	a_polls();
	ck_assert_uint_eq(a.done, 0);
	side_ctl()->doing = 0;
	side_until(2, false);
	ck_assert_mem_eq(memory, local, 8);
	memset(memory, 0, 16);
	/* b skips both slots but counts them: the next operation is number 3 */
	side_put(16);
	rig_poll(b.rig, 1);
	ck_assert_mem_eq(memory + 16, local, 8);
	memset(memory, 0, 24);
	side_untouched();
	ck_assert_uint_eq(side_ctl()->done, 3);
	side_until(3, false);
}

/*
 * The target's first load finds an open slot. Its load after the store of
 * "doing" finds the slot revoked, so the target does not execute.
 */
UNIT_TEST(revoked_slot_is_not_executed)
{
	struct near_rx_ring *ring = rig_rx_ring(b.rig, a.rig);
	struct near_slot *slot;
	uint64_t word;

	side_put(0);
	slot = first_deleg()->slot;
	word = slot->word;
	set_state(slot, NEAR_DELEG_REVOKED);
	ck_assert_int_eq(near_deleg_execute(ring, slot, word), -EAGAIN);
	ck_assert_uint_eq(side_ctl()->doing, 0);
	rig_poll(b.rig, 10);
	side_untouched();
	ck_assert_uint_eq(side_ctl()->done, 0);
	/* the initiator undoes the revocation: b executes */
	set_state(slot, NEAR_DELEG_OPEN);
	rig_poll(b.rig, 1);
	ck_assert_mem_eq(memory, local, 8);
	side_until(1, false);
}

/*
 * As before, but b then has no memory for a reply. b must nevertheless reset
 * "doing": b may never poll again, and a executes only after the reset.
 */
UNIT_TEST(revoked_slot_without_memory_resets_doing)
{
	struct near_rx_ring *ring = rig_rx_ring(b.rig, a.rig);
	struct near_port *port = b.rig->port;
	struct near_slot *slot;
	uint64_t word;

	side_put(0);
	slot = first_deleg()->slot;
	word = slot->word;
	set_state(slot, NEAR_DELEG_REVOKED);
	port->rma->replies.limit = 0;
	while (near_pool_get(&port->rma->replies))
		;
	ck_assert_int_eq(port->onesided->request(port, ring, slot, word),
			 -EAGAIN);
	ck_assert_uint_eq(side_ctl()->doing, 0);
	port->rma->replies.limit = NEAR_RMA_OPS;
	side_untouched();
	set_state(slot, NEAR_DELEG_OPEN);
	side_until(1, false);
	ck_assert_mem_eq(memory, local, 8);
}

/*
 * Slot of the second operation, and the state of this slot that
 * store_doing_when_revoked() has found
 */
static const struct near_slot *watched;
static enum near_deleg found;

/*
 * Is called when a has revoked both operations and executed the first. Stores
 * 2 in "doing", as if b had loaded the second slot before the revocation.
 */
static void store_doing_when_revoked(void)
{
	a.on_done = NULL;
	found = state(watched);
	side_ctl()->doing = 2;
}

/*
 * The initiator has revoked two operations. Then it finds in "doing" that the
 * target has started the second one. So the initiator must undo the revocation
 * of the second operation, and only the target executes this operation.
 */
UNIT_TEST(initiator_that_sees_doing_undoes_revocation)
{
	side_put(0);
	side_put(8);
	watched = near_container(to_b->rma->delegated.prev, struct near_rma_op,
				 link)->slot;
	a.on_done = store_doing_when_revoked;
	a_polls();
	ck_assert_int_eq(found, NEAR_DELEG_REVOKED);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(state(watched), NEAR_DELEG_OPEN);
	ck_assert_mem_eq(memory, local, 8);
	memset(memory, 0, 8);
	side_untouched();
	rig_poll(b.rig, 1);
	ck_assert_mem_eq(memory + 8, local, 8);
	side_until(2, false);
}

/*
 * The initiator, a, completes its delegated writes when it loads near_ctl.done.
 * The target, b, sends no replies, so b needs no ring to a.
 */
UNIT_TEST(write_completes_by_count)
{
	struct near_peer *to_a = near_peer_find(b.rig->port, &a.rig->addr);
	int i;

	for (i = 0; i < 10; i++)
		side_put(8 * i);
	rig_poll(b.rig, 1);
	side_until(10, false);
	ck_assert_int_eq(a.err, 0);
	ck_assert(!to_a->tx.slots);
	ck_assert_uint_eq(side_ctl()->done, 10);
	ck_assert_uint_eq(to_b->rma->expect, 0);
}

/*
 * A delegated read completes by its reply, not by "done". Later operations must
 * complete after the read.
 */
UNIT_TEST(operation_behind_read_completes_after_it)
{
	side_put(0);
	ck_assert_int_eq(side_deleg(NEAR_READ, SIDE_KEY, 0, 8), 0);
	side_put(8);
	rig_poll(b.rig, 1);
	ck_assert_uint_eq(side_ctl()->done, 3);
	ck_assert_int_eq(near_delegs_step(a.rig->port, to_b->rma), 1);
	ck_assert_int_eq(near_delegs_step(a.rig->port, to_b->rma), 0);
	ck_assert_uint_eq(a.done, 1);
	side_until(3, false);
}

/*
 * "done" also counts operations that b has rejected. Only their replies, with
 * the error, may end them.
 */
UNIT_TEST(count_does_not_complete_rejected_operation)
{
	side_region(77, NEAR_MAY_WRITE, 100);
	side_put(0);
	ck_assert_int_eq(side_deleg(NEAR_WRITE, 77, 0, 8), 0);
	side_put(8);
	near_table_remove(b.table, 77);
	rig_poll(b.rig, 1);
	ck_assert_uint_eq(side_ctl()->done, 3);
	ck_assert_uint_eq(side_ctl()->rejected, 2);
	near_delegs_step(a.rig->port, to_b->rma);
	near_delegs_step(a.rig->port, to_b->rma);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, 0);
	side_until(3, false);
	ck_assert_mem_eq(memory + 8, local, 8);
	/* after a rejection b replies to each operation */
	ck_assert_int_eq(a.err, 0);
	ck_assert_uint_eq(to_b->rma->rejected, 0);
	side_put(16);
	rig_poll(b.rig, 1);
	ck_assert_int_eq(near_delegs_step(a.rig->port, to_b->rma), 0);
	side_until(4, false);
	ck_assert_int_eq(a.err, 0);
}

UNIT_TEST(without_membarrier_initiator_executes)
{
	bool fence = a.rig->port->fence;

	a.rig->port->fence = true;
	ck_assert_int_eq(side_deleg(NEAR_WRITE, SIDE_KEY, 0, 8), NEAR_RMA_DONE);
	ck_assert_mem_eq(memory, local, 8);
	ck_assert_uint_eq(to_b->rma->delegs, 0);
	a.rig->port->fence = fence;
}

static bool stop_b;

/* Polls b with random pauses: b executes some operations, a revokes others. */
static void *b_polls(void *none)
{
	unsigned int i, rest = 1;

	while (!__atomic_load_n(&stop_b, __ATOMIC_RELAXED)) {
		near_poll(b.rig->port, b.rig->port->sink);
		rest = rest * 1103515245 + 12345;
		for (i = rest >> 16 & 0x3ff; i; i--)
			__atomic_signal_fence(__ATOMIC_SEQ_CST);
		if (!(rest >> 24 & 0x3f))
			sched_yield();
	}
	return NULL;
}

/*
 * Lets a access the ring at b's addresses: for ThreadSanitizer, two mappings of
 * the same memory would be different memory. Returns a's own mapping.
 */
static struct near_tx one_mapping(void)
{
	const struct near_rx *rx = &rig_rx_ring(b.rig, a.rig)->rx;
	struct near_tx was = to_b->tx;

	to_b->tx.ctl = rx->ctl;
	to_b->tx.slots = rx->slots;
	to_b->tx.data = rx->data;
	return was;
}

/*
 * Each operation must be executed exactly once, by a or by b. In every second
 * round, a revokes the operation at once.
 */
UNIT_TEST(one_side_executes_each_operation)
{
	uint32_t round, by_us = 0, by_target = 0;
	struct near_slot *slot;
	pthread_t thread;
	uint64_t value;
	struct near_tx was = one_mapping();

	thread = unit_thread(b_polls, NULL);
	for (round = 1; round <= ROUNDS || by_us < EACH || by_target < EACH;
	     round++) {
		value = round;
		memcpy(local, &value, sizeof(value));
		while (side_deleg(NEAR_WRITE, SIDE_KEY, 8 * (round % 512), 8))
			near_poll(a.rig->port, a.rig->port->sink);
		/* 1: as if delegated long ago, so a revokes */
		to_b->rma->delegated_ns = round % 2;
		slot = first_deleg()->slot;
		while (a.done < round)
			near_poll(a.rig->port, a.rig->port->sink);
		ck_assert_int_eq(a.err, 0);
		memcpy(&value, memory + 8 * (round % 512), sizeof(value));
		ck_assert_uint_eq(value, round);
		if (state(slot) == NEAR_DELEG_EXECUTED)
			by_us++;
		else
			by_target++;
		/* a second execution within 256 rounds overwrites the 0xff */
		memset(memory + 8 * (round % 512), 0xff, sizeof(value));
		memcpy(&value, memory + 8 * ((round + 256) % 512),
		       sizeof(value));
		ck_assert(round < 512 || value == UINT64_MAX);
	}
	__atomic_store_n(&stop_b, true, __ATOMIC_RELAXED);
	unit_thread_end(thread);
	to_b->tx.ctl = was.ctl;
}
