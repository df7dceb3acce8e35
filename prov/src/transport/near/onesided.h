/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near. near has the regions that the core has registered,
 * with the core's keys. If near cannot execute an operation, or would reject
 * the operation, the core executes it. Then the application gets the core's
 * result or error.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables RMA and atomics of near. Must be called before near_address(). After
 * a failure, returns an error if the application has requested an order between
 * messages and RMA, or if the core carries nothing. Otherwise logs a warning
 * and returns 0, and the core executes RMA and atomics.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* For fi_enable: sets near->small and calls duo_near_onesided_tell(). */
void duo_near_onesided_start(struct duo_ep *ep);
/* Requires peers to report operations that a counter of the endpoint counts. */
void duo_near_onesided_tell(struct duo_ep *ep);
/*
 * near_rma_sink.done(): ends an operation. about: flags of the completion,
 * which is written only if FI_COMPLETION is set.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/* region.c */
/*
 * True if near can execute RMA and atomics for this info. The core must execute
 * them if the application requests something that near lacks:
 *
 * - FI_FENCE without FI_MSG and FI_TAGGED, because a fence would have to wait
 *   for both paths;
 * - FI_MR_BASIC or FI_MR_RAW;
 * - FI_PROGRESS_AUTO (progress without reads of a CQ), except in the hook;
 * - more buffers per operation than near supports.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the region table of a domain, if near can execute RMA for the info, and
 * the domain has no table yet. Called for the domain, and for each endpoint.
 * Regions that were registered earlier are not in the table; the core executes
 * operations on them. If the core carries nothing, the table is opened for any
 * info, and a failure is returned. Otherwise a failure is only logged, and 0 is
 * returned.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * duo_near_region_set() fills in mr->region from a registration by the core,
 * and lists it. duo_near_region_list() adds mr->region to the domain's region
 * table, if peers may access the region. duo_near_region_unlist() removes
 * mr->region from the table. The core executes operations on regions that are
 * not in the table, such as those with several segments. The first two
 * functions return an error only if the core carries nothing. The caller must
 * not hold the domain's lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
