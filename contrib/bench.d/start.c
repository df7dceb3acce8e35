/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Start-up: all ranks start at the same time. Prints the mean and the largest
 * time of bn_open(), from fi_getinfo until all addresses are inserted.
 * Afterwards each rank sends to the next one, to check the path.
 */

#include "bench.h"

static void bn_ring(void)
{
	int next = (bn.rank + 1) % bn.opts.nranks;
	int last = (bn.rank + bn.opts.nranks - 1) % bn.opts.nranks;
	uint64_t tx = bn.tx, rx = bn.rx;

	bn_recv(bn.peer[last], 8, BN_TAG);
	bn_send(bn.peer[next], 8, BN_TAG);
	bn_wait(tx + 1, rx + 1);
}

void bn_start(void)
{
	struct bn_shared *sh = bn.sh;
	unsigned long slowest = atomic_load(&sh->start_max);

	atomic_fetch_add(&sh->start_sum, bn.start_ns);
	while (bn.start_ns > slowest &&
	       !atomic_compare_exchange_weak(&sh->start_max, &slowest,
					     bn.start_ns))
		;
	bn_sync();
	if (!bn.rank) {
		bn_print((double) atomic_load(&sh->start_sum) /
			 bn.opts.nranks, "start.%d", bn.opts.nranks);
		bn_print(atomic_load(&sh->start_max), "start-max.%d",
			 bn.opts.nranks);
	}
	if (bn.opts.nranks > 1)
		bn_ring();
	bn_sync();
}
