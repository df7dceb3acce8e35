/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * mpibench: measures an MPI library as the OSU benchmarks do. mpirun starts the
 * ranks. Each rank pins itself to a CPU and runs the tests of -t. Rank 0 prints
 * "METRIC VALUE" lines. contrib/bench runs mpibench for each configuration, and
 * compares their values. The names of metrics contain the test, and
 * - in tests with all ranks, the label of -l;
 * - in tests with messages of several sizes, ".SIZE" at the end.
 */
#ifndef MPIBENCH_H
#define MPIBENCH_H

#include <mpi.h>

#include "util.h"

#define MB_MAX_SIZES 32
#define MB_TAG 7

struct mb {
	/*
	 * -t: tests, separated by commas. "init" stands for no test: each run
	 * measures MPI_Init(), the first message and the memory anyway.
	 */
	char *tests;
	const char *label;	/* -l: part of the names of metrics */
	long budget_ns;		/* time per size, ns; -b has it in ms */
	bool few;		/* -q: use fewer sizes */
	bool allocated;		/* -w: MPI allocates the windows */
	bool multiple; /* MPI_THREAD_MULTIPLE, for the test "threads" */
	size_t size[MB_MAX_SIZES]; /* -s: sizes, in place of each test's own */
	int sizes;
	int rank, ranks;
	int cpus;
	char *sbuf, *rbuf;	/* buffers of mb_alloc() */
};

extern struct mb mb;

/* mpi_main.c */
int mb_sizes(size_t largest, const size_t **sizes);
void mb_alloc(size_t len);
long mb_agree(long value);	/* returns the value of rank 0 in all ranks */

/*
 * Returns the number of iterations that fit in the time budget, but at least
 * "least" and at most "most". "count" iterations have taken the time "ns".
 * Called by all ranks.
 */
long mb_count(uint64_t ns, long count, long least, long most);

/* the tests */
void mb_lat(void);
void mb_cold(void);
void mb_halo(void);
void mb_threads(void);
void mb_rate(void);
void mb_bibw(void);
/* Measures this collective. Returns false if the name is unknown. */
bool mb_collective(const char *name);
void mb_osc_put(void);
void mb_osc_get(void);
void mb_osc_fop(void);

/* mpi_hop.c */
void mb_hop(const char *name);

/*
 * Returns a page of zeros for ranks 0 and 1, which the caller unmaps; NULL in
 * other ranks, and after a failure. Called by all ranks.
 */
void *mb_share(void);

#endif /* MPIBENCH_H */
