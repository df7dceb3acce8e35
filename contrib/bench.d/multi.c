/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Many messages into multi-receive buffers: rank 0 sends windows of untagged
 * messages, and waits for an ACK after each. Rank 1 has two buffers. It posts a
 * buffer again when the provider releases it. Values are ns per message.
 */

#include "bench.h"

#define BN_WARM 16
#define BN_MAX_WINDOWS 4096
#define BN_BUFFERS 2
#define BN_BUFFER (64 * 1024)
#define BN_LEN 8

static uint64_t bn_samples[BN_MAX_WINDOWS];
static struct fi_context2 bn_buffer[BN_BUFFERS];

static void bn_post(void *context)
{
	int i = (struct fi_context2 *) context == &bn_buffer[1];
	const struct iovec iov = { bn.rbuf + i * BN_BUFFER, BN_BUFFER };
	const struct fi_msg msg = {
		.msg_iov = &iov, .desc = &bn.rdesc, .iov_count = 1,
		.addr = FI_ADDR_UNSPEC, .context = context,
	};
	int ret;

	while ((ret = fi_recvmsg(bn.ep, &msg, FI_MULTI_RECV)) == -FI_EAGAIN)
		bn_poll();
	BN_OK(ret);
}

static void bn_bursts_0(uint64_t *ns, long count)
{
	uint64_t now, last = bn_now(), tx = bn.tx, rx = bn.rx;
	long i, j;

	for (i = 0; i < count; i++) {
		bn.msg = false;
		bn_recv(bn.peer[1], BN_LEN, BN_TAG_ACK);
		bn.msg = true;
		for (j = 0; j < BN_WINDOW; j++)
			bn_send(bn.peer[1], BN_LEN, 0);
		bn_wait(tx + (i + 1) * BN_WINDOW, rx + i + 1);
		now = bn_now();
		ns[i] = now - last;
		last = now;
	}
	bn.msg = false;
}

static void bn_bursts_1(long count)
{
	uint64_t tx = bn.tx, rx = bn.rx;
	long i;

	for (i = 0; i < count; i++) {
		while (bn.rx < rx + (i + 1) * BN_WINDOW) {
			bn_poll();
			while (bn.released)
				bn_post(bn.release[--bn.released]);
		}
		bn_send(bn.peer[0], BN_LEN, BN_TAG_ACK);
	}
	bn_wait(tx + count, rx);
}

static uint64_t bn_bursts(long count)
{
	uint64_t start = bn_now();

	if (!bn.rank)
		bn_bursts_0(bn_samples, count);
	else if (bn.rank == 1)
		bn_bursts_1(count);
	return bn_now() - start;
}

void bn_multi(void)
{
	uint64_t ns;
	long count;
	int i;

	for (i = 0; bn.rank == 1 && i < BN_BUFFERS; i++)
		bn_post(&bn_buffer[i]);
	bn_sync_still();
	bn_bursts(BN_WARM);
	ns = bn_bursts(BN_WARM) / BN_WARM;
	count = bn.opts.budget_ms * 1000000L / (long) (ns + 1);
	count = bn_agree(count < 4 ? 4 : count > BN_MAX_WINDOWS ?
			 BN_MAX_WINDOWS : count);
	bn_bursts(count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, BN_WINDOW, "multi.%d", BN_LEN);
}
