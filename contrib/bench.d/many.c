/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Many ranks: all send to one, which receives from any source; and all send to
 * all. Values are times per message, ns.
 */

#include "bench.h"

/* messages of a sender before it waits for an ACK */
#define BN_BURST 16
#define BN_WARM 8
#define BN_MAX_ITERS 4096

static uint64_t bn_samples[BN_MAX_ITERS];

/* Receives "total" messages, with a window of wildcard receives posted. */
static void bn_gather(uint64_t total)
{
	uint64_t posted = 0, rx = bn.rx;

	while (bn.rx - rx < total) {
		while (posted < total && posted - (bn.rx - rx) < BN_WINDOW) {
			bn_recv(FI_ADDR_UNSPEC, 8, BN_TAG);
			posted++;
		}
		bn_poll();
	}
}

static void bn_fan_in_once(void)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	int i;

	if (!bn.rank) {
		bn_gather((uint64_t) (bn.opts.nranks - 1) * BN_BURST);
		for (i = 1; i < bn.opts.nranks; i++)
			bn_send(bn.peer[i], 8, BN_TAG_ACK);
		bn_wait(tx + bn.opts.nranks - 1, bn.rx);
		return;
	}
	bn_recv(bn.peer[0], 8, BN_TAG_ACK);
	for (i = 0; i < BN_BURST; i++)
		bn_send(bn.peer[0], 8, BN_TAG);
	bn_wait(tx + BN_BURST, rx + 1);
}

static void bn_alltoall_once(void)
{
	int i, n = bn.opts.nranks;
	uint64_t tx = bn.tx, rx = bn.rx;

	for (i = 1; i < n; i++)
		bn_recv(bn.peer[(bn.rank + n - i) % n], 8, BN_TAG);
	for (i = 1; i < n; i++)
		bn_send(bn.peer[(bn.rank + i) % n], 8, BN_TAG);
	bn_wait(tx + n - 1, rx + n - 1);
}

static void bn_repeat(void (*once)(void), long count)
{
	uint64_t now, last = bn_now();
	long i;

	for (i = 0; i < count; i++) {
		once();
		now = bn_now();
		bn_samples[i] = now - last;
		last = now;
	}
	bn_sync();
}

static void bn_many(const char *name, void (*once)(void), int messages)
{
	uint64_t start = bn_now();
	long count;

	bn_repeat(once, BN_WARM);
	count = bn.opts.budget_ms * 1000000L * BN_WARM /
		(long) (bn_now() - start + 1);
	count = bn_agree(count < 16 ? 16 : count);
	if (count > BN_MAX_ITERS)
		count = BN_MAX_ITERS;
	bn_repeat(once, count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, messages, "%s.%d", name,
			    bn.opts.nranks);
}

void bn_fan_in(void)
{
	bn_many("fan-in", bn_fan_in_once, (bn.opts.nranks - 1) * BN_BURST);
}

void bn_alltoall(void)
{
	bn_many("alltoall", bn_alltoall_once, bn.opts.nranks - 1);
}
