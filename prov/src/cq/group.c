/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "cq/cq.h"
#include "obj/ep.h"
#include "transport/transport.h"

/*
 * Sets cq_fid.ops to the table of calls for the mode of the group's lock.
 *
 * libfabric reads cq_fid.ops without a lock. If the table does not change,
 * other threads may be reading cq_fid.ops now, so this function then stores
 * nothing. If the table changes, no other thread is reading cq_fid.ops, for one
 * of two reasons. The CQ is new. Or the CQ comes from a group with a single
 * lock: the application then uses the CQ and its endpoints from one thread at a
 * time (FI_THREAD_COMPLETION).
 */
static void duo_cq_calls(struct duo_cq *cq)
{
	static struct fi_ops_cq *const ops[] = {
		[DUO_LOCK_OFF] = &duo_cq_ops,
		[DUO_LOCK_SHARED] = &duo_cq_ops_locked,
		[DUO_LOCK_SINGLE] = &duo_cq_ops_single,
	};

	if (cq->cq_fid.ops != ops[duo_lock_mode(&cq->group->lock)])
		cq->cq_fid.ops = ops[duo_lock_mode(&cq->group->lock)];
}

/*
 * True if each CQ of the domain may have its own group, with its own lock.
 * False if the domain has no locks, has device memory, has the thread of
 * FI_PROGRESS_AUTO, or uses libfabric's shm.
 */
static bool duo_domain_splits(const struct duo_domain *domain)
{
	return domain->group.lock.on && !domain->device &&
	       !domain->progress.pid &&
	       !(domain->peer && domain->peer->cq_open);
}

void duo_cq_group(struct duo_cq *cq)
{
	struct duo_domain *domain = cq->domain;

	cq->group = duo_domain_splits(domain) ? &cq->own : &domain->group;
	if (cq->group == &cq->own) {
		duo_lock_init(&cq->own.lock, true);
		cq->own.lock.single = domain->single;
		duo_lock(&domain->group.lock);
		LIST_INSERT_HEAD(&domain->cqs, cq, link);
		duo_unlock(&domain->group.lock);
	}
	duo_cq_calls(cq);
}

void duo_cq_ungroup(struct duo_cq *cq)
{
	if (cq->group != &cq->own)
		return;
	LIST_REMOVE(cq, link);
	duo_ranges_fini(&cq->own.rx_ranges);
}

int duo_cq_join(struct duo_cq *cq)
{
	struct duo_group *own = &cq->own, *to = &cq->domain->group;
	struct duo_ep *ep;
	int ret;

	if (cq->group == to)
		return 0;
	ret = duo_ranges_merge(&to->rx_ranges, &own->rx_ranges);
	if (ret)
		return ret;
	to->pending += own->pending;
	to->lazy += own->lazy;
	to->waits += own->waits;
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		duo_ep_join(ep, to);
	__atomic_store_n(&cq->group, to, __ATOMIC_RELAXED);
	duo_cq_calls(cq);
	LIST_REMOVE(cq, link);
	duo_lock_retire(&own->lock);
	return 0;
}
