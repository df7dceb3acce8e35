/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Rank 1 writes to and reads from rank 0. The MR modes are those that
 * fi_getinfo() returns for different modes in the hints.
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_LEN ((size_t)64 << 10)

/* FI_MR_UNSPEC, FI_MR_BASIC and FI_MR_SCALABLE, which are deprecated */
enum { FT_MR_UNSPEC, FT_MR_BASIC, FT_MR_SCALABLE };

static struct ft_ep e;
static struct ft_region region;
static int mode;

static void ft_hints_mode(struct fi_info *hints)
{
	hints->domain_attr->mr_mode = mode;
}

static void ft_wait_for(struct ft_op *op, ssize_t ret)
{
	FT_OK(ret);
	ft_region_wait(&region, op);
	FT_CHECK(!op->err, "%s", fi_strerror(op->err));
}

/*
 * In rank 1: writes the first half of its region to the second half of rank 0's
 * region, and reads the bytes back.
 */
static void ft_access(void)
{
	const uint64_t to = region.base[0] + FT_LEN;
	struct ft_op op;

	ft_fill(region.ptr, FT_LEN, 1);
	ft_op_reset(&op);
	ft_wait_for(&op, FT_REGION_RETRY(&region,
			fi_write(e.ep, region.ptr, FT_LEN, region.desc,
				 e.peer[0].addr, to, region.key[0], &op)));
	memset(region.ptr, 0, FT_LEN);
	ft_op_reset(&op);
	ft_wait_for(&op, FT_REGION_RETRY(&region,
			fi_read(e.ep, region.ptr, FT_LEN, region.desc,
				e.peer[0].addr, to, region.key[0], &op)));
	ft_verify(region.ptr, FT_LEN, 1, "written and read");
}

static void ft_mode(int hinted)
{
	static const struct ft_cfg cfg = {
		.caps = FI_RMA, .raw = true, .hints = ft_hints_mode,
	};

	mode = hinted;
	if (!ft_offers(&cfg, 0, 0))
		return;
	ft_open(&e, &cfg);
	ft_exchange(&e);
	ft_region_open(&e, &region, 2 * FT_LEN);
	if (ft.opts.rank)
		ft_access();
	ft_region_barrier(&region);
	ft_verify(region.ptr + (ft.opts.rank ? 0 : FT_LEN), FT_LEN, 1,
		  "written");
	ft_region_counted(&region, ft.opts.rank ? 2 : 0, 0, 0);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&e);
}

/*
 * Not for efa without ofi_duo: for such hints, efa grants no remote access
 * (libfabric 2.1 to 2.6).
 */
static void ft_case_hints_without_mode(void)
{
	if (!ft_has_prefix(ft.opts.prov, "efa") ||
	    strstr(ft.opts.prov, "ofi_duo"))
		ft_mode(FT_MR_UNSPEC);
}

static void ft_case_hints_with_basic_mode(void)
{
	ft_mode(FT_MR_BASIC);
}

static void ft_case_hints_with_scalable_mode(void)
{
	ft_mode(FT_MR_SCALABLE);
}

static void ft_case_hints_with_modes(void)
{
	ft_mode(FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_VIRT_ADDR |
		FI_MR_PROV_KEY | FI_MR_ENDPOINT);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "RMA with no MR mode in the hints",
		  ft_case_hints_without_mode },
		{ "RMA with FI_MR_BASIC in the hints",
		  ft_case_hints_with_basic_mode },
		{ "RMA with FI_MR_SCALABLE in the hints",
		  ft_case_hints_with_scalable_mode },
		{ "RMA with several MR modes in the hints",
		  ft_case_hints_with_modes },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "mr_modes", .nranks = 2, .run = ft_run,
};
