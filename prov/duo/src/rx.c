/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The pool of receive entries, see duo_rx.h. */

#include <stdlib.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "duo_rx.h"

/* For shm: all buffers are in host memory. */
static void *duo_rx_no_desc[DUO_IOV_LIMIT];

#define DUO_RX_RANGE (DUO_RX_MAX * sizeof(struct duo_rx))

int duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep,
		     struct fid_peer_srx *srx)
{
	void *base = mmap(NULL, DUO_RX_RANGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -FI_ENOMEM;
	pool->base = base;
	pool->ep = ep;
	pool->srx = srx;
	pool->used = 0;
	pool->live = 0;
	SLIST_INIT(&pool->free);
	return 0;
}

void duo_rx_pool_fini(struct duo_rx_pool *pool)
{
	uint32_t i;

	for (i = 0; i < pool->used; i++)
		free(pool->base[i].bounce);
	munmap(pool->base, DUO_RX_RANGE);
	pool->base = NULL;
	pool->used = 0;
}

struct duo_rx *duo_rx_first_use(struct duo_rx_pool *pool)
{
	struct duo_rx *rx;

	if (pool->used == DUO_RX_MAX)
		return NULL;
	rx = &pool->base[pool->used++];
	rx->ep = pool->ep;
	rx->peer.srx = pool->srx;
	rx->peer.desc = duo_rx_no_desc;
	return rx;
}

void duo_rx_free_bounce(struct duo_rx *rx)
{
	free(rx->bounce);
	rx->bounce = NULL;
}
