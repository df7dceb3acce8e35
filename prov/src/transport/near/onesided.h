/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near, on regions of the core, with its keys. The core
 * executes what near cannot or would reject: the application gets the core's
 * result.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables near's RMA and atomics, before near_address(). A failure is an error
 * if the application requests order between messages and RMA, or the core
 * carries nothing; else it is logged, and the core executes them.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* For fi_enable: sets near->small and calls duo_near_onesided_events(). */
void duo_near_onesided_start(struct duo_ep *ep);
/* Requires peers to report what a counter of the endpoint counts. */
void duo_near_onesided_events(struct duo_ep *ep);
/* near_rma_sink.done(). about: completion flags; none: no FI_COMPLETION. */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/*
 * region.c: true if near can execute RMA and atomics for this info. Not:
 *
 * - FI_FENCE without FI_MSG and FI_TAGGED: a fence would wait for both paths;
 * - FI_MR_BASIC or FI_MR_RAW;
 * - FI_PROGRESS_AUTO, except in the hook;
 * - more buffers per operation than near supports.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's region table, unless it has one, if near can execute RMA
 * for the info of the domain or of an endpoint. The core executes operations on
 * regions registered before. A failure is logged; it is returned only if the
 * core, for which any info opens a table, carries nothing.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Fill in mr->region and list it; list it, if peers may access it; remove it.
 * The core executes operations on regions that are not listed, as those of
 * several segments. The first two fail only if the core carries nothing. Not
 * under the domain's lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
