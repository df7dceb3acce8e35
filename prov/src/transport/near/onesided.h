/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near. near lists the core's regions under the core's
 * keys. The core executes operations that near cannot execute or would reject,
 * and so reports the errors to the application.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Enables RMA and atomics, before near_address(). If that fails, warns and
 * returns 0, or an error if an order between messages and RMA is requested.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* Starts with the enabled endpoint's flags and bindings. */
void duo_near_onesided_start(struct duo_ep *ep);
void duo_near_onesided_tell(struct duo_ep *ep);
/*
 * Completes an operation. about: flags of the completion; FI_COMPLETION: report
 * one.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/* region.c */
/*
 * True if near serves RMA and atomics of such an info. The core does if it asks
 * for what near lacks: fences without messages (they would span both paths),
 * progress without CQ reads, or many buffers.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's table if near serves the info and there is none: with the
 * domain, or with its first endpoint for RMA. Regions registered before are the
 * core's only. Returns an error only if the core carries nothing; then it
 * always opens the table.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * Describe a region that the core has registered; near lists it if peers may
 * access it. The core serves unlisted regions; -errno if it carries nothing.
 * All three take the lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
