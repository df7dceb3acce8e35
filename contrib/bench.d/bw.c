/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Bandwidth and message rate. Rank i < pairs sends windows of messages to rank
 * i + pairs, and waits for an ACK after each. Before the ACK, the receiver
 * posts the receives of the next window.
 */

#include "bench.h"

#define BN_WARM 4
#define BN_MAX_WINDOWS 4096
#define BN_ACK_LEN 8

static uint64_t bn_samples[BN_MAX_WINDOWS];

static void bn_post_window(int from, size_t size)
{
	int i;

	for (i = 0; i < BN_WINDOW; i++)
		bn_recv(bn_from(from), size, BN_TAG);
}

static void bn_windows_send(int to, size_t size, uint64_t *ns, long count)
{
	uint64_t now, last, tx = bn.tx, rx = bn.rx;
	long i, j;

	last = bn_now();
	for (i = 0; i < count; i++) {
		bn_recv(bn.peer[to], BN_ACK_LEN, BN_TAG_ACK);
		for (j = 0; j < BN_WINDOW; j++)
			bn_send(bn.peer[to], size, BN_TAG);
		bn_wait(tx + (i + 1) * BN_WINDOW, rx + i + 1);
		if (!ns)
			continue;
		now = bn_now();
		ns[i] = now - last;
		last = now;
	}
}

static void bn_windows_recv(int from, size_t size, long count)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	long i;

	for (i = 0; i < count; i++) {
		bn_wait(tx, rx + (i + 1) * BN_WINDOW);
		if (i + 1 < count)
			bn_post_window(from, size);
		bn_send(bn.peer[from], BN_ACK_LEN, BN_TAG_ACK);
	}
	bn_wait(tx + count, rx);
}

/*
 * Sends count windows in each pair. Stores the time of each window in ns[],
 * unless ns is NULL. Returns the total time, ns. Called by all ranks.
 */
static uint64_t bn_windows(int pairs, size_t size, uint64_t *ns, long count)
{
	bool sends = bn.rank < pairs, receives = !sends && bn.rank < 2 * pairs;
	uint64_t start;

	if (receives)
		bn_post_window(bn.rank - pairs, size);
	/*
	 * Do not poll in this barrier: a poll could count messages of the first
	 * window in bn.rx before bn_windows_recv() copies bn.rx. Then the
	 * receiver would wait for more messages than the sender sends.
	 */
	bn_sync_still();
	start = bn_now();
	if (sends)
		bn_windows_send(bn.rank + pairs, size, ns, count);
	else if (receives)
		bn_windows_recv(bn.rank - pairs, size, count);
	bn_sync();
	return bn_now() - start;
}

/*
 * Sends some windows to warm up, and measures others. Returns the number of
 * windows that fit in the time budget. Called by all ranks.
 */
static long bn_windows_count(int pairs, size_t size)
{
	uint64_t ns;
	long count;

	bn_windows(pairs, size, NULL, BN_WARM);
	ns = bn_windows(pairs, size, NULL, BN_WARM) / BN_WARM;
	count = bn.opts.budget_ms * 1000000L / (long) (ns + 1);
	count = bn_agree(count < 4 ? 4 : count);
	return count < BN_MAX_WINDOWS ? count : BN_MAX_WINDOWS;
}

/* Prints the times per message, in ns. */
static void bn_bw_size(const char *name, size_t size)
{
	long count = bn_windows_count(1, size);

	bn_windows(1, size, bn_samples, count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, BN_WINDOW, "%s.%zu", name,
			    size);
	bn_sync();
}

void bn_bw(void)
{
	static const size_t sizes[] = {
		4096, 16384, 65536, 262144, 1 << 20, 4 << 20
	};
	size_t i;

	for (i = 0; i < BN_COUNT(sizes); i++) {
		if (sizes[i] > bn.opts.max_size)
			break;
		if (!bn.opts.few || sizes[i] == 65536 || sizes[i] == 1 << 20)
			bn_bw_size("bw", sizes[i]);
	}
}

void bn_rate(void)
{
	bn_bw_size("rate", 8);
}

void bn_rate_any(void)
{
	bn.any = true;
	bn_bw_size("rate-any", 8);
	bn.any = false;
}

/* Prints the time per message, ns, while all pairs send. */
void bn_rate_pairs(void)
{
	int pairs = bn.opts.nranks / 2;
	long count = bn_windows_count(pairs, 8);
	double ns = bn_windows(pairs, 8, NULL, count);

	if (!bn.rank)
		bn_print(ns / count / BN_WINDOW / pairs, "rate-pairs.%d",
			 bn.opts.nranks);
}
