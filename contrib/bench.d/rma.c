/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics of rank 0 on rank 1's memory. Values, in ns:
 * - put: half a round trip, in which ranks write to each other and poll memory;
 * - get, fadd, put-done: until the completion, while the target polls;
 * - put-still, get-still: until the completion, while the target sleeps;
 * - put-bw, get-bw, fadd-bw: time per operation, in windows of 64.
 */

#include <string.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "bench.h"

#define BN_WARM 32
#define BN_MAX_ITERS 20000

static uint64_t bn_samples[BN_MAX_ITERS];
static fi_addr_t bn_there;
static uint64_t bn_raddr, bn_rkey;
static uint64_t bn_done; /* number of operations that this rank has started */

/*
 * Exchanges the keys and addresses of the ranks' regions. The region of a rank
 * is its rbuf. Operations use sbuf as the local buffer.
 */
void bn_region_exchange(void)
{
	struct bn_shared *sh = bn.sh;

	bn_there = bn.peer[!bn.rank];
	sh->rma[bn.rank].key = fi_mr_key(bn.region);
	sh->rma[bn.rank].addr =
		bn.info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ?
		(uintptr_t) bn.rbuf : 0;
	bn_sync_still();
	bn_rkey = sh->rma[!bn.rank].key;
	bn_raddr = sh->rma[!bn.rank].addr;
}

static void bn_try(ssize_t ret)
{
	if (ret && ret != -FI_EAGAIN)
		BN_DIE("one-sided operation: %s", fi_strerror((int) -ret));
	if (ret)
		bn_poll();
	else
		bn_done++;
}

void bn_put(size_t size, void *context)
{
	uint64_t done = bn_done;

	while (bn_done == done)
		bn_try(fi_write(bn.ep, bn.sbuf, size, bn.sdesc, bn_there,
				bn_raddr, bn_rkey, context));
}

void bn_get(size_t size, void *context)
{
	uint64_t done = bn_done;

	while (bn_done == done)
		bn_try(fi_read(bn.ep, bn.sbuf, size, bn.sdesc, bn_there,
			       bn_raddr, bn_rkey, context));
}

void bn_fadd(size_t size, void *context)
{
	static uint64_t one = 1;
	uint64_t done = bn_done;

	memcpy(bn.sbuf, &one, sizeof(one));
	while (bn_done == done)
		bn_try(fi_fetch_atomic(bn.ep, bn.sbuf, size / 8, bn.sdesc,
				       bn.sbuf + 4096, bn.sdesc, bn_there,
				       bn_raddr, bn_rkey, FI_UINT64, FI_SUM,
				       context));
}

void bn_rma_wait(void)
{
	while (bn.rma < bn_done)
		bn_poll();
}

/* Executes count windows. Stores each time in ns[]. Returns the total, ns. */
static uint64_t bn_ops(bn_op op, size_t size, uint64_t *ns, long count,
		       int window)
{
	uint64_t start = bn_now(), last = start, now = start;
	long i, j;

	for (i = 0; i < count; i++) {
		for (j = 0; j < window; j++)
			op(size, &bn.ctx[j]);
		bn_rma_wait();
		now = bn_now();
		ns[i] = now - last;
		last = now;
	}
	return now - start;
}

static long bn_fits(uint64_t ns, long least, long most)
{
	long count = bn.opts.budget_ms * 1000000L / (long) (ns + 1);

	return count < least ? least : count > most ? most : count;
}

/* Measures operations of rank 0. still: rank 1 sleeps; otherwise it polls. */
static void bn_from_0(const char *name, bn_op op, size_t size, int window,
		      bool still)
{
	uint64_t ns;
	long count;

	if (size > bn.opts.max_size)
		return;
	bn_sync();
	if (!bn.rank) {
		bn_ops(op, size, bn_samples, BN_WARM, window);
		ns = bn_ops(op, size, bn_samples, BN_WARM, window) / BN_WARM;
		count = bn_fits(ns, 4, BN_MAX_ITERS);
		bn_ops(op, size, bn_samples, count, window);
		bn_print_ns(bn_samples, count, window, "%s.%zu", name, size);
	}
	if (still)
		bn_sync_sleeping();
	else
		bn_sync();
}

static volatile uint8_t *bn_last(size_t size)
{
	return bn.rbuf + size - 1;
}

/* Waits for data as an application does: reads memory, and polls the CQ. */
static void bn_until(size_t size, uint8_t value)
{
	while (*bn_last(size) != value)
		bn_poll();
}

static uint64_t bn_puts(size_t size, uint64_t *ns, long count)
{
	uint64_t start, last, now;
	long i;

	*bn_last(size) = 0;
	bn_sync();
	start = last = bn_now();
	for (i = 1; i <= count; i++) {
		if (bn.rank)
			bn_until(size, 1 + i % 250);
		/* the previous write may still read sbuf until it completes */
		bn_rma_wait();
		bn.sbuf[size - 1] = 1 + i % 250;
		bn_put(size, &bn.ctx[i % BN_CTXS]);
		if (!bn.rank)
			bn_until(size, 1 + i % 250);
		now = bn_now();
		ns[i - 1] = now - last;
		last = now;
	}
	bn_rma_wait();
	bn_sync();
	return last - start;
}

static void bn_put_size(size_t size)
{
	uint64_t ns;
	long count;

	if (size > bn.opts.max_size)
		return;
	bn_puts(size, bn_samples, BN_WARM);
	ns = bn_puts(size, bn_samples, BN_WARM) / BN_WARM;
	count = bn_agree(bn_fits(ns, 16, BN_MAX_ITERS));
	bn_puts(size, bn_samples, count);
	if (!bn.rank)
		bn_print_ns(bn_samples, count, 2, "put.%zu", size);
}

void bn_rma_put(void)
{
	const size_t *sizes;
	size_t i, count = bn_sizes(&sizes);

	bn_region_exchange();
	for (i = 0; i < count; i++)
		bn_put_size(sizes[i]);
	bn_from_0("put-done", bn_put, 8, 1, false);
}

void bn_rma_get(void)
{
	const size_t *sizes;
	size_t i, count = bn_sizes(&sizes);

	bn_region_exchange();
	for (i = 0; i < count; i++)
		bn_from_0("get", bn_get, sizes[i], 1, false);
}

void bn_rma_still(void)
{
	bn_region_exchange();
	bn_from_0("put-still", bn_put, 8, 1, true);
	bn_from_0("get-still", bn_get, 8, 1, true);
}

void bn_rma_bw(void)
{
	static const size_t sizes[] = { 8, 4096, 65536, 1 << 20 };
	size_t i;

	bn_region_exchange();
	for (i = 0; i < BN_COUNT(sizes); i++) {
		bn_from_0("put-bw", bn_put, sizes[i], BN_WINDOW, false);
		bn_from_0("get-bw", bn_get, sizes[i], BN_WINDOW, false);
	}
}

void bn_rma_fadd(void)
{
	bn_region_exchange();
	bn_from_0("fadd", bn_fadd, 8, 1, false);
	bn_from_0("fadd-bw", bn_fadd, 8, BN_WINDOW, false);
}
