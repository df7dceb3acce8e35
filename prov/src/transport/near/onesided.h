/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near, on the core's regions and with their keys. The
 * core executes operations that near cannot execute or would reject, so that
 * the application gets the core's result.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables near's RMA and atomics for the endpoint. If near cannot execute
 * these, but the domain has device memory, enables only fetches of messages.
 * Must be called before near_address().
 *
 * After a failure the core executes RMA, and a warning is logged. Returns an
 * error only if the core carries nothing, or if the application has requested
 * order between messages and RMA.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* For fi_enable: sets near->small and calls duo_near_onesided_events(). */
void duo_near_onesided_start(struct duo_ep *ep);
/* Requests events for remote accesses that a counter of the endpoint counts. */
void duo_near_onesided_events(struct duo_ep *ep);
/* near_rma_args.about of a read that fetches a message; cookie: the duo_rx */
#define DUO_NEAR_FETCH ((uint32_t) FI_MSG)
/*
 * near_rma_sink.done(). about: DUO_NEAR_FETCH, or completion flags; without
 * FI_COMPLETION there is no completion.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/*
 * region.c: true if the info has RMA or atomics, and near can execute them. The
 * core executes them if the info has
 *
 * - FI_FENCE, but neither FI_MSG nor FI_TAGGED: a fence would have to wait for
 *   both paths;
 * - FI_MR_RAW;
 * - FI_PROGRESS_AUTO, except in the hook;
 * - more buffers per operation than near supports.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's region table if it is needed and not open yet. info: of
 * the domain, or of an endpoint. The table is needed
 *
 * - for RMA, if the core carries nothing or duo_near_serves(info) is true:
 *   regions registered from now on are then listed for RMA, and the core
 *   executes operations on earlier regions;
 * - for messages of device memory, if the domain has device memory.
 *
 * Logs a failure. Returns an error only if the core carries nothing. Takes all
 * locks of the domain.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Releases the mappings of peers' regions that near does not use any more. Must
 * be called without the domain's lock, because a release may wait for the
 * application's work on the device.
 */
void duo_near_regions_unmap(struct duo_domain *domain);
/*
 * duo_near_region_set() fills in mr->region and calls duo_near_region_list(),
 * which adds the region to near's table if peers may access it.
 * duo_near_region_unlist() removes the region from the table. If a region is
 * not in the table, for example because it has several buffers, the core
 * executes the operations on it. The functions return errors only if the core
 * carries nothing. The caller must not hold the domain's lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);
/*
 * True if a pending operation of this process copies from or to the region's
 * device memory. False if the application has registered the region several
 * times, because the operation may belong to another registration. Takes the
 * domain's lock.
 */
bool duo_near_region_used(const struct duo_mr *mr);
/*
 * True if peers may fetch a message from this buffer of the region. Stores the
 * buffer's address and key in *rndv.
 */
bool duo_near_region_fetchable(const struct duo_mr *mr, const void *buf,
			       size_t len, struct near_rndv *rndv);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
