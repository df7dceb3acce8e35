/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "obj/ep.h"
#include "transport/transport.h"

void duo_group_wait(struct duo_group *const *at)
{
	while (!duo_lock_wait(&duo_group_of(at)->lock))
		;
}

void duo_domain_lock(struct duo_domain *domain)
{
	struct duo_cq *cq;

	duo_lock(&domain->group.lock);
	LIST_FOREACH(cq, &domain->cqs, link)
		duo_lock(&cq->own.lock);
}

void duo_domain_unlock(struct duo_domain *domain)
{
	struct duo_cq *cq;

	LIST_FOREACH(cq, &domain->cqs, link)
		duo_unlock(&cq->own.lock);
	duo_unlock(&domain->group.lock);
}

void duo_ep_join(struct duo_ep *ep, struct duo_group *group)
{
	__atomic_store_n(&ep->group, group, __ATOMIC_RELAXED);
	ep->pool.known = &group->rx_ranges;
}

/* True if CQs of the domain may have their own locks. */
static bool duo_domain_splits(const struct duo_domain *domain)
{
	return domain->group.lock.on && !domain->device &&
	       !domain->progress.pid &&
	       !(domain->peer && domain->peer->cq_open);
}

void duo_cq_group(struct duo_cq *cq)
{
	struct duo_domain *domain = cq->domain;

	cq->group = &domain->group;
	if (!duo_domain_splits(domain))
		return;
	cq->group = &cq->own;
	duo_lock_init(&cq->own.lock, true);
	duo_lock(&domain->group.lock);
	LIST_INSERT_HEAD(&domain->cqs, cq, link);
	duo_unlock(&domain->group.lock);
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
	to->held += own->held;
	to->lazy += own->lazy;
	to->waits += own->waits;
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		duo_ep_join(ep, to);
	__atomic_store_n(&cq->group, to, __ATOMIC_RELAXED);
	LIST_REMOVE(cq, link);
	duo_lock_retire(&own->lock);
	return 0;
}
