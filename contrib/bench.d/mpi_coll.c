/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Collectives, measured as by the OSU benchmarks: each rank adds up its time in
 * the operation. A barrier follows each operation, and is not timed. The value
 * is the mean over iterations and ranks.
 *
 * "sendrecv" and "exchange" are from the Intel MPI Benchmarks. In "sendrecv"
 * each rank sends to its right neighbor, in "exchange" to both neighbors. Each
 * rank receives as many bytes as it sends.
 */

#include <stdlib.h>
#include <string.h>

#include "mpibench.h"

#define MB_LARGEST 65536
#define MB_SMALLEST 4		/* size of a float */
#define MB_MAX_ITERS 10000
#define MB_TAG_LEFT 8

enum mb_blocks { MB_NO_SIZE, MB_ONE, MB_TWO, MB_PER_RANK };

struct mb_coll {
	const char *name;
	void (*op)(int size);
	/* number of blocks of the measured size in a rank's buffer */
	enum mb_blocks blocks;
};

/* arguments of alltoallw, one for each rank */
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
 * Repeats the operation. Stores this rank's time in the operation, ns, in *own.
 * Returns the total time, with the barriers, ns.
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
		if (coll->blocks != MB_NO_SIZE)
			MPI_Barrier(MPI_COMM_WORLD);
	}
	return bn_now() - first;
}

/* Measures one size. Returns the mean time, ns, in rank 0 only. */
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

static void mb_coll_fill(int size)
{
	int i;

	for (i = 0; i < mb.ranks; i++) {
		mb_counts[i] = size;
		mb_displs[i] = i * size;
		mb_types[i] = MPI_BYTE;
	}
}

static void mb_coll_sizes(const struct mb_coll *coll)
{
	int i, count, blocks = coll->blocks == MB_PER_RANK ? mb.ranks :
							     (int) coll->blocks;
	const size_t *sizes;
	double ns;

	count = mb_sizes(MB_LARGEST, &sizes);
	if (!count)
		return;
	mb_alloc(sizes[count - 1] * blocks);
	for (i = 0; i < count; i++) {
		if (sizes[i] < MB_SMALLEST)
			continue;
		mb_coll_fill(sizes[i]);
		ns = mb_coll_size(coll, sizes[i]);
		if (!mb.rank)
			bn_print(ns, "mpi-%s-%s.%zu", coll->name, mb.label,
				 sizes[i]);
	}
}

static void mb_coll_run(const struct mb_coll *coll)
{
	double ns;

	if (coll->blocks != MB_NO_SIZE) {
		mb_coll_sizes(coll);
		return;
	}
	ns = mb_coll_size(coll, 0);
	if (!mb.rank)
		bn_print(ns, "mpi-%s.%s", coll->name, mb.label);
}

bool mb_collective(const char *name)
{
	static const struct mb_coll colls[] = {
		{ "alltoallw", mb_op_alltoallw, MB_PER_RANK },
		{ "alltoall", mb_op_alltoall, MB_PER_RANK },
		{ "allreduce", mb_op_allreduce, MB_ONE },
		{ "allgather", mb_op_allgather, MB_PER_RANK },
		{ "reduce_scatter", mb_op_reduce_scatter, MB_PER_RANK },
		{ "sendrecv", mb_op_sendrecv, MB_ONE },
		{ "exchange", mb_op_exchange, MB_TWO },
		{ "bcast", mb_op_bcast, MB_ONE },
		{ "barrier", mb_op_barrier, MB_NO_SIZE },
	};
	const struct mb_coll *coll = colls;

	while (coll < colls + BN_COUNT(colls) && strcmp(coll->name, name))
		coll++;
	if (coll == colls + BN_COUNT(colls))
		return false;
	mb_counts = calloc(mb.ranks, sizeof(*mb_counts));
	mb_displs = calloc(mb.ranks, sizeof(*mb_displs));
	mb_types = calloc(mb.ranks, sizeof(*mb_types));
	if (!mb_counts || !mb_displs || !mb_types)
		BN_DIE("no memory for %d ranks", mb.ranks);
	mb_coll_run(coll);
	free(mb_counts);
	free(mb_displs);
	free(mb_types);
	return true;
}
