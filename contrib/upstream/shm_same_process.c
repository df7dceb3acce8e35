/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Messages both ways between two endpoints of a process, with an AV each. shm's
 * smr_map_to_region() (prov/shm/src/smr_av.c) finds the peer's region in the
 * process, and returns before it has stored the region's address. shm counts
 * the peer as connected, and computes addresses from 0.
 */

#include "repro.h"

#define LEN 8192

static void test(void)
{
	static char out[LEN], in[2][LEN];
	struct fi_context2 context[2];
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	int i, to;

	repro_open("shm", 0, 2);
	for (i = 0; i < 4; i++) {
		to = 1 - i % 2;
		repro_must(fi_trecv(repro_ep[to].ep, in[to], LEN, NULL,
				    FI_ADDR_UNSPEC, 7, 0, &context[to]),
			   "fi_trecv");
		repro_send(1 - to, to, out, LEN, 7);
		while (repro_next(to, 3000, &entry, &err) == REPRO_DONE &&
		       entry.op_context != &context[to])
			;	/* completion of a send */
		if (entry.op_context != &context[to])
			repro_shown("a message does not arrive");
	}
}

int main(void)
{
	return repro_run("shm: messages both ways within a process", test);
}
