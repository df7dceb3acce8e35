/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * MPI_Probe, MPI_Iprobe and MPI_Mprobe, from any source and from one source.
 * Rank, tag and size must be those of the message received next.
 */

#include "mt.h"

#define MT_EACH 400
#define MT_MAX 100000

static size_t mt_len(int rank, int seq)
{
	static const size_t lens[] = { 8, 64, 3000, 9000, 100000 };

	return lens[(seq * 3 + rank) % 5];
}

static void mt_take(const char *buf, int count, int from, int tag, int *next)
{
	int seq;

	memcpy(&seq, buf, sizeof(seq));
	MT_CHECK(seq == next[from], "message %d of rank %d, not %d", seq, from,
		 next[from]);
	MT_CHECK(tag == seq % 7, "tag %d of message %d", tag, seq);
	MT_CHECK((size_t)count == mt_len(from, seq), "%d bytes", count);
	mt_verify(buf + 4, count - 4, from + seq);
	next[from]++;
}

static void mt_probe(char *buf, int from, int *next)
{
	MPI_Status seen, status;
	int count, flag = 0;

	if (next[1] % 2)
		MPI_Probe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &seen);
	else
		while (!flag)
			MPI_Iprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &flag,
				   &seen);
	MPI_Get_count(&seen, MPI_BYTE, &count);
	MPI_Recv(buf, count, MPI_BYTE, seen.MPI_SOURCE, seen.MPI_TAG,
		 MPI_COMM_WORLD, &status);
	mt_take(buf, count, seen.MPI_SOURCE, seen.MPI_TAG, next);
}

static void mt_mprobe(char *buf, int from, int *next)
{
	MPI_Message message;
	MPI_Status seen, status;
	int count;

	MPI_Mprobe(from, MPI_ANY_TAG, MPI_COMM_WORLD, &message, &seen);
	MPI_Get_count(&seen, MPI_BYTE, &count);
	MPI_Mrecv(buf, count, MPI_BYTE, &message, &status);
	mt_take(buf, count, seen.MPI_SOURCE, seen.MPI_TAG, next);
}

/*
 * For the first half of all messages, names the source, another one for each
 * message. Receives the second half from any source.
 */
static void mt_receive(void)
{
	int total = MT_EACH * (mt_size - 1), got;
	int *next = calloc(mt_size, sizeof(*next));
	char *buf = mt_alloc(MT_MAX);

	for (got = 0; got < total; got++) {
		int from = got < total / 2 ? 1 + got % (mt_size - 1) :
					     MPI_ANY_SOURCE;

		if (got % 3)
			mt_probe(buf, from, next);
		else
			mt_mprobe(buf, from, next);
	}
	free(buf);
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
		MPI_Send(buf, (int)len, MPI_BYTE, 0, seq % 7, MPI_COMM_WORLD);
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
	return mt_end("probe");
}
