/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Latency between two ranks; message rate of pairs, one way and both ways. */

#include "mpibench.h"

#define MB_MAX_ITERS 20000
#define MB_WARM 32
#define MB_LARGEST (4 << 20)
#define MB_LARGEST_RATE 65536
#define MB_WINDOW 64
#define MB_TAG_ACK 8

static uint64_t mb_samples[MB_MAX_ITERS];

static uint64_t mb_pingpong(int size, int source, long count)
{
	uint64_t now, start = bn_now(), last = start;
	long i;

	for (i = 0; i < count; i++) {
		if (mb.rank) {
			MPI_Recv(mb.rbuf, size, MPI_BYTE, source, MB_TAG,
				 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(mb.sbuf, size, MPI_BYTE, 0, MB_TAG,
				 MPI_COMM_WORLD);
			continue;
		}
		MPI_Send(mb.sbuf, size, MPI_BYTE, 1, MB_TAG, MPI_COMM_WORLD);
		MPI_Recv(mb.rbuf, size, MPI_BYTE, source, MB_TAG,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		now = bn_now();
		mb_samples[i] = now - last;
		last = now;
	}
	return bn_now() - start;
}

static void mb_lat_size(const char *name, size_t size, int source)
{
	long count;
	uint64_t ns;

	mb_pingpong(size, source, MB_WARM);
	ns = mb_pingpong(size, source, MB_WARM);
	count = mb_count(ns, MB_WARM, 16, MB_MAX_ITERS);
	MPI_Barrier(MPI_COMM_WORLD);
	mb_pingpong(size, source, count);
	if (!mb.rank)
		bn_print_ns(mb_samples, count, 2, "%s.%zu", name, size);
}

void mb_lat(void)
{
	const size_t *sizes;
	int i, count = mb_sizes(MB_LARGEST, &sizes);

	if (mb.ranks != 2)
		return;
	mb_alloc(MB_LARGEST);
	for (i = 0; i < count; i++)
		mb_lat_size("mpi", sizes[i], !mb.rank);
	mb_lat_size("mpi-any", 8, MPI_ANY_SOURCE);
}

/* Sends a window of messages, and receives the ACK. */
static void mb_window_send(int size, int to)
{
	MPI_Request req[MB_WINDOW];
	int i;

	for (i = 0; i < MB_WINDOW; i++)
		MPI_Isend(mb.sbuf, size, MPI_BYTE, to, MB_TAG, MPI_COMM_WORLD,
			  &req[i]);
	MPI_Waitall(MB_WINDOW, req, MPI_STATUSES_IGNORE);
	MPI_Recv(mb.rbuf, 4, MPI_BYTE, to, MB_TAG_ACK, MPI_COMM_WORLD,
		 MPI_STATUS_IGNORE);
}

static void mb_window_recv(int size, int from)
{
	MPI_Request req[MB_WINDOW];
	int i;

	for (i = 0; i < MB_WINDOW; i++)
		MPI_Irecv(mb.rbuf, size, MPI_BYTE, from, MB_TAG,
			  MPI_COMM_WORLD, &req[i]);
	MPI_Waitall(MB_WINDOW, req, MPI_STATUSES_IGNORE);
	MPI_Send(mb.sbuf, 4, MPI_BYTE, from, MB_TAG_ACK, MPI_COMM_WORLD);
}

/* Sends and receives a window at the same time, as osu_bibw does. */
static void mb_window_both(int size, int peer)
{
	MPI_Request req[2 * MB_WINDOW];
	int i;

	for (i = 0; i < MB_WINDOW; i++)
		MPI_Irecv(mb.rbuf, size, MPI_BYTE, peer, MB_TAG,
			  MPI_COMM_WORLD, &req[i]);
	for (i = 0; i < MB_WINDOW; i++)
		MPI_Isend(mb.sbuf, size, MPI_BYTE, peer, MB_TAG,
			  MPI_COMM_WORLD, &req[MB_WINDOW + i]);
	MPI_Waitall(2 * MB_WINDOW, req, MPI_STATUSES_IGNORE);
}

/*
 * Exchanges count windows: the first half of the ranks sends to the second.
 * With "both", the second half also sends. Returns this rank's time, ns.
 */
static uint64_t mb_windows(int size, bool both, long count)
{
	int pairs = mb.ranks / 2;
	uint64_t start;
	long i;

	MPI_Barrier(MPI_COMM_WORLD);
	start = bn_now();
	for (i = 0; i < count; i++) {
		if (both && mb.rank < 2 * pairs)
			mb_window_both(size, (mb.rank + pairs) % (2 * pairs));
		else if (mb.rank < pairs)
			mb_window_send(size, mb.rank + pairs);
		else if (mb.rank < 2 * pairs)
			mb_window_recv(size, mb.rank - pairs);
	}
	return bn_now() - start;
}

/*
 * Measures the rate as osu_mbw_mr does: messages of all pairs, divided by the
 * senders' mean time. With "both", messages of both directions count. Prints
 * the inverse, ns per message.
 */
static void mb_rate_size(const char *name, size_t size, bool both)
{
	int pairs = mb.ranks / 2;
	double ns, sum = 0;
	uint64_t warm;
	long count;

	mb_windows(size, both, 1);
	warm = mb_windows(size, both, 2);
	count = mb_count(warm, 2, 2, MB_MAX_ITERS);
	ns = mb_windows(size, both, count);
	if (mb.rank >= pairs)
		ns = 0;
	MPI_Reduce(&ns, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
	if (!mb.rank)
		bn_print(sum / pairs /
			 ((both ? 2.0 : 1.0) * count * MB_WINDOW * pairs),
			 "%s-%s.%zu", name, mb.label, size);
}

static void mb_rates(const char *name, size_t least, size_t most, bool both)
{
	const size_t *sizes;
	int i, count = mb_sizes(most, &sizes);

	if (mb.ranks < 2)
		return;
	mb_alloc(most);
	for (i = 0; i < count; i++)
		if (sizes[i] >= least)
			mb_rate_size(name, sizes[i], both);
}

void mb_rate(void)
{
	mb_rates("mpi-rate", 1, MB_LARGEST_RATE, false);
}

void mb_bibw(void)
{
	mb_rates("mpi-bibw", MB_LARGEST_RATE, MB_LARGEST, true);
}
