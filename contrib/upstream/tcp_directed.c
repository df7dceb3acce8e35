/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * tcp reports FI_DIRECTED_RECV. But for untagged messages, xnet_get_rx_entry()
 * (prov/tcp/src/xnet_progress.c) matches a receive that names another peer.
 */

#include "repro.h"

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context;
	char buf[64];

	repro_open("tcp", FI_DIRECTED_RECV, 3);
	repro_must(fi_recv(repro_ep[0].ep, buf, sizeof(buf), NULL,
			   repro_ep[0].peer[1], &context), "fi_recv");
	repro_send(2, 0, "x", 1, 0);
	if (repro_next(0, 2000, &entry, &err) == REPRO_DONE)
		repro_shown("a message from another peer completes it");
}

int main(void)
{
	return repro_run("tcp: an untagged receive that names its source",
			 test);
}
