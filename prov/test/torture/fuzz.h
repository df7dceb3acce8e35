/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A mutator with a seed, in rounds: each round is a process of its own, which must end
 * well within a minute. A failure prints the seed of its round, which repeats it.
 *
 * TORTURE_SEED    seed of the first round (default 1)
 * TORTURE_INPUTS  inputs of a target (default 20000)
 * TORTURE_MS      time for a target, ms (default 2000): whichever comes first
 */
#ifndef TORTURE_FUZZ_H
#define TORTURE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_ROUND 500		/* inputs of a round */

/*
 * Calls round() in processes, until there were inputs enough; it does FUZZ_ROUND inputs.
 * Name: for the report.
 */
void fuzz_rounds(const char *name, void (*round)(void));
/* A random number, of this round's sequence. */
uint64_t fuzz_random(void);
/* One below end. */
static inline uint32_t fuzz_below(uint32_t end)
{
	return (uint32_t)(fuzz_random() % end);
}
/* True once in n calls. */
static inline bool fuzz_once_in(uint32_t n)
{
	return !fuzz_below(n);
}
/* A value that code is likely to stumble at: a limit, a small one, any. */
uint64_t fuzz_value(void);
/* Changes 1 to 8 aligned bytes somewhere in there. */
void fuzz_change(void *memory, size_t len);

#endif /* TORTURE_FUZZ_H */
