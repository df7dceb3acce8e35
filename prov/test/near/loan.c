/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Lent operations: b's device copies between a's device memory and b's pinned
 * host memory.
 */

#include <unistd.h>

#include "gpu_side.h"

static void setup_as(bool asked)
{
	if (asked)
		gpu_setup_asked();
	else
		gpu_setup_direct();
	gpu_lend_region(NEAR_MAY_LEND, false);
}

UNIT_SETUP(setup, setup_as(false));
UNIT_SETUP(setup_asked, setup_as(true));

UNIT_CASE("single copies", setup, gpu_teardown);
UNIT_CASE("no single copies", setup_asked, gpu_teardown);

static const size_t lengths[] = { NEAR_LOAN_MIN, GPU_LEN };

/* Asserts the numbers of a's lent operations and of its staged ones. */
static void ways(uint64_t lent, uint64_t staged)
{
	ck_assert_uint_eq(near_rma_device_ops(a.rig->port, NEAR_DEVICE_LENT),
			  lent);
	ck_assert_uint_eq(near_rma_device_ops(a.rig->port, NEAR_DEVICE_HOST),
			  staged);
	gpu_paths(lent + staged, 0);
}

static void expect_copied(size_t len)
{
	ck_assert_mem_eq(gpu_at_a(AT_A), gpu_at_b(AT_A), len);
	ck_assert(!near_rma_busy(to_b));
	ck_assert_int_eq(near_port_has_work(a.rig->port), 0);
	ck_assert_int_eq(near_port_has_work(b.rig->port), 0);
}

static struct near_rma_peer *b_to_a(void)
{
	return rig_peer(b.rig, a.rig)->rma;
}

static const struct near_loan *loan_at_b(void)
{
	return (const struct near_loan *)b_to_a()->staging->theirs.memory;
}

UNIT_ROUNDS(target_copies, 0, 2 * (int)ARRAY_SIZE(lengths))
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	size_t len = lengths[_i / 2];
	uint32_t i;

	for (i = 1; i < 4; i++) {
		rig_fill(gpu.shadow + GPU_LEN, len, i);
		ck_assert_int_eq(gpu_rma(verb, AT_A, 0, len, NEAR_RMA_DATA), 0);
		side_until(i, true);
		expect_copied(len);
		/* each operation used one chunk: that of its loan */
		ck_assert_uint_eq(to_b->rma->staging->filled, i);
		ck_assert_uint_eq(b.events, i);
		ck_assert_uint_eq(b.event.len, len);
	}
	ck_assert_int_eq(gpu.map_calls, 1);
	ck_assert_int_eq(gpu.pinned, 0);
	gpu_last_path(NEAR_DEVICE_LENT);
	ways(3, 0);
}

/*
 * Operations that must be staged instead of lent: one with two buffers (_i is
 * 0), one below NEAR_LOAN_MIN (1), and one below NEAR_STAGE_CHUNK while another
 * operation is pending (2).
 */
UNIT_ROUNDS(other_operations_are_staged, 0, 3)
{
	const size_t len = 2 * NEAR_LOAN_MIN;
	const struct iovec iov[] = {
		{ gpu.base + GPU_LEN, len - 5 }, { local, 5 },
	};
	const size_t shorter = _i == 2 ? NEAR_STAGE_CHUNK - 1 :
					 NEAR_LOAN_MIN - 1;

	if (_i == 2)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, 1, 0), 0);
	if (_i)
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, shorter, 0), 0);
	else
		ck_assert_int_eq(side_rma(.verb = NEAR_WRITE, .key = SIDE_KEY,
					  .local = { iov, 2, on_gpu }), 0);
	side_until(1 + _i / 2, true);
	ck_assert_mem_eq(gpu_at_a(AT_A), memory, shorter);
	ways(0, 1 + _i / 2);
}

/*
 * If b cannot copy, this operation and the next NEAR_LOAN_SKIP ones are staged.
 * The one after these is lent.
 */
UNIT_ROUNDS(rejected_loan_is_staged, 0, 2 * 6)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;
	uint32_t i;

	switch (_i / 2) {
	case 0:	/* the host memory is not pinned */
		gpu.host = NULL;
		break;
	case 1:	/* mapping fails for lack of memory */
		gpu.map_err = -ENOMEM;
		break;
	case 2:	/* a's region does not grant NEAR_MAY_LEND */
		gpu_lend_region(NEAR_MAY_MESSAGE | NEAR_MAY_READ, false);
		break;
	case 3:	/* a has removed the region */
		near_table_remove(a.table, LENT_KEY);
		break;
	case 4:	/* the copy does not start */
		gpu.fail_at = 1;
		break;
	case 5:	/* part of the allocation is not mapped */
		gpu.map_len = 2 * GPU_LEN - 1;
	}
	ck_assert_int_eq(gpu_rma(verb, AT_A, 0, GPU_LEN, NEAR_RMA_DATA), 0);
	side_until(1, true);
	expect_copied(GPU_LEN);
	gpu_last_path(NEAR_DEVICE_HOST);
	ck_assert_uint_eq(b.events, 1);
	ways(0, 1);
	gpu_lend_region(NEAR_MAY_LEND, false);
	if (_i / 2 == 5 || _i / 2 == 1)
		return;
	for (i = 1; i <= NEAR_LOAN_SKIP + 1; i++) {
		rig_fill(gpu.shadow + GPU_LEN, GPU_LEN, i);
		gpu_run(verb, AT_A, GPU_LEN, 1 + i, true);
		expect_copied(GPU_LEN);
	}
	ways(1, NEAR_LOAN_SKIP + 1);
}

/*
 * Lent, staged and other writes must take effect in the order of the calls, and
 * all of them before the message that follows.
 */
UNIT_TEST(operations_keep_order)
{
	const uint8_t *last = gpu_at_a(AT_A);
	int i, ret;

	gpu.polls = 5;
	for (i = 0; i < 30; i++) {
		ck_assert_int_ge(gpu_rma(NEAR_WRITE, i % 3 ? AT_A : 0, 0,
					 i % 2 ? GPU_LEN : 100, 0), 0);
		/* an operation that cannot be lent */
		ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A | AT_B, 0, 8, 0), 0);
	}
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, GPU_LEN, 0), 0);
	while ((ret = rig_send(a.rig, to_b, 1, local, 8)) == -EAGAIN)
		side_poll(1);
	ck_assert_int_eq(ret, 0);
	ck_assert_mem_eq(memory, last, GPU_LEN);
	ck_assert_int_eq(a.err, 0);
}

/*
 * b's copy does not start (_i / 2 is 0): the operation is staged. The copy
 * fails later (1): the operation fails. No call fails (2). In all cases the
 * next operation must succeed.
 */
UNIT_ROUNDS(failed_driver_call, 0, 2 * 3)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;

	gpu.fail_at = 1 + _i / 2;
	ck_assert_int_eq(gpu_rma(verb, AT_A, 0, NEAR_LOAN_MIN, NEAR_RMA_DATA),
			 0);
	side_fails(gpu.fail_at == 2 ? EIO : 0);
	ck_assert_uint_eq(b.events, !a.err);
	if (!a.err)
		expect_copied(NEAR_LOAN_MIN);
	gpu.fail_at = 0;
	gpu_run(verb, AT_A, NEAR_LOAN_MIN, 2, true);
	expect_copied(NEAR_LOAN_MIN);
}

/*
 * After near_rma(), b's region is removed (_i is 0), permits no write (1), or
 * is too short (2). b must reject the operation.
 */
UNIT_ROUNDS(target_checks_region, 0, 3)
{
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, GPU_LEN, NEAR_RMA_DATA),
			 0);
	near_table_remove(b.table, SIDE_KEY);
	if (_i)
		side_region(SIDE_KEY, _i == 1 ? NEAR_MAY_READ : NEAR_MAY_WRITE,
			    _i == 1 ? SIDE_LARGE : GPU_LEN - 1);
	side_fails(_i ? EACCES : EKEYREJECTED);
	ck_assert_uint_eq(b.events, 0);
	side_untouched();
}

/* Polls until the reply to b's request for a descriptor has come. */
static void until_descriptor(void)
{
	const struct near_mapping *first =
		near_container(b_to_a()->staging->mapped.mappings.next,
			       struct near_mapping, link);
	int i;

	for (i = 0; i < 5000 && first->fd < 0; i++) {
		rig_poll_ms(a.rig, 1);
		rig_poll_ms(b.rig, 1);
	}
	ck_assert_int_ge(first->fd, 0);
}

/*
 * a's memory is like that of CUDA's virtual memory functions: b can map it only
 * by a file descriptor. b must request this descriptor once, and then copy
 * itself.
 */
UNIT_TEST(descriptor_is_requested)
{
	uint32_t i;

	gpu_lend_region(NEAR_MAY_LEND, true);
	ck_assert_int_eq(near_listen(a.rig->port, -1), 0);
	ck_assert_int_eq(near_listen(b.rig->port, -1), 0);
	for (i = 1; near_rma_device_path(to_b) != NEAR_DEVICE_LENT ||
	     !gpu.map_calls; i++) {
		gpu_run(NEAR_WRITE, AT_A, GPU_LEN, i, true);
		expect_copied(GPU_LEN);
		/*
		 * b would repeat the request if the reply did not come for a
		 * while
		 */
		if (i == 1)
			until_descriptor();
	}
	ck_assert_int_eq(gpu.share_calls, 1);
	ck_assert_int_eq(gpu.map_calls, 1);
}

/*
 * b sends a message of host memory, and a fetches it to device memory. b's
 * device copies a message in one buffer (_i is 0). A message in two buffers (1)
 * is staged.
 */
UNIT_ROUNDS(message_is_copied_by_sender, 0, 2)
{
	const struct near_msg msg = { .len = GPU_LEN };
	const struct iovec from[] = {
		{ local, GPU_LEN - _i }, { local + GPU_LEN - 1, 1 },
	};
	const struct near_large how = { .iov = from, .count = 1 + _i,
					.cookie = local };
	const struct near_rndv *rndv = &a.rig->event[0].msg.rndv;
	struct near_rx_op *held;

	ck_assert_int_eq(near_send_large(b.rig->port, rig_peer(b.rig, a.rig),
					 &msg, &how), 0);
	rig_until(a.rig, b.rig, 1);
	held = near_recv_begin(a.rig->port, to_b, rndv, &a);
	ck_assert_int_eq(side_rma(.verb = NEAR_READ,
				  .flags = NEAR_RMA_MESSAGE | NEAR_RMA_BY_ID,
				  .addr = rndv->id - SIDE_START,
				  .local = GPU_BUF(GPU_LEN, GPU_LEN)), 0);
	side_until(1, true);
	ck_assert_mem_eq(gpu_at_a(AT_A), local, GPU_LEN);
	ways(!_i, _i);
	near_recv_end(a.rig->port, held, 0);
	rig_until_event(b.rig, a.rig, 1, RIG_SENT, 0);
}

/* a closes before b has read the request: b copies nothing. */
UNIT_ROUNDS(closing_initiator_revokes, 0, 2)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;

	/* opens the stage at b */
	gpu_run(verb, AT_A, 8, 1, true);
	memset(gpu.shadow + GPU_LEN, 77, GPU_LEN);
	memset(memory, 0, SIDE_LARGE);
	gpu.calls = 0;
	ck_assert_int_eq(gpu_rma(verb, AT_A, 0, GPU_LEN, 0), 0);
	rig_stop(a.rig);
	rig_poll(b.rig, 20);
	ck_assert_int_eq(gpu.calls, 0);
	ck_assert_uint_eq(gpu.shadow[2 * GPU_LEN - 1], 77);
	side_untouched();
}

/*
 * Sleeps 20 ms, so that a waits in near_close(); then polls b until the copy's
 * end.
 */
static void *end_copy(void *arg)
{
	usleep(20000);
	rig_poll(b.rig, 20);
	return NULL;
}

/* a closes while b copies: near_close() waits for the end of the copy. */
UNIT_TEST(closing_initiator_waits_for_copy)
{
	pthread_t thread;

	gpu.polls = 5;
	ck_assert_int_eq(gpu_rma(NEAR_READ, AT_A, 0, GPU_LEN, 0), 0);
	rig_poll(b.rig, 2);
	ck_assert_uint_eq(loan_at_b()->state, NEAR_LOAN_TAKEN);
	ck_assert_int_eq(gpu.under_way, 1);
	thread = unit_thread(end_copy, NULL);
	rig_stop(a.rig);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_mem_eq(gpu_at_a(AT_A), memory, GPU_LEN);
	unit_thread_end(thread);
}

/*
 * b closes after _i / 2 polls: before it has read the request, while it copies,
 * or after the copy. The copy and a's operation must end.
 */
UNIT_ROUNDS(closing_target_ends_copy, 0, 2 * 12)
{
	enum near_verb verb = _i % 2 ? NEAR_WRITE : NEAR_READ;

	gpu.polls = 3;
	ck_assert_int_eq(gpu_rma(verb, AT_A, 0, GPU_LEN, 0), 0);
	rig_poll(b.rig, _i / 2);
	rig_stop(b.rig);
	ck_assert_int_eq(gpu.under_way, 0);
	while (!a.done)
		rig_poll_ms(a.rig, 1);
	ck_assert(!a.err || a.err == ECONNRESET);
	ck_assert(!near_rma_busy(to_b));
}

/* a fails while b copies: b must release the mapping only after the copy. */
UNIT_TEST(failed_initiator_ends_copy)
{
	gpu.polls = 1000;
	ck_assert_int_eq(gpu_rma(NEAR_WRITE, AT_A, 0, GPU_LEN, 0), 0);
	rig_poll(b.rig, 2);
	ck_assert_int_eq(gpu.under_way, 1);
	near_peer_fail(b.rig->port, b_to_a()->peer);
	while (b_to_a()->staging)
		rig_poll_ms(b.rig, 1);
	ck_assert_int_eq(gpu.under_way, 0);
	ck_assert_ptr_eq(near_table_unmapped(b.table), &gpu.maps);
	gpu.maps--;
}

/* b must disconnect a peer that sends an invalid request with a loan. */
UNIT_ROUNDS(invalid_loan_disconnects, 0, 5)
{
	struct near_rma_slot slot = {
		.key = SIDE_KEY, .total = NEAR_LOAN_MIN, .verb = NEAR_WRITE,
		.flags = NEAR_RMA_STAGED | NEAR_RMA_LENT,
	};

	gpu_run(NEAR_WRITE, AT_A, 8, 1, true);
	switch (_i) {
	case 0: slot.op = NEAR_STAGE_CHUNKS; break;
	case 1: slot.len = 1; break;
	case 2: slot.offset = 1; break;
	case 3: slot.total = 0; break;
	case 4: slot.flags |= NEAR_RMA_BY_ID; break;
	}
	side_request(slot);
	side_poll(10);
	ck_assert_int_gt(b.rig->warnings, 0);
}
