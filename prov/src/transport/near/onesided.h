/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near. near has the regions that the core has registered,
 * with the core's keys. If near cannot execute an operation, or would reject
 * it, the core executes it: the application then gets the core's result or
 * error.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables RMA and atomics; must be called before near_address(). If that fails,
 * logs a warning and returns 0: the core executes them. Returns an error only
 * if the application has requested an order between messages and RMA, or if the
 * core carries nothing.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* Takes over flags and counters, when the endpoint is enabled. */
void duo_near_onesided_start(struct duo_ep *ep);
/*
 * Requests events of peers' operations if a counter of the endpoint counts
 * them.
 */
void duo_near_onesided_tell(struct duo_ep *ep);
/*
 * near_rma_sink.done(): ends an operation. about: flags of its completion; with
 * FI_COMPLETION there is one.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/* region.c */
/*
 * True if near can execute RMA and atomics for this info. The core executes
 * them if the application requests something that near lacks:
 *
 * - FI_FENCE without messages: a fence would have to wait for both paths;
 * - progress without reads of a CQ (FI_PROGRESS_AUTO);
 * - more buffers per operation than near supports.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the region table of a domain if near can execute RMA for the info, and
 * there is none yet. Called for the domain, and for each endpoint. The core
 * alone knows regions that were registered before. An error is returned only if
 * the core carries nothing; then the table is always opened.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Set, list or unlist a region that the core has registered. near lists it in
 * the domain's table if peers may access it. If it is not listed, the core
 * executes operations on it; if the core carries nothing, an error is returned.
 * These three take the domain's lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
