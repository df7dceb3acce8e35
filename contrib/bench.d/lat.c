/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Latency: ping-pong between ranks 0 and 1. An iteration posts a receive,
 * sends, and ends when both are complete. Values are half round trips, ns.
 */

#include "bench.h"

#define BN_WARM 32
#define BN_MAX_ITERS 20000

static uint64_t bn_samples[BN_MAX_ITERS];

static void bn_pingpong_0(size_t size, uint64_t *ns, long count)
{
	uint64_t last, now, tx = bn.tx, rx = bn.rx;
	long i;

	last = bn_now();
	for (i = 0; i < count; i++) {
		bn_recv(bn_from(1), size, BN_TAG);
		bn_send(bn.peer[1], size, BN_TAG);
		bn_wait(tx + i + 1, rx + i + 1);
		now = bn_now();
		ns[i] = now - last;
		last = now;
	}
}

static void bn_pingpong_1(size_t size, long count)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	long i;

	bn_recv(bn_from(0), size, BN_TAG);
	bn_sync();
	for (i = 0; i < count; i++) {
		bn_wait(tx + i, rx + i + 1);
		if (i + 1 < count)
			bn_recv(bn_from(0), size, BN_TAG);
		bn_send(bn.peer[0], size, BN_TAG);
	}
	bn_wait(tx + count, rx + count);
}

/*
 * Measures count round trips. Rank 0 stores each time in ns[]. Returns the
 * total time, ns. Called by all ranks.
 */
uint64_t bn_pingpong(size_t size, uint64_t *ns, long count)
{
	uint64_t start = bn_now();

	bn_sync();
	if (bn.rank == 0) {
		bn_sync();
		start = bn_now();
		bn_pingpong_0(size, ns, count);
	} else if (bn.rank == 1) {
		bn_pingpong_1(size, count);
	} else {
		bn_sync();
	}
	return bn_now() - start;
}

/*
 * Measures some iterations, which also warm up. Returns the number of
 * iterations that fit in the time budget. Called by all ranks.
 */
long bn_pingpong_count(size_t size)
{
	uint64_t ns = bn_pingpong(size, bn_samples, BN_WARM) / BN_WARM;
	long count = bn.opts.budget_ms * 1000000L / (long) (ns + 1);

	count = bn_agree(count < 16 ? 16 : count);
	return count < BN_MAX_ITERS ? count : BN_MAX_ITERS;
}

size_t bn_sizes(const size_t **sizes)
{
	static const size_t few[] = { 1, 8, 64, 512, 4096, 65536, 1 << 20 };
	static const size_t all[] = {
		1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192,
		16384, 32768, 65536, 131072, 262144, 524288, 1 << 20, 2 << 20,
		4 << 20,
	};

	*sizes = bn.opts.few ? few : all;
	return bn.opts.few ? BN_COUNT(few) : BN_COUNT(all);
}

static void bn_lat_size(const char *name, size_t size)
{
	long count = bn_pingpong_count(size);

	bn_pingpong(size, bn_samples, count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, 2, "%s.%zu", name, size);
	bn_sync();
}

static void bn_lat_sizes(const char *name)
{
	const size_t *sizes;
	size_t i, count = bn_sizes(&sizes);

	bn_pingpong_count(1);	/* warm up */
	for (i = 0; i < count && sizes[i] <= bn.opts.max_size; i++)
		bn_lat_size(name, sizes[i]);
}

void bn_lat(void)
{
	bn_lat_sizes("lat");
}

void bn_lat_any(void)
{
	bn.any = true;
	bn_lat_sizes("lat-any");
	bn.any = false;
}

void bn_lat_msg(void)
{
	if (bn.opts.tagged_only)
		return;
	bn.msg = true;
	bn_lat_sizes("lat-msg");
	bn.msg = false;
}

static void bn_drain_wild(void)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	int i;

	for (i = 0; i < BN_WINDOW; i++)
		bn_send(bn.peer[!bn.rank], 8, BN_TAG_FREE + i);
	bn_wait(tx + BN_WINDOW, rx + BN_WINDOW);
}

/* Latency while wildcard receives are posted for tags that no rank sends. */
void bn_wild(void)
{
	static struct fi_context2 ctx[BN_WINDOW];
	int i, ret;

	for (i = 0; bn.rank < 2 && i < BN_WINDOW; i++) {
		while ((ret = bn_try_recv(FI_ADDR_UNSPEC, 8, BN_TAG_FREE + i,
					  &ctx[i])) == -FI_EAGAIN)
			bn_poll();
		BN_OK(ret);
	}
	bn_lat_size("wild", 8);
	/*
	 * Do not poll in this barrier: a poll could count messages of the other
	 * rank in bn.rx before bn_drain_wild() copies bn.rx. Then this rank
	 * would wait for more messages than the other rank sends.
	 */
	bn_sync_still();
	/* ranks 0 and 1 end each other's wildcard receives by messages */
	if (bn.rank < 2)
		bn_drain_wild();
	bn_sync();
}
