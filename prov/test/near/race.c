/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Data races in rings and cooperative copies, between threads with the same
 * mapping, because ThreadSanitizer ignores other processes and mappings
 */

#include <sched.h>

#include "near/msg/coop.h"
#include "unit.h"

#define MESSAGES 50000
#define ROUNDS 2000
#define STEP 64u
#define STEPS 9u

static struct near_place place;
static void *memory;

static void setup(void)
{
	near_place(0, 0, near_tier_least(), &place);
	memory = aligned_alloc(NEAR_PAGE, place.size);
	memset(memory, 0, place.size);
}

UNIT_SETUP(teardown, free(memory));

/* Returns the length of message i's data: every third message has some. */
static size_t length(uint32_t i)
{
	return i % 3 ? 0 : 64 + i % 500;
}

static void *produce(void *none)
{
	struct near_slot *slot;
	struct near_tx tx;
	uint8_t *data;
	uint64_t end;
	uint32_t i;

	near_tx_init(&tx, memory, &place);
	for (i = 0; i < MESSAGES; i++) {
		while (!(slot = near_tx_slot(&tx)))
			sched_yield();
		if (length(i)) {
			while (!(data = near_tx_data(&tx, length(i), &end)))
				sched_yield();
			memset(data, (int)i, length(i));
			tx.dtail = end;
		}
		slot->tag = i;
		near_tx_publish(&tx, slot, 0);
	}
	return NULL;
}

UNIT_CASE("race", setup, teardown);

UNIT_TEST(ring_with_threads_keeps_order)
{
	const struct near_slot *slot;
	const uint8_t *data;
	pthread_t producer;
	struct near_rx rx;
	uint64_t word;
	uint32_t i;

	near_rx_init(&rx, memory, &place);
	producer = unit_thread(produce, NULL);
	for (i = 0; i < MESSAGES; i++) {
		while (!(slot = near_rx_slot(&rx, &word)))
			sched_yield();
		ck_assert_uint_eq(slot->tag, i);
		rx.dnext = rx.dhead;
		if (length(i)) {
			data = near_rx_data(&rx, length(i));
			ck_assert_uint_eq(data[0], (uint8_t)i);
			ck_assert_uint_eq(data[length(i) - 1], (uint8_t)i);
		}
		near_rx_release(&rx);
	}
	unit_thread_end(producer);
}

static uint8_t from[STEP * STEPS], to[STEP * STEPS];
/* round that the sender may join; stored with RELEASE */
static uint32_t delegated;
static uint32_t taken;		/* last round in which the sender took a step */

static void copy(int32_t step)
{
	memcpy(to + (uint32_t)step * STEP, from + (uint32_t)step * STEP, STEP);
}

static void *coop_sender(void *none)
{
	struct near_ctl *ctl = memory;
	uint32_t round, wrote;
	int32_t n;

	for (round = 1; round <= ROUNDS; round++) {
		while (__atomic_load_n(&delegated, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		wrote = 0;
		while ((n = near_coop_take(ctl, round, STEPS, true)) >= 0) {
			__atomic_store_n(&taken, round, __ATOMIC_RELEASE);
			copy((int32_t)STEPS - 1 - n);
			near_coop_wrote(ctl, round, ++wrote, false);
		}
	}
	return NULL;
}

/*
 * In every fourth round, the receiver waits until the sender has taken a step,
 * so that both ends copy.
 */
UNIT_TEST(coop_with_threads_copies_each_step_once)
{
	struct near_ctl *ctl = memory;
	uint32_t round, claimed, wrote, by_sender = 0;
	pthread_t sender;
	int32_t n;

	rig_fill(from, sizeof(from), 4);
	sender = unit_thread(coop_sender, NULL);
	for (round = 1; round <= ROUNDS; round++) {
		memset(to, 0, sizeof(to));
		near_coop_begin(ctl, round);
		__atomic_store_n(&delegated, round, __ATOMIC_RELEASE);
		while (round % 4 == 0 &&
		       __atomic_load_n(&taken, __ATOMIC_ACQUIRE) < round)
			sched_yield();
		while ((n = near_coop_take(ctl, round, STEPS, false)) >= 0) {
			copy(n);
			if (round % 2)
				sched_yield();
		}
		claimed = near_coop_end(ctl);
		while (claimed &&
		       !near_coop_sender_ended(ctl, round, claimed, &wrote))
			sched_yield();
		by_sender += claimed;
		ck_assert_mem_eq(to, from, sizeof(to));
	}
	unit_thread_end(sender);
	ck_assert_uint_ge(by_sender, ROUNDS / 4);
}
