/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * FI_PEEK with FI_SOURCE: util_srx_peek() (prov/util/src/util_srx.c) does not
 * report the source of the message that it found. MPI_Probe needs it.
 */

#include "repro.h"

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context;
	struct fi_msg_tagged msg = {
		.addr = FI_ADDR_UNSPEC,
		.tag = 7,
		.context = &context,
	};
	fi_addr_t from;
	ssize_t ret;
	int tries, polls;

	repro_open("shm", FI_SOURCE | FI_DIRECTED_RECV, 2);
	repro_send(1, 0, "x", 1, 7);
	for (tries = 0; tries < 100; tries++) {
		from = FI_ADDR_NOTAVAIL;
		repro_must(fi_trecvmsg(repro_ep[0].ep, &msg, FI_PEEK),
			   "fi_trecvmsg");
		polls = 0;
		do {
			fi_cq_read(repro_ep[1].cq, NULL, 0);
			ret = fi_cq_readfrom(repro_ep[0].cq, &entry, 1, &from);
		} while (ret == -FI_EAGAIN && polls++ < 10000000);
		if (ret == -FI_EAGAIN)
			repro_must(-FI_ENOMSG, "an answer to the peek");
		if (ret == 1 && from != repro_ep[0].peer[1])
			repro_shown("source %#lx, not %#lx",
				    (unsigned long) from,
				    (unsigned long) repro_ep[0].peer[1]);
		if (ret == 1)
			return;
		/* the message has not arrived yet */
		(void) repro_next(0, 10, &entry, &err);
	}
	repro_must(-FI_ENOMSG, "the message to be peeked at");
}

int main(void)
{
	return repro_run("a peek does not know the source", test);
}
