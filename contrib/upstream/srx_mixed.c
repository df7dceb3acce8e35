/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Untagged receives with and without a source: the first one that matches must
 * get the message. util_get_msg() (prov/util/src/util_srx.c) treats the head of
 * the queue, which is no receive, as a receive: it compares the head's contents
 * with the message, and may return the head.
 */

#include "repro.h"

static void take(fi_addr_t first, fi_addr_t second, const char *order)
{
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	struct fi_context2 context[2];
	char buf[2][64];

	repro_must(fi_recv(repro_ep[0].ep, buf[0], sizeof(buf[0]), NULL, first,
			   &context[0]), "fi_recv");
	repro_must(fi_recv(repro_ep[0].ep, buf[1], sizeof(buf[1]), NULL, second,
			   &context[1]), "fi_recv");
	repro_send(1, 0, "x", 1, 0);
	if (repro_next(0, 2000, &entry, &err) != REPRO_DONE)
		repro_shown("%s: the message is lost", order);
	if (entry.op_context == &context[1])
		repro_shown("%s: the second receive matched the message", order);
	if (entry.op_context != &context[0])
		repro_shown("%s: a completion of neither receive", order);
	repro_send(1, 0, "x", 1, 0);
	if (repro_next(0, 2000, &entry, &err) != REPRO_DONE)
		repro_shown("%s: the second message is lost", order);
}

static void test(void)
{
	repro_open("shm", FI_DIRECTED_RECV, 2);
	take(repro_ep[0].peer[1], FI_ADDR_UNSPEC, "a named source first");
	take(FI_ADDR_UNSPEC, repro_ep[0].peer[1], "any source first");
}

int main(void)
{
	return repro_run("untagged receives with and without a source", test);
}
