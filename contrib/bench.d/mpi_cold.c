/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages as in applications: a rank computes between two messages, so that
 * the library's code and data leave the caches.
 */

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "mpibench.h"

#define MB_OTHER (4 << 20) /* bytes; exceeds the private caches of a CPU */
#define MB_ITERS 200
#define MB_LARGEST 65536
#define MB_LINE 64
#define MB_DIMS 3

static char *mb_other;

static void mb_cold_start(size_t len)
{
	mb_alloc(len);
	mb_other = calloc(1, MB_OTHER);
	if (!mb_other)
		BN_DIE("no memory for %d bytes", MB_OTHER);
}

static void mb_compute(size_t len)
{
	size_t i;

	for (i = 0; i < len; i += MB_LINE)
		mb_other[i]++;
}

/*
 * Waits until both ranks are here. Accesses only two cache lines and does not
 * call MPI, so that the caches stay cold.
 */
static void mb_meet(atomic_uint *count, unsigned int round)
{
	atomic_fetch_add(count, 1);
	while (atomic_load(count) < 2 * round)
		;
}

/* Measures half a round trip that starts with cold caches. */
static void mb_cold_size(atomic_uint *count, unsigned int *round, size_t size)
{
	static uint64_t samples[MB_ITERS];
	int other = !mb.rank, i;
	uint64_t start;

	for (i = 0; i < MB_ITERS; i++) {
		mb_compute(MB_OTHER);
		mb_meet(count, ++*round);
		start = bn_now();
		if (!mb.rank)
			MPI_Send(mb.sbuf, size, MPI_BYTE, other, MB_TAG,
				 MPI_COMM_WORLD);
		MPI_Recv(mb.rbuf, size, MPI_BYTE, other, MB_TAG,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (mb.rank)
			MPI_Send(mb.sbuf, size, MPI_BYTE, other, MB_TAG,
				 MPI_COMM_WORLD);
		samples[i] = bn_now() - start;
	}
	if (!mb.rank)
		bn_print_ns(samples, MB_ITERS, 2, "mpi-cold.%zu", size);
}

void mb_cold(void)
{
	const size_t *sizes;
	int i, count = mb_sizes(MB_LARGEST, &sizes);
	unsigned int round = 0;
	atomic_uint *met;

	if (mb.ranks != 2)
		return;
	met = mb_share();
	if (!met)
		BN_DIE("no shared memory for two counters");
	mb_cold_start(MB_LARGEST);
	for (i = 0; i < count; i++)
		mb_cold_size(met, &round, sizes[i]);
	free(mb_other);
	munmap(met, 4096);
}

/* Executes a step of the application. Returns this rank's time in MPI. */
static uint64_t mb_halo_step(MPI_Comm grid, const int *peers, int size,
			     unsigned int *seed)
{
	MPI_Request req[4 * MB_DIMS];
	uint64_t start;
	int i;

	/* a random time, so that ranks arrive at different times */
	mb_compute(MB_OTHER / 4 + rand_r(seed) % (MB_OTHER / 4));
	start = bn_now();
	for (i = 0; i < 2 * MB_DIMS; i++)
		MPI_Irecv(mb.rbuf + i * size, size, MPI_BYTE, peers[i], i,
			  grid, &req[i]);
	for (i = 0; i < 2 * MB_DIMS; i++)
		MPI_Isend(mb.sbuf + i * size, size, MPI_BYTE, peers[i], i ^ 1,
			  grid, &req[2 * MB_DIMS + i]);
	MPI_Waitall(4 * MB_DIMS, req, MPI_STATUSES_IGNORE);
	MPI_Allreduce(mb.sbuf, mb.rbuf, 1, MPI_DOUBLE, MPI_SUM, grid);
	return bn_now() - start;
}

/*
 * Halo exchange on a periodic three-dimensional grid. In a step each rank
 * computes and exchanges faces with six neighbors, and all ranks add up a
 * number. Prints the mean time in MPI, including the wait for ranks that still
 * compute.
 */
void mb_halo(void)
{
	int dims[MB_DIMS] = {0}, wrap[MB_DIMS] = {1, 1, 1}, peers[2 * MB_DIMS];
	int i, step, count;
	unsigned int seed;
	const size_t *sizes;
	double ns, sum;
	MPI_Comm grid;

	count = mb_sizes(MB_LARGEST, &sizes);
	MPI_Dims_create(mb.ranks, MB_DIMS, dims);
	MPI_Cart_create(MPI_COMM_WORLD, MB_DIMS, dims, wrap, 0, &grid);
	for (i = 0; i < MB_DIMS; i++)
		MPI_Cart_shift(grid, i, 1, &peers[2 * i], &peers[2 * i + 1]);
	mb_cold_start(2 * MB_DIMS * MB_LARGEST);
	for (i = 0; i < count; i++) {
		seed = 1 + mb.rank;
		ns = 0;
		for (step = 0; step < MB_ITERS; step++)
			ns += mb_halo_step(grid, peers, sizes[i], &seed);
		MPI_Reduce(&ns, &sum, 1, MPI_DOUBLE, MPI_SUM, 0,
			   MPI_COMM_WORLD);
		if (!mb.rank)
			bn_print(sum / mb.ranks / MB_ITERS, "mpi-halo-%s.%zu",
				 mb.label, sizes[i]);
	}
	free(mb_other);
	MPI_Comm_free(&grid);
}
