/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/proc.h"
#include "fuzz.h"
#include "suite.h"

#define FUZZ_HANG_S 600

static uint64_t state;

uint64_t fuzz_random(void)
{
	/* xorshift64* */
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 0x2545f4914f6cdd1du >> 16 | state << 48;
}

uint64_t fuzz_value(void)
{
	static const uint64_t edges[] = {
		0, 1, 2, 3, 7, 8, 47, 48, 49, 63, 64, 127, 255, 256, 4095, 4096,
		8192, 65535, 65536, 1u << 20, INT32_MAX, 1u << 31, UINT32_MAX,
		1ull << 32, 1ull << 47, INT64_MAX, 1ull << 63, UINT64_MAX,
	};

	switch (fuzz_below(4)) {
	case 0:
		return fuzz_below(16);
	case 1:
		return fuzz_random();
	case 2:
		return edges[fuzz_below(ARRAY_SIZE(edges))] + fuzz_below(3) - 1;
	default:
		return edges[fuzz_below(ARRAY_SIZE(edges))];
	}
}

void fuzz_change(void *memory, size_t len)
{
	size_t size = (size_t)1 << fuzz_below(4);
	size_t at = fuzz_random() % (len / size) * size;
	uint8_t *to = (uint8_t *)memory + at;
	uint64_t value;

	switch (fuzz_below(4)) {
	case 0:		/* flip a bit */
		*to ^= (uint8_t)(1u << fuzz_below(8));
		break;
	case 1:		/* add a number from -4 to 4 */
		value = 0;
		memcpy(&value, to, size);
		value += fuzz_below(9) - 4ull;
		memcpy(to, &value, size);
		break;
	default:
		value = fuzz_value();
		memcpy(to, &value, size);
	}
}

static void fuzz_one_round(const char *name, uint64_t seed, void (*round)(void))
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		state = seed * 0x9e3779b97f4a7c15u + 1;
		alarm(FUZZ_HANG_S);
		round();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(!status, "%s, TORTURE_SEED=%lu: %s, wait status %#x", name,
		      (unsigned long)seed, WIFSIGNALED(status) &&
		      WTERMSIG(status) == SIGALRM ? "hangs" : "fails", status);
}

void fuzz_rounds(const char *name, void (*round)(void))
{
	const uint64_t first = unit_number("TORTURE_SEED", 1);
	const uint64_t inputs = unit_number("TORTURE_INPUTS", 20000);
	uint64_t until_ms = duo_now_ms() + unit_number("TORTURE_MS", 2000);
	uint64_t seed;

	for (seed = first; (seed - first) * FUZZ_ROUND < inputs &&
	     (seed == first || duo_now_ms() < until_ms); seed++)
		fuzz_one_round(name, seed, round);
	fprintf(stderr, "torture: fuzz: %s: %lu inputs, seeds %lu to %lu\n", name,
		(unsigned long)((seed - first) * FUZZ_ROUND),
		(unsigned long)first, (unsigned long)seed - 1);
}
