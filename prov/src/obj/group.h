/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A group: the objects that one lock protects. Either a CQ with its endpoints
 * or, for each domain, all objects that are in no group of a CQ
 * (docs/architecture.md, "Locks").
 */
#ifndef DUO_OBJ_GROUP_H
#define DUO_OBJ_GROUP_H

#include <stdint.h>

#include "base/lock.h"
#include "queue/ranges.h"

struct duo_domain;
struct duo_ep;

struct duo_group {
	struct duo_lock lock;
	/*
	 * number of things that the next poll must handle, the sum of
	 * - messages in duo_ep_rx.unresolved
	 * - remainders of multi-receive buffers in duo_ep_multi.ready
	 * - maps for which a scan of the registry is planned: duo_map.retry
	 */
	uint32_t pending;
	/* number of deferred receives: those in duo_ep_lazy.list */
	uint32_t lazy;
	/* number of deferred receives that the next poll need not post */
	uint32_t waits;
	struct duo_ranges rx_ranges;	/* address ranges of receive entries */
};

/*
 * Returns the group of an object. at: the object's pointer to the group.
 * Another thread may move the object to another group. So the caller must lock
 * the group, and then compare it with *at (duo_group_take()).
 */
DUO_INLINE struct duo_group *duo_group_of(struct duo_group *const *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/*
 * Takes the lock of `group`. False: the lock is not free, or the object has
 * moved to another group. Only the mode DUO_LOCK_SHARED tests for a move. In
 * the other modes, the application serializes this call with the calls that
 * move the object, so the object cannot have moved.
 */
DUO_INLINE bool duo_group_take(struct duo_group *const *at,
			       struct duo_group *group,
			       const enum duo_lock_mode mode)
{
	if (!duo_lock_take(&group->lock, mode))
		return false;
	if (mode != DUO_LOCK_SHARED ||
	    __builtin_expect(group == duo_group_of(at), true))
		return true;
	duo_lock_end(&group->lock, mode, 0);
	return false;
}

/* Waits for the lock of the object's current group, and takes this lock. */
void duo_group_wait(struct duo_group *const *at);

/* Locks an object's group. The object stays in this group until the unlock. */
static inline void duo_group_lock(struct duo_group *const *at)
{
	struct duo_group *group = duo_group_of(at);

	if (!duo_group_take(at, group, duo_lock_mode(&group->lock)))
		duo_group_wait(at);
}

/*
 * Takes the domain's lock, then the locks of all CQs that have their own group.
 * The caller must hold none of these locks.
 */
void duo_domain_lock(struct duo_domain *domain);
void duo_domain_unlock(struct duo_domain *domain);

/*
 * Puts an endpoint into a group, whose rx_ranges must have the endpoint's
 * receive entries. The caller must hold all locks of the domain.
 */
void duo_ep_join(struct duo_ep *ep, struct duo_group *group);

#endif /* DUO_OBJ_GROUP_H */
