/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A peer closes its endpoint and opens another, which gets the same address
 * about once in 14,000 times. fi_av_remove leaves the sender's connection open,
 * and fi_av_insert finds it again. A sender that has made no progress since the
 * close writes its message to the old connection. The message completes, and is
 * lost.
 */

#include "repro.h"

/* Closes endpoint 1, and opens a new one with the same address. */
static void reopen(void)
{
	struct repro_ep *e = &repro_ep[1];
	char addr[64];
	size_t len = sizeof(addr);

	repro_must(fi_getname(&e->ep->fid, addr, &len), "fi_getname");
	repro_must(fi_close(&e->ep->fid), "fi_close, endpoint");
	repro_must(fi_close(&e->cq->fid), "fi_close, CQ");
	repro_must(fi_close(&e->av->fid), "fi_close, AV");
	repro_must(fi_av_remove(repro_ep[0].av, &repro_ep[0].peer[1], 1, 0),
		   "fi_av_remove");
	repro_open_ep(1);
	repro_must(fi_setname(&e->ep->fid, addr, len), "fi_setname");
	repro_enable(1);
	repro_introduce(2);
}

static enum repro_result message(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context;
	char buf[1];

	repro_must(fi_recv(repro_ep[1].ep, buf, sizeof(buf), NULL,
			   FI_ADDR_UNSPEC, &context), "fi_recv");
	repro_send(0, 1, "x", 1, 0);
	return repro_next(1, 2000, &entry, &err);
}

static void test(void)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;

	repro_open("tcp", 0, 2);
	if (message() != REPRO_DONE)
		repro_must(-FI_EIO, "the first message");
	(void) repro_next(0, 1000, &entry, &err);
	reopen();
	if (message() != REPRO_DONE)
		repro_shown("a message is lost, and its send %s",
			    repro_next(0, 1000, &entry, &err) == REPRO_DONE ?
			    "succeeds" : "fails");
}

int main(void)
{
	return repro_run("tcp: a new endpoint with the address of a closed one",
			 test);
}
