/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Time, percentiles, sizes. */

#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "bench.h"

uint64_t bn_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static int bn_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

double bn_percentile(uint64_t *sorted, size_t count, double percent)
{
	return sorted[(size_t) ((count - 1) * percent / 100 + 0.5)];
}

/* Sorts ns; prints "NAME.p50 VALUE" and others, each divided. */
void bn_print_ns(uint64_t *ns, size_t count, double divisor, const char *fmt,
		 ...)
{
	static const int percents[] = { 1, 10, 50, 90, 99 };
	char name[64];
	va_list args;
	size_t i;

	va_start(args, fmt);
	vsnprintf(name, sizeof(name), fmt, args);
	va_end(args);
	qsort(ns, count, sizeof(*ns), bn_compare);
	for (i = 0; i < BN_COUNT(percents); i++)
		bn_print(bn_percentile(ns, count, percents[i]) / divisor,
			 "%s.p%d", name, percents[i]);
}

size_t bn_sizes(const size_t **sizes)
{
	static const size_t few[] = { 1, 8, 64, 512, 4096, 65536, 1 << 20 };
	static const size_t all[] = {
		1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
		16384, 32768, 65536, 131072, 262144, 524288, 1 << 20, 2 << 20,
		4 << 20,
	};

	*sizes = bn.opts.few ? few : all;
	return bn.opts.few ? BN_COUNT(few) : BN_COUNT(all);
}
