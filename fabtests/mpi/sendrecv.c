/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Pairs of ranks exchange messages of all sizes, blocking and nonblocking. */

#include "mt.h"

#define MT_MAX ((size_t)4 << 20)
#define MT_WINDOW 16

static char *tx, *rx;

/* Exchanges with a peer by blocking calls. The lower rank sends first. */
static void mt_blocking(int peer, size_t len)
{
	MPI_Status status;
	int count;

	mt_fill(tx, len, mt_rank + (int)len);
	if (mt_rank < peer)
		MPI_Send(tx, (int)len, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	MPI_Recv(rx, (int)len, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
	if (mt_rank > peer)
		MPI_Send(tx, (int)len, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
	MPI_Get_count(&status, MPI_BYTE, &count);
	MT_CHECK((size_t)count == len && status.MPI_SOURCE == peer,
		 "%d bytes from %d, not %zu from %d", count, status.MPI_SOURCE,
		 len, peer);
	mt_verify(rx, len, peer + (int)len);
}

static void mt_windows(int peer, size_t len)
{
	MPI_Request request[2 * MT_WINDOW];
	int i;

	for (i = 0; i < MT_WINDOW; i++) {
		MPI_Irecv(rx + i * len, (int)len, MPI_BYTE, peer, i,
			  MPI_COMM_WORLD, &request[i]);
		mt_fill(tx + i * len, len, mt_rank + i);
	}
	for (i = MT_WINDOW - 1; i >= 0; i--) /* in reverse order of the tags */
		MPI_Isend(tx + i * len, (int)len, MPI_BYTE, peer, i,
			  MPI_COMM_WORLD, &request[MT_WINDOW + i]);
	MPI_Waitall(2 * MT_WINDOW, request, MPI_STATUSES_IGNORE);
	for (i = 0; i < MT_WINDOW; i++)
		mt_verify(rx + i * len, len, peer + i);
}

static void mt_pair(int peer)
{
	size_t len;

	mt_blocking(peer, 0);
	for (len = 1; len <= MT_MAX; len *= 2) {
		mt_blocking(peer, len - 1);
		mt_blocking(peer, len);
		if (len < MT_MAX)
			mt_blocking(peer, len + 1);
		if (len * MT_WINDOW <= MT_MAX)
			mt_windows(peer, len);
	}
}

int main(int argc, char **argv)
{
	int step;

	mt_begin(&argc, &argv, 2);
	tx = mt_alloc(MT_MAX);
	rx = mt_alloc(MT_MAX);
	for (step = 1; step < 2 * mt_size; step++) {
		if ((mt_rank ^ step) < mt_size)
			mt_pair(mt_rank ^ step);
		MPI_Barrier(MPI_COMM_WORLD);
	}
	free(tx);
	free(rx);
	return mt_end("sendrecv");
}
