/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Polls of an idle endpoint's CQ, and reads of many completions in batches. */

#include "bench.h"

#define BN_POLLS 100		/* number of polls in a sample */
#define BN_MAX_SAMPLES 4096
#define BN_ENTRIES 256		/* number of completions in the CQ */
#define BN_CQ_ROUNDS 50

static uint64_t bn_samples[BN_MAX_SAMPLES];

static void bn_time_polls(const char *name)
{
	uint64_t start, end;
	size_t count = 0;
	int i;

	bn_sync_still();
	end = bn_now() + bn.opts.budget_ms * 1000000ULL;
	while (!bn.rank && count < BN_MAX_SAMPLES && bn_now() < end) {
		start = bn_now();
		for (i = 0; i < BN_POLLS; i++)
			bn_poll();
		bn_samples[count++] = bn_now() - start;
	}
	if (count)
		bn_print_ns(bn_samples, count, BN_POLLS, "%s", name);
	bn_sync_still();
}

void bn_idle(void)
{
	uint64_t warm[16], tx, rx;

	bn_pingpong(8, warm, 16);
	bn_time_polls("idle");
	tx = bn.tx;
	rx = bn.rx;
	if (!bn.rank)
		bn_recv(FI_ADDR_UNSPEC, 8, BN_TAG);
	bn_time_polls("idle-posted");
	if (!bn.rank)
		bn_wait(tx, rx + 1);
	else if (bn.rank == 1)
		bn_send(bn.peer[0], 8, BN_TAG);
	if (bn.rank == 1)
		bn_wait(tx + 1, rx);
	bn_sync();
}

/* Reads batches until this rank has read rx receive completions in total. */
static void bn_read_batches(size_t batch, uint64_t rx)
{
	static struct fi_cq_tagged_entry entry[BN_ENTRIES];
	ssize_t ret;

	while (bn.rx < rx) {
		ret = fi_cq_read(bn.cq, entry, batch);
		if (ret > 0)
			bn.rx += ret;
		else if (ret != -FI_EAGAIN)
			bn_cq_fail(ret);
	}
}

static uint64_t bn_cq_round(size_t batch)
{
	uint64_t start, tx = bn.tx, rx = bn.rx;
	int i;

	for (i = 0; bn.rank == 1 && i < BN_ENTRIES; i++)
		bn_recv(bn.peer[0], 8, BN_TAG);
	bn_sync_still();
	for (i = 0; !bn.rank && i < BN_ENTRIES; i++)
		bn_send(bn.peer[1], 8, BN_TAG);
	if (!bn.rank)
		bn_sync();
	else
		bn_sync_still();
	start = bn_now();
	if (bn.rank == 1)
		bn_read_batches(batch, rx + BN_ENTRIES);
	else if (!bn.rank)
		bn_wait(tx + BN_ENTRIES, rx);
	return bn_now() - start;
}

void bn_curve_cq(void)
{
	static const size_t batches[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256 };
	uint64_t warm[16];
	size_t i, j;

	bn_pingpong(8, warm, 16);
	for (i = 0; i < BN_COUNT(batches); i++) {
		for (j = 0; j < BN_CQ_ROUNDS; j++)
			bn_samples[j] = bn_cq_round(batches[i]);
		if (bn.rank == 1)
			bn_print_ns(bn_samples, BN_CQ_ROUNDS, BN_ENTRIES,
				    "cq.%zu", batches[i]);
		bn_sync();
	}
}
