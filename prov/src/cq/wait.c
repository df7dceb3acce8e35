/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Waits for completions: docs/completions.md, "Sleeping". */

#include <poll.h>
#include <sched.h>
#include <time.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "core/post.h"
#include "cq/cq.h"
#include "cq/wait.h"
#include "obj/cntr.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "transport/transport.h"

/*
 * longest sleep, ms. A sleeping thread must poll from time to time, because a
 * local peer that closes its port may be unable to wake the thread.
 */
#define DUO_SLEEP_MS 1000
#define DUO_SHORT_SLEEP_NS 50000

/*
 * True if no poll of the local transport is necessary during a sleep: the
 * domain has no local transport, or its local transport can wake a thread.
 */
static bool duo_domain_peer_signals(const struct duo_domain *domain)
{
	return !domain->peer || domain->peer->arm;
}

/*
 * Opens the CQ's wait object. The wait object has file descriptors if wait_obj
 * is FI_WAIT_FD, or if wait_obj is FI_WAIT_UNSPEC and the local transport can
 * wake a thread. If the wait object has no file descriptors, blocking reads
 * poll, and sleep for a short time between two polls.
 */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj)
{
	bool signals = duo_domain_peer_signals(cq->domain);
	bool wanted = wait_obj == FI_WAIT_FD ||
		      (wait_obj == FI_WAIT_UNSPEC && signals);

	/*
	 * The core of the provider near never has an event. So the wait object
	 * needs no timer in place of wakeups by this core: core_signals is
	 * true, and duo_cq_wait_timer() adds no timer.
	 */
	cq->core_signals = (wanted && signals) ||
			   cq->domain->fabric->traits.carries_nothing;
	return duo_waiter_open(&cq->waiter, wait_obj, wanted);
}

int duo_cq_wait_core(struct duo_cq *cq)
{
	int fd, ret = fi_control(&cq->path_cq[FI_DUO_CORE]->fid, FI_GETWAIT,
				 &fd);

	/* fd is -1: the core of the provider near has no file descriptor */
	return ret || fd < 0 ? ret : duo_waiter_add(&cq->waiter, fd);
}

int duo_cq_wait_timer(struct duo_cq *cq)
{
	if (cq->waiter.fd < 0 || cq->core_signals)
		return 0;
	DUO_INFO(CQ, "cq %p: %s has no wait descriptor, using a timer of %zu "
		 "us\n", (void *) cq,
		 duo_domain_peer_signals(cq->domain) ?
		 cq->domain->fabric->core_name : cq->domain->peer->name,
		 duo_params.wait_poll_us);
	return duo_waiter_add_timer(&cq->waiter);
}

/*
 * Makes a blocking read return -FI_EAGAIN. Any thread may call this function,
 * whether or not it holds a lock.
 */
int duo_cq_signal(struct fid_cq *cq_fid)
{
	struct duo_cq *cq = duo_cq_of(cq_fid);

	atomic_store(&cq->signaled, true);
	duo_waiter_wake(&cq->waiter);
	return 0;
}

int duo_cq_before_sleep(struct duo_cq *cq)
{
	struct duo_ep *ep;
	int ret = 0;

	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		if (duo_lazy_flush(ep) || !TAILQ_EMPTY(&ep->multi.ready))
			ret = -FI_EAGAIN;
	return ret;
}

/*
 * Arms the local transport and the core, so that the next event makes the CQ's
 * wait object readable. The caller must hold the group's lock. Returns 0 or an
 * error. -FI_EAGAIN: there are events already, or pending operations that only
 * polls continue. After an error, makes the next polls of the CQ poll both
 * paths.
 */
static int duo_cq_arm(struct duo_cq *cq)
{
	const struct duo_fabric *fabric = cq->domain->fabric;
	struct fid *core = &cq->path_cq[FI_DUO_CORE]->fid;
	struct duo_ep *ep;
	int ret = 0;

	duo_cq_set_asleep(cq, true);
	if (cq->peer && cq->peer->arm) {
		for (ep = duo_cq_first_ep(cq); ep && !ret;
		     ep = duo_cq_next_ep(cq, ep))
			ret = cq->peer->arm(ep);
	}
	if (!ret && cq->core_signals)
		ret = fi_trywait(fabric->path_fabric[FI_DUO_CORE], &core, 1);
	if (!ret && cq->waiter.timer_fd >= 0)
		ret = duo_waiter_set_timer(&cq->waiter);
	if (!ret)
		return 0;
	duo_cq_set_asleep(cq, false);
	cq->local_idle = 0;
	duo_cq_core_active(cq);
	return ret;
}

/*
 * Ends a sleep: clears the wait object, and calls the local transport's
 * woken(). If an event has disarmed the local transport of an endpoint, wakes
 * the threads that sleep on the endpoint's CQs: they must arm it again, because
 * no further event would wake them.
 */
static void duo_cq_woken(struct duo_cq *cq)
{
	struct duo_ep *ep;

	duo_cq_set_asleep(cq, false);
	duo_waiter_clear(&cq->waiter);
	if (!cq->peer || !cq->peer->woken)
		return;
	for (ep = duo_cq_first_ep(cq); ep; ep = duo_cq_next_ep(cq, ep))
		if (cq->peer->woken(ep))
			duo_ep_wake_sleepers(ep);
}

/*
 * True if the CQ has an entry or an error for the next read, or if a thread has
 * called fi_cq_signal() since the last blocking read or fi_trywait().
 */
static bool duo_cq_due(struct duo_cq *cq)
{
	return !duo_ring_empty(&cq->ring) ||
	       duo_err_due(&cq->errs, &cq->ring) || atomic_load(&cq->signaled);
}

/*
 * Prepares a sleep, either in a blocking read or of the application after
 * fi_trywait(): docs/completions.md, "Sleeping". Returns 0 or an error.
 * -FI_EAGAIN: the thread must not sleep, but read the CQ. If the wait object
 * was readable, it is also readable after an error. Other threads that sleep on
 * it then wake, and read the entries that this thread leaves in the CQ.
 */
static int duo_cq_fall_asleep(struct duo_cq *cq)
{
	int ret = -FI_EAGAIN;

	duo_group_lock(&cq->group);
	duo_cq_progress(cq);
	if (!duo_cq_before_sleep(cq) && !duo_cq_due(cq)) {
		duo_cq_woken(cq);
		ret = duo_cq_due(cq) ? -FI_EAGAIN : duo_cq_arm(cq);
		if (ret)
			duo_waiter_wake(&cq->waiter);
	}
	duo_unlock(&cq->group->lock);
	return ret;
}

/*
 * Sleeps until the wait object is readable, but at most DUO_SLEEP_MS, and not
 * longer than the timeout of the blocking call.
 */
static void duo_waiter_poll(const struct duo_waiter *waiter,
			    const struct duo_blocking *call)
{
	struct pollfd fd = { .fd = waiter->fd, .events = POLLIN };
	/*
	 * remaining time, rounded up, ms: if it were rounded down to 0, the
	 * caller would call poll(2) without a sleep until the timeout has
	 * passed
	 */
	int left = call->timeout - (int) (call->waited / 1000000);

	poll(&fd, 1, call->timeout >= 0 && left < DUO_SLEEP_MS ?
		     left : DUO_SLEEP_MS);
}

void duo_waiter_pause(const struct duo_waiter *waiter)
{
	const struct timespec time = { .tv_nsec = DUO_SHORT_SLEEP_NS };

	if (waiter->obj == FI_WAIT_YIELD)
		sched_yield();
	else
		nanosleep(&time, NULL);
}

/*
 * Sleeps until an event makes the wait object readable. If a source of events
 * cannot wake the thread, makes a short sleep instead.
 */
static void duo_cq_sleep(struct duo_cq *cq, struct duo_blocking *call)
{
	int ret = -FI_ENOSYS;

	if (cq->waiter.fd < 0 || cq->waiter.timer_fd >= 0) {
		duo_group_lock(&cq->group);
		duo_cq_before_sleep(cq);
		duo_unlock(&cq->group->lock);
	} else {
		ret = duo_cq_fall_asleep(cq);
	}
	/*
	 * After the first -FI_EAGAIN the caller polls again at once. After each
	 * further -FI_EAGAIN in a row, the thread makes a short sleep: near
	 * then probably has unfinished operations, which only polls continue.
	 */
	if (!ret) {
		call->tries = 0;
		duo_waiter_poll(&cq->waiter, call);
	} else if (ret != -FI_EAGAIN || call->tries++) {
		duo_waiter_pause(&cq->waiter);
	}
}

ssize_t duo_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			 fi_addr_t *src, const void *cond, int timeout)
{
	struct duo_blocking call = duo_blocking_begin(timeout);
	struct duo_cq *cq = duo_cq_of(cq_fid);
	ssize_t ret;

	for (;;) {
		ret = fi_cq_readfrom(cq_fid, buf, count, src);
		if (ret != -FI_EAGAIN)
			return ret;
		if (atomic_exchange(&cq->signaled, false))
			return -FI_EAGAIN;
		if (duo_blocking_over(&call))
			return -FI_EAGAIN;
		if (duo_blocking_sleeps(&call))
			duo_cq_sleep(cq, &call);
	}
}

ssize_t duo_cq_sread(struct fid_cq *cq_fid, void *buf, size_t count,
		     const void *cond, int timeout)
{
	return duo_cq_sreadfrom(cq_fid, buf, count, NULL, cond, timeout);
}

static int duo_cq_trywait(struct duo_cq *cq)
{
	int ret;

	if (cq->waiter.obj != FI_WAIT_FD)
		return -FI_EINVAL;
	ret = duo_cq_fall_asleep(cq);
	atomic_store(&cq->signaled, false);
	return ret;
}

/*
 * Executes fi_trywait() for one object. CQs and counters of ofi_duo have the
 * function duo_core_ops_open(). An object with another function is the core's
 * own, such as an EQ, which ofi_duo opens at the core. For such an object, this
 * function calls the core's fi_trywait().
 */
static int duo_trywait_one(struct duo_fabric *fabric, struct fid *fid)
{
	if (fid->ops->ops_open != duo_core_ops_open)
		return fi_trywait(fabric->path_fabric[FI_DUO_CORE], &fid, 1);
	switch (fid->fclass) {
	case FI_CLASS_CNTR:
		return duo_cntr_trywait(duo_cntr_of(fid));
	case FI_CLASS_CQ:
		return duo_cq_trywait(duo_container_of(fid, struct duo_cq,
						       cq_fid.fid));
	default:
		return -FI_EINVAL;
	}
}

int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count)
{
	struct duo_fabric *fabric = duo_fabric_of(fabric_fid);
	int i, ret = 0;

	for (i = 0; i < count && !ret; i++)
		ret = fids[i] ? duo_trywait_one(fabric, fids[i]) : -FI_EINVAL;
	return ret;
}

int duo_cq_control(struct fid *fid, int command, void *arg)
{
	struct duo_cq *cq = duo_container_of(fid, struct duo_cq, cq_fid.fid);

	return duo_waiter_control(&cq->waiter, fid, command, arg);
}
