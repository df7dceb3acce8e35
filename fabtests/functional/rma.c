/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 1 writes to and reads from rank 0, by all calls, in many sizes, and with
 * remote CQ data if supported. At the end: an invalid key.
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

/* bytes of each half of a region: first the local buffer, then the target */
#define FT_HALF ((size_t)2 << 20)
#define FT_DATA 0x12345678

enum ft_rma {
	FT_WRITE,
	FT_WRITEV,
	FT_WRITEMSG,
	FT_INJECT,
	FT_WRITEDATA,
	FT_INJECTDATA,
	FT_READ,
	FT_READV,
	FT_READMSG,
	FT_RMA_COUNT
};

static const char *const ft_rma_name[] = {
	"write",	"writev",    "writemsg",
	"inject_write", "writedata", "inject_writedata",
	"read",		"readv",     "readmsg",
};

static struct ft_ep e;
static struct ft_region region;
static uint64_t ops, refused;

static bool ft_rma_injects(enum ft_rma how)
{
	return how == FT_INJECT || how == FT_INJECTDATA;
}

static bool ft_rma_has_data(enum ft_rma how)
{
	return how == FT_WRITEDATA || how == FT_INJECTDATA;
}

static ssize_t ft_rma_try(enum ft_rma how, size_t len, uint64_t key,
			  struct ft_op *op)
{
	size_t half = len > 1 && e.info->tx_attr->iov_limit > 1 ? len / 2 : 0;
	uint64_t to = region.base[0] + FT_HALF;
	fi_addr_t peer = e.peer[0].addr;
	void *desc[] = {region.desc, region.desc};
	const struct iovec iov[] = {
		{region.ptr, len - half},
		{region.ptr + len - half, half},
	};
	const struct fi_rma_iov rma_iov = {to, len, key};
	const struct fi_msg_rma msg = {
		iov, desc, half ? 2 : 1, peer, &rma_iov, 1, op, 0,
	};

	switch (how) {
	case FT_WRITE:
		return fi_write(e.ep, region.ptr, len, desc[0], peer, to, key,
				op);
	case FT_WRITEV:
		return fi_writev(e.ep, iov, desc, msg.iov_count, peer, to, key,
				 op);
	case FT_WRITEMSG:
		return fi_writemsg(e.ep, &msg,
				   FI_COMPLETION | FI_DELIVERY_COMPLETE);
	case FT_INJECT:
		return fi_inject_write(e.ep, region.ptr, len, peer, to, key);
	case FT_WRITEDATA:
		return fi_writedata(e.ep, region.ptr, len, desc[0], FT_DATA,
				    peer, to, key, op);
	case FT_INJECTDATA:
		return fi_inject_writedata(e.ep, region.ptr, len, FT_DATA, peer,
					   to, key);
	case FT_READ:
		return fi_read(e.ep, region.ptr, len, desc[0], peer, to, key,
			       op);
	case FT_READV:
		return fi_readv(e.ep, iov, desc, msg.iov_count, peer, to, key,
				op);
	default:
		return fi_readmsg(e.ep, &msg, FI_COMPLETION);
	}
}

static void ft_rma_do(enum ft_rma how, size_t len)
{
	struct ft_op op;

	ft_op_reset(&op);
	FT_OK(FT_REGION_RETRY(&region,
			      ft_rma_try(how, len, region.key[0], &op)));
	ops++;
	if (ft_rma_injects(how))
		return;
	ft_region_wait(&region, &op);
	FT_CHECK(!op.err, "%s: %s", ft_rma_name[how], fi_strerror(op.err));
	FT_CHECK(op.flags & (how < FT_READ ? FI_WRITE : FI_READ),
		 "%s: flags %lx", ft_rma_name[how], (unsigned long)op.flags);
}

/* In the target: waits until the write has changed the memory. */
static void ft_rma_arrives(enum ft_rma how, size_t len, int before)
{
	volatile uint8_t *last = region.ptr + FT_HALF + len - 1;
	uint8_t want;

	ft_fill(region.ptr, len, how);
	want = region.ptr[len - 1];
	if (ft_rma_has_data(how)) {
		while (region.arrived == before)
			ft_region_poll(&region);
		FT_CHECK(region.data == FT_DATA, "data %lx",
			 (unsigned long)region.data);
	} else {
		while (*last != want ||
		       memcmp(region.ptr, region.ptr + FT_HALF, len))
			ft_region_poll(&region);
	}
	ft_verify(region.ptr + FT_HALF, len, how, ft_rma_name[how]);
	FT_CHECK(!region.ptr[FT_HALF + len], "%s: more than %zu bytes",
		 ft_rma_name[how], len);
}

static void ft_rma_one(enum ft_rma how, size_t len)
{
	int before = region.arrived;

	if (ft_rma_injects(how) && len > e.info->tx_attr->inject_size)
		return;
	memset(region.ptr + FT_HALF, 0, len + 1);
	if (how >= FT_READ && !ft.opts.rank)
		ft_fill(region.ptr + FT_HALF, len, how);
	ft_region_barrier(&region);
	if (ft.opts.rank) {
		if (how < FT_READ)
			ft_fill(region.ptr, len, how);
		else
			memset(region.ptr, 0, len);
		ft_rma_do(how, len);
		if (how >= FT_READ)
			ft_verify(region.ptr, len, how, ft_rma_name[how]);
	} else if (how < FT_READ) {
		ft_rma_arrives(how, len, before);
	}
	ft_region_barrier(&region);
}

static void ft_sizes(void)
{
	static const size_t sizes[] = {1, 8, 100, 4096, 20000, 100000, 1 << 20};
	size_t i;
	int how;

	for (i = 0; i < FT_COUNT(sizes); i++) {
		for (how = 0; how < FT_RMA_COUNT; how++) {
			ft.phase = ft_rma_name[how];
			ft_rma_one(how, sizes[i]);
		}
	}
}

/* An invalid key fails, and leaves the target's memory unchanged. */
static void ft_wrong_key(void)
{
	/* static: efa may report the operation a second time, later */
	static struct ft_op op;
	ssize_t ret;

	if (strstr(ft.opts.prov, "ofi_rxd"))
		return; /* ofi_rxd never answers, also without ofi_duo */
	memset(region.ptr + FT_HALF, 0, 4096);
	ft_region_barrier(&region);
	if (ft.opts.rank) {
		memset(region.ptr, 1, 4096);
		ft_op_reset(&op);
		ret = FT_REGION_RETRY(
			&region,
			ft_rma_try(FT_WRITEMSG, 4096, region.key[0] + 77, &op));
		if (!ret) {
			refused++;
			ft_region_wait(&region, &op);
			FT_CHECK(op.err, "a write with a wrong key succeeded");
		}
	}
	ft_region_barrier(&region);
	FT_CHECK(!region.ptr[FT_HALF], "a wrong key changed memory");
}

static void ft_run(void)
{
	static const struct ft_cfg cfg = {.caps = FI_RMA, .raw = true};
	static const struct ft_case cases[] = {
		{"all variants and sizes", ft_sizes},
		{"wrong key", ft_wrong_key},
	};

	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_region_open(&e, &region, 2 * FT_HALF);
	ft_run_cases(cases, FT_COUNT(cases));
	ft_region_counted(&region, ops, 0, refused);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&e);
}

const struct ft_spec ft_spec = {
	.name = "rma", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
