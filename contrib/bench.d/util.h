/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions of duobench and mpibench that need neither libfabric nor MPI. */
#ifndef UTIL_H
#define UTIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { BN_PASS = 0, BN_FAIL = 1, BN_SKIP = 77 };

/*
 * Prints "!fail REASON" (in duobench, for BN_SKIP, "!skip REASON") and ends all
 * ranks. Each of the two programs defines this function.
 */
void bn_fail(int status, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), noreturn));

#define BN_DIE(...) bn_fail(BN_FAIL, __VA_ARGS__)

/* stat.c */
uint64_t bn_now(void);		/* time, ns */
double bn_percentile(uint64_t *sorted, size_t count, double percent);
void bn_print(double value, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void bn_print_ns(uint64_t *ns, size_t count, double divisor, const char *fmt,
		 ...) __attribute__((format(printf, 4, 5)));

/* cpu.c */
/*
 * Pins the calling thread, as this rank, to one of the CPUs that it may use.
 * Returns the number of these CPUs; 1 after a failure.
 */
int bn_pin(int rank);
void bn_fifo(void);

#endif /* UTIL_H */
