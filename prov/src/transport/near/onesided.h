/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near, with the core's memory regions and keys. The core
 * executes operations that near does not support or would reject.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables RMA and atomics over near, or only fetches if the core executes RMA.
 * Must precede near_address(). Returns an error only if the core cannot execute
 * RMA instead: in the provider near, or if the application requires order
 * between messages and RMA.
 */
int duo_near_onesided_open(struct duo_near *near);
/* Sets near->small, and calls duo_near_onesided_events(); for fi_enable. */
void duo_near_onesided_start(struct duo_ep *ep);
/* Requests events of those remote accesses that a counter of ep counts. */
void duo_near_onesided_events(struct duo_ep *ep);
/* near_rma_args.about of a fetch; near_rma_args.cookie is then the duo_rx */
#define DUO_NEAR_FETCH ((uint32_t) FI_MSG)
/*
 * near_rma_sink.done(). about: DUO_NEAR_FETCH, or the flags of the completion.
 * If these lack FI_COMPLETION, a success writes no completion.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/*
 * True if the info has RMA or atomics that near can execute. The core executes
 * those of an info with
 * - FI_FENCE, and is for RMA only (neither FI_MSG nor FI_TAGGED): a fence would
 *   have to wait for both paths (docs/objects.md, Endpoints for RMA only)
 * - FI_MR_RAW
 * - FI_PROGRESS_AUTO, except in the hook
 * - more buffers per operation than near supports
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's region table if RMA over near or messages of device memory
 * need it. The core executes RMA on regions registered before this call. info:
 * of the domain or of an endpoint. Logs a failure, but returns an error only in
 * the provider near. Takes all locks of the domain.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Releases unused mappings of peers' device memory. The caller must not hold
 * the domain's lock, because a release may wait for the device.
 */
void duo_near_regions_unmap(struct duo_domain *domain);
/* If the region has one buffer, fills in mr->region, and lists the region. */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
/*
 * Adds the region to near's table if peers may access it. The core executes
 * operations on regions outside the table. Returns an error only in the
 * provider near. Takes all locks of the domain.
 */
int duo_near_region_list(struct duo_mr *mr);
/*
 * Removes the region from the table. Waits for device copies from and to a
 * region of host memory. Takes all locks of the domain.
 */
void duo_near_region_unlist(struct duo_mr *mr);
/*
 * True if a pending operation uses the region's device memory. False if several
 * registrations share mr (mr->again), because the operation may belong to
 * another registration. Takes the domain's lock.
 */
bool duo_near_region_used(const struct duo_mr *mr);
/* True if peers may fetch the message in buf; sets rndv->key and rndv->addr. */
bool duo_near_region_fetchable(const struct duo_mr *mr, const void *buf,
			       size_t len, struct near_rndv *rndv);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
