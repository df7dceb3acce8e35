/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Cooperative copy: both ends copy one message at the same time, in steps
 * (docs/near/protocol.md). The receiver reads steps from the first on, and the
 * sender writes steps from the last on. Each cooperative copy over a ring has a
 * number, its round: 1 or more; 0: no copy. A ring has at most one cooperative
 * copy at a time.
 */
#ifndef NEAR_MSG_COOP_H
#define NEAR_MSG_COOP_H

#include <stdbool.h>

#include "near/link/copy.h"
#include "near/link/shm.h"

/* length of the shortest message that both ends copy, bytes */
#define NEAR_COOP_MIN (64u << 10)
#define NEAR_COOP_PART (128u << 10)	/* maximum length of a step, bytes */
#define NEAR_COOP_STEPS 0xffffu	/* maximum number of steps of a message */

/*
 * Fields of two words in struct near_ctl, from the high bits to the low bits,
 * with the number of bits in parentheses:
 * - steps: round (32), steps taken by the sender (16), by the receiver (16)
 * - wrote: round (32), unused (15), NEAR_COOP_FAILED (1), steps written by the
 *   sender (16)
 */
#define NEAR_COOP_FAILED (1u << 16)

/*
 * Returns the length of a step, bytes: half of the message, rounded up to
 * NEAR_PAGE, but at most NEAR_COOP_PART. 0: no cooperative copy is possible,
 * because the message is empty or has too many steps.
 */
static inline uint32_t near_coop_step(uint64_t len)
{
	uint64_t page = NEAR_PAGE,
		 step = (len / 2 + len % 2 + page - 1) & -page;

	if (step > NEAR_COOP_PART)
		step = NEAR_COOP_PART;
	return len && len / step < NEAR_COOP_STEPS ? (uint32_t)step : 0;
}

static inline uint32_t near_coop_steps(uint64_t len, uint32_t step)
{
	return (uint32_t)((len + step - 1) / step);
}

static inline uint32_t near_coop_low(uint64_t word)
{
	return (uint32_t)(word & 0xffff);
}

static inline uint32_t near_coop_high(uint64_t word)
{
	return (uint32_t)(word >> 16 & 0xffff);
}

/* Begins a round, at the receiver. */
static inline void near_coop_begin(struct near_ctl *ctl, uint32_t round)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32, __ATOMIC_RELAXED);
	/* message passing: pairs with the acquire in near_coop_take() */
	__atomic_store_n(&ctl->steps, (uint64_t)round << 32,
			 __ATOMIC_RELEASE);
}

/*
 * Takes a step for one end. sender: true if this end is the sender. all: number
 * of steps of the message. Returns the number of steps that this end had taken
 * before; -1: all steps are taken, or the round has ended.
 */
static inline int32_t near_coop_take(struct near_ctl *ctl, uint32_t round,
				     uint32_t all, bool sender)
{
	uint64_t word = __atomic_load_n(&ctl->steps, __ATOMIC_ACQUIRE);
	uint64_t one = sender ? 1u << 16 : 1;

	do {
		if (word >> 32 != round ||
		    near_coop_low(word) + near_coop_high(word) >= all)
			return -1;
	} while (!__atomic_compare_exchange_n(&ctl->steps, &word, word + one,
					      true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return sender ? near_coop_high(word) : near_coop_low(word);
}

/*
 * Ends the round, at the receiver: neither end can take a further step. Returns
 * the number of steps that the sender has taken.
 */
static inline uint32_t near_coop_end(struct near_ctl *ctl)
{
	return near_coop_high(
		__atomic_exchange_n(&ctl->steps, 0, __ATOMIC_ACQ_REL));
}

/*
 * Stores the number of steps that the sender has written; the sender calls this
 * function. failed: a write has failed, so the sender takes no more steps.
 * Message passing: pairs with the acquire in near_coop_sender_ended().
 */
static inline void near_coop_wrote(struct near_ctl *ctl, uint32_t round,
				   uint32_t steps, bool failed)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32 | steps |
			 (failed ? NEAR_COOP_FAILED : 0), __ATOMIC_RELEASE);
}

/*
 * True if the sender writes no more steps: it has written all steps that it has
 * taken, or a write has failed. Stores the number of written steps in *steps.
 * sender_steps: result of near_coop_end(). Message passing: pairs with the
 * release in near_coop_wrote().
 */
static inline bool near_coop_sender_ended(const struct near_ctl *ctl,
					  uint32_t round, uint32_t sender_steps,
					  uint32_t *steps)
{
	uint64_t wrote = __atomic_load_n(&ctl->wrote, __ATOMIC_ACQUIRE);

	*steps = near_coop_low(wrote);
	if (*steps > sender_steps)	/* only a faulty sender stores more */
		*steps = sender_steps;
	return wrote >> 32 == round &&
	       (wrote & NEAR_COOP_FAILED || *steps == sender_steps);
}

#endif /* NEAR_MSG_COOP_H */
