/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Waits for counters. The core's counters have no file descriptors. So events
 * of the endpoints wake a sleeping thread: events of near's ports and of the
 * core's CQs. fi_cntr_add() and fi_cntr_set() wake no thread. So a sleep in
 * fi_cntr_wait() lasts at most DUO_CNTR_SLEEP_MS, and a timer limits sleeps of
 * the application on the counter's file descriptor.
 */

#include <rdma/fi_errno.h>

#include "core/lazy.h"
#include "cq/cntr.h"
#include "cq/cq.h"
#include "cq/wait.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/forward.h"

#define DUO_CNTR_SLEEP_MS 1

/*
 * Opens the wait object. With FI_WAIT_UNSPEC, it has a file descriptor only if
 * the local transport can wake a thread. Without a file descriptor,
 * fi_cntr_wait() polls between short sleeps.
 */
int duo_cntr_wait_open(struct duo_cntr *cntr, enum fi_wait_obj wait_obj)
{
	bool fd = wait_obj == FI_WAIT_FD;
	int ret = duo_waiter_open(&cntr->waiter, wait_obj, fd ||
				  (wait_obj == FI_WAIT_UNSPEC &&
				   duo_domain_peer_signals(cntr->domain)));

	if (!ret && fd)
		ret = duo_waiter_add_timer(&cntr->waiter);
	if (ret)
		duo_waiter_close(&cntr->waiter);
	return ret;
}

/* Adds the core's CQ of cq, if it has a file descriptor, to the wait object. */
static int duo_cntr_wait_cq(struct duo_cntr *cntr, const struct duo_cq *cq)
{
	return cntr->waiter.fd >= 0 && cq && cq->core_fd >= 0 ?
	       duo_waiter_add(&cntr->waiter, cq->core_fd) : 0;
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

/*
 * True if the endpoint has a CQ, and if for each of its CQs, the core's CQ can
 * wake a thread.
 */
static bool duo_ep_signals(const struct duo_ep *ep)
{
	return (ep->tx_cq || ep->rx_cq) &&
	       (!ep->tx_cq || ep->tx_cq->core_signals) &&
	       (!ep->rx_cq || ep->rx_cq->core_signals);
}

static bool duo_cntr_signals(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;

	if (cntr->waiter.fd < 0 || cntr->of_region ||
	    !cntr->domain->any_thread ||
	    !duo_domain_peer_signals(cntr->domain))
		return false;
	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (duo_ep_enabled(bind->ep) && !duo_ep_signals(bind->ep))
			return false;
	}
	return true;
}

static int duo_cntr_before_sleep(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	LIST_FOREACH(bind, &cntr->binds, cntr_link)
		ret = duo_lazy_flush(bind->ep) ? -FI_EAGAIN : ret;
	return ret;
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
 * Arms the local transport and the core's CQs of all endpoints of the counter:
 * new events then wake a sleeping thread. Returns
 * - 0: all are armed
 * - -FI_EAGAIN: there are events already, or operations that only polls
 *   continue
 * - an error of the core
 */
static int duo_cntr_arm(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;
	int ret = 0;

	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (!ret && duo_ep_enabled(bind->ep))
			ret = duo_ep_arm_all(bind->ep);
	}
	return ret;
}

static void duo_cntr_woken(const struct duo_cntr *cntr)
{
	const struct duo_cntr_bind *bind;

	LIST_FOREACH(bind, &cntr->binds, cntr_link) {
		if (duo_ep_enabled(bind->ep))
			duo_ep_woken(bind->ep);
	}
}

/*
 * Prepares the sleep of a thread that has read the values good and bad. Needs
 * the domain's lock. Returns
 * - 0: new events wake the thread
 * - -FI_EAGAIN: the values have changed, or the thread must poll again
 * - -FI_ENOSYS: some source of events cannot wake the thread
 * - an error of the core
 */
static int duo_cntr_fall_asleep(struct duo_cntr *cntr, uint64_t good,
				uint64_t bad)
{
	bool signals = duo_cntr_signals(cntr);
	uint64_t now[2];

	if (signals)
		duo_cntr_woken(cntr);
	duo_cntr_progress(cntr);
	duo_cntr_value(cntr, &now[0], &now[1]);
	if (duo_cntr_before_sleep(cntr) || now[0] != good || now[1] != bad)
		return -FI_EAGAIN;
	return signals ? duo_cntr_arm(cntr) : -FI_ENOSYS;
}

static void duo_cntr_sleep(struct duo_cntr *cntr, struct duo_blocking *call,
			   uint64_t good, uint64_t bad)
{
	int ret;

	duo_lock(&cntr->domain->group.lock);
	ret = duo_cntr_fall_asleep(cntr, good, bad);
	duo_unlock(&cntr->domain->group.lock);
	duo_waiter_sleep(&cntr->waiter, call, ret, DUO_CNTR_SLEEP_MS);
}

int duo_cntr_wait(struct fid_cntr *cntr_fid, uint64_t threshold, int timeout)
{
	struct duo_cntr *cntr = duo_cntr_of(&cntr_fid->fid);
	struct duo_blocking call = duo_blocking_begin(timeout);
	uint64_t good, bad = duo_cntr_known_bad(cntr);

	for (;;) {
		good = fi_cntr_read(cntr_fid);
		if (good >= threshold)
			return 0;
		if (fi_cntr_readerr(cntr_fid) != bad)
			return -FI_EAVAIL;
		if (duo_blocking_over(&call))
			return -FI_ETIMEDOUT;
		if (duo_blocking_sleeps(&call))
			duo_cntr_sleep(cntr, &call, good, bad);
	}
}

/*
 * Executes fi_trywait() for a counter. Returns 0 if the application may sleep;
 * -FI_EAGAIN: there are events, or the counter has changed since the previous
 * fi_trywait().
 */
int duo_cntr_trywait(struct duo_cntr *cntr)
{
	int ret;

	if (cntr->waiter.obj != FI_WAIT_FD)
		return -FI_EINVAL;
	duo_lock(&cntr->domain->group.lock);
	ret = duo_cntr_fall_asleep(cntr, cntr->seen_good, cntr->seen_bad);
	duo_cntr_value(cntr, &cntr->seen_good, &cntr->seen_bad);
	if (!ret || ret == -FI_ENOSYS)
		ret = duo_waiter_set_timer(&cntr->waiter);
	duo_unlock(&cntr->domain->group.lock);
	return ret;
}

int duo_cntr_control(struct fid *fid, int command, void *arg)
{
	int ret = duo_waiter_control(&duo_cntr_of(fid)->waiter, command, arg);

	return ret == -FI_ENOSYS ? duo_core_control(fid, command, arg) : ret;
}
