/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A large message that both ends copy. It is cut into steps. The receiver
 * claims them from the first on and reads each out of the sender's memory, the
 * sender from the last on and writes each into the receiver's, until they
 * meet: an end that is busy elsewhere leaves all to the other. The word of
 * claims lies in the ring's control lines; one message at a time uses it.
 *
 * The sender's claims are over when near_ctl.wrote says so, before which the
 * receiver must not give its buffer away.
 */
#ifndef NEAR_MSG_COOP_H
#define NEAR_MSG_COOP_H

#include <stdbool.h>

#include "near/link/copy.h"
#include "near/link/shm.h"

#define NEAR_COOP_MIN (64u << 10)	/* bytes: shorter ones are read */
#define NEAR_COOP_PART (128u << 10)	/* of a step, at most */
#define NEAR_COOP_STEPS 0xffffu	/* at most */

/* claims: round 32 | the sender's 16 | the receiver's 16 */
/* wrote: round 32 | it gave up 1 | steps it has written 16 */
#define NEAR_COOP_FAILED (1u << 16)

/*
 * A half of the message, within limits, in whole pages: each step is a call of
 * the system's, which costs as much as copying some KiB. 0: nothing, or too long.
 */
static inline uint32_t near_coop_step(uint64_t len)
{
	uint64_t page = NEAR_PAGE, step = (len / 2 + len % 2 + page - 1) & -page;

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

/* The receiver's: a new round begins, nothing is claimed. */
static inline void near_coop_begin(struct near_ctl *ctl, uint32_t round)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32, __ATOMIC_RELAXED);
	/* the sender hears of it by a slot, which is released */
	__atomic_store_n(&ctl->claims, (uint64_t)round << 32,
			 __ATOMIC_RELEASE);
}

/*
 * Claims count steps, for the sender or the receiver, if so many are left of
 * all; returns how many either has claimed before, -1: there are none.
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

/* The receiver's: no more claims. Returns how many are the sender's. */
static inline uint32_t near_coop_end(struct near_ctl *ctl)
{
	/* no round has this number */
	return near_coop_high(
		__atomic_exchange_n(&ctl->claims, 0, __ATOMIC_ACQ_REL));
}

/* The sender's: so many are written; failed: it gives up its last claim. */
static inline void near_coop_wrote(struct near_ctl *ctl, uint32_t round,
				   uint32_t steps, bool failed)
{
	__atomic_store_n(&ctl->wrote, (uint64_t)round << 32 | steps |
			 (failed ? NEAR_COOP_FAILED : 0), __ATOMIC_RELEASE);
}

/*
 * The receiver's, after near_coop_end() said claimed: whether all of these are
 * over, and in *steps how many of them were written.
 */
static inline bool near_coop_over(const struct near_ctl *ctl, uint32_t round,
				  uint32_t claimed, uint32_t *steps)
{
	uint64_t wrote = __atomic_load_n(&ctl->wrote, __ATOMIC_ACQUIRE);

	*steps = near_coop_low(wrote);
	if (*steps > claimed)	/* no sender of ours says so */
		*steps = claimed;
	return wrote >> 32 == round &&
	       (wrote & NEAR_COOP_FAILED || *steps == claimed);
}

#endif /* NEAR_MSG_COOP_H */
