/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Measures the memory of an endpoint, and of an AV's entry for an address. */

#include <arpa/inet.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define BN_EPS 4
#define BN_ADDRS 200		/* shm accepts at most 256 addresses */
#define BN_EFA_GID_LEN 16

struct bn_memory {
	double heap;		/* size of the heap in use, bytes */
	double shm_size;	/* size of mapped files in /dev/shm, bytes */
	double shm_rss; /* part of these files that is in memory, bytes */
};

static void bn_memory(struct bn_memory *mem)
{
	struct mallinfo2 heap = mallinfo2();
	char line[512], rights[5];
	bool shm = false;
	double kb;
	FILE *file;

	memset(mem, 0, sizeof(*mem));
	mem->heap = heap.uordblks + heap.hblkhd;
	file = fopen("/proc/self/smaps", "r");
	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*x-%*x %4s", rights) == 1)
			shm = rights[1] == 'w' && strstr(line, "/dev/shm/");
		if (shm && sscanf(line, "Size: %lf kB", &kb) == 1)
			mem->shm_size += kb * 1024;
		if (shm && sscanf(line, "Rss: %lf kB", &kb) == 1)
			mem->shm_rss += kb * 1024;
	}
	if (file)
		fclose(file);
}

bool bn_fake_addr(uint8_t *name, size_t len, unsigned int index)
{
	struct sockaddr_in *in = (void *) name;
	uint32_t number = htonl(index + 1);
	uint16_t qpn = index;

	memcpy(name, bn.sh->peer[0].name, len);
	switch (bn.info->addr_format) {
	case FI_SOCKADDR:
	case FI_SOCKADDR_IN:
		in->sin_addr.s_addr = htonl((127U << 24) + index + 2);
		return true;
	case FI_ADDR_EFA:
		memcpy(name + BN_EFA_GID_LEN - sizeof(number), &number,
		       sizeof(number));
		memcpy(name + BN_EFA_GID_LEN, &qpn, sizeof(qpn));
		return true;
	case FI_ADDR_STR:
		memset(name, 0, len);
		snprintf((char *) name, len, "fi_shm://9%06u:0:0", index);
		return true;
	default:
		return false;
	}
}

static void bn_mem_eps(struct fid_ep **ep, struct fid_cq **cq,
		       struct fid_av **av)
{
	struct bn_memory before, after;
	int i;

	bn_memory(&before);
	for (i = 0; i < BN_EPS; i++)
		BN_OK(bn_open_ep(&ep[i], &cq[i], &av[i]));
	bn_memory(&after);
	bn_print((after.heap - before.heap) / BN_EPS, "mem.ep-heap");
	bn_print((after.shm_size - before.shm_size) / BN_EPS, "mem.ep-shm");
	bn_print((after.shm_rss - before.shm_rss) / BN_EPS, "mem.ep-shm-rss");
}

static void bn_mem_av(struct fid_av *av)
{
	size_t i, len = bn.sh->peer[0].len;
	struct bn_memory before, after;
	uint8_t name[BN_NAME_MAX];
	fi_addr_t addr;

	bn_memory(&before);
	for (i = 0; i < BN_ADDRS; i++) {
		if (!bn_fake_addr(name, len, i) ||
		    fi_av_insert(av, name, 1, &addr, 0, NULL) != 1)
			return;
	}
	bn_memory(&after);
	bn_print((after.heap - before.heap) / BN_ADDRS, "mem.av-heap");
}

void bn_mem(void)
{
	struct fid_ep *ep[BN_EPS];
	struct fid_cq *cq[BN_EPS];
	struct fid_av *av[BN_EPS];
	int i;

	bn_sync();
	if (!bn.rank) {
		bn_mem_eps(ep, cq, av);
		bn_mem_av(av[0]);
		for (i = 0; i < BN_EPS; i++) {
			fi_close(&ep[i]->fid);
			fi_close(&av[i]->fid);
			fi_close(&cq[i]->fid);
		}
	}
	bn_sync();
}
