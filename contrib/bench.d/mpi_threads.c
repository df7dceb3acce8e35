/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * MPI_THREAD_MULTIPLE: n threads of one rank play ping-pong with n threads of
 * another at the same time, as in osu_latency_mt. The tag names the pair.
 */

#include <pthread.h>
#include <string.h>

#include "mpibench.h"

#define MB_MOST_THREADS 4
#define MB_LARGEST 4096
#define MB_WARM 32
#define MB_MAX_ITERS 20000

static struct mb_thread {
	pthread_t id;
	int number; /* number of the thread, which is the tag of its messages */
	int cpu;
	int size;
	long count;
	uint64_t ns;
	char buf[MB_LARGEST];
} mb_thread[MB_MOST_THREADS];

static void *mb_thread_run(void *arg)
{
	struct mb_thread *thread = arg;
	int other = !mb.rank;
	uint64_t start;
	long i;

	bn_pin(thread->cpu);
	start = bn_now();
	for (i = 0; i < thread->count; i++) {
		if (!mb.rank)
			MPI_Send(thread->buf, thread->size, MPI_BYTE, other,
				 thread->number, MPI_COMM_WORLD);
		MPI_Recv(thread->buf, thread->size, MPI_BYTE, other,
			 thread->number, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		if (mb.rank)
			MPI_Send(thread->buf, thread->size, MPI_BYTE, other,
				 thread->number, MPI_COMM_WORLD);
	}
	thread->ns = bn_now() - start;
	return NULL;
}

/* Runs all threads of this rank. Returns the mean of their times. */
static double mb_threads_time(int threads, int size, long count)
{
	double sum = 0;
	int i;

	MPI_Barrier(MPI_COMM_WORLD);
	for (i = 0; i < threads; i++) {
		mb_thread[i].number = MB_TAG + i;
		mb_thread[i].cpu = mb.rank * threads + i;
		mb_thread[i].size = size;
		mb_thread[i].count = count;
		if (pthread_create(&mb_thread[i].id, NULL, mb_thread_run,
				   &mb_thread[i]))
			BN_DIE("pthread_create");
	}
	for (i = 0; i < threads; i++) {
		pthread_join(mb_thread[i].id, NULL);
		sum += mb_thread[i].ns;
	}
	return sum / threads;
}

static void mb_threads_size(int threads, size_t size)
{
	double ns;
	long count;

	mb_threads_time(threads, size, MB_WARM);
	ns = mb_threads_time(threads, size, MB_WARM);
	count = mb_count(ns, MB_WARM, 16, MB_MAX_ITERS);
	ns = mb_threads_time(threads, size, count);
	if (!mb.rank)
		bn_print(ns / count / 2, "mpi-threads-%d.%zu", threads, size);
}

void mb_threads(void)
{
	const size_t *sizes;
	int i, threads, given, count = mb_sizes(MB_LARGEST, &sizes);

	MPI_Query_thread(&given);
	if (mb.ranks != 2 || given != MPI_THREAD_MULTIPLE)
		return;
	for (threads = 1; threads <= MB_MOST_THREADS; threads *= 2)
		for (i = 0; i < count; i++)
			mb_threads_size(threads, sizes[i]);
}
