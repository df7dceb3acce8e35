/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Growth of times with the length of queues and tables: latency of 8 bytes with
 * many posted receives or unexpected messages; time per address of one call of
 * fi_av_insert() for many addresses. The tests leave the queues full, so they
 * must run last in a process.
 */

#include <stdlib.h>

#include "bench.h"

#define BN_LONGEST 100000
/* number of polls after -FI_EAGAIN until bn_post_many() gives up */
#define BN_PATIENCE 100000
#define BN_MAX_ITERS 20000

static const long bn_lengths[] = { 1, 10, 100, 1000, 10000, BN_LONGEST };

static uint64_t bn_samples[BN_MAX_ITERS];

static size_t bn_length_count(void)
{
	return BN_COUNT(bn_lengths) - bn.opts.few;
}

static void bn_length_latency(const char *name, long length)
{
	long count = bn_pingpong_count(8);

	bn_pingpong(8, bn_samples, count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, 2, "%s.%ld", name, length);
	bn_sync();
}

/*
 * Posts receives for tags that no rank sends. False: the provider accepts no
 * more receives.
 */
static bool bn_post_many(struct fi_context2 *ctx, long from, long to)
{
	long i, polls;
	int ret;

	for (i = from; i < to; i++) {
		for (polls = 0; polls < BN_PATIENCE; polls++) {
			ret = bn_try_recv(bn.peer[1], 8, BN_TAG_FREE + i,
					  &ctx[i]);
			if (ret != -FI_EAGAIN)
				break;
			bn_poll();
		}
		if (ret)
			return false;
	}
	return true;
}

void bn_curve_posted(void)
{
	struct fi_context2 *ctx = calloc(BN_LONGEST, sizeof(*ctx));
	long from = 0, ok = 1;
	size_t i;

	if (!ctx)
		BN_DIE("no memory");
	for (i = 0; i < bn_length_count(); i++) {
		if (!bn.rank)
			ok = bn_post_many(ctx, from, bn_lengths[i]);
		if (!bn_agree(ok))
			return;
		from = bn_lengths[i];
		bn_length_latency("posted", from);
	}
	/* ctx is not freed: its receives are still posted */
}

void bn_curve_unexpected(void)
{
	long j, from = 0;
	uint64_t tx;
	size_t i;

	bn_pingpong(8, bn_samples, 16);
	for (i = 0; i < bn_length_count(); i++) {
		tx = bn.tx;
		for (j = from; bn.rank == 1 && j < bn_lengths[i]; j++)
			bn_send(bn.peer[0], 8, BN_TAG_FREE + j);
		if (bn.rank == 1)
			bn_wait(tx + bn_lengths[i] - from, bn.rx);
		bn_sync();
		from = bn_lengths[i];
		bn_length_latency("unexpected", from);
	}
}

static bool bn_time_insert(uint8_t *names, long count)
{
	fi_addr_t *addrs = malloc(count * sizeof(*addrs));
	struct fid_ep *ep;
	struct fid_cq *cq;
	struct fid_av *av;
	uint64_t start, ns;
	int ret;

	if (!addrs)
		BN_DIE("no memory");
	BN_OK(bn_open_ep(&ep, &cq, &av));
	start = bn_now();
	ret = fi_av_insert(av, names, count, addrs, 0, NULL);
	ns = bn_now() - start;
	if (ret == count)
		bn_print((double) ns / count, "av.%ld", count);
	fi_close(&ep->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	free(addrs);
	return ret == count;
}

void bn_curve_av(void)
{
	static const long counts[] = { 1, 10, 100, 200, 1000, 10000 };
	size_t i, len = bn.sh->peer[0].len;
	uint8_t *names = calloc(counts[BN_COUNT(counts) - 1], BN_NAME_MAX);
	bool ok = names;

	for (i = 0; ok && i < (size_t) counts[BN_COUNT(counts) - 1]; i++)
		ok = bn_fake_addr(names + i * len, len, i);
	for (i = 0; ok && !bn.rank && i < BN_COUNT(counts); i++)
		ok = bn_time_insert(names, counts[i]);
	free(names);
	bn_sync();
}
