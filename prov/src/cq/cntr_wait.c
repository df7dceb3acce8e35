/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Waiting for counters. The sources of wakeups are near's ports and the core's
 * CQs, because the core's counters have no descriptors. A thread that changes a
 * count wakes waiting threads when it releases the domain's lock
 * (duo_cntr_unlock_hook()). Sends over the core take no lock: they call
 * duo_cntr_wake_ep().
 */

#include <sched.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "core/lazy.h"
#include "cq/cntr.h"
#include "cq/cq.h"
#include "cq/wait.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/forward.h"

/*
 * Opens the wait objects. With FI_WAIT_UNSPEC, opens a descriptor only if the
 * local transport can wake threads. Without a descriptor, fi_cntr_wait() polls
 * between short sleeps.
 */
int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj)
{
	struct duo_waiter *call = &cntr->sleeper[DUO_CNTR_CALL].waiter;
	struct duo_waiter *fd = &cntr->sleeper[DUO_CNTR_FD].waiter;
	bool blocks = wait_obj == FI_WAIT_FD ||
		      (wait_obj == FI_WAIT_UNSPEC &&
		       duo_domain_peer_signals(cntr->domain));
	int ret = duo_waiter_open(call, wait_obj, blocks);

	if (ret)
		return ret;
	ret = duo_waiter_open(fd, wait_obj, wait_obj == FI_WAIT_FD);
	/* a later binding may add a source that cannot signal */
	if (!ret && wait_obj == FI_WAIT_FD)
		ret = duo_waiter_add_timer(fd);
	if (ret) {
		duo_waiter_close(call);
		duo_waiter_close(fd);
		return ret;
	}
	duo_lock(&cntr->domain->lock);
	LIST_INSERT_HEAD(&cntr->domain->sleepers, cntr, sleeper_link);
	duo_unlock(&cntr->domain->lock);
	return 0;
}

void duo_cntr_wait_close(struct duo_cntr *cntr)
{
	LIST_REMOVE(cntr, sleeper_link);
	duo_waiter_close(&cntr->sleeper[DUO_CNTR_CALL].waiter);
	duo_waiter_close(&cntr->sleeper[DUO_CNTR_FD].waiter);
}

/* Adds the descriptor of the core's CQ, if cq is not NULL and has one. */
static int duo_cntr_wait_cq(struct duo_cntr *cntr, const struct duo_cq *cq)
{
	int i, ret = 0;

	for (i = 0; i < DUO_CNTR_WAITER_KINDS && !ret && cq && cq->core_fd >= 0;
	     i++)
		if (cntr->sleeper[i].waiter.fd >= 0)
			ret = duo_waiter_add(&cntr->sleeper[i].waiter,
					     cq->core_fd);
	return ret;
}

int duo_cntr_wait_bind(const struct duo_cntr_bind *bind)
{
	int ret = duo_cntr_wait_cq(bind->cntr, bind->ep->tx_cq);

	return ret ? ret : duo_cntr_wait_cq(bind->cntr, bind->ep->rx_cq);
}

int duo_cntr_wait_ep(struct duo_ep *ep)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	LIST_FOREACH(bind, &ep->cntrs, ep_link)
		ret = ret ? ret : duo_cntr_wait_bind(bind);
	return ret;
}

/* True if the core's CQs behind the endpoint's CQs can wake a thread. */
static bool duo_ep_signals(const struct duo_ep *ep)
{
	return (ep->tx_cq || ep->rx_cq) &&
	       (!ep->tx_cq || ep->tx_cq->core_signals) &&
	       (!ep->rx_cq || ep->rx_cq->core_signals);
}

static bool duo_cntr_signals(const struct duo_cntr *cntr,
			     const struct duo_cntr_sleeper *sleeper)
{
	const struct duo_cntr_bind *bind;

	if (sleeper->waiter.fd < 0 || cntr->of_region ||
	    !cntr->domain->any_thread ||
	    !duo_domain_peer_signals(cntr->domain))
		return false;
	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (duo_ep_enabled(bind->ep) && !duo_ep_signals(bind->ep))
			return false;
	}
	return true;
}

/* Posts all deferred receives. Returns as duo_cq_before_sleep(). */
static int duo_cntr_before_sleep(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		ret = duo_lazy_flush(bind->ep) ? -FI_EAGAIN : ret;
	return ret;
}

/*
 * True if the thread must not sleep: the counter has the value that the thread
 * waits for, or an endpoint has deferred receives, which only a poll posts.
 */
static bool duo_cntr_due(struct duo_cntr *cntr,
			 const struct duo_cntr_sleeper *sleeper)
{
	const struct duo_cntr_bind *bind;
	uint64_t good, bad;

	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (bind->ep->lazy.count && !bind->ep->closing)
			return true;
	}
	duo_cntr_value(cntr, &good, &bad);
	if (bad != sleeper->bad)
		return true;
	return sleeper->want ? good >= sleeper->want : good != sleeper->good;
}

/* Updates the counter's attention word after a change of sleeper->asleep. */
static void duo_cntr_attend(struct duo_cntr *cntr)
{
	struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		duo_ep_attend(bind->ep);
}

/*
 * Wakes threads whose counters have changed. Runs at the release of the
 * domain's lock. Without sleeping threads, sets lock->unlock_hook to NULL.
 */
static void duo_cntr_unlock_hook(struct duo_lock *lock)
{
	struct duo_domain *domain = duo_container_of(lock, struct duo_domain,
						     lock);
	struct duo_cntr_sleeper *sleeper;
	struct duo_cntr *cntr;
	bool any = false;
	int i;

	LIST_FOREACH(cntr, &domain->sleepers, sleeper_link) {
		for (i = 0; i < DUO_CNTR_WAITER_KINDS; i++) {
			sleeper = &cntr->sleeper[i];
			if (!atomic_load(&sleeper->asleep))
				continue;
			if (!duo_cntr_due(cntr, sleeper))
				any = true;
			else if (atomic_exchange(&sleeper->asleep, false))
				duo_waiter_wake(&sleeper->waiter);
		}
	}
	if (any)
		return;
	lock->unlock_hook = NULL;
	LIST_FOREACH(cntr, &domain->sleepers, sleeper_link)
		duo_cntr_attend(cntr);
}

static void duo_cntr_woken(struct duo_cntr *cntr,
			   struct duo_cntr_sleeper *sleeper)
{
	const struct duo_cntr_bind *bind;

	atomic_store(&sleeper->asleep, false);
	duo_waiter_clear(&sleeper->waiter);
	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (duo_ep_enabled(bind->ep))
			duo_ep_woken(bind->ep);
	}
}

static int duo_ep_arm_all(struct duo_ep *ep)
{
	int ret = duo_ep_arm(ep);

	if (!ret && ep->tx_cq)
		ret = duo_cq_arm_core(ep->tx_cq);
	if (!ret && ep->rx_cq && ep->rx_cq != ep->tx_cq)
		ret = duo_cq_arm_core(ep->rx_cq);
	if (ret && ep->tx_cq)
		duo_cq_force_poll(ep->tx_cq);
	if (ret && ep->rx_cq)
		duo_cq_force_poll(ep->rx_cq);
	return ret;
}

/*
 * Prepares the sleep of a thread. -FI_EAGAIN: there are events.
 *
 * Memory ordering: store buffering, because sends over the core take no lock.
 * This thread stores sleeper->asleep, then loads the counts; a sender changes a
 * count, then loads sleeper->asleep (duo_cntr_wake_ep()). Both need a fence
 * between: on AArch64 a seq_cst store does not order later plain loads.
 */
static int duo_cntr_arm(struct duo_cntr *cntr,
			struct duo_cntr_sleeper *sleeper)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	atomic_store(&sleeper->asleep, true);
	atomic_thread_fence(memory_order_seq_cst);
	cntr->domain->lock.unlock_hook = duo_cntr_unlock_hook;
	duo_cntr_attend(cntr);
	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (!ret && duo_ep_enabled(bind->ep))
			ret = duo_ep_arm_all(bind->ep);
	}
	if (!ret && duo_cntr_due(cntr, sleeper))
		ret = -FI_EAGAIN;
	if (ret)
		atomic_store(&sleeper->asleep, false);
	return ret;
}

/*
 * Prepares the sleep of a thread. Needs the lock. Returns 0 if every event will
 * wake the thread, -FI_EAGAIN if there are events now, or -FI_ENOSYS if a
 * source cannot wake the thread.
 */
static int duo_cntr_fall_asleep(struct duo_cntr *cntr,
				struct duo_cntr_sleeper *sleeper)
{
	int ret;

	if (!duo_cntr_signals(cntr, sleeper))
		return duo_cntr_before_sleep(cntr) ? -FI_EAGAIN : -FI_ENOSYS;
	duo_cntr_woken(cntr, sleeper);
	duo_cntr_progress(cntr);
	ret = duo_cntr_before_sleep(cntr);
	if (!ret && duo_cntr_due(cntr, sleeper))
		ret = -FI_EAGAIN;
	return ret ? ret : duo_cntr_arm(cntr, sleeper);
}

/* Sleeps until successes reach "want" or errors differ from "bad". */
static void duo_cntr_sleep(struct duo_cntr *cntr, struct duo_blocking *call,
			   uint64_t want, uint64_t bad)
{
	struct duo_cntr_sleeper *sleeper = &cntr->sleeper[DUO_CNTR_CALL];
	int ret = -FI_ENOSYS;

	/*
	 * if several threads wait, use short sleeps: a thread that wakes would
	 * consume the wakeup of the others
	 */
	if (atomic_load(&cntr->waiting) <= 1) {
		duo_lock(&cntr->domain->lock);
		sleeper->want = want;
		sleeper->bad = bad;
		ret = duo_cntr_fall_asleep(cntr, sleeper);
		duo_unlock(&cntr->domain->lock);
	}
	duo_waiter_sleep(&sleeper->waiter, call, ret);
}

static int duo_cntr_wait_for(struct duo_cntr *cntr, uint64_t want,
			     struct duo_blocking *call)
{
	struct fid_cntr *cntr_fid = &cntr->cntr_fid;
	uint64_t bad = fi_cntr_readerr(cntr_fid);

	for (;;) {
		if (fi_cntr_read(cntr_fid) >= want)
			return 0;
		if (fi_cntr_readerr(cntr_fid) != bad)
			return -FI_EAVAIL;
		if (duo_blocking_over(call))
			return -FI_ETIMEDOUT;
		if (duo_blocking_sleeps(call))
			duo_cntr_sleep(cntr, call, want, bad);
	}
}

int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);
	struct duo_cntr_sleeper *sleeper = &cntr->sleeper[DUO_CNTR_CALL];
	struct duo_blocking call = duo_blocking_begin(timeout);
	int ret;

	if (atomic_fetch_add(&cntr->waiting, 1))
		/* wakes the sleeping thread: now both use short sleeps */
		duo_waiter_wake(&sleeper->waiter);
	ret = duo_cntr_wait_for(cntr, threshold, &call);
	if (ret)	/* this thread needs no wakeup any more */
		atomic_store(&sleeper->asleep, false);
	atomic_fetch_sub(&cntr->waiting, 1);
	return ret;
}

/* fi_trywait(). -FI_EAGAIN: changed since the previous call. */
int duo_cntr_trywait(struct duo_cntr *cntr)
{
	struct duo_cntr_sleeper *sleeper = &cntr->sleeper[DUO_CNTR_FD];
	int ret;

	if (sleeper->waiter.obj != FI_WAIT_FD)
		return -FI_EINVAL;
	duo_lock(&cntr->domain->lock);
	sleeper->want = 0;
	sleeper->good = cntr->seen_good;
	sleeper->bad = cntr->seen_bad;
	ret = duo_cntr_fall_asleep(cntr, sleeper);
	if (ret == -FI_ENOSYS)
		ret = duo_cntr_due(cntr, sleeper) ? -FI_EAGAIN :
		      duo_waiter_set_timer(&sleeper->waiter);
	duo_cntr_value(cntr, &cntr->seen_good, &cntr->seen_bad);
	duo_unlock(&cntr->domain->lock);
	return ret;
}

int duo_cntr_control(struct fid *fid, int command, void *arg)
{
	const struct duo_cntr_sleeper *sleeper =
		&duo_cntr_of(fid)->sleeper[DUO_CNTR_FD];
	int ret = duo_waiter_control(&sleeper->waiter, command, arg);

	return ret == -FI_ENOSYS ? duo_core_control(fid, command, arg) : ret;
}
