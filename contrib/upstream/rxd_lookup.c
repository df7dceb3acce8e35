/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_av_lookup of the first address: rxd_av_dg_addr() (prov/rxd/src/rxd_av.c)
 * treats the datagram provider's address 0 as missing.
 */

#include "repro.h"

static void look_up(int i)
{
	char addr[256], want[256];
	size_t len = sizeof(addr), want_len = sizeof(want);
	int ret;

	repro_must(fi_getname(&repro_ep[i].ep->fid, want, &want_len),
		   "fi_getname");
	ret = fi_av_lookup(repro_ep[0].av, repro_ep[0].peer[i], addr, &len);
	if (ret)
		repro_shown("address %d: %s", i, fi_strerror(-ret));
	if (len != want_len || memcmp(addr, want, len))
		repro_shown("address %d is another one", i);
}

static void test(void)
{
	repro_open("udp;ofi_rxd", 0, 2);
	look_up(1);
	look_up(0);
}

int main(void)
{
	return repro_run("udp;ofi_rxd: fi_av_lookup of the first address",
			 test);
}
