/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The shm wire's ring, and producers that are killed while they have a slot. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"
#include "wire_shm.h"

#define SLOTS 64
#define BLOCKS 8
#define PAYLOAD 1000
#define BIG (SE_RING_INLINE + 1)

static struct se_ring *ring_new(void)
{
	size_t size = se_ring_size(SLOTS, BLOCKS, PAYLOAD);
	struct se_ring *ring = aligned_alloc(64, (size + 63) & ~63ul);

	ck_assert_ptr_nonnull(ring);
	memset(ring, 0, size);
	se_ring_init(ring, SLOTS, BLOCKS, PAYLOAD);
	ck_assert(!se_ring_valid(ring, size));
	ring->magic = SE_RING_MAGIC;
	ck_assert(se_ring_valid(ring, size));
	ck_assert(!se_ring_valid(ring, size - 1));
	ck_assert_uint_ge(se_ring_payload(ring), PAYLOAD);
	return ring;
}

static bool ring_put(struct se_ring *ring, uint32_t len, uint64_t *pos)
{
	struct se_ring_slot *slot;
	uint32_t hint = 0;

	slot = se_ring_claim(ring, 7, len, &hint, pos);
	if (!slot)
		return false;
	slot->pkt.len = len;
	se_ring_publish(slot, *pos);
	return true;
}

/* All slots can be claimed, and again after their release. */
START_TEST(ring_is_bounded)
{
	struct se_ring *ring = ring_new();
	uint64_t pos, tail, lap;

	for (lap = 0, tail = 0; lap < 3; lap++) {
		while (ring_put(ring, 8, &pos))
			ck_assert_uint_lt(pos, tail + SLOTS);
		ck_assert_uint_eq(pos, tail + SLOTS - 1);
		for (; tail <= pos; tail++) {
			ck_assert_int_eq(se_ring_state(ring, tail),
					 SE_RING_READY);
			se_ring_release(ring, tail, false);
		}
		ck_assert_int_eq(se_ring_state(ring, tail), SE_RING_FREE);
	}
	free(ring);
}
END_TEST

/* Large packets use all blocks. Small ones still find slots. */
START_TEST(blocks_are_bounded)
{
	struct se_ring *ring = ring_new();
	uint64_t pos, i;

	for (i = 0; i < BLOCKS; i++)
		ck_assert(ring_put(ring, BIG, &pos));
	ck_assert(!ring_put(ring, BIG, &pos));
	ck_assert(ring_put(ring, SE_RING_INLINE, &pos));
	se_ring_release(ring, 0, true);
	ck_assert(ring_put(ring, BIG, &pos));
	ck_assert_ptr_null(se_ring_data(ring, se_ring_slot(ring, pos),
					se_ring_payload(ring) + 1));
	se_ring_slot(ring, pos)->block = BLOCKS;
	ck_assert_ptr_null(se_ring_data(ring, se_ring_slot(ring, pos), BIG));
	free(ring);
}
END_TEST

/* A producer finds the first free slot even if "head" is stale. */
START_TEST(head_is_a_hint)
{
	struct se_ring *ring = ring_new();
	uint64_t pos = 0, i;

	for (i = 0; i < 1000; i++) {
		ring->head = i * 7 % (i + 1);
		ck_assert(ring_put(ring, 8, &pos));
		ck_assert_uint_eq(pos, i);
		if (i >= 20)
			se_ring_release(ring, i - 20, false);
	}
	ck_assert_uint_eq(se_ring_claimant(ring, i), 0);
	ring->head = 0;
	ck_assert_ptr_nonnull(se_ring_claim(ring, 77, 8, &(uint32_t){ 0 },
					    &pos));
	ck_assert_uint_eq(pos, i);
	ck_assert_int_eq(se_ring_state(ring, i), SE_RING_CLAIMED);
	ck_assert_uint_eq(se_ring_claimant(ring, i), 77);
	ring->head = 0;
	ck_assert(ring_put(ring, 8, &pos));
	ck_assert_uint_eq(pos, i + 1);
	free(ring);
}
END_TEST

#define PRODUCERS 4
#define EACH 20000

struct producer {
	struct se_ring *ring;
	uint32_t id;
};

static uint32_t producer_len(uint32_t id, uint32_t n)
{
	return n * id % 3 ? 8 : PAYLOAD - n % 100;
}

static void *producer_run(void *arg)
{
	struct producer *producer = arg;
	uint32_t n, len, hint = producer->id;
	struct se_ring_slot *slot;
	uint64_t pos;

	for (n = 0; n < EACH; n++) {
		len = producer_len(producer->id, n);
		while (!(slot = se_ring_claim(producer->ring, producer->id,
					      len, &hint, &pos)))
			sched_yield();
		slot->pkt.src_qpn = producer->id;
		slot->pkt.seq = n;
		slot->pkt.len = len;
		memset(se_ring_data(producer->ring, slot, len), (int)n, len);
		se_ring_publish(slot, pos);
	}
	return NULL;
}

static void consumer_check(struct se_ring *ring, uint64_t tail, uint32_t *next)
{
	struct se_ring_slot *slot = se_ring_slot(ring, tail);
	uint32_t id = slot->pkt.src_qpn, n = slot->pkt.seq, i;
	uint8_t *data = se_ring_data(ring, slot, slot->pkt.len);
	bool good = n == next[id]++ && slot->pkt.len == producer_len(id, n);

	for (i = 0; good && i < slot->pkt.len; i++)
		good = data[i] == (uint8_t)n;
	if (!good) /* an assertion for each byte would take minutes */
		ck_abort_msg("position %lu: producer %u, number %u", tail, id,
			     n);
	se_ring_release(ring, tail, slot->pkt.len > SE_RING_INLINE);
}

START_TEST(concurrent_producers_keep_packets)
{
	struct producer producer[PRODUCERS];
	uint32_t next[PRODUCERS + 1] = { 0 }, owner;
	struct se_ring *ring = ring_new();
	pthread_t thread[PRODUCERS];
	uint64_t tail;
	uint32_t i;

	for (i = 0; i < PRODUCERS; i++) {
		producer[i] = (struct producer){ ring, i + 1 };
		ck_assert_int_eq(pthread_create(&thread[i], NULL, producer_run,
						&producer[i]), 0);
	}
	for (tail = 0; tail < PRODUCERS * EACH; tail++) {
		while (se_ring_state(ring, tail) != SE_RING_READY)
			sched_yield();
		consumer_check(ring, tail, next);
	}
	for (i = 0; i < PRODUCERS; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	ck_assert_uint_eq(se_ring_owned_block(ring, 0, &owner),
			  SE_RING_NO_BLOCK);
	free(ring);
}
END_TEST

/* In another process: opens a node, and claims a slot of the target's ring. */
static struct se_ring_slot *slot_holder(const struct rig_target *target,
					struct rig_node *node, uint64_t *pos)
{
	struct se_qp *qp;
	struct se_flow *flow;
	struct se_shm_peer *peer;
	struct rig_to to;
	char path[SE_SHM_PATH];
	struct stat st;

	rig_open(node, NULL);
	to = rig_to(node, &target->gid, target->qpn);
	ck_assert_int_eq(rig_send(node, &to, 1, 0, 8), 0);
	qp = (struct se_qp *)node->qp;
	flow = se_flow_find(qp, &target->gid, target->qpn);
	ck_assert_ptr_nonnull(flow);
	peer = flow->wire_flow;
	se_shm_path(path, &node->gid, node->qp->qp_num);
	ck_assert_int_eq(stat(path, &st), 0);
	return se_ring_claim(peer->ring, se_shm_id(&st), BIG,
			     &peer->block_hint, pos);
}

/* In another process: claims a slot and exits, but remains as a zombie. */
static void die_with_slot(const struct rig_target *target, int out)
{
	struct rig_node node;
	uint64_t pos;

	if (slot_holder(target, &node, &pos) && write(out, "", 1) == 1)
		_exit(0);
}

/* In a new pid namespace: keeps a slot until the second rig_crew_call(). */
static void hold_slot(const struct rig_target *target, int out)
{
	struct se_ring_slot *slot;
	struct rig_target again;
	struct rig_node node;
	uint64_t pos;
	int status;

	if (unshare(CLONE_NEWPID)) {
		status = write(out, "s", 1) == 1 ? 0 : 1;
		_exit(status);
	}
	if (fork()) {
		wait(&status);
		_exit(0);
	}
	slot = slot_holder(target, &node, &pos);
	if (!slot || write(out, "c", 1) != 1)
		_exit(1);
	if (read(target->in, &again, sizeof(again)) != sizeof(again))
		_exit(1);
	slot->pkt = (struct se_pkt){ .type = 0 };
	se_ring_publish(slot, pos);
	_exit(write(out, "p", 1) == 1 ? 0 : 1);
}

/*
 * b sends a message behind the slot that another process has claimed. a
 * receives only the message that the other process has sent before the claim.
 */
static void send_behind(struct rig_node *a, struct rig_node *b)
{
	struct rig_to to = rig_to_node(b, a);
	struct rig_wc wc;

	ck_assert_int_eq(rig_recv(a, 2, 0, 64), 0);
	ck_assert_int_eq(rig_send(b, &to, 5, 0, 8), 0);
	ck_assert(rig_wait(a->rcq, &wc, b, RIG_WAIT_MS));
	ck_assert_uint_eq(wc.wr_id, 1);
}

START_TEST(slot_of_dead_producer_is_skipped)
{
	struct rig_node a, b;
	struct rig_crew crew;
	struct rig_wc wc;
	uint32_t owner;

	rig_wire(RIG_SHM);
	rig_crew_start(&crew, 1, die_with_slot);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
	rig_crew_call(&crew, &a);
	ck_assert_int_eq(rig_crew_hear(&crew, NULL, RIG_WAIT_MS), 0);
	send_behind(&a, &b);
	ck_assert_msg(rig_wait(a.rcq, &wc, &b, RIG_WAIT_MS), "ring blocked");
	ck_assert_uint_eq(wc.wr_id, 2);
	/* the slot's block is freed, too */
	((struct se_qp *)a.qp)->wire->tidy((struct se_qp *)a.qp);
	ck_assert_uint_eq(se_ring_owned_block(*(struct se_ring **)
				((struct se_qp *)a.qp)->wire_qp, 0, &owner),
			  SE_RING_NO_BLOCK);
	rig_crew_end(&crew, 1);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

START_TEST(slot_of_slow_producer_is_waited_for)
{
	struct rig_node a, b;
	struct rig_crew crew;
	struct rig_wc wc;
	int heard;

	rig_wire(RIG_SHM);
	rig_crew_start(&crew, 1, hold_slot);
	rig_open(&a, NULL);
	rig_open(&b, NULL);
	ck_assert_int_eq(rig_recv(&a, 1, 0, 64), 0);
	rig_crew_call(&crew, &a);
	heard = rig_crew_hear(&crew, NULL, RIG_WAIT_MS);
	if (heard == 'c') {
		send_behind(&a, &b);
		ck_assert(!rig_wait(a.rcq, &wc, &b, 300));
		rig_crew_call(&crew, &a);
		ck_assert_int_eq(rig_crew_hear(&crew, &a, RIG_WAIT_MS), 'p');
		ck_assert(rig_wait(a.rcq, &wc, &b, RIG_WAIT_MS));
		ck_assert_uint_eq(wc.wr_id, 2);
	} else {
		/* no permission for a pid namespace: nothing to test */
		ck_assert_int_eq(heard, 's');
	}
	rig_crew_end(&crew, 1);
	rig_close(&a);
	rig_close(&b);
}
END_TEST

Suite *suite_ring(void)
{
	Suite *suite = suite_create("ring");
	TCase *tc = tcase_create("ring");

	tcase_add_test(tc, ring_is_bounded);
	tcase_add_test(tc, blocks_are_bounded);
	tcase_add_test(tc, head_is_a_hint);
	tcase_add_test(tc, concurrent_producers_keep_packets);
	tcase_add_test(tc, slot_of_dead_producer_is_skipped);
	tcase_add_test(tc, slot_of_slow_producer_is_waited_for);
	suite_add_tcase(suite, tc);
	return suite;
}
