/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Small operations on the fast path of the initiator and of the target. The
 * counters `small` and `served` prove that a fast path was taken.
 */

#include "rma_small_side.h"

UNIT_CASE("small", setup, side_teardown);

UNIT_TEST(small_operation_takes_fast_path)
{
	struct small put = call(NEAR_WRITE), get = call(NEAR_READ);

	for (put.args.len = 1; put.args.len <= NEAR_RMA_BYTES; put.args.len++) {
		rig_fill(local, put.args.len, put.args.len);
		ck_assert(go(put));
		rig_poll(b.rig, 1);
		ck_assert_mem_eq(memory, local, put.args.len);
		ck_assert_uint_eq(memory[put.args.len], 0);
		rig_poll(a.rig, 1);
		ck_assert_uint_eq(a.done, 2 * put.args.len - 1);
		get.args.len = put.args.len;
		memset(local, 0, put.args.len);
		ck_assert(go(get));
		both_poll();
		ck_assert_mem_eq(memory, local, put.args.len);
		ck_assert_uint_eq(a.done, 2 * put.args.len);
		memset(memory, 0, put.args.len);
	}
	ck_assert_uint_eq(rma_of(&a)->small, 2 * NEAR_RMA_BYTES);
	ck_assert_uint_eq(rma_of(&b)->served, 2 * NEAR_RMA_BYTES);
	ck_assert_int_eq(a.err, 0);
	ck_assert_ptr_eq(a.cookie, local);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_uint_eq(to_b->rma->expect, 0);
	ck_assert(near_list_empty(&a.rig->port->onesided_work));
	ck_assert_ptr_eq(a.rig->port->poll_word, &a.rig->port->poll_value);
}

UNIT_TEST(atomic_takes_fast_path)
{
	uint64_t value = 37;

	memcpy(memory, &value, sizeof(value));
	ck_assert(go(adding()));
	both_poll();
	ck_assert_uint_eq(was, 37);
	memcpy(&value, memory, sizeof(value));
	ck_assert_uint_eq(value, 42);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_uint_eq(rma_of(&b)->served, 1);
	ck_assert(!near_rma_busy(to_b));
}

UNIT_CASE("without a ring", setup_without, side_teardown);

/*
 * b has no ring to a, and attaches to one for its first reply, to a read (_i is
 * 0) or an atomic (1).
 */
UNIT_LOOP(reply_attaches_ring, 0, 2)
{
	usual(NEAR_WRITE, SIDE_KEY);	/* b sends no reply to a write */
	both_poll();
	ck_assert_ptr_nonnull(near_rma_peer(to_a()));
	ck_assert_ptr_null(to_a()->tx.slots);
	ck_assert(go(_i ? adding() : call(NEAR_READ)));
	both_poll();
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, 0);
	ck_assert_ptr_nonnull(to_a()->tx.slots);
}

UNIT_CASE("small", setup, side_teardown);

/*
 * With NEAR_RMA_COPY, the buffer may change after the call. b does not poll, so
 * a revokes the write and executes it: with the bytes from before the change.
 */
UNIT_TEST(buffer_is_reusable_after_call)
{
	struct small put = call(NEAR_WRITE);
	uint8_t copy[8];

	memcpy(copy, local, 8);
	put.args.flags = NEAR_RMA_COPY;
	ck_assert(go(put));
	memset(local, 0, 8);
	side_until(1, false);
	ck_assert_mem_eq(memory, copy, 8);
	ck_assert_uint_eq(rma_of(&b)->served, 0);
	/* b finds the operation executed, and does not execute it again */
	memset(memory, 0, 8);
	rig_poll(b.rig, 1);
	side_untouched();
	ck_assert_uint_eq(to_b->tx.ctl->done, 1);
}

/* Conditions that exclude the fast path, each set by a function */
static void queue(void) { near_tx_gate(&to_b->tx, NEAR_GATE_QUEUE); }
static void skip(void) { to_b->rma->skip = 1; }
static void unreadable(void) { to_b->reads = false; }
static void draining(void) { to_b->draining = true; }
static void expecting(void) { to_b->rma->expect = NEAR_RMA_EXPECT; }
static void atomic(void) { to_b->rma->unanswered++; }
static void reading(void) { to_b->rma->reading = true; }
static void changed(void) { side_region(OTHER_KEY, 3, 64); }
static void unopened(void) { to_b->rma->view = NULL; }
static void fenced(void) { a.rig->port->fence = true; }

enum { PUTS = 1, ADDS = 2, ALL = 3 };

static const struct {
	const char *name;
	int which;
	void (*make)(void);
	size_t len;
	uint64_t addr, key;	/* 0: as in call() */
} leaves[] = {
	{ "a queue", ALL, queue, 0, 0, 0 },
	{ "none is to be offered", PUTS, skip, 0, 0, 0 },
	{ "we could not do it", PUTS, unreadable, 0, 0, 0 },
	{ "it is draining", ALL, draining, 0, 0, 0 },
	{ "too many answers to come", ALL, expecting, 0, 0, 0 },
	{ "behind what is no offer", PUTS, atomic, 0, 0, 0 },
	{ "while something is read", ADDS, reading, 0, 0, 0 },
	{ "the table has changed", ALL, changed, 0, 0, 0 },
	{ "its table is not open", ALL, unopened, 0, 0, 0 },
	{ "a has no membarrier", PUTS, fenced, 0, 0, 0 },
	{ "more than a slot has", PUTS, NULL, 25, 0, 0 },
	{ "nothing", PUTS, NULL, SIZE_MAX, 0, 0 },
	{ "another key", ALL, NULL, 0, 0, 5 },
	{ "before the region", ALL, NULL, 0, SIDE_START - 8, 0 },
	{ "behind it", ALL, NULL, 0, SIDE_START + SIDE_LARGE - 1, 0 },
	{ "not aligned", ADDS, NULL, 0, SIDE_START + 4, 0 },
};

static void left(const char *name, struct small what)
{
	const struct near_rma_peer at = *to_b->rma;
	const struct near_tx tx = to_b->tx;
	uint32_t refs = to_b->refs;

	ck_assert_msg(!try(what), "%s", name);
	ck_assert_uint_eq(to_b->tx.tail, tx.tail);
	ck_assert_uint_eq(to_b->refs, refs);
	ck_assert_mem_eq(to_b->rma, &at, sizeof(at));
	ck_assert_uint_eq(rma_of(&a)->small, 0);
}

UNIT_ROUNDS(excluded_fast_path_changes_nothing, 0, ARRAY_SIZE(leaves))
{
	struct small put = call(NEAR_WRITE), get = call(NEAR_READ);
	struct small add = adding();
	struct near_rma_peer at;
	struct near_tx tx;
	bool fence = a.rig->port->fence;

	to_b->rma->skip = 0;
	at = *to_b->rma;
	tx = to_b->tx;
	if (leaves[_i].len)	/* SIZE_MAX stands for length 0 */
		put.args.len = get.args.len =
			leaves[_i].len + !(leaves[_i].len + 1);
	if (leaves[_i].addr)
		put.args.addr = get.args.addr = add.args.addr = leaves[_i].addr;
	if (leaves[_i].key)
		put.args.key = get.args.key = add.args.key = leaves[_i].key;
	if (leaves[_i].make)
		leaves[_i].make();
	if (leaves[_i].which & PUTS) {
		left(leaves[_i].name, put);
		left(leaves[_i].name, get);
	}
	if (leaves[_i].which & ADDS)
		left(leaves[_i].name, add);
	*to_b->rma = at;
	to_b->tx = tx;
	to_b->reads = true;
	a.rig->port->fence = fence;
	to_b->draining = false;
	/* a lookup on the slow path makes the cached key valid */
	if (leaves[_i].make == changed)
		usual(NEAR_WRITE, SIDE_KEY);
	both_poll();
	ck_assert(go(call(NEAR_WRITE)));
	both_poll();
}

/* In a read-only region, reads take the fast path, writes do not. */
UNIT_TEST(read_only_region_rejects_write)
{
	struct small put = call(NEAR_WRITE), get = call(NEAR_READ);
	struct small add = adding();
	uint64_t served;

	side_region(OTHER_KEY, NEAR_MAY_READ, 64);
	put.args.key = get.args.key = add.args.key = OTHER_KEY;
	usual(NEAR_READ, OTHER_KEY);
	both_poll();
	served = rma_of(&b)->served;
	ck_assert(!go(put));
	ck_assert(!go(add));
	ck_assert(go(get));
	both_poll();
	ck_assert_uint_eq(rma_of(&b)->served, served + 1);
}

/* The fast path fails while the ring is full, and succeeds afterwards. */
UNIT_TEST(full_ring_excludes_fast_path)
{
	struct near_tx *tx = &to_b->tx;
	uint64_t tail = tx->tail;

	/* only the slow path enlarges the pool of operations */
	while (near_tx_slot(tx))
		if (!go(call(NEAR_WRITE)))
			usual(NEAR_WRITE, SIDE_KEY);
	ck_assert_uint_ge(rma_of(&a)->small, (tx->tail - tail) / 2);
	ck_assert(!go(call(NEAR_WRITE)));
	rig_poll(b.rig, 10);
	ck_assert(go(call(NEAR_WRITE)));
	both_poll();
	ck_assert_uint_eq(a.done, rma_of(&a)->small);
	ck_assert(!near_rma_busy(to_b));
}

static void events(void) { near_rma_events(b.rig->port, true, true); }
static void rejected(void) { rig_rx_ring(b.rig, a.rig)->rejected = true; }

static void full(void)
{
	while (!rig_send(b.rig, to_a(), 1, local, 8))
		;
}

static const struct {
	const char *name;
	void (*make)(void);
	enum near_verb verb;
	uint32_t events;
} others[] = {
	{ "b counts operations on its memory, put", events, NEAR_WRITE, 1 },
	{ "get", events, NEAR_READ, 1 },
	{ "add", events, NEAR_FETCH, 1 },
	{ "b has rejected one, put", rejected, NEAR_WRITE, 0 },
	{ "get", rejected, NEAR_READ, 0 },
	{ "no space for the reply, get", full, NEAR_READ, 0 },
	{ "add", full, NEAR_FETCH, 0 },
};

/*
 * a uses its fast path, but a condition (others[_i]) excludes that of b. b
 * executes the operation on its slow path.
 */
UNIT_ROUNDS(slow_target_executes, 0, ARRAY_SIZE(others))
{
	enum near_verb verb = others[_i].verb;
	uint64_t value = 9;
	int i;

	if (verb != NEAR_WRITE)
		memcpy(memory, &value, sizeof(value));
	others[_i].make();
	ck_assert(go(verb == NEAR_FETCH ? adding() : call(verb)));
	for (i = 0; i < 100 && !a.done; i++)
		both_poll();
	ck_assert_msg(a.done == 1 && !a.err, "%s", others[_i].name);
	ck_assert_uint_eq(rma_of(&b)->served, 0);
	ck_assert_uint_eq(b.events, others[_i].events);
	if (verb != NEAR_FETCH) {
		ck_assert_mem_eq(memory, local, 8);
	} else {
		memcpy(&value, memory, sizeof(value));
		ck_assert_uint_eq(value, was + 5);
		ck_assert_uint_eq(was, 9);
	}
	ck_assert(!near_rma_busy(to_b));
}

/*
 * b removes the region before it executes a delegated write (_i is 0) or read
 * (1). The operation must fail.
 */
UNIT_LOOP(removed_region_returns_error, 0, 2)
{
	struct small what = _i ? call(NEAR_READ) : call(NEAR_WRITE);

	ck_assert(go(what));
	near_table_remove(b.table, SIDE_KEY);
	both_poll();
	side_untouched();
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, EKEYREJECTED);
	ck_assert_uint_eq(rma_of(&b)->served, 0);
	ck_assert(!near_rma_busy(to_b));
}
