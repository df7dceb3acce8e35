/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The pool of receive entries, see rx.h. */

#include <stdlib.h>
#include <sys/mman.h>
#include <rdma/fi_errno.h>

#include "queue/rx.h"

void *duo_rx_no_desc[DUO_IOV_LIMIT];

#define DUO_RX_RANGE (DUO_RX_MAX * sizeof(struct duo_rx))

int duo_rx_pool_init(struct duo_rx_pool *pool, struct duo_ep *ep,
		     struct fid_peer_srx *srx)
{
	void *base = mmap(NULL, DUO_RX_RANGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (base == MAP_FAILED)
		return -FI_ENOMEM;
	pool->base = base;
	pool->end = base;
	SLIST_INIT(&pool->free);
	pool->live = 0;
	pool->ep = ep;
	pool->srx = srx;
	return 0;
}

void duo_rx_pool_fini(struct duo_rx_pool *pool)
{
	struct duo_rx *rx;

	for (rx = pool->base; rx < pool->end; rx++)
		free(rx->bounce);
	munmap(pool->base, DUO_RX_RANGE);
	pool->base = NULL;
	pool->end = NULL;
}

struct duo_rx *duo_rx_first_use(struct duo_rx_pool *pool)
{
	struct duo_rx *rx;

	if (pool->end == pool->base + DUO_RX_MAX)
		return NULL;
	rx = pool->end++;
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
