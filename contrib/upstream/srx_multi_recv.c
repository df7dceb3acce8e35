/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A message larger than the remainder of a multi-receive buffer:
 * util_adjust_multi_recv() (prov/util/src/util_srx.c) subtracts the message's
 * length from the remainder, which wraps around. Later messages are written
 * behind the buffer.
 */

#include "repro.h"

#define ROOM 65536
/* three messages fit in the buffer, the fourth does not */
#define MESSAGE 20000
#define GUARD 0x5a

static unsigned char area[4 * ROOM];

static void test(void)
{
	static unsigned char message[MESSAGE];
	struct fi_context2 context;
	struct iovec iov = { .iov_base = area, .iov_len = ROOM };
	struct fi_msg msg = {
		.msg_iov = &iov,
		.iov_count = 1,
		.addr = FI_ADDR_UNSPEC,
		.context = &context,
	};
	struct fi_cq_tagged_entry entry;
	struct fi_cq_err_entry err;
	size_t i;

	memset(area, GUARD, sizeof(area));
	repro_open("shm", FI_MULTI_RECV, 2);
	repro_must(fi_recvmsg(repro_ep[0].ep, &msg, FI_MULTI_RECV),
		   "fi_recvmsg");
	for (i = 0; i < 6; i++)
		repro_send(1, 0, message, sizeof(message), 0);
	while (repro_next(0, 1000, &entry, &err) != REPRO_NONE)
		;
	for (i = ROOM; i < sizeof(area); i++) {
		if (area[i] != GUARD)
			repro_shown("byte %zu of a buffer of %d is written", i,
				    ROOM);
	}
}

int main(void)
{
	return repro_run("a message behind a multi-receive buffer", test);
}
