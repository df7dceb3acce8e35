/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Collectives, by the method of the OSU benchmarks: each rank adds up its own
 * time in the operation, and an untimed barrier follows each one. The value is
 * the mean over iterations and ranks. Sendrecv and exchange are patterns of the
 * Intel MPI Benchmarks, measured in the same way: each rank sends to its right
 * neighbor, or to both neighbors, and receives the same amount.
 */

#include <stdlib.h>

#include "mpibench.h"

#define MB_LARGEST 65536
#define MB_SMALLEST 4		/* one float */
#define MB_MAX_ITERS 10000
#define MB_TAG_LEFT 8

struct mb_coll {
	const char *name;
	void (*op)(int size);
	bool is_barrier;	/* then there is no size */
};

/* Arguments of alltoallw, one for each rank. */
static int *mb_counts, *mb_displs;
static MPI_Datatype *mb_types;

static void mb_op_alltoallw(int size)
{
	(void) size;
	MPI_Alltoallw(mb.sbuf, mb_counts, mb_displs, mb_types, mb.rbuf,
		      mb_counts, mb_displs, mb_types, MPI_COMM_WORLD);
}

static void mb_op_alltoall(int size)
{
	MPI_Alltoall(mb.sbuf, size, MPI_BYTE, mb.rbuf, size, MPI_BYTE,
		     MPI_COMM_WORLD);
}

static void mb_op_allreduce(int size)
{
	MPI_Allreduce(mb.sbuf, mb.rbuf, size / (int) sizeof(float), MPI_FLOAT,
		      MPI_SUM, MPI_COMM_WORLD);
}

static void mb_op_allgather(int size)
{
	MPI_Allgather(mb.sbuf, size, MPI_BYTE, mb.rbuf, size, MPI_BYTE,
		      MPI_COMM_WORLD);
}

/* size: bytes of the result in each rank */
static void mb_op_reduce_scatter(int size)
{
	MPI_Reduce_scatter_block(mb.sbuf, mb.rbuf, size / (int) sizeof(float),
				 MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

static void mb_op_sendrecv(int size)
{
	int right = (mb.rank + 1) % mb.ranks;
	int left = (mb.rank + mb.ranks - 1) % mb.ranks;

	MPI_Sendrecv(mb.sbuf, size, MPI_BYTE, right, MB_TAG, mb.rbuf, size,
		     MPI_BYTE, left, MB_TAG, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
}

static void mb_op_exchange(int size)
{
	int right = (mb.rank + 1) % mb.ranks;
	int left = (mb.rank + mb.ranks - 1) % mb.ranks;
	MPI_Request req[4];

	MPI_Isend(mb.sbuf, size, MPI_BYTE, right, MB_TAG, MPI_COMM_WORLD,
		  &req[0]);
	MPI_Isend(mb.sbuf, size, MPI_BYTE, left, MB_TAG_LEFT, MPI_COMM_WORLD,
		  &req[1]);
	MPI_Irecv(mb.rbuf, size, MPI_BYTE, left, MB_TAG, MPI_COMM_WORLD,
		  &req[2]);
	MPI_Irecv(mb.rbuf + size, size, MPI_BYTE, right, MB_TAG_LEFT,
		  MPI_COMM_WORLD, &req[3]);
	MPI_Waitall(4, req, MPI_STATUSES_IGNORE);
}

static void mb_op_bcast(int size)
{
	MPI_Bcast(mb.sbuf, size, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void mb_op_barrier(int size)
{
	(void) size;
	MPI_Barrier(MPI_COMM_WORLD);
}

/*
 * Runs the operation count times. Sets *own to this rank's time in it; returns
 * the total time.
 */
static uint64_t mb_coll_time(const struct mb_coll *coll, int size, long count,
			     uint64_t *own)
{
	uint64_t start, first;
	long i;

	*own = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	first = bn_now();
	for (i = 0; i < count; i++) {
		start = bn_now();
		coll->op(size);
		*own += bn_now() - start;
		if (!coll->is_barrier)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return bn_now() - first;
}

/* Measures one size. Returns the mean, valid in rank 0. */
static double mb_coll_size(const struct mb_coll *coll, int size)
{
	double mine, sum = 0;
	uint64_t own, warm;
	long count;

	mb_coll_time(coll, size, 2, &own);
	warm = mb_coll_time(coll, size, 4, &own);
	count = mb_count(warm, 4, 4, MB_MAX_ITERS);
	mb_coll_time(coll, size, count, &own);
	mine = (double) own / count;
	MPI_Reduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	return sum / mb.ranks;
}

/*
 * Measures all sizes. blocks: number of blocks of a size that a rank sends and
 * receives.
 */
static void mb_coll_sizes(const struct mb_coll *coll, int blocks)
{
	const size_t *sizes;
	int i, j, count = mb_sizes(MB_LARGEST, &sizes);
	double ns;

	if (!count)
		return;
	mb_alloc(sizes[count - 1] * blocks);
	for (i = 0; i < count; i++) {
		if (sizes[i] < MB_SMALLEST)
			continue;
		for (j = 0; mb_counts && j < mb.ranks; j++) {
			mb_counts[j] = sizes[i];
			mb_displs[j] = j * sizes[i];
			mb_types[j] = MPI_BYTE;
		}
		ns = mb_coll_size(coll, sizes[i]);
		if (!mb.rank)
			bn_print(ns, "%s-%s.%zu", coll->name, mb.label,
				 sizes[i]);
	}
}

void mb_alltoallw(void)
{
	const struct mb_coll coll = { "mpi-alltoallw", mb_op_alltoallw, false };

	mb_counts = calloc(mb.ranks, sizeof(*mb_counts));
	mb_displs = calloc(mb.ranks, sizeof(*mb_displs));
	mb_types = calloc(mb.ranks, sizeof(*mb_types));
	if (!mb_counts || !mb_displs || !mb_types)
		BN_DIE("no memory for %d ranks", mb.ranks);
	mb_coll_sizes(&coll, mb.ranks);
	free(mb_counts);
	free(mb_displs);
	free(mb_types);
	mb_counts = NULL;
}

void mb_alltoall(void)
{
	const struct mb_coll coll = { "mpi-alltoall", mb_op_alltoall, false };

	mb_coll_sizes(&coll, mb.ranks);
}

void mb_allreduce(void)
{
	const struct mb_coll coll = { "mpi-allreduce", mb_op_allreduce, false };

	mb_coll_sizes(&coll, 1);
}

void mb_allgather(void)
{
	const struct mb_coll coll = { "mpi-allgather", mb_op_allgather, false };

	mb_coll_sizes(&coll, mb.ranks);
}

void mb_reduce_scatter(void)
{
	const struct mb_coll coll = {
		"mpi-reduce_scatter", mb_op_reduce_scatter, false
	};

	mb_coll_sizes(&coll, mb.ranks);
}

void mb_sendrecv(void)
{
	const struct mb_coll coll = { "mpi-sendrecv", mb_op_sendrecv, false };

	mb_coll_sizes(&coll, 1);
}

void mb_exchange(void)
{
	const struct mb_coll coll = { "mpi-exchange", mb_op_exchange, false };

	mb_coll_sizes(&coll, 2);
}

void mb_bcast(void)
{
	const struct mb_coll coll = { "mpi-bcast", mb_op_bcast, false };

	mb_coll_sizes(&coll, 1);
}

void mb_barrier(void)
{
	const struct mb_coll coll = { "mpi-barrier", mb_op_barrier, true };
	double ns = mb_coll_size(&coll, 0);

	if (!mb.rank)
		bn_print(ns, "%s.%s", coll.name, mb.label);
}
