/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RMA and atomics over near. A region is the core's, and is listed with near
 * under the core's key; what near cannot do, or would refuse, is left to the
 * core, whose errors are the application's then.
 */
#ifndef DUO_TRANSPORT_NEAR_ONESIDED_H
#define DUO_TRANSPORT_NEAR_ONESIDED_H

#include "near/near.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/mr.h"

/*
 * Before the port has an address; warns and does without if it cannot be, and
 * fails where an order between messages and RMA was asked for.
 */
int duo_near_onesided_open(struct duo_ep *ep);
/* When it is enabled, with its flags and what it is bound to. */
void duo_near_onesided_start(struct duo_ep *ep);
void duo_near_onesided_tell(struct duo_ep *ep);
/*
 * An operation of ours has ended. about: what a completion says of it;
 * FI_COMPLETION: there is one.
 */
void duo_near_onesided_done(void *ctx, struct near_peer *peer, void *context,
			    uint32_t about, int err);

/* region.c */
/*
 * Does near do RMA and atomics of such an info? Without messages it is the
 * core's as it is: fences over both paths, progress while nobody reads a CQ,
 * and many buffers are not to be had of near.
 */
bool duo_near_serves(const struct fi_info *info);
/*
 * Opens the domain's table if near serves the info and there is none yet: with
 * the domain, or with its first endpoint for RMA where the domain was opened
 * without. Regions that were registered earlier remain the core's alone. An
 * error where the core carries nothing, and the table is always opened.
 */
int duo_near_table_open(struct duo_domain *domain,
			const struct fi_info *info);
void duo_near_table_close(struct duo_domain *domain);
/*
 * What the region is, when the core has registered it; then near lists it, if
 * peers may use it. What is not listed is the core's; -errno where that carries
 * nothing. All of them take the lock.
 */
int duo_near_region_set(struct duo_mr *mr, const struct iovec *iov,
			size_t count, uint64_t access);
int duo_near_region_list(struct duo_mr *mr);
void duo_near_region_unlist(struct duo_mr *mr);

#endif /* DUO_TRANSPORT_NEAR_ONESIDED_H */
