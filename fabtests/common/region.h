/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A memory region on each rank, for RMA and atomics by other ranks. Open its
 * endpoint with ft_cfg.raw: the functions here read the CQ.
 */
#ifndef FT_REGION_H
#define FT_REGION_H

#include "ft.h"

struct ft_region {
	struct ft_ep *e;
	uint8_t *ptr;
	struct fid_mr *mr;
	void *desc;
	uint64_t key[FT_MAX_RANKS];
	/* RMA address of the first byte of each rank's region */
	uint64_t base[FT_MAX_RANKS];
	uint64_t data;		     /* data of the last remote write */
	int arrived;		     /* number of remote writes with data */
};

/* Opens a region of len bytes, a multiple of 4096. Call in all ranks. */
void ft_region_open(struct ft_ep *e, struct ft_region *region, size_t len);
void ft_region_close(struct ft_region *region);
void ft_region_poll(struct ft_region *region);
/* Waits for an operation. Its result is in op->err: 0 or FI_E*. */
void ft_region_wait(struct ft_region *region, struct ft_op *op);
void ft_region_barrier(struct ft_region *region);
/*
 * Checks the provider's counts of this rank's operations, all of which have
 * rank 0 as the target. Does nothing if the provider has no FI_DUO_OPS.
 * Expected numbers:
 * - rma, atomic: operations that near executes if it is the local transport to
 *   rank 0; otherwise the core executes them;
 * - refused: RMA operations that near rejects and ofi_duo passes to the core.
 */
void ft_region_counted(struct ft_region *region, uint64_t rma, uint64_t atomic,
		       uint64_t refused);

#define FT_REGION_RETRY(region, call)                                          \
	({                                                                     \
		ssize_t ft_retry_;                                             \
		while ((ft_retry_ = (call)) == -FI_EAGAIN)                     \
			ft_region_poll(region);                                \
		ft_retry_;                                                     \
	})

#endif /* FT_REGION_H */
