/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * MPI_Alltoallw with a different derived datatype for each pair of ranks: one
 * rank of the pair has strided data, the other one has contiguous data.
 */

#include "mt.h"

#define MT_ROUNDS 30
#define MT_UNIT 64	/* ints between the starts of strided blocks */

static int mt_blocks(int from, int to, int round)
{
	return 1 + (from * 5 + to * 3 + round * 11) % 40 * (round % 4 + 1);
}

static int mt_value(int from, int to, int round, int i)
{
	return from * 1000003 + to * 10007 + round * 101 + i;
}

/*
 * Returns the datatype of the sender or, with "receiving", of the receiver: one
 * of them is contiguous, the other one is strided, in blocks of 3 ints.
 */
static MPI_Datatype mt_type(int from, int to, int round, int receiving)
{
	int blocks = mt_blocks(from, to, round);
	MPI_Datatype type;

	if ((from + to + receiving) % 2)
		MPI_Type_contiguous(3 * blocks, MPI_INT, &type);
	else
		MPI_Type_vector(blocks, 3, MT_UNIT, MPI_INT, &type);
	MPI_Type_commit(&type);
	return type;
}

static size_t mt_at(int from, int to, int receiving, int i)
{
	if ((from + to + receiving) % 2)
		return i;
	return (size_t)(i / 3) * MT_UNIT + i % 3;
}

static void mt_round(int *tx, int *rx, size_t room, int round)
{
	int counts[mt_size], displs[mt_size], peer, i;
	MPI_Datatype send_types[mt_size], recv_types[mt_size];

	for (peer = 0; peer < mt_size; peer++) {
		int *at = tx + peer * room;

		counts[peer] = 1;
		displs[peer] = (int)(peer * room * sizeof(int));
		send_types[peer] = mt_type(mt_rank, peer, round, 0);
		recv_types[peer] = mt_type(peer, mt_rank, round, 1);
		for (i = 0; i < 3 * mt_blocks(mt_rank, peer, round); i++)
			at[mt_at(mt_rank, peer, 0, i)] =
				mt_value(mt_rank, peer, round, i);
	}
	memset(rx, 0xff, room * mt_size * sizeof(int));
	MPI_Alltoallw(tx, counts, displs, send_types, rx, counts, displs,
		      recv_types, MPI_COMM_WORLD);
	for (peer = 0; peer < mt_size; peer++) {
		int *at = rx + peer * room;

		for (i = 0; i < 3 * mt_blocks(peer, mt_rank, round); i++)
			MT_CHECK(at[mt_at(peer, mt_rank, 1, i)] ==
				 mt_value(peer, mt_rank, round, i),
				 "round %d, from %d, element %d", round, peer,
				 i);
		MPI_Type_free(&send_types[peer]);
		MPI_Type_free(&recv_types[peer]);
	}
}

int main(int argc, char **argv)
{
	size_t room = 161 * MT_UNIT;
	int *tx, *rx, round;

	mt_begin(&argc, &argv, 2);
	tx = mt_alloc(room * mt_size * sizeof(*tx));
	rx = mt_alloc(room * mt_size * sizeof(*rx));
	for (round = 0; round < MT_ROUNDS; round++)
		mt_round(tx, rx, room, round);
	free(tx);
	free(rx);
	return mt_end("alltoallw");
}
