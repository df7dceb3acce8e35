/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Cooperative copy of a large message, in steps. The receiver takes steps from
 * the first on and reads each from the sender's memory. The sender takes steps
 * from the last on and writes each into the receiver's. They stop where they
 * meet, so a busy end leaves steps to the other. near_ctl.claims counts the
 * steps taken, for one message at a time.
 */
#ifndef NEAR_MSG_COOP_H
#define NEAR_MSG_COOP_H

#include <stdbool.h>

#include "near/link/copy.h"
#include "near/link/shm.h"

#define NEAR_COOP_MIN (64u << 10)	/* bytes; shorter: single copy */
#define NEAR_COOP_PART (128u << 10)	/* bytes of a step, at most */
#define NEAR_COOP_STEPS 0xffffu	/* steps of a message, at most */

/* near_ctl.claims, bits: round 32 | sender's steps 16 | receiver's steps 16 */
/* near_ctl.wrote, bits: round 32 | failed 1 | steps written by the sender 16 */
#define NEAR_COOP_FAILED (1u << 16)

/*
 * Returns the size of a step: half the message, within limits, in whole pages;
 * 0: empty or too long. A step costs a system call, as much as some KiB.
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

/* Begins a round, for the receiver: no steps are taken. */
static inline void near_coop_begin(struct near_ctl *ctl, uint32_t round)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32, __ATOMIC_RELAXED);
	/* published to the sender by the release of a slot */
	__atomic_store_n(&ctl->claims, (uint64_t)round << 32,
			 __ATOMIC_RELEASE);
}

/*
 * Takes a step for the sender or the receiver. Returns the number of steps that
 * this end had taken before; -1: none is left.
 */
static inline int32_t near_coop_take(struct near_ctl *ctl, uint32_t round,
				     uint32_t all, bool sender)
{
	uint64_t word = __atomic_load_n(&ctl->claims, __ATOMIC_ACQUIRE);
	uint64_t one = sender ? 1u << 16 : 1;

	do {
		if (word >> 32 != round ||
		    near_coop_low(word) + near_coop_high(word) >= all)
			return -1;
	} while (!__atomic_compare_exchange_n(&ctl->claims, &word, word + one,
					      true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return sender ? near_coop_high(word) : near_coop_low(word);
}

/* Ends the round, for the receiver. Returns how many steps the sender took. */
static inline uint32_t near_coop_end(struct near_ctl *ctl)
{
	/* 0 is no round */
	return near_coop_high(
		__atomic_exchange_n(&ctl->claims, 0, __ATOMIC_ACQ_REL));
}

/* Reports the steps that the sender has written; failed: not the last taken. */
static inline void near_coop_wrote(struct near_ctl *ctl, uint32_t round,
				   uint32_t steps, bool failed)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32 | steps |
			 (failed ? NEAR_COOP_FAILED : 0), __ATOMIC_RELEASE);
}

/*
 * For the receiver. True if the sender has ended the steps that it took before
 * near_coop_end(). *steps: the number written. Pairs with near_coop_wrote().
 */
static inline bool near_coop_over(const struct near_ctl *ctl, uint32_t round,
				  uint32_t claimed, uint32_t *steps)
{
	uint64_t wrote = __atomic_load_n(&ctl->wrote, __ATOMIC_ACQUIRE);

	*steps = near_coop_low(wrote);
	if (*steps > claimed)	/* no valid sender stores that */
		*steps = claimed;
	return wrote >> 32 == round &&
	       (wrote & NEAR_COOP_FAILED || *steps == claimed);
}

#endif /* NEAR_MSG_COOP_H */
