/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_av_insert into an AV after it was bound to an endpoint, but before
 * fi_enable of the endpoint. This is permitted. But shm accesses the endpoint's
 * region in shared memory, which only fi_enable creates.
 */

#include "repro.h"

static void test(void)
{
	char addr[256];
	size_t len = sizeof(addr);

	repro_open_domain("shm", 0);
	repro_open_ep(1);
	repro_enable(1);
	repro_must(fi_getname(&repro_ep[1].ep->fid, addr, &len), "fi_getname");
	repro_open_ep(0);
	if (fi_av_insert(repro_ep[0].av, addr, 1, &repro_ep[0].peer[1], 0,
			 NULL) != 1)
		repro_shown("fi_av_insert rejects the address");
	repro_enable(0);
}

int main(void)
{
	return repro_run("an address inserted before shm's fi_enable", test);
}
