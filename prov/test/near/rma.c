/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics between ports of one process, executed by the initiator or,
 * where that is not permitted, by the target
 */

#include <sys/syscall.h>
#include <unistd.h>

#include "rma_side.h"

/* Starts an operation with two local buffers, the first of len / 3 bytes. */
static int start_flags(enum near_verb verb, uint64_t key, uint64_t addr,
		       size_t len, uint32_t flags)
{
	size_t half = len / 3;
	const struct iovec iov[2] = {
		{ local, half }, { local + half, len - half },
	};

	return side_rma(.verb = verb, .flags = flags, .addr = addr - SIDE_START,
			.key = key, .local = { iov, 2 });
}

/* Polls until the operation completes; returns 0 or a negative errno. */
static int end(int ret, uint32_t done)
{
	int i;

	if (ret == NEAR_RMA_DONE)
		return 0;
	if (ret)
		return ret;
	for (i = 0; i < 100000 && a.done == done; i++)
		side_poll(1);
	ck_assert_uint_eq(a.done, done + 1);
	ck_assert_ptr_eq(a.cookie, local);
	return -a.err;
}

static int run(enum near_verb verb, uint64_t key, uint64_t addr, size_t len)
{
	uint32_t done = a.done;

	return end(start_flags(verb, key, addr, len, 0), done);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);
UNIT_CASE("by the target", side_setup_asked, side_teardown);

UNIT_TEST(operation_of_every_size)
{
	size_t len;

	for (len = 1; len <= SIDE_LARGE;
	     len = len < 70 ? len + 1 : len * 3 + 1) {
		memset(memory, 0, SIDE_LARGE);
		rig_fill(local, len, len);
		ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START + 5,
				     len), 0);
		ck_assert_mem_eq(memory + 5, local, len);
		ck_assert_uint_eq(memory[4], 0);
		ck_assert_uint_eq(memory[5 + len], 0);
		memset(local, 0, len);
		ck_assert_int_eq(run(NEAR_READ, SIDE_KEY, SIDE_START + 5,
				     len), 0);
		ck_assert_mem_eq(memory + 5, local, len);
	}
	ck_assert_uint_eq(b.events, 0);
	/* references: the test's, and the rx ring's if b has replied */
	ck_assert_uint_eq(to_b->refs, 1 + rig_rx_rings(a.rig));
}

UNIT_TEST(access_beyond_region_is_rejected)
{
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE), 0);
	ck_assert_mem_eq(memory, local, SIDE_LARGE);
	memset(memory, 0, SIDE_LARGE);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE + 1),
			 -EACCES);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START - 1, 8), -EACCES);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START + SIDE_LARGE, 1),
			 -EACCES);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, UINT64_MAX - 3, 8), -EACCES);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START + 8,
			     SIZE_MAX - 4), -EACCES);
	ck_assert_int_eq(run(NEAR_READ, SIDE_KEY + 1, SIDE_START, 8),
			 -EKEYREJECTED);
	side_untouched();
}

UNIT_TEST(missing_right_is_rejected)
{
	side_region(1, NEAR_MAY_READ, 64);
	side_region(2, NEAR_MAY_WRITE, 64);
	ck_assert_int_eq(run(NEAR_READ, 1, SIDE_START, 64), 0);
	ck_assert_int_eq(run(NEAR_WRITE, 1, SIDE_START, 64), -EACCES);
	ck_assert_uint_eq(memory[0], 0);
	ck_assert_int_eq(run(NEAR_WRITE, 2, SIDE_START, 64), 0);
	ck_assert_int_eq(run(NEAR_READ, 2, SIDE_START, 64), -EACCES);
	near_table_remove(b.table, 1);
	ck_assert_int_eq(run(NEAR_READ, 1, SIDE_START, 64), -EKEYREJECTED);
}

/*
 * b removes the region during a write, which must fail. The end that executes
 * the write must check b's table again, not rely on an earlier lookup.
 */
UNIT_TEST(region_closed_during_operation_is_rejected)
{
	uint32_t done = a.done;
	int ret = start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE, 0);

	ck_assert_int_eq(ret, 0);
	near_table_remove(b.table, SIDE_KEY);
	memset(memory, 0, SIDE_LARGE);
	ck_assert_int_eq(end(ret, done), -EKEYREJECTED);
	ck_assert_uint_eq(memory[SIDE_LARGE - 1], 0);
	side_region(SIDE_KEY, NEAR_MAY_WRITE, SIDE_LARGE);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, 100), 0);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);

/*
 * Four writes of NEAR_STEP bytes wait behind a long one. A poll must end at
 * most one of the five, so that the application's other messages need not wait
 * for the copies of all.
 */
UNIT_TEST(poll_ends_one_long_operation)
{
	uint32_t done;
	int i;

	ck_assert_int_eq(side_start(NEAR_WRITE, SIDE_KEY, 0, SIDE_LARGE, 0), 0);
	for (i = 0; i < 4; i++)
		ck_assert_int_eq(side_start(NEAR_WRITE, SIDE_KEY, i * NEAR_STEP,
					    NEAR_STEP, 0), 0);
	while (a.done < 5) {
		done = a.done;
		rig_poll(a.rig, 1);
		ck_assert_uint_le(a.done, done + 1);
	}
	ck_assert_int_eq(a.err, 0);
}

/*
 * In the middle of a write (_i is 0) or read (1), single copies begin to fail
 * with ESRCH, as if the target's main thread had exited. The target must
 * execute the remaining part.
 */
UNIT_LOOP(target_executes_when_single_copies_end, 0, 2)
{
	uint8_t *from = _i ? memory : local, *to = _i ? local : memory;

	memset(to, 0, SIDE_LARGE);
	rig_fill(from, SIDE_LARGE, 7);
	ck_assert_int_eq(side_start(_i ? NEAR_READ : NEAR_WRITE, SIDE_KEY, 0,
				    SIDE_LARGE, 0), 0);
	rig_poll(a.rig, 1);
	unit_reject(_i ? SYS_process_vm_readv : SYS_process_vm_writev,
		    SECCOMP_RET_ERRNO | ESRCH);
	side_until(1, true);
	ck_assert_mem_eq(to, from, SIDE_LARGE);
}

UNIT_CASE("by the target", side_setup_asked, side_teardown);

/*
 * b rejects a write, and stores the write's id, to reject the write's further
 * parts. After 2^31 operations, a new write has the same id. The new write must
 * succeed, whether it has one part (_i is 0) or many (1).
 */
UNIT_LOOP(reused_id_gets_own_reply, 0, 2)
{
	size_t len = _i ? SIDE_LARGE : 8;
	uint32_t done = a.done;
	int ret = start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE, 0);
	struct near_pooled *op = near_pool_at(&a.rig->port->rma->ops, 0);
	struct near_rma_peer *at;

	near_table_remove(b.table, SIDE_KEY);
	ck_assert_int_eq(end(ret, done), -EKEYREJECTED);
	side_poll(3);
	at = near_peer_find(b.rig->port, &a.rig->addr)->rma;
	op->use--;
	ck_assert_uint_eq(at->rejected, near_pool_id(op));
	op->use--;
	side_region(SIDE_KEY, NEAR_MAY_WRITE, SIDE_LARGE);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, len), 0);
	ck_assert_mem_eq(memory, local, len);
}

UNIT_CASE("by ourselves", side_setup_direct, side_teardown);
UNIT_CASE("by the target", side_setup_asked, side_teardown);

UNIT_TEST(write_with_data_is_reported)
{
	uint32_t done = a.done;

	ck_assert_int_eq(end(start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START,
					 SIDE_LARGE, NEAR_RMA_DATA), done), 0);
	side_poll(3);
	ck_assert_uint_eq(b.events, 1);
	ck_assert(b.event.write && b.event.has_data);
	ck_assert_uint_eq(b.event.data, SIDE_DATA);
	ck_assert_uint_eq(b.event.len, SIDE_LARGE);
	ck_assert_mem_eq(memory, local, SIDE_LARGE);
	done = a.done;
	ck_assert_int_eq(end(start_flags(NEAR_WRITE, 99, SIDE_START, 0,
					 NEAR_RMA_DATA), done), 0);
	side_poll(3);
	ck_assert_uint_eq(b.events, 2);
	near_rma_events(b.rig->port, true, false);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, 8), 0);
	ck_assert_int_eq(run(NEAR_READ, SIDE_KEY, SIDE_START, 8), 0);
	side_poll(3);
	ck_assert_uint_eq(b.events, 3);
	ck_assert(!b.event.write && !b.event.has_data);
}

UNIT_TEST(message_arrives_after_write)
{
	uint32_t done = a.done, i;
	int ret = start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE, 0);
	int sent = -1;

	for (i = 0; i < 100000 && !b.rig->count; i++) {
		if (sent)
			sent = rig_send(a.rig, to_b, 1, local, 8);
		ck_assert(!sent || sent == -EAGAIN);
		rig_poll(b.rig, 1);
		if (b.rig->count)
			ck_assert_mem_eq(memory, local, SIDE_LARGE);
		rig_poll(a.rig, 1);
	}
	ck_assert_uint_eq(b.rig->count, 1);
	ck_assert_int_eq(end(ret, done), 0);
	/* further messages can be sent */
	ck_assert_int_eq(rig_send(a.rig, to_b, 2, local, 8), 0);
	rig_until(b.rig, a.rig, 2);
}

static int atomic(enum near_verb verb, unsigned int op, void *operand,
		  void *compare, void *result, size_t len, uint32_t flags)
{
	const struct iovec iov[3] = {
		{ operand, len }, { compare, len }, { result, len },
	};

	return side_rma(.verb = verb, .flags = flags, .key = SIDE_KEY,
			.local = { iov, op != NEAR_ATOMIC_READ },
			.compare = { iov + 1, verb == NEAR_COMPARE },
			.result = { iov + 2, verb != NEAR_ATOMIC },
			.len = len, .op = op, .type = NEAR_UINT64);
}

UNIT_TEST(atomics)
{
	uint64_t *target = (uint64_t *)memory, one = 1, two = 2, was = 77;
	uint32_t i, done;

	ck_assert_int_eq(end(atomic(NEAR_ATOMIC, NEAR_SUM, &one, NULL, NULL,
				    8, 0), a.done), 0);
	ck_assert_uint_eq(*target, 1);
	ck_assert_int_eq(end(atomic(NEAR_FETCH, NEAR_SUM, &two, NULL, &was, 8,
				    0), a.done), 0);
	ck_assert_uint_eq(was, 1);
	ck_assert_int_eq(end(atomic(NEAR_FETCH, NEAR_ATOMIC_READ, NULL, NULL,
				    &was, 8, 0), a.done), 0);
	ck_assert_uint_eq(was, 3);
	ck_assert_int_eq(end(atomic(NEAR_COMPARE, NEAR_CSWAP, &one, &was,
				    &was, 8, 0), a.done), 0);
	ck_assert_uint_eq(was, 3);
	ck_assert_uint_eq(*target, 1);
	/*
	 * with NEAR_RMA_COPY, the operand may change as soon as the call has
	 * returned; all 2000 atomics must add the operand's earlier value
	 */
	done = a.done;
	for (i = 0; i < 2000; i++) {
		one = 1;
		while (atomic(NEAR_ATOMIC, NEAR_SUM, &one, NULL, NULL, 8,
			      NEAR_RMA_COPY) == -EAGAIN)
			side_poll(1);
		one = 1000000;
	}
	one = 0;
	while (atomic(NEAR_FETCH, NEAR_SUM, &one, NULL, &was, 8,
		      NEAR_RMA_FENCE) == -EAGAIN)
		side_poll(1);
	side_until(done + 2001, true);
	ck_assert_uint_eq(was, 2001);
}

/* A read after an atomic of several parts returns the results of all parts. */
UNIT_TEST(read_after_long_atomic_is_ordered)
{
	static uint64_t operand[1000], result[1000], zero[1000];
	uint64_t *target = (uint64_t *)memory;
	uint32_t i, done;
	int ret;

	for (i = 0; i < 1000; i++)
		operand[i] = i;
	ret = atomic(NEAR_FETCH, NEAR_SUM, operand, NULL, result,
		     sizeof(operand), 0);
	ck_assert_int_eq(ret, 0);
	done = a.done;
	memset(local, 0, sizeof(zero));
	ck_assert_int_eq(start_flags(NEAR_READ, SIDE_KEY, SIDE_START,
				     sizeof(operand), 0), 0);
	side_until(done + 2, true);
	ck_assert_mem_eq(result, zero, sizeof(zero));
	ck_assert_mem_eq(target, operand, sizeof(operand));
	ck_assert_mem_eq(local, operand, sizeof(operand));
}

UNIT_TEST(atomic_rights)
{
	uint64_t one = 1, was = 5;
	struct near_rma_args args = {
		.verb = NEAR_FETCH, .addr = SIDE_START, .key = 3,
		.local = { &(struct iovec){ &one, 8 }, 1 },
		.result = { &(struct iovec){ &was, 8 }, 1 },
		.len = 8, .op = NEAR_SUM, .type = NEAR_UINT64,
		.about = 1, .cookie = local,
	};

	side_region(3, NEAR_MAY_WRITE, 64);
	ck_assert_int_eq(end(near_rma(a.rig->port, to_b, &args), a.done),
			 -EACCES);
	args.key = SIDE_KEY;
	args.addr = SIDE_START + 4;	/* not aligned to 8 bytes */
	ck_assert_int_eq(end(near_rma(a.rig->port, to_b, &args), a.done),
			 -EINVAL);
	ck_assert_uint_eq(was, 5);
	ck_assert_uint_eq(memory[0], 0);
}

/* The target's close ends all pending operations. */
UNIT_TEST(closed_target_ends_operations)
{
	uint64_t one = 1, was;
	uint32_t n = 0;

	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, 8), 0);
	n += !atomic(NEAR_FETCH, NEAR_SUM, &one, NULL, &was, 8, 0);
	n += !start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, SIDE_LARGE, 0);
	n += !start_flags(NEAR_READ, SIDE_KEY, SIDE_START, SIDE_LARGE,
			  NEAR_RMA_FENCE);
	ck_assert_uint_eq(n, 3);
	a.done = 0;
	rig_stop(b.rig);
	side_lost(n);
	ck_assert_int_eq(start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, 8, 0),
			 -ECONNRESET);
	/* the table is unmapped although references to the peer remain */
	ck_assert_ptr_null(to_b->rma->view);
}

/* No memory is left to map the region table. Later, there is memory. */
UNIT_LOOP(table_is_mapped_later, 0, !SANITIZED)
{
	rlim_t limit;

	ck_assert_int_eq(rig_send(a.rig, to_b, 1, "x", 1), 0);
	near_rma_peer(to_b);
	limit = unit_limit(RLIMIT_AS, 0);
	unit_check_space();
	ck_assert_int_eq(start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, 8, 0),
			 -EAGAIN);
	ck_assert_ptr_null(to_b->rma->view);
	unit_limit(RLIMIT_AS, limit);
	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, 8), 0);
	ck_assert_ptr_nonnull(to_b->rma->view);
	ck_assert_mem_eq(memory, local, 8);
}

/*
 * A single copy finds no process with the target's pid, and no file descriptor
 * is free to check whether the process has exited. This is no fault of the
 * buffers: the target executes the operation.
 */
UNIT_TEST(unknown_exit_is_no_fault)
{
	rlim_t limit;
	uint32_t done;
	int ret;

	ck_assert_int_eq(run(NEAR_WRITE, SIDE_KEY, SIDE_START, 8), 0);
	near_unmonitor(a.rig->port, to_b);
	to_b->by_start = true;
	unit_reject(SYS_process_vm_writev, SECCOMP_RET_ERRNO | ESRCH);
	done = a.done;
	limit = unit_limit(RLIMIT_NOFILE, 0);
	ret = start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START + 8, 8, 0);
	unit_limit(RLIMIT_NOFILE, limit);
	ck_assert_int_eq(end(ret, done), 0);
	ck_assert_mem_eq(memory + 8, local, 8);
}

/* The target's process is exiting: the kernel has closed its descriptors. */
UNIT_TEST(table_of_exiting_target)
{
	ck_assert_int_eq(rig_send(a.rig, to_b, 1, "x", 1), 0);
	close(b.table->fd);
	b.table->fd = -1;
	ck_assert_int_eq(start_flags(NEAR_WRITE, SIDE_KEY, SIDE_START, 8, 0),
			 -ECONNRESET);
	ck_assert(near_peer_exited(to_b));
	ck_assert_uint_eq(memory[0], 0);
}

/*
 * b's first slot to a is a reply, and then b closes. a detects the close before
 * it finds b's ring: in the check of peers in a tick (_i is 1), or after a
 * sleep (0). a must still consume the reply, and the operation must succeed.
 */
UNIT_LOOP(reply_before_close_counts, 0, 2)
{
	uint64_t one = 1, was = 77;

	ck_assert_int_ge(near_wait_fd(a.rig->port), 0);
	ck_assert_int_eq(atomic(NEAR_FETCH, NEAR_SUM, &one, NULL, &was, 8, 0),
			 0);
	rig_poll(b.rig, 1);
	ck_assert_uint_eq(rig_rx_rings(a.rig), 0);
	rig_stop(b.rig);
	a.rig->port->checked_ms = 0;
	if (_i)
		near_port_tick(a.rig->port);
	else
		near_woken(a.rig->port);
	ck_assert_uint_eq(a.done, 0);
	rig_poll_ms(a.rig, 200);
	ck_assert_uint_eq(a.done, 1);
	ck_assert_int_eq(a.err, 0);
	ck_assert_uint_eq(was, 0);
	ck_assert_uint_eq(a.rig->count, 1);
	ck_assert_int_eq(a.rig->event[0].kind, RIG_GONE);
}
