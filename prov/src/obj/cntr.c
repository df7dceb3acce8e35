/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "obj/cntr.h"
#include "obj/ep.h"

bool duo_cntr_counts(const struct duo_ep *ep, uint64_t flags)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flags)
			return true;
	}
	return false;
}

void duo_cntr_wake(struct duo_cntr *cntr)
{
	struct duo_cntr_sleeper *sleeper;

	for (sleeper = cntr->sleeper;
	     sleeper < cntr->sleeper + DUO_CNTR_WAITER_KINDS; sleeper++)
		if (atomic_load(&sleeper->asleep) &&
		    atomic_exchange(&sleeper->asleep, false))
			duo_waiter_wake(&sleeper->waiter);
}

/*
 * Memory ordering: store buffering with duo_cntr_arm(). This thread changes a
 * count, then loads sleeper->asleep; a thread that will sleep stores asleep,
 * then loads the counts. Each has a fence between, so one of them finds the
 * other's store.
 */
void duo_cntr_wake_ep(struct duo_ep *ep)
{
	struct duo_cntr_bind *bind;

	atomic_thread_fence(memory_order_seq_cst);
	LIST_FOREACH(bind, &ep->cntrs, ep_link)
		duo_cntr_wake(bind->cntr);
}

void duo_cntr_add_ep(struct duo_ep *ep, uint64_t flag, int err)
{
	struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &ep->cntrs, ep_link) {
		if (bind->flags & flag)
			bind->cntr->own[!!err]++;
	}
}
