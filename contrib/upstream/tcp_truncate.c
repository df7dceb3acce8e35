/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message that arrived before a receive of 0 bytes: tcp completes the receive
 * neither with success nor with FI_ETRUNC.
 */

#include "repro.h"

static char sent[1024];

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context;

	repro_open("tcp", 0, 2);
	repro_send(1, 0, sent, sizeof(sent), 0);
	(void) repro_next(0, 300, &entry, &err);
	repro_must(fi_recv(repro_ep[0].ep, NULL, 0, NULL, FI_ADDR_UNSPEC,
			   &context), "fi_recv");
	if (repro_next(0, 3000, &entry, &err) == REPRO_NONE)
		repro_shown("the receive never completes");
}

int main(void)
{
	return repro_run("tcp: an unexpected message into no room", test);
}
