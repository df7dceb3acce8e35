/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "obj/ep.h"
#include "obj/up.h"

/*
 * Waits until no other thread has taken the lock, which must be of the kind
 * "single" (base/lock.h). Then marks this thread as inside the lock. False:
 * another lock has replaced this one, because the object has changed its group.
 */
static bool duo_lock_wait_inside(struct duo_lock *lock)
{
	if (!duo_lock_wait(lock))
		return false;
	atomic_store_explicit(&lock->inside, true, memory_order_relaxed);
	duo_lock_release_last(lock, 0);
	return true;
}

void duo_group_wait(struct duo_group *const *at)
{
	struct duo_group *group;
	struct duo_lock *lock;

	for (;;) {
		group = duo_group_of(at);
		lock = &group->lock;
		if (!(lock->single ? duo_lock_wait_inside(lock) :
				     duo_lock_wait(lock)))
			continue;
		if (group == duo_group_of(at))
			return;
		duo_unlock(lock);
	}
}

void duo_domain_lock(struct duo_domain *domain)
{
	struct duo_cq *cq;

	duo_lock(&domain->group.lock);
	LIST_FOREACH(cq, &domain->cqs, link)
		if (!duo_lock_try(&cq->own.lock))
			duo_lock_wait(&cq->own.lock);
	cq = LIST_FIRST(&domain->cqs);
	if (!cq || !cq->own.lock.single)
		return;
	duo_lock_barrier();
	LIST_FOREACH(cq, &domain->cqs, link)
		duo_lock_empty(&cq->own.lock);
}

void duo_domain_unlock(struct duo_domain *domain)
{
	struct duo_cq *cq;

	LIST_FOREACH(cq, &domain->cqs, link)
		duo_lock_release_last(&cq->own.lock, 0);
	duo_unlock(&domain->group.lock);
}

void duo_ep_join(struct duo_ep *ep, struct duo_group *group)
{
	__atomic_store_n(&ep->group, group, __ATOMIC_RELAXED);
	ep->pool.known = &group->rx_ranges;
	ep->up->calls(ep);
}
