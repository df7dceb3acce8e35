/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Random inputs from a seed, in rounds. Each round is a process, which must
 * succeed within 10 minutes. A failure prints the seed of the failed round. If
 * TORTURE_SEED is this seed, the first round repeats the failed one.
 *
 * TORTURE_SEED    seed of the first round (default 1)
 * TORTURE_INPUTS  number of inputs of a test (default 20000)
 * TORTURE_MS      time of a test, ms (default 2000)
 *
 * A test ends at the first of the two limits.
 */
#ifndef TORTURE_FUZZ_H
#define TORTURE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_ROUND 500		/* number of inputs in a round */

/*
 * Runs round(), of FUZZ_ROUND inputs, in one process after another until a
 * limit is reached. "name" is for the report.
 */
void fuzz_rounds(const char *name, void (*round)(void));
/* Returns the next random number of this round. */
uint64_t fuzz_random(void);
/* Returns a random number below end. */
static inline uint32_t fuzz_below(uint32_t end)
{
	return (uint32_t)(fuzz_random() % end);
}
/* True in one of n calls, at random. */
static inline bool fuzz_once_in(uint32_t n)
{
	return !fuzz_below(n);
}
/* Returns a value that is likely to cause an error, or any value. */
uint64_t fuzz_value(void);
/* Changes 1 to 8 aligned bytes at a random place of the memory. */
void fuzz_change(void *memory, size_t len);

#endif /* TORTURE_FUZZ_H */
