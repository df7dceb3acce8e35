/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Closes a memory region during operations on it, within a host. Each operation
 * must end once, with success or an error, as efa guarantees since 2.7
 * (fi_efa(7), MR ABORTING). The memory itself stays allocated.
 */

#include <rdma/fi_rma.h>

#include "common/region.h"

#define FT_LEN ((size_t)1 << 20)
#define FT_ROUNDS 20

static struct ft_ep e;

/* The sender closes its region before the receiver posts a receive. */
static void ft_send_round(int round)
{
	struct ft_xfer x = {.tagged = true, .tag = round, .len = FT_LEN};
	struct ft_op op;
	struct fid_mr *mr;

	x.buf = aligned_alloc(4096, FT_LEN);
	FT_CHECK(x.buf, "no memory");
	ft_fill(x.buf, FT_LEN, ft.opts.rank ? round : ~round);
	FT_OK(fi_mr_reg(e.domain, x.buf, FT_LEN, FI_SEND | FI_RECV, 0,
			100 + round, 0, &mr, NULL));
	x.desc = fi_mr_desc(mr);
	if (ft.opts.rank) {
		ft_tx(&e, FT_TX_SEND, 0, &x, &op);
		FT_OK(fi_close(&mr->fid));
	}
	ft_barrier();
	if (!ft.opts.rank) {
		x.addr = e.peer[1].addr;
		ft_rx(&e, FT_RX_RECV, &x, &op);
	}
	ft_wait_any(&e, &op);
	if (!ft.opts.rank) {
		if (!op.err)
			ft_verify(x.buf, FT_LEN, round, "received");
		FT_OK(fi_close(&mr->fid));
	}
	ft_barrier();
	free(x.buf);
}

static void ft_case_send_ends_without_region(void)
{
	int i;

	ft_open(&e, NULL);
	ft_exchange(&e);
	for (i = 0; i < FT_ROUNDS; i++)
		ft_send_round(i);
	ft_close(&e);
}

/*
 * The target closes its region before or during a write to it. The test runs
 * only with the provider near, not with ofi_duo: if near does not find the
 * region, ofi_duo passes the write to the core, and some cores then close the
 * connection.
 */
static void ft_write_round(struct ft_region *region, int round)
{
	struct ft_op op;

	ft_region_open(&e, region, FT_LEN);
	ft_region_barrier(region);
	if (ft.opts.rank) {
		ft_fill(region->ptr, FT_LEN, round);
		ft_op_reset(&op);
		FT_OK(FT_REGION_RETRY(region, fi_write(e.ep, region->ptr,
			FT_LEN, region->desc, e.peer[0].addr, region->base[0],
			region->key[0], &op)));
		ft_region_wait(region, &op);
		FT_CHECK(!op.err || op.err == FI_EKEYREJECTED ||
			 op.err == FI_EACCES, "write: %s", fi_strerror(op.err));
	} else {
		FT_OK(fi_close(&region->mr->fid));
	}
	ft_region_barrier(region);
	if (ft.opts.rank)
		FT_OK(fi_close(&region->mr->fid));
	free(region->ptr);
}

static void ft_case_write_ends_without_region(void)
{
	static const struct ft_cfg cfg = {.caps = FI_RMA, .raw = true};
	struct ft_region region = {.arrived = 0};
	int i;

	if (strcmp(ft.opts.prov, "near"))
		return;
	ft_open(&e, &cfg);
	ft_exchange(&e);
	for (i = 0; i < FT_ROUNDS; i++)
		ft_write_round(&region, i);
	ft_close(&e);
}

static void ft_run(void)
{
	static const struct ft_case cases[] = {
		{ "send ends once although its region closes",
		  ft_case_send_ends_without_region },
		{ "write ends once although its region closes",
		  ft_case_write_ends_without_region },
	};

	ft_run_cases(cases, FT_COUNT(cases));
}

const struct ft_spec ft_spec = {
	.name = "mr_close", .nranks = 2, .min_ranks = 2, .run = ft_run,
};
