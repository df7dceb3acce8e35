/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Delegated operations: the target executes them if it polls, else the
 * initiator does. Each operation is executed exactly once.
 */

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/proc.h"
#include "rma_side.h"

static int start(enum near_verb verb, size_t offset, size_t len,
		 uint32_t flags)
{
	return side_start(verb, SIDE_KEY, offset, len, flags);
}

UNIT_CASE("offers", side_setup_offers, side_teardown);

UNIT_TEST(polling_target_executes)
{
	size_t len;
	uint32_t done = 0;

	for (len = 1; len <= NEAR_RMA_PART; len++) {
		rig_fill(local, len, len);
		to_b->rma->skip = 0;
		ck_assert_int_eq(start(NEAR_WRITE, 3, len, 0), 0);
		rig_poll(b.rig, 1);
		ck_assert_mem_eq(memory + 3, local, len);
		ck_assert_uint_eq(memory[3 + len], 0);
		side_until(++done, true);
		memset(local, 0, len);
		to_b->rma->skip = 0;
		ck_assert_int_eq(start(NEAR_READ, 3, len, 0), 0);
		side_until(++done, true);
		ck_assert_mem_eq(memory + 3, local, len);
		memset(memory, 0, len + 4);
	}
	ck_assert_int_eq(start(NEAR_READ, 0, NEAR_RMA_PART + 1, 0),
			 NEAR_RMA_DONE);
	ck_assert_int_eq(start(NEAR_WRITE, 0, NEAR_RMA_PART + 1,
			       NEAR_RMA_COPY), NEAR_RMA_DONE);
	ck_assert_int_eq(start(NEAR_WRITE, 0, 1025, 0), NEAR_RMA_DONE);
	to_b->rma->skip = 0;	/* delegate even if b was slow before */
	ck_assert_int_eq(start(NEAR_WRITE, 0, 1024, 0), 0);
	side_until(++done, true);
	ck_assert_mem_eq(memory, local, 1024);
}

/*
 * The target does not poll. The initiator must revoke both operations and
 * execute each once; later, the target must skip their slots.
 */
UNIT_TEST(initiator_executes_if_target_does_not_poll)
{
	uint64_t tail;

	ck_assert_int_eq(start(NEAR_WRITE, 0, 40, 0), 0);
	ck_assert_int_eq(start(NEAR_WRITE, 40, 8, 0), 0);
	side_untouched();
	side_until(2, false);
	ck_assert_mem_eq(memory, local, 40);
	ck_assert_mem_eq(memory + 40, local, 8);
	/* after a revocation, the next operations are not delegated */
	tail = to_b->tx.tail;
	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), NEAR_RMA_DONE);
	ck_assert_uint_eq(to_b->tx.tail, tail);
	/* the target skips the revoked slots */
	memset(memory, 9, 48);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	rig_until(b.rig, a.rig, 1);
	ck_assert_uint_eq(memory[0], 9);
	ck_assert_uint_eq(memory[40], 9);
	ck_assert_uint_eq(a.done, 2);
	ck_assert(!near_rma_busy(to_b));
}

/*
 * The target never executes an operation. After each revocation the initiator
 * must delegate fewer operations: only 5 to 12 of 10000 writes.
 */
UNIT_TEST(delegation_becomes_rarer)
{
	uint32_t i, delegs = 0;

	for (i = 0; i < 10000; i++) {
		int ret = start(NEAR_WRITE, 0, 8, 0);

		if (ret == NEAR_RMA_DONE)
			continue;
		ck_assert_int_eq(ret, 0);
		side_until(++delegs, false);
	}
	ck_assert_uint_ge(delegs, 5);
	ck_assert_uint_le(delegs, 12);
}

/*
 * Delegates a write, even after revocations. The initiator must revoke this
 * write. Returns the new value of `skip`.
 */
static uint32_t skip_after_revocation(uint32_t done)
{
	to_b->rma->skip = 0;
	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	side_until(done, false);
	return to_b->rma->skip;
}

/*
 * After the target has executed an operation, the backoff must begin again: the
 * next revocation makes the initiator skip only 16 operations.
 */
UNIT_TEST(executed_operation_ends_backoff)
{
	ck_assert_uint_eq(skip_after_revocation(1), 16);
	ck_assert_uint_eq(skip_after_revocation(2), 32);
	to_b->rma->skip = 0;
	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	rig_poll(b.rig, 1);
	side_until(3, true);
	ck_assert_uint_eq(skip_after_revocation(4), 16);
}

/* The target neither executes a revoked operation nor consumes later slots. */
UNIT_TEST(revoked_operation_blocks_target)
{
	struct near_rma_op *op;
	uint64_t word;

	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	op = near_container(to_b->rma->delegated.next, struct near_rma_op,
			    link);
	word = op->slot->word;
	op->slot->word =
		word + ((uint64_t)(NEAR_DELEG_REVOKED - NEAR_DELEG_OPEN)
			<< NEAR_WORD_FLAGS);
	rig_poll(b.rig, 50);
	side_untouched();
	ck_assert_uint_eq(b.rig->count, 0);
	/* the initiator undoes the revocation */
	op->slot->word = word;
	rig_until(b.rig, a.rig, 1);
	ck_assert_mem_eq(memory, local, 8);
	side_until(1, true);
}

/*
 * A write follows an atomic, which only the target can execute. The initiator
 * must not revoke the write: if the initiator executed the write, the write
 * would overtake the atomic.
 */
UNIT_TEST(write_behind_atomic_is_not_revoked)
{
	uint64_t one = 1, was = 77;

	ck_assert_int_eq(side_rma(.verb = NEAR_FETCH, .key = SIDE_KEY,
				  .local = SIDE_BUF(&one, 8),
				  .result = SIDE_BUF(&was, 8), .op = NEAR_SUM,
				  .type = NEAR_UINT64), 0);
	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	rig_poll(a.rig, 200);
	usleep(1000);
	rig_poll(a.rig, 200);
	side_untouched();
	side_until(2, true);
	ck_assert_uint_eq(was, 0);
	ck_assert_mem_eq(memory, local, 8);
}

/* Delegates writes until the ring is full; returns the number of writes. */
static uint32_t fill(void)
{
	uint32_t n = 0;
	int ret;

	to_b->rma->skip = 0;
	while (!(ret = start(NEAR_WRITE, 8 * n, 8, 0)))
		n++;
	ck_assert_int_eq(ret, -EAGAIN);
	ck_assert_uint_eq(n, to_b->rma->delegs);
	ck_assert_uint_eq(n, to_b->tx.mask + 1);
	return n;
}

/* The target does not poll: the initiator executes all operations. */
UNIT_TEST(full_ring_of_delegations_is_executed)
{
	uint32_t i, n = fill();

	side_until(n, false);
	for (i = 0; i < n; i++)
		ck_assert_mem_eq(memory + 8 * i, local, 8);
	/* the ring is still full: the initiator executes later writes */
	for (i = 0; i < 1000; i++) {
		memory[0] = 0;
		ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), NEAR_RMA_DONE);
		ck_assert_uint_eq(memory[0], local[0]);
	}
	ck_assert_uint_eq(a.done, n);
	ck_assert(!near_rma_busy(to_b));
	for (i = 0; i < 1000 && rig_send(a.rig, to_b, 1, local, 8); i++)
		rig_poll(b.rig, 1);
	rig_until(b.rig, a.rig, 1);
}

/*
 * The ring is full, and a resize waits for the reply of the target, which does
 * not poll. The initiator must execute all delegated operations. The resize
 * ends when the target polls.
 */
UNIT_TEST(full_ring_with_resize_is_executed)
{
	uint32_t i, n = fill();

	for (; !(to_b->tx.gated & NEAR_GATE_RESIZE); n += fill())
		side_until(n, true);
	ck_assert_uint_gt(to_b->rma->delegs, 0);
	side_until(n, false);
	ck_assert(to_b->tx.gated & NEAR_GATE_RESIZE);
	ck_assert_uint_eq(to_b->resize.count, 0);
	for (i = 0; i < 1000 && rig_send(a.rig, to_b, 1, local, 8); i++) {
		rig_poll(b.rig, 1);
		rig_poll(a.rig, 1);
	}
	rig_until(b.rig, a.rig, 1);
	ck_assert_uint_eq(to_b->resize.count, 1);
	ck_assert_uint_eq(a.done, n);
}

/*
 * A long read follows a delegated one. When the delegated read completes, the
 * long one must stay pending.
 */
UNIT_TEST(delegated_read_completes_only_itself)
{
	ck_assert_int_eq(start(NEAR_READ, 0, 8, 0), 0);
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, local, 8), 0);
	ck_assert_int_eq(start(NEAR_READ, 0, 1000, NEAR_RMA_BEHIND), 0);
	ck_assert(to_b->rma->reading);
	b.rig->reject = 1;
	rig_poll(b.rig, 1);
	side_until(1, false);
	ck_assert_uint_eq(to_b->rma->unanswered, 1);
	/* a write behind the long read waits for the read's end */
	ck_assert_int_eq(start(NEAR_WRITE, 0, 512, NEAR_RMA_BEHIND), 0);
	ck_assert(to_b->rma->reading);
	ck_assert(!near_list_empty(&to_b->rma->queue));
	side_until(3, true);
	ck_assert(!to_b->rma->reading);
}

/*
 * The second page of a region is unmapped, and a write crosses the border. The
 * write must fail with EFAULT, although some bytes were copied.
 */
UNIT_TEST(unmapped_region_fails_with_efault)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *map = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct near_region_entry entry = {
		.key = 77, .start = SIDE_START, .memory = (uintptr_t)map,
		.len = 2 * page, .access = NEAR_MAY_WRITE,
	};
	int i;

	ck_assert(map != MAP_FAILED);
	ck_assert_int_eq(near_table_add(b.table, &entry), 0);
	ck_assert_int_eq(munmap(map + page, page), 0);
	ck_assert_int_eq(side_start(NEAR_WRITE, 77, page - 512, 1024, 0), 0);
	for (i = 0; i < 100000 && !a.done; i++)
		rig_poll(a.rig, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, EFAULT);
	munmap(map, page);
}

UNIT_TEST(closed_target_is_not_waited_for)
{
	int i;

	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	b.rig->reject = 1;
	rig_stop(b.rig);
	for (i = 0; i < 3000 && !a.done; i++)
		rig_poll_ms(a.rig, 1);
	ck_assert_uint_eq(a.done, 1);
	ck_assert(!near_rma_busy(to_b));
}

UNIT_TEST(executed_operation_of_closed_target_succeeds)
{
	ck_assert_int_eq(start(NEAR_WRITE, 0, 8, 0), 0);
	rig_poll(b.rig, 1);
	ck_assert_mem_eq(memory, local, 8);
	ck_assert_uint_eq(to_b->tx.ctl->done, 1);
	b.rig->reject = 1;
	rig_stop(b.rig);
	near_woken(a.rig->port);
	rig_poll(a.rig, NEAR_TICK_POLLS);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, 0);
}
