/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A group: the objects that one lock protects. A CQ and its endpoints have
 * their own group, until duo_cq_join() (cq/cq.h) moves them to the group of the
 * domain. This group has all other objects, and CQs that get no own group
 * (duo_cq_group()). Data that groups share, such as AVs, may be read under the
 * lock of any group; a change needs the locks of all groups. See
 * docs/architecture.md. Cost: an atomic operation to take a lock, another to
 * release it; less with other modes of base/lock.h.
 */
#ifndef DUO_OBJ_GROUP_H
#define DUO_OBJ_GROUP_H

#include <stdint.h>

#include "base/lock.h"
#include "queue/ranges.h"

struct duo_cq;
struct duo_domain;
struct duo_ep;

struct duo_group {
	struct duo_lock lock;
	/*
	 * number of unresolved messages (ep->rx.unresolved), ready remainders
	 * (ep->multi.ready) and planned scans of the registry (map->retry)
	 */
	uint32_t pending;
	uint32_t lazy;	/* number of deferred receives */
	uint32_t waits;	/* number of deferred receives that are not due */
	struct duo_ranges rx_ranges;	/* address ranges of receive entries */
};

/*
 * Returns the group of an object. at: the object's pointer to its group.
 *
 * Without the group's lock, another thread may move the object to the domain's
 * group, or an endpoint to the group of its first CQ. The result may then be
 * the object's previous group. So a caller that takes the lock of the result
 * must compare *at once more (duo_group_take()). If the previous group was a
 * CQ's own, its lock is retired and never free again.
 */
DUO_INLINE struct duo_group *duo_group_of(struct duo_group *const *at)
{
	return __atomic_load_n(at, __ATOMIC_RELAXED);
}

/*
 * Takes the lock of `group` in this mode, if the lock is free and `group` is
 * still *at. Otherwise returns false. Only DUO_LOCK_SHARED compares *at: in the
 * other modes the application serializes the calls that use and that move the
 * object.
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

/*
 * group.c: waits until the lock of the object's group is free, and takes it. If
 * the object has moved to another group in this time, waits for the lock of
 * that group.
 */
void duo_group_wait(struct duo_group *const *at);

/*
 * Takes the lock of an object's group. The object stays in this group until the
 * lock is released.
 */
static inline void duo_group_lock(struct duo_group *const *at)
{
	struct duo_group *group = duo_group_of(at);

	if (!duo_group_take(at, group, duo_lock_mode(&group->lock)))
		duo_group_wait(at);
}

/*
 * Take and release the locks of all groups of a domain: first the domain's,
 * then those of CQs. The caller must hold none of them.
 */
void duo_domain_lock(struct duo_domain *domain);
void duo_domain_unlock(struct duo_domain *domain);

/*
 * Puts an endpoint into a group. group->rx_ranges must already have the ranges
 * of the endpoint's pool. Needs all locks of the domain.
 */
void duo_ep_join(struct duo_ep *ep, struct duo_group *group);

#endif /* DUO_OBJ_GROUP_H */
