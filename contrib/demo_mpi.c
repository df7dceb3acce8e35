/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Ping-pong between rank 0 and each other rank, verified; then all ranks send
 * to rank 0, which receives from any source. -l prints "size us" lines: half
 * the median round trip to rank 1. Exit status 0: all data is correct.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SIZE (4 << 20)
#define MAX_ROUNDS 1000		/* for a median, with -l */
#define ROUNDS 50
#define ANY_ROUNDS 200

static int rank, ranks, errors;
static unsigned char *tx, *rx;

static void fill(unsigned char *buf, int size, int seed)
{
	int i;

	for (i = 0; i < size; i++)
		buf[i] = (unsigned char)(i * 7 + seed);
}

static void verify(const unsigned char *buf, int size, int seed)
{
	int i;

	for (i = 0; i < size; i++) {
		if (buf[i] == (unsigned char)(i * 7 + seed))
			continue;
		if (!errors++)
			fprintf(stderr, "rank %d: byte %d of %d is wrong\n",
				rank, i, size);
		return;
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void ping(int peer, int size, int rounds, double *us)
{
	double start;
	int i;

	for (i = 0; i < rounds; i++) {
		start = MPI_Wtime();
		if (rank == 0) {
			MPI_Send(tx, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
			MPI_Recv(rx, size, MPI_BYTE, peer, 2, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(rx, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD,
				 MPI_STATUS_IGNORE);
			MPI_Send(tx, size, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
		}
		us[i] = (MPI_Wtime() - start) / 2 * 1e6;
	}
}

static void pingpong(int peer, int print)
{
	static double us[MAX_ROUNDS];
	int size, rounds;

	for (size = 8; size <= MAX_SIZE; size *= 8) {
		rounds = print && size <= 65536 ? MAX_ROUNDS : ROUNDS;
		fill(tx, size, rank);
		memset(rx, 0, size);
		ping(peer, size, rounds, us);
		verify(rx, size, rank ? 0 : peer);
		qsort(us, rounds, sizeof(us[0]), compare);
		if (print && rank == 0)
			printf("%d %.2f\n", size, us[rounds / 2]);
	}
}

/* Checks that messages from each source arrive in order. */
static void any_source(void)
{
	int *next = calloc(ranks, sizeof(*next)), i, value;
	MPI_Status status;

	for (i = 0; rank && i < ANY_ROUNDS; i++)
		MPI_Send(&i, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
	for (i = 0; !rank && i < ANY_ROUNDS * (ranks - 1); i++) {
		MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD,
			 &status);
		if (value == next[status.MPI_SOURCE]++)
			continue;
		if (!errors++)
			fprintf(stderr, "rank 0: %d from %d is out of order\n",
				value, status.MPI_SOURCE);
	}
	free(next);
}

int main(int argc, char **argv)
{
	int print = argc > 1 && !strcmp(argv[1], "-l"), peer, all;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	tx = malloc(MAX_SIZE);
	rx = malloc(MAX_SIZE);
	if (ranks < 2 || !tx || !rx)
		MPI_Abort(MPI_COMM_WORLD, 1);
	for (peer = 1; peer < ranks; peer++) {
		if (rank == 0 || rank == peer)
			pingpong(peer, print && peer == 1);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	any_source();
	MPI_Allreduce(&errors, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
	if (!rank && !print)
		printf("%d ranks, %d errors\n", ranks, all);
	MPI_Finalize();
	free(tx);
	free(rx);
	return all ? 1 : 0;
}
