/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * MPI latency: ping-pong of ranks 0 and 1, each iteration timed; prints
 * "mpi.SIZE.pNN NS" lines (half round trips), "mpi-any" from any source.
 * mpilat [BUDGET_MS [q]]; q: fewer sizes.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <mpi.h>

#define MAX_ITERS 20000
#define MAX_SIZE (8 << 20)
#define WARM 64

static uint64_t samples[MAX_ITERS];
static char buf[MAX_SIZE];
static int rank;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static void pingpong(int size, int source, long count)
{
	uint64_t now, last = now_ns();
	long i;

	for (i = 0; i < count; i++) {
		if (!rank)
			MPI_Send(buf, size, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
		MPI_Recv(buf, size, MPI_BYTE, source, 7, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
		if (rank)
			MPI_Send(buf, size, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
		now = now_ns();
		samples[i] = now - last;
		last = now;
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

static void measure(const char *name, int size, bool any, long budget_ns)
{
	static const int percents[] = { 1, 10, 50, 90, 99 };
	int source = any ? MPI_ANY_SOURCE : !rank;
	uint64_t start;
	long count;
	size_t i;

	pingpong(size, source, WARM);
	MPI_Barrier(MPI_COMM_WORLD);
	start = now_ns();
	pingpong(size, source, WARM);
	count = budget_ns * WARM / (long) (now_ns() - start + 1);
	count = count < 16 ? 16 : count > MAX_ITERS ? MAX_ITERS : count;
	MPI_Bcast(&count, 1, MPI_LONG, 0, MPI_COMM_WORLD);
	MPI_Barrier(MPI_COMM_WORLD);
	pingpong(size, source, count);
	if (rank)
		return;
	qsort(samples, count, sizeof(*samples), compare);
	for (i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		printf("%s.%d.p%d %.1f\n", name, size, percents[i],
		       samples[(count - 1) * percents[i] / 100] / 2.0);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	long budget_ns = (argc > 1 ? atol(argv[1]) : 10) * 1000000L;
	bool few = argc > 2 && !strcmp(argv[2], "q");
	int size, ranks;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks == 2) {
		measure("warm", 8, false, budget_ns);
		for (size = 8; size <= MAX_SIZE; size *= few ? 128 : 4)
			measure("mpi", size, false, budget_ns);
		measure("mpi-any", 8, true, budget_ns);
	}
	MPI_Finalize();
	return ranks != 2;
}
