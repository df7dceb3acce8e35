/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near, with the memory regions and keys of the core (the
 * provider that ofi_duo wraps). The core executes operations that near does not
 * support or would reject. Also: fetches, the reads by near_rma() by which a
 * receiver gets a large message from or to device memory.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables RMA and atomics over near. If the core executes the endpoint's RMA,
 * enables only fetches instead, and only if the domain has device memory. Must
 * be called before near_address(). After an error of near, the core executes
 * RMA, and this function returns 0. It returns an error only if the core cannot
 * replace near: in the provider near, or if the application requires order
 * between messages and RMA.
 */
int duo_near_onesided_open(struct duo_near *near);
/* For fi_enable: sets near->small, and calls duo_near_onesided_events(). */
void duo_near_onesided_start(struct duo_ep *ep);
/*
 * Requests an event from near for each read or each write by a peer, if a
 * counter of ep counts such accesses.
 */
void duo_near_onesided_events(struct duo_ep *ep);
/* near_rma_args.about of a fetch; near_rma_args.cookie is then the duo_rx */
#define DUO_NEAR_FETCH ((uint32_t) FI_MSG)
/*
 * Implements near_rma_sink.done(). about: DUO_NEAR_FETCH, or the flags of the
 * completion. An operation without the flag FI_COMPLETION writes no completion
 * if it succeeds.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/*
 * True if near can execute the RMA and atomics of this info. False if the core
 * must execute them, because the info
 * - has neither FI_RMA nor FI_ATOMIC
 * - has FI_FENCE, but neither FI_MSG nor FI_TAGGED. A fence would have to wait
 *   for the operations over near and for those over the core (docs/objects.md,
 *   *Endpoints for RMA only*).
 * - has FI_MR_RAW
 * - has FI_PROGRESS_AUTO, unless ofi_duo runs as a libfabric hook
 *   (docs/hook.md)
 * - permits more buffers per operation than near supports
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's region table if RMA over near or messages in device memory
 * need it. The core executes RMA on regions that were registered before this
 * call. info: the info of the domain or of one of its endpoints. Logs a
 * failure, but returns an error only in the provider near. Takes all locks of
 * the domain.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Releases unused mappings of peers' device memory. The caller must not hold
 * the domain's lock, because a release may wait for the device.
 */
void duo_near_regions_unmap(struct duo_domain *domain);
/*
 * If the region has exactly one buffer, fills in mr->region, and returns the
 * result of duo_near_region_list(). Otherwise returns 0, and the region is not
 * in near's table.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
/*
 * Adds the region to near's table if peers may access it. The core executes
 * operations on regions outside the table. Returns an error only in the
 * provider near. Takes all locks of the domain.
 */
int duo_near_region_list(struct duo_mr *mr);
/*
 * Removes the region from near's table, if it is there. If this region is host
 * memory, also waits until this process's devices have ended all copies for
 * peers, because such a copy may access the region. Takes all locks of the
 * domain.
 */
void duo_near_region_unlist(struct duo_mr *mr);
/*
 * True if a pending operation of this process uses the region's device memory.
 * Returns false if several registrations share mr (mr->again), because the
 * operation may belong to another registration. Takes the domain's lock.
 */
bool duo_near_region_used(const struct duo_mr *mr);
/*
 * True if peers may fetch the message of len bytes in buf, a part of the
 * region. rndv->key and rndv->addr are then the region key and the RMA address
 * of buf.
 */
bool duo_near_region_fetchable(const struct duo_mr *mr, const void *buf,
			       size_t len, struct near_rndv *rndv);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
