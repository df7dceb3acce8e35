/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * mpibench: what an MPI's operations take, by the OSU benchmarks' method.
 * mpirun starts it; it pins each rank to a core, runs the tests that -t names
 * and prints "METRIC VALUE" lines. contrib/bench runs it for one
 * configuration after the other and compares.
 *
 * Metrics are TEST-RANKS.SIZE, but for the latency between two ranks.
 */
#ifndef MPIBENCH_H
#define MPIBENCH_H

#include <mpi.h>

#include "util.h"

#define MB_MAX_SIZES 32

struct mb {
	char *tests;		/* -t: comma-separated; may be "init" alone */
	const char *label;	/* -l: of these ranks, in names of metrics */
	long budget_ns;		/* -b (ms): time per size */
	bool few;		/* -q: fewer sizes */
	bool allocated;		/* -w: windows are MPI's memory */
	size_t size[MB_MAX_SIZES];	/* -s: instead of each test's own */
	int sizes;
	int rank, ranks;
	int cpus;
	char *sbuf, *rbuf;	/* mb_alloc */
};

extern struct mb mb;

/* mpi_main.c */
int mb_sizes(size_t largest, const size_t **sizes);
void mb_alloc(size_t len);
long mb_agree(long value);	/* rank 0's value, for all */

/* Iterations that fill the budget, if count of them took ns. All ranks. */
long mb_count(uint64_t ns, long count, long least, long most);

/* the tests */
void mb_lat(void);
void mb_rate(void);
void mb_alltoallw(void);
void mb_alltoall(void);
void mb_allreduce(void);
void mb_bcast(void);
void mb_barrier(void);
void mb_osc_put(void);
void mb_osc_get(void);
void mb_osc_fop(void);

/* mpi_hop.c */
void mb_hop(const char *name);

#endif /* MPIBENCH_H */
