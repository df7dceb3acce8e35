/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_cancel of an untagged directed receive: util_cancel_src()
 * (prov/util/src/util_srx.c) searches the wrong array. It does not find the
 * receive, or computes an invalid address.
 */

#include "repro.h"

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context;
	char buf[64];

	repro_open("shm", FI_DIRECTED_RECV, 2);
	repro_must(fi_recv(repro_ep[0].ep, buf, sizeof(buf), NULL,
			   repro_ep[0].peer[1], &context), "fi_recv");
	fi_cancel(&repro_ep[0].ep->fid, &context);
	if (repro_next(0, 2000, &entry, &err) != REPRO_ERROR ||
	    err.err != FI_ECANCELED)
		repro_shown("the receive is not canceled");
}

int main(void)
{
	return repro_run("cancel of a directed untagged receive", test);
}
