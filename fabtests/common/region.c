/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */


#include <inttypes.h>
#include <stdlib.h>
#include <rdma/fi_rma.h>

#include "region.h"

#define FT_ACCESS                                                              \
	(FI_SEND | FI_RECV | FI_READ | FI_WRITE | FI_REMOTE_READ |             \
	 FI_REMOTE_WRITE)

struct ft_region_peer {
	uint64_t key, base;
};

void ft_region_open(struct ft_ep *e, struct ft_region *region, size_t len)
{
	const int mode = e->info->domain_attr->mr_mode;
	/* the value of FI_MR_BASIC, whose name is deprecated */
	const bool basic = mode == 1;
	struct ft_region_peer self, all[FT_MAX_RANKS];
	static uint64_t key = 1;
	int r;

	region->e = e;
	region->ptr = aligned_alloc(4096, len);
	FT_CHECK(region->ptr, "no memory for %zu bytes", len);
	memset(region->ptr, 0, len);
	FT_OK(fi_mr_reg(e->domain, region->ptr, len, FT_ACCESS, 0, key++, 0,
			&region->mr, NULL));
	region->desc = fi_mr_desc(region->mr);
	self.key = fi_mr_key(region->mr);
	FT_CHECK(basic || mode & FI_MR_PROV_KEY || self.key == key - 1,
		 "MR modes 0x%x: key 0x%" PRIx64 ", not 0x%" PRIx64, mode,
		 self.key, key - 1);
	self.base = basic || mode & FI_MR_VIRT_ADDR ? (uintptr_t)region->ptr :
						      0;
	ft_allgather(&self, sizeof(self), all);
	for (r = 0; r < ft.opts.nranks; r++) {
		region->key[r] = all[r].key;
		region->base[r] = all[r].base;
	}
}

void ft_region_close(struct ft_region *region)
{
	FT_OK(fi_close(&region->mr->fid));
	free(region->ptr);
}

static void ft_region_err(struct ft_region *region)
{
	struct fi_cq_err_entry entry = {0};
	struct ft_op *op;

	FT_CHECK(fi_cq_readerr(region->e->txcq, &entry, 0) == 1,
		 "fi_cq_readerr");
	op = entry.op_context;
	FT_CHECK(op, "an error without context: %s", fi_strerror(entry.err));
	op->err = entry.err;
	op->done++;
}

void ft_region_poll(struct ft_region *region)
{
	struct fi_cq_tagged_entry entry;
	struct ft_op *op;
	ssize_t ret = fi_cq_read(region->e->txcq, &entry, 1);

	if (ret == -FI_EAVAIL)
		ft_region_err(region);
	if (ret != 1)
		return;
	if (entry.flags & FI_REMOTE_CQ_DATA) {
		FT_CHECK(!region->e->ops ||
				 entry.flags & (FI_RMA | FI_REMOTE_WRITE),
			 "flags %" PRIx64, entry.flags);
		region->data = entry.data;
		region->arrived++;
		return;
	}
	op = entry.op_context;
	op->flags = entry.flags;
	op->done++;
}

void ft_region_wait(struct ft_region *region, struct ft_op *op)
{
	while (!op->done)
		ft_region_poll(region);
	FT_CHECK(op->done == 1, "%d completions", (int)op->done);
}

void ft_region_barrier(struct ft_region *region)
{
	while (!ft_barrier_try())
		ft_region_poll(region);
}

/*
 * True if RMA to rank 0 uses near. If the local transport is libfabric's shm,
 * ofi_duo passes RMA to the core.
 */
static bool ft_region_near(const struct ft_ep *e)
{
	const char *peer = getenv("FI_OFI_DUO_LOCAL");

	return ft_path(e, 0) == FI_DUO_LOCAL && (!peer || strcmp(peer, "shm"));
}

void ft_region_counted(struct ft_region *region, uint64_t rma, uint64_t atomic,
		       uint64_t refused)
{
	struct fi_duo_stats stats;
	enum fi_duo_path path = FI_DUO_CORE;

	if (!region->e->ops)
		return;
	ft_stats(region->e, &stats);
	if (ft_region_near(region->e))
		path = FI_DUO_LOCAL;
	/* the provider near has no core: near itself counts all operations */
	if (!strcmp(ft.opts.prov, "near")) {
		rma += refused;
		refused = 0;
	}
	FT_CHECK(stats.rma_ops[path] == rma + (path ? 0 : refused) &&
			 stats.rma_ops[!path] == (path ? refused : 0) &&
			 stats.atomic_ops[path] == atomic &&
			 !stats.atomic_ops[!path],
		 "%" PRIu64 " RMA and %" PRIu64 " atomic operations of the "
		 "core, %" PRIu64 " and %" PRIu64 " of near, not %" PRIu64
		 " and %" PRIu64 " of path %d, %" PRIu64 " rejected",
		 stats.rma_ops[FI_DUO_CORE], stats.atomic_ops[FI_DUO_CORE],
		 stats.rma_ops[FI_DUO_LOCAL],
		 stats.atomic_ops[FI_DUO_LOCAL], rma,
		 atomic, path, refused);
}
