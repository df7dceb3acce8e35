/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Bandwidth and message rate: rank 0 sends windows of messages. Rank 1 posts
 * the receives of the next window before it acknowledges one.
 */

#include "bench.h"

#define BN_WARM 4
#define BN_MAX_WINDOWS 4096
#define BN_ACK_LEN 8

static uint64_t bn_samples[BN_MAX_WINDOWS];

static void bn_post_window(size_t size)
{
	int i;

	for (i = 0; i < BN_WINDOW; i++)
		bn_recv(bn_from(0), size, BN_TAG);
}

static void bn_windows_0(size_t size, uint64_t *ns, long count)
{
	uint64_t now, last, tx = bn.tx, rx = bn.rx;
	long i, j;

	last = bn_now();
	for (i = 0; i < count; i++) {
		bn_recv(bn.peer[1], BN_ACK_LEN, BN_TAG_ACK);
		for (j = 0; j < BN_WINDOW; j++)
			bn_send(bn.peer[1], size, BN_TAG);
		bn_wait(tx + (i + 1) * BN_WINDOW, rx + i + 1);
		now = bn_now();
		ns[i] = now - last;
		last = now;
	}
}

static void bn_windows_1(size_t size, long count)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	long i;

	for (i = 0; i < count; i++) {
		bn_wait(tx, rx + (i + 1) * BN_WINDOW);
		if (i + 1 < count)
			bn_post_window(size);
		bn_send(bn.peer[0], BN_ACK_LEN, BN_TAG_ACK);
	}
	bn_wait(tx + count, rx);
}

/*
 * Sends count windows; stores the time of each in ns[], and returns the total
 * time. Called by all ranks.
 */
static uint64_t bn_windows(size_t size, uint64_t *ns, long count)
{
	uint64_t start;

	if (bn.rank == 1)
		bn_post_window(size);
	bn_sync_still(); /* otherwise the next messages would be counted here */
	start = bn_now();
	if (bn.rank == 0)
		bn_windows_0(size, ns, count);
	else if (bn.rank == 1)
		bn_windows_1(size, count);
	bn_sync();
	return bn_now() - start;
}

/* Prints the times per message, in ns. */
static void bn_bw_size(const char *name, size_t size)
{
	uint64_t ns;
	long count;

	bn_windows(size, bn_samples, BN_WARM);	/* warm up */
	ns = bn_windows(size, bn_samples, BN_WARM) / BN_WARM;
	count = bn.opts.budget_ms * 1000000L / (long) (ns + 1);
	count = bn_agree(count < 4 ? 4 : count);
	if (count > BN_MAX_WINDOWS)
		count = BN_MAX_WINDOWS;
	bn_windows(size, bn_samples, count);
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
