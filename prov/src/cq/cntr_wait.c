/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Waits for counters. No event wakes a waiting thread: fi_cntr_wait() polls
 * between short sleeps, and a timer makes the counter's file descriptor
 * readable.
 */

#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "cq/cntr.h"
#include "cq/wait.h"
#include "obj/domain.h"
#include "obj/ep.h"

int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj)
{
	bool fd = wait_obj == FI_WAIT_FD;
	int ret = duo_waiter_open(&cntr->waiter, wait_obj, fd);

	return !ret && fd ? duo_waiter_add_timer(&cntr->waiter) : ret;
}

/*
 * Posts deferred receives, because no poll does so during the sleep. Needs the
 * domain's lock.
 */
static void duo_cntr_before_sleep(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		duo_lazy_flush(bind->ep);
}

static void duo_cntr_sleep(struct duo_cntr *cntr)
{
	duo_lock(&cntr->domain->group.lock);
	duo_cntr_before_sleep(cntr);
	duo_unlock(&cntr->domain->group.lock);
	duo_waiter_pause(&cntr->waiter);
}

int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);
	struct duo_blocking call = duo_blocking_begin(timeout);
	uint64_t bad = duo_cntr_known_bad(cntr);

	for (;;) {
		if (fi_cntr_read(cntr_fid) >= threshold)
			return 0;
		if (fi_cntr_readerr(cntr_fid) != bad)
			return -FI_EAVAIL;
		if (duo_blocking_over(&call))
			return -FI_ETIMEDOUT;
		if (duo_blocking_sleeps(&call))
			duo_cntr_sleep(cntr);
	}
}

int duo_cntr_trywait(struct duo_cntr *cntr)
{
	uint64_t good, bad;
	int ret;

	if (cntr->waiter.obj != FI_WAIT_FD)
		return -FI_EINVAL;
	duo_lock(&cntr->domain->group.lock);
	duo_cntr_progress(cntr);
	duo_cntr_before_sleep(cntr);
	duo_cntr_value(cntr, &good, &bad);
	ret = good != cntr->seen_good || bad != cntr->seen_bad ?
	      -FI_EAGAIN : duo_waiter_set_timer(&cntr->waiter);
	cntr->seen_good = good;
	cntr->seen_bad = bad;
	duo_unlock(&cntr->domain->group.lock);
	return ret;
}

int duo_cntr_control(struct fid *fid, int command, void *arg)
{
	return duo_waiter_control(&duo_cntr_of(fid)->waiter, fid, command, arg);
}
