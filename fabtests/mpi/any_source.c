/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 0 always has 64 MPI_ANY_SOURCE receives posted, and all others send.
 * Each sender's messages must match receives in the order of posting.
 */

#include "mt.h"

#define MT_WINDOW 64
#define MT_EACH 1000
#define MT_MAX 200000

static size_t mt_len(int rank, int seq)
{
	static const size_t lens[] = { 4, 100, 5000, 20000, 200000 };

	return lens[(seq * 7 + rank) % 5];
}

static void mt_check(const char *buf, const MPI_Status *status, int *next)
{
	int seq, count, from = status->MPI_SOURCE;

	MPI_Get_count(status, MPI_BYTE, &count);
	memcpy(&seq, buf, sizeof(seq));
	MT_CHECK(from > 0 && from < mt_size, "source %d", from);
	MT_CHECK(seq == next[from], "message %d of rank %d, not %d", seq, from,
		 next[from]);
	MT_CHECK((size_t)count == mt_len(from, seq), "%d bytes, not %zu",
		 count, mt_len(from, seq));
	mt_verify(buf + 4, count - 4, from + seq);
	next[from]++;
}

static void mt_receive(void)
{
	int total = MT_EACH * (mt_size - 1), posted, got;
	int *next = calloc(mt_size, sizeof(*next));
	MPI_Request request[MT_WINDOW];
	char *buf[MT_WINDOW];
	MPI_Status status;

	for (posted = 0; posted < MT_WINDOW; posted++) {
		buf[posted] = mt_alloc(MT_MAX);
		MPI_Irecv(buf[posted], MT_MAX, MPI_BYTE, MPI_ANY_SOURCE, 3,
			  MPI_COMM_WORLD, &request[posted]);
	}
	for (got = 0; got < total; got++) {
		int k = got % MT_WINDOW;

		MPI_Wait(&request[k], &status);
		mt_check(buf[k], &status, next);
		if (posted++ < total)
			MPI_Irecv(buf[k], MT_MAX, MPI_BYTE, MPI_ANY_SOURCE, 3,
				  MPI_COMM_WORLD, &request[k]);
	}
	for (got = 0; got < MT_WINDOW; got++)
		free(buf[got]);
	free(next);
}

static void mt_send(void)
{
	char *buf = mt_alloc(MT_MAX);
	int seq;

	for (seq = 0; seq < MT_EACH; seq++) {
		size_t len = mt_len(mt_rank, seq);

		memcpy(buf, &seq, sizeof(seq));
		mt_fill(buf + 4, len - 4, mt_rank + seq);
		MPI_Send(buf, (int)len, MPI_BYTE, 0, 3, MPI_COMM_WORLD);
	}
	free(buf);
}

int main(int argc, char **argv)
{
	mt_begin(&argc, &argv, 2);
	if (mt_rank)
		mt_send();
	else
		mt_receive();
	return mt_end("any_source");
}
