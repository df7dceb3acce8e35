/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Each rank sends 80 MiB with MPI_Isend before it receives, as MPI permits.
 * Before it receives from a sender, it probes for the sender's last message.
 */

#include "mt.h"

#define MT_LEN 4096
#define MT_MESSAGES 20480 /* number of messages of each rank */

static char tx[MT_LEN], rx[MT_LEN];

static void mt_receive(int from, int each)
{
	MPI_Status status;
	int i;

	MPI_Probe(from, each, MPI_COMM_WORLD, &status);
	MT_CHECK(status.MPI_SOURCE == from, "probed rank %d",
		 status.MPI_SOURCE);
	for (i = each; i >= 0; i--) {
		MPI_Recv(rx, MT_LEN, MPI_BYTE, from, i == each ? each : 0,
			 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		mt_verify(rx, MT_LEN, from);
	}
}

static void mt_flood(void)
{
	int each = MT_MESSAGES / (mt_size - 1), n = 0, i, peer;
	MPI_Request *request = mt_alloc((size_t)(each + 1) * mt_size *
					sizeof(*request));

	mt_fill(tx, MT_LEN, mt_rank);
	for (i = 0; i <= each; i++) {
		for (peer = 0; peer < mt_size; peer++) {
			if (peer == mt_rank)
				continue;
			MPI_Isend(tx, MT_LEN, MPI_BYTE, peer,
				  i == each ? each : 0, MPI_COMM_WORLD,
				  &request[n++]);
		}
	}
	for (peer = 0; peer < mt_size; peer++)
		if (peer != mt_rank)
			mt_receive(peer, each);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	free(request);
}

int main(int argc, char **argv)
{
	mt_begin(&argc, &argv, 2);
	mt_flood();
	return mt_end("flood");
}
