/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * fi_getinfo() with open fabric and domain in the hints, as Open MPI calls it
 * since 5.0.10 (MTL and BTL share both). Endpoints opened with the returned
 * info must communicate over the expected path.
 *
 * Without a provider name in the hints, libfabric passes these objects to all
 * providers. efa must not crash on objects that are not its own.
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_LEN 4096

static struct ft_ep first, second;

/* True if the info must contain the open objects: bare cores may omit them. */
static bool ft_names(void)
{
	return first.ops || !strcmp(ft.opts.prov, "near");
}

/*
 * With ofi_duo, the info must have the fabric and the domain of ofi_duo that
 * were in the hints, not those of the core.
 */
static void ft_case_info_has_open_objects(void)
{
	struct fi_info *info;

	FT_OK(ft_getinfo_as(&first.cfg, ft.opts.prov, &info));
	FT_CHECK(!first.ops || info->fabric_attr->fabric == first.fabric,
		 "fabric %p, not %p", (void *)info->fabric_attr->fabric,
		 (void *)first.fabric);
	FT_CHECK(!first.ops || info->domain_attr->domain == first.domain,
		 "domain %p, not %p", (void *)info->domain_attr->domain,
		 (void *)first.domain);
	fi_freeinfo(info);
}

/* The hints have objects that are neither a fabric nor a domain. */
static void ft_case_other_objects_get_no_info(void)
{
	struct ft_ep wrong = {
		.fabric = (struct fid_fabric *)first.ep,
		.domain = (struct fid_domain *)first.ep,
	};
	const struct ft_cfg cfg = {.share = &wrong, .by_fids = true};
	struct fi_info *info;
	int ret;

	ret = ft_getinfo_as(&cfg, ft.opts.prov, &info);
	FT_CHECK(ret == -FI_ENODATA, "an endpoint as fabric: %d", ret);
}

static void ft_talk(const struct ft_cfg *cfg)
{
	struct ft_op rx, tx;
	struct ft_buf in, out;
	struct ft_xfer x = {.tagged = true, .tag = 7, .len = FT_LEN};
	int other = !ft.opts.rank;

	ft_open(&second, cfg);
	ft_exchange(&second);
	ft_buf_alloc(&second, &in, FT_LEN);
	ft_buf_alloc(&second, &out, FT_LEN);
	ft_fill(out.ptr, FT_LEN, ft.opts.rank);
	x.buf = in.ptr;
	x.desc = in.desc;
	x.addr = second.peer[other].addr;
	ft_rx(&second, FT_RX_RECV, &x, &rx);
	x.buf = out.ptr;
	x.desc = out.desc;
	ft_tx(&second, FT_TX_SEND, other, &x, &tx);
	ft_wait(&second, &tx);
	ft_wait(&second, &rx);
	ft_verify(in.ptr, FT_LEN, other, "from the other rank");
	ft_buf_free(&in);
	ft_buf_free(&out);
	ft_close(&second);	/* also checks the paths */
}

static void ft_case_named_hints_find_domain(void)
{
	const struct ft_cfg cfg = {.share = &first, .by_fids = true};

	ft_talk(&cfg);
}

static void ft_case_unnamed_hints_find_domain(void)
{
	const struct ft_cfg cfg = {
		.share = &first, .by_fids = true, .unnamed = true,
	};

	ft_talk(&cfg);
}

static void ft_write(struct ft_region *region)
{
	struct ft_op op;

	ft_fill(region->ptr, FT_LEN, 1);
	ft_op_reset(&op);
	FT_OK(FT_REGION_RETRY(region, fi_write(second.ep, region->ptr, FT_LEN,
		region->desc, second.peer[0].addr, region->base[0],
		region->key[0], &op)));
	ft_region_wait(region, &op);
	FT_CHECK(!op.err, "write: %s", fi_strerror(op.err));
}

/*
 * Requests an endpoint with RMA in a domain that was opened for messages only.
 * fi_getinfo() may reject this. Otherwise RMA within a host must not use the
 * core.
 */
static void ft_case_widened_domain_avoids_core(void)
{
	const struct ft_cfg cfg = {
		.share = &first, .by_fids = true, .caps = FI_RMA, .raw = true,
	};
	struct ft_region region = {.arrived = 0};
	struct fi_info *info;

	if (ft_getinfo_as(&cfg, ft.opts.prov, &info))
		return;
	fi_freeinfo(info);
	ft_open(&second, &cfg);
	ft_exchange(&second);
	ft_region_open(&second, &region, FT_LEN);
	ft_region_barrier(&region);
	if (ft.opts.rank)
		ft_write(&region);
	while (!ft.opts.rank && !region.ptr[FT_LEN - 1])
		ft_region_poll(&region);
	ft_region_barrier(&region);
	ft_verify(region.ptr, FT_LEN, 1, "written");
	ft_region_counted(&region, ft.opts.rank ? 1 : 0, 0, 0);
	ft_region_barrier(&region);
	ft_region_close(&region);
	ft_close(&second);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "info has the open objects or none",
		  ft_case_info_has_open_objects },
		{ "hints with other objects return no info",
		  ft_case_other_objects_get_no_info },
		{ "hints with provider name find the domain",
		  ft_case_named_hints_find_domain },
		{ "hints without provider name find the domain",
		  ft_case_unnamed_hints_find_domain },
		{ "RMA in a domain for messages avoids the core",
		  ft_case_widened_domain_avoids_core },
	};

	ft_open(&first, NULL);
	ft_exchange(&first);
	if (!ft_names())
		ft_skip("the core alone need not name open objects");
	ft_run_cases(cases, FT_COUNT(cases));
	ft_close(&first);
}

const struct ft_spec ft_spec = {
	.name = "own_fids", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
