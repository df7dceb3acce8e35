/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The polls of a CQ: docs/completions.md, "Polling". Lock: the group's. */

#include <sched.h>
#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "base/params.h"
#include "core/post.h"
#include "core/read.h"
#include "cq/cq.h"
#include "local/registry.h"
#include "obj/ep.h"
#include "transport/near/near_ep.h"
#include "transport/transport.h"
#include "rx/arrive.h"

/*
 * While the core has work (duo_cq_core_busy()), and more than DUO_LOCAL_IDLE
 * polls of the CQ in a row have found no event of the local transport, only
 * every DUO_LOCAL_INTERVAL-th poll of the CQ polls the local transport.
 */
#define DUO_LOCAL_IDLE 1024
#define DUO_LOCAL_INTERVAL 8
#define DUO_OVERSUB_MS 200	/* ms between checks for oversubscribed CPUs */

DUO_NOINLINE void duo_cq_resolve(struct duo_cq *cq)
{
	struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		duo_arrival_resolve(ep);
}

/*
 * True if an endpoint of the CQ has no address in its AV. Any process may then
 * send to this endpoint over the core, and ofi_duo has no address by which it
 * could find out that the process is local. Polls must therefore include the
 * core, although ofi_duo expects no message there.
 */
static bool duo_cq_has_no_peer(const struct duo_cq *cq)
{
	const struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		if (!ep->av || !ep->av->high)
			return true;
	return false;
}

/*
 * True if this poll of the CQ must poll the core. If the core poll budget is
 * not used up, subtracts 1 from it. If the poll of the core is due, resets
 * core_skip, even if the core is unused and is therefore not polled.
 */
DUO_INLINE bool duo_cq_core_due(struct duo_cq *cq)
{
	uint32_t budget = atomic_load_explicit(&cq->core_poll_budget,
					       memory_order_relaxed);

	if (budget)
		atomic_store_explicit(&cq->core_poll_budget, budget - 1,
				      memory_order_relaxed);
	else if (cq->local_idle <= cq->local_busy &&
		 cq->core_skip < duo_params.core_poll_interval)
		return false;
	cq->core_skip = 0;
	return budget || !duo_cq_core_unused(cq) || duo_cq_has_no_peer(cq);
}

/* True if this poll of the CQ must poll the local transport. */
DUO_INLINE bool duo_cq_local_due(const struct duo_cq *cq)
{
	return cq->local_idle <= DUO_LOCAL_IDLE || !duo_cq_core_busy(cq) ||
	       !(cq->local_idle % DUO_LOCAL_INTERVAL);
}

/*
 * Counts the fast-path reads since duo_cq_grant(), cq->granted, as polls of the
 * CQ and of its endpoints' near ports. The fast path itself counts neither.
 */
DUO_NOINLINE void duo_cq_charge(struct duo_cq *cq)
{
	const struct duo_ep *ep;

	cq->core_skip += cq->granted;
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		duo_near_passed(ep, cq->granted);
	cq->granted = 0;
}

/*
 * Sets cq->left to the number of reads that may take the fast path. The next
 * read after these must call duo_cq_progress(), because then a poll of the core
 * is due, or the tick of a near port. The tick is periodic work of a port, such
 * as reading the clock (near_port_tick()).
 */
DUO_NOINLINE void duo_cq_grant(struct duo_cq *cq)
{
	uint32_t polls = duo_params.core_poll_interval - cq->core_skip - 1;
	const struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		polls = duo_near_left(ep, polls);
	cq->granted = cq->left = polls;
}

/*
 * Polls the local transport and the core, each if its poll is due. If cq->left
 * is not 0, this poll uses up one of the fast-path reads that duo_cq_grant()
 * has permitted.
 */
void duo_cq_progress(struct duo_cq *cq)
{
	struct duo_group *group = cq->group;
	bool local;

	if (cq->left) {
		cq->left--;
		cq->granted--;
	}
	if (!cq->left && cq->granted)
		duo_cq_charge(cq);
	cq->core_skip++;
	local = cq->peer && duo_cq_local_due(cq);
	if (group->waits && !cq->clock_in--)
		duo_cq_age(cq);
	if (group->pending)
		duo_cq_resolve(cq);
	cq->local_idle = local && cq->peer->poll(cq) ? 0 : cq->local_idle + 1;
	if (group->pending)
		duo_cq_resolve(cq);
	if (group->lazy)
		duo_cq_flush_lazy(cq);
	if (!(group->pending | group->lazy))
		cq->attention &= ~(uint32_t) DUO_CQ_DEFERRED;
	if (duo_cq_core_due(cq) && duo_cq_poll_core(cq))
		duo_cq_core_active(cq);
	if (!cq->left && !(cq->attention & DUO_CQ_OTHERS) &&
	    !duo_cq_core_wanted(cq))
		duo_cq_grant(cq);
}

void duo_ep_progress(const struct duo_ep *ep)
{
	if (ep->rx_cq)
		duo_cq_progress(ep->rx_cq);
	if (ep->tx_cq && ep->tx_cq != ep->rx_cq)
		duo_cq_progress(ep->tx_cq);
}

/*
 * True if CPUs are oversubscribed: more processes have to run than there are
 * CPUs for them. Checks only endpoints that have an endpoint of the local
 * transport. Without such endpoints, only the core carries messages to this CQ.
 * A read of the CQ then never yields the CPU, because a read of the core's own
 * CQ would not yield it either.
 */
static bool duo_cq_check_oversub(const struct duo_cq *cq)
{
	const struct duo_ep *ep;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep)) {
		if (!ep->path_ep[FI_DUO_LOCAL])
			continue;
		if (duo_params.yield_always ||
		    cq->peer->oversubscribed(ep,
				duo_registry_count(ep->publication.dir)))
			return true;
	}
	return false;
}

/*
 * Returns the result of the last duo_cq_check_oversub(). Calls it again if this
 * result is DUO_OVERSUB_MS old.
 */
static bool duo_cq_oversubscribed(struct duo_cq *cq)
{
	uint64_t now = duo_clock_coarse_ms();

	if (now >= cq->oversub_ms) {
		cq->oversub_ms = now + DUO_OVERSUB_MS;
		cq->oversubscribed = duo_cq_check_oversub(cq);
	}
	return cq->oversubscribed;
}

ssize_t duo_cq_yield(struct duo_cq *cq)
{
	if (!cq->local_idle || !duo_cq_oversubscribed(cq))
		return -FI_EAGAIN;
	duo_unlock(&cq->group->lock);
	sched_yield();
	duo_group_lock(&cq->group);
	return -FI_EAGAIN;
}

ssize_t duo_cq_read_none(struct duo_cq *cq)
{
	if (cq->attention & DUO_CQ_ENTRIES)
		return duo_err_due(&cq->errs, &cq->ring) ? -FI_EAVAIL : 0;
	return cq->local_idle & duo_params.yield_mask ? -FI_EAGAIN :
						      duo_cq_yield(cq);
}
