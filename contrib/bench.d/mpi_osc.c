/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA of rank 0 on rank 1's window under MPI_Win_lock_all, while rank 1 waits
 * in a barrier. Measures one operation until MPI_Win_flush has returned, as
 * osu_put_latency does, and the time per put with 64 puts before a flush.
 *
 * With -w, MPI allocates the window in memory that the host's ranks share. The
 * ranks then access the window directly, whatever the transport. Without -w,
 * the window is ordinary memory of its rank.
 */

#include "mpibench.h"

#define MB_MAX_ITERS 20000
#define MB_WARM 32
#define MB_LARGEST (1 << 20)
#define MB_WINDOW 64

static uint64_t mb_samples[MB_MAX_ITERS];
static MPI_Win mb_win;

static void mb_put(int size)
{
	MPI_Put(mb.sbuf, size, MPI_BYTE, 1, 0, size, MPI_BYTE, mb_win);
}

static void mb_get(int size)
{
	MPI_Get(mb.sbuf, size, MPI_BYTE, 1, 0, size, MPI_BYTE, mb_win);
}

static void mb_fop(int size)
{
	static long one = 1, was;

	(void) size;
	MPI_Fetch_and_op(&one, &was, MPI_LONG, 1, 0, MPI_SUM, mb_win);
}

static uint64_t mb_ops(void (*op)(int size), int size, long count, int window)
{
	uint64_t start = bn_now(), last = start, now = start;
	long i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < window; j++)
			op(size);
		MPI_Win_flush(1, mb_win);
		now = bn_now();
		mb_samples[i] = now - last;
		last = now;
	}
	return now - start;
}

static void mb_osc_size(const char *name, void (*op)(int size), size_t size,
			int window)
{
	uint64_t ns;
	long count;

	if (!mb.rank) {
		mb_ops(op, (int) size, MB_WARM, window);
		ns = mb_ops(op, (int) size, MB_WARM, window);
		count = mb.budget_ns * MB_WARM / (long) (ns + 1);
		if (count < 4)
			count = 4;
		if (count > MB_MAX_ITERS)
			count = MB_MAX_ITERS;
		mb_ops(op, (int) size, count, window);
		bn_print_ns(mb_samples, count, window, "%s.%zu", name, size);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void mb_osc(const char *name, void (*op)(int size), size_t largest,
		   int window)
{
	const size_t *sizes;
	int i, count = mb_sizes(largest, &sizes);
	void *memory;

	if (mb.ranks != 2)
		return;
	mb_alloc(MB_LARGEST);
	if (mb.allocated)
		MPI_Win_allocate(MB_LARGEST, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
				 &memory, &mb_win);
	else
		MPI_Win_create(mb.rbuf, MB_LARGEST, 1, MPI_INFO_NULL,
			       MPI_COMM_WORLD, &mb_win);
	MPI_Win_lock_all(0, mb_win);
	for (i = 0; i < count; i++)
		mb_osc_size(name, op, sizes[i], window);
	MPI_Win_unlock_all(mb_win);
	MPI_Win_free(&mb_win);
}

void mb_osc_put(void)
{
	mb_osc("osc-put", mb_put, MB_LARGEST, 1);
	mb_osc("osc-put-bw", mb_put, MB_LARGEST, MB_WINDOW);
}

void mb_osc_get(void)
{
	mb_osc("osc-get", mb_get, MB_LARGEST, 1);
}

/* Measures operations of 8 bytes; -s has no effect. */
void mb_osc_fop(void)
{
	static const size_t eight = 8;

	mb.size[0] = eight;
	mb.sizes = 1;
	mb_osc("osc-fop", mb_fop, eight, 1);
}
