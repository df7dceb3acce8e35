/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Time, percentiles, and output of values. */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "util.h"

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

void bn_print(double value, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(" %.6g\n", value);
	fflush(stdout);
}

/* Sorts ns[], and prints percentiles: "NAME.p50 VALUE", divided by divisor. */
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
