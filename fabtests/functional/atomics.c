/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Atomic operations of all ranks on rank 0 at the same time: none is lost. */

#include <inttypes.h>
#include <rdma/fi_atomic.h>

#include "common/region.h"

#define FT_ROUNDS 200

static struct ft_ep e;
static struct ft_region region;
static uint64_t ops;

/* Indexes in the region: two numbers of rank 0, then this rank's operands. */
enum { FT_SUM, FT_TURN, FT_OPERAND, FT_COMPARE, FT_RESULT };

static uint64_t *ft_number(int which)
{
	return (uint64_t *)region.ptr + which;
}

static void ft_done(struct ft_op *op, ssize_t ret)
{
	FT_OK(ret);
	ops++;
	ft_region_wait(&region, op);
	FT_CHECK(!op->err, "%s", fi_strerror(op->err));
}

static void ft_add(uint64_t n)
{
	struct ft_op op;

	ft_op_reset(&op);
	*ft_number(FT_OPERAND) = n;
	ft_done(&op,
		FT_REGION_RETRY(
			&region,
			fi_atomic(e.ep, ft_number(FT_OPERAND), 1, region.desc,
				  e.peer[0].addr, region.base[0] + 8 * FT_SUM,
				  region.key[0], FI_UINT64, FI_SUM, &op)));
}

/* Fetches without an array of descriptors, as OpenSHMEM libraries do. */
static ssize_t ft_fetch_msg(int which, enum fi_op how, struct ft_op *op)
{
	const struct fi_ioc from = { ft_number(FT_OPERAND), 1 };
	const struct fi_rma_ioc at = {
		region.base[0] + 8 * which, 1, region.key[0],
	};
	const struct fi_msg_atomic msg = {
		.msg_iov = &from, .iov_count = 1, .addr = e.peer[0].addr,
		.rma_iov = &at, .rma_iov_count = 1, .datatype = FI_UINT64,
		.op = how, .context = op,
	};
	struct fi_ioc to = { ft_number(FT_RESULT), 1 };

	return FT_REGION_RETRY(&region,
			       fi_fetch_atomicmsg(e.ep, &msg, &to, NULL, 1,
						  FI_COMPLETION));
}

static uint64_t ft_fetch(int which, enum fi_op how, uint64_t n)
{
	struct ft_op op;

	ft_op_reset(&op);
	*ft_number(FT_OPERAND) = n;
	if (ops & 1) {
		ft_done(&op, ft_fetch_msg(which, how, &op));
		return *ft_number(FT_RESULT);
	}
	ft_done(&op,
		FT_REGION_RETRY(
			&region,
			fi_fetch_atomic(e.ep, ft_number(FT_OPERAND), 1,
					region.desc, ft_number(FT_RESULT),
					region.desc, e.peer[0].addr,
					region.base[0] + 8 * which,
					region.key[0], FI_UINT64, how, &op)));
	return *ft_number(FT_RESULT);
}

static uint64_t ft_swap(uint64_t compare, uint64_t n)
{
	struct ft_op op;

	ft_op_reset(&op);
	*ft_number(FT_OPERAND) = n;
	*ft_number(FT_COMPARE) = compare;
	ft_done(&op,
		FT_REGION_RETRY(
			&region,
			fi_compare_atomic(
				e.ep, ft_number(FT_OPERAND), 1, region.desc,
				ft_number(FT_COMPARE), region.desc,
				ft_number(FT_RESULT), region.desc,
				e.peer[0].addr, region.base[0] + 8 * FT_TURN,
				region.key[0], FI_UINT64, FI_CSWAP, &op)));
	return *ft_number(FT_RESULT);
}

static void ft_reset(void)
{
	if (!ft.opts.rank)
		*ft_number(FT_SUM) = *ft_number(FT_TURN) = 0;
	ft_region_barrier(&region);
}

static void ft_all_add(void)
{
	uint64_t want = (uint64_t)FT_ROUNDS * ft.opts.nranks;
	int i;

	ft_reset();
	for (i = 0; i < FT_ROUNDS; i++)
		ft_add(1);
	ft_region_barrier(&region);
	/* a completed addition may not have reached rank 0 yet */
	while (ft_fetch(FT_SUM, FI_ATOMIC_READ, 0) != want)
		;
	ft_region_barrier(&region);
}

static void ft_all_fetch(void)
{
	uint64_t ticket, last = 0;
	int i;

	ft_reset();
	for (i = 0; i < FT_ROUNDS; i++) {
		ticket = ft_fetch(FT_SUM, FI_SUM, 1);
		FT_CHECK(!i || ticket > last, "%" PRIu64 " after %" PRIu64,
			 ticket, last);
		last = ticket;
	}
	ft_region_barrier(&region);
	FT_CHECK(ft_fetch(FT_SUM, FI_ATOMIC_READ, 0) ==
			 (uint64_t)FT_ROUNDS * ft.opts.nranks,
		 "lost");
	ft_region_barrier(&region);
}

/* The ranks pass a number on by compare-and-swap, one after the other. */
static void ft_all_swap(void)
{
	uint64_t mine;
	int i;

	ft_reset();
	for (i = 0; i < 20; i++) {
		mine = (uint64_t)i * ft.opts.nranks + ft.opts.rank;
		while (ft_swap(mine, mine + 1) != mine)
			;
	}
	ft_region_barrier(&region);
}

static void ft_valid(void)
{
	struct fi_atomic_attr attr;
	size_t count = 0;

	FT_OK(fi_atomicvalid(e.ep, FI_UINT64, FI_SUM, &count));
	FT_CHECK(count > 0, "fi_atomicvalid: no element");
	FT_OK(fi_fetch_atomicvalid(e.ep, FI_UINT64, FI_SUM, &count));
	FT_OK(fi_compare_atomicvalid(e.ep, FI_UINT64, FI_CSWAP, &count));
	FT_OK(fi_query_atomic(e.domain, FI_UINT64, FI_SUM, &attr, 0));
	FT_CHECK(attr.size == 8, "fi_query_atomic: %zu bytes", attr.size);
	FT_CHECK(fi_atomicvalid(e.ep, FI_UINT64, 1000, &count),
		 "an operation that is not there is valid");
}

static void ft_run(void)
{
	static const struct ft_cfg cfg = {
		.caps = FI_RMA | FI_ATOMIC,
		.any_buffer = true,
		.raw = true,
	};
	static const struct ft_case cases[] = {
		{"valid", ft_valid},
		{"add", ft_all_add},
		{"fetch", ft_all_fetch},
		{"compare and swap", ft_all_swap},
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_region_open(&e, &region, 4096);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_region_counted(&region, 0, ops, 0);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "atomics", .nranks = 3, .min_ranks = 2, .run = ft_run,
};
