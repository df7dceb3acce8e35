/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sleeping. A completion queue with a wait object, and a counter that is waited
 * for, have a descriptor for all that can wake it: the ports of its endpoints,
 * which peers write to when they are armed, and an event for what other threads
 * put into the queue, or count.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "api/cq.h"
#include "link/proc.h"

/* A receiver that closes its port rings no bell: so often it is looked for. */
#define NEAR_SLEEP_MS 250
#define NEAR_NAP_MS 1

int near_waiter_add(struct near_waiter *waiter, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (fd < 0)
		return fd;
	if (epoll_ctl(waiter->fd, EPOLL_CTL_ADD, fd, &event) &&
	    errno != EEXIST)
		return -errno;
	return 0;
}

int near_waiter_open(struct near_waiter *waiter)
{
	int ret;

	waiter->fd = epoll_create1(EPOLL_CLOEXEC);
	waiter->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = waiter->fd < 0 || waiter->event_fd < 0 ? -errno :
		near_waiter_add(waiter, waiter->event_fd);
	if (ret)
		near_waiter_close(waiter);
	return ret;
}

void near_waiter_close(struct near_waiter *waiter)
{
	if (waiter->fd >= 0)
		close(waiter->fd);
	if (waiter->event_fd >= 0)
		close(waiter->event_fd);
	waiter->fd = waiter->event_fd = -1;
}

void near_waiter_wake(struct near_waiter *waiter)
{
	waiter->asleep = false;
	eventfd_write(waiter->event_fd, 1);
}

/* Whoever slept does not, and looks for himself from here on. */
static void near_waiter_woken(struct near_waiter *waiter)
{
	eventfd_t value;

	waiter->asleep = false;
	eventfd_read(waiter->event_fd, &value);
}

int near_waiter_sleep(const struct near_waiter *waiter, uint64_t left)
{
	struct pollfd fd = { .fd = waiter->fd, .events = POLLIN };
	int ms = left < NEAR_SLEEP_MS ? (int)left : NEAR_SLEEP_MS;

	return poll(&fd, 1, ms) < 0 ? -errno : 0;
}

int near_cq_wait_open(struct near_cq *cq, enum fi_wait_obj wait_obj)
{
	cq->waiter.fd = cq->waiter.event_fd = -1;
	if (wait_obj == FI_WAIT_NONE)
		return 0;
	if (wait_obj != FI_WAIT_UNSPEC && wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	return near_waiter_open(&cq->waiter);
}

int near_cq_wait_ep(struct near_cq *cq, struct near_ep *ep)
{
	return cq->waiter.fd < 0 ? 0 :
		near_waiter_add(&cq->waiter, near_wait_fd(ep->port));
}

int near_cq_signal(struct fid_cq *cq_fid)
{
	struct near_cq *cq = near_cq_of(cq_fid);

	if (cq->waiter.fd < 0)
		return -FI_ENOSYS;
	near_lock(cq->domain);
	cq->signalled = true;
	near_waiter_wake(&cq->waiter);
	near_unlock(cq->domain);
	return 0;
}

void near_ep_rouse(const struct near_ep *ep)
{
	int i;

	if (ep->tx_cq->waiter.asleep)
		near_waiter_wake(&ep->tx_cq->waiter);
	if (ep->rx_cq->waiter.asleep)
		near_waiter_wake(&ep->rx_cq->waiter);
	near_cntr_rouse(ep->tx_cntr);
	near_cntr_rouse(ep->rx_cntr);
	for (i = 0; i < NEAR_CNTR_EVENTS; i++)
		near_cntr_rouse(ep->rma_cntr[i]);
}

/* Who sleeps on its other queues has been woken by the same byte. */
static void near_eps_woken(const struct near_link *eps)
{
	const struct near_link *link;
	const struct near_ep *ep;

	for (link = eps->next; link != eps; link = link->next) {
		ep = ((const struct near_ep_link *)link)->ep;
		if (near_woken(ep->port))
			near_ep_rouse(ep);
	}
}

/* 0: what comes to one of them from now on is rung for. */
static int near_eps_arm(const struct near_link *eps)
{
	const struct near_link *link;

	for (link = eps->next; link != eps; link = link->next)
		if (near_arm(((const struct near_ep_link *)link)->ep->port))
			return -FI_EAGAIN;
	return 0;
}

static bool near_cq_due(const struct near_cq *cq)
{
	return cq->head != cq->tail || cq->err_first || cq->signalled;
}

/*
 * Under the lock. 0: what comes wakes those that sleep on the descriptor.
 * -FI_EAGAIN: there is something to read; then the descriptor stays ready, or
 * is made so again: other threads may sleep on it, and the caller may read less
 * than there is.
 */
static int near_cq_arm(struct near_cq *cq)
{
	int ret;

	near_cq_progress(cq);
	if (near_cq_due(cq))
		return -FI_EAGAIN;
	near_waiter_woken(&cq->waiter);
	near_eps_woken(&cq->eps);
	cq->waiter.asleep = true;
	ret = near_cq_due(cq) ? -FI_EAGAIN : near_eps_arm(&cq->eps);
	if (ret)
		near_waiter_wake(&cq->waiter);
	return ret;
}

static int near_cq_trywait(struct near_cq *cq)
{
	int ret;

	if (cq->waiter.fd < 0)
		return -FI_EINVAL;
	near_lock(cq->domain);
	ret = near_cq_arm(cq);
	cq->signalled = false;
	near_unlock(cq->domain);
	return ret;
}

int near_trywait(struct fid_fabric *fabric, struct fid **fids, int count)
{
	int i, ret;

	for (i = 0; i < count; i++) {
		if (fids[i]->fclass == FI_CLASS_EQ)
			continue;	/* nothing ever happens on them */
		if (fids[i]->fclass != FI_CLASS_CQ)
			return -FI_ENOSYS;
		ret = near_cq_trywait(near_container(fids[i], struct near_cq,
						     fid.fid));
		if (ret)
			return ret;
	}
	return 0;
}

int near_cq_control(struct fid *fid, int command, void *arg)
{
	struct near_cq *cq = near_container(fid, struct near_cq, fid.fid);

	if (command != FI_GETWAIT || cq->waiter.fd < 0)
		return -FI_ENOSYS;
	*(int *)arg = cq->waiter.fd;
	return 0;
}

/*
 * Until woken, or the time is over: 0; -FI_EINTR; -FI_EAGAIN: by fi_cq_signal().
 * That is looked for under the same lock as what armed the descriptor, or one in
 * between would be forgotten.
 */
static int near_cq_sleep(struct near_cq *cq, uint64_t left)
{
	bool signalled;
	int ret;

	near_lock(cq->domain);
	ret = near_cq_arm(cq);
	signalled = cq->signalled;
	cq->signalled = false;
	near_unlock(cq->domain);
	if (signalled)
		return -FI_EAGAIN;
	if (ret) {
		sched_yield();
		return 0;
	}
	return near_waiter_sleep(&cq->waiter, left);
}

ssize_t near_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			  fi_addr_t *src, const void *cond, int timeout)
{
	struct near_cq *cq = near_cq_of(cq_fid);
	uint64_t now = near_now_ms(), end;
	ssize_t ret;

	if (cq->waiter.fd < 0)
		return -FI_ENOSYS;
	end = timeout < 0 ? UINT64_MAX : now + timeout;
	for (;;) {
		ret = fi_cq_readfrom(cq_fid, buf, count, src);
		if (ret != -FI_EAGAIN || now >= end)
			return ret;
		ret = near_cq_sleep(cq, end - now);
		if (ret)
			return ret;
		now = near_now_ms();
	}
}

ssize_t near_cq_sread(struct fid_cq *cq, void *buf, size_t count,
		      const void *cond, int timeout)
{
	return near_cq_sreadfrom(cq, buf, count, NULL, cond, timeout);
}

/* All ports may ring for it; opened here, as few counters are slept on. */
static int near_cntr_wait_open(struct near_cntr *cntr)
{
	struct near_link *link;
	int ret = 0;

	if (cntr->waiter.fd < 0)
		ret = near_waiter_open(&cntr->waiter);
	for (link = cntr->eps.next; !ret && link != &cntr->eps;
	     link = link->next)
		ret = near_waiter_add(&cntr->waiter, near_wait_fd(
				      ((struct near_ep_link *)link)->ep->port));
	return ret;
}

static int near_cntr_arm(struct near_cntr *cntr,
			 const struct near_cntr_goal *goal)
{
	int ret = near_cntr_wait_open(cntr);

	if (ret)
		return ret;
	near_waiter_woken(&cntr->waiter);
	near_eps_woken(&cntr->eps);
	near_cntr_poll(cntr);
	if (near_cntr_reached(cntr, goal))
		return -FI_EAGAIN;
	cntr->waiter.asleep = true;
	return near_eps_arm(&cntr->eps);
}

/*
 * One thread sleeps until it is woken. Others that wait for the same counter nap:
 * who is woken takes the event away. So does who finds no descriptor free.
 */
void near_cntr_sleep(struct near_cntr *cntr, const struct near_cntr_goal *goal,
		     uint64_t left)
{
	bool alone;
	int ret;

	near_lock(cntr->domain);
	alone = !cntr->slept_on;
	ret = alone ? near_cntr_arm(cntr, goal) : -FI_EBUSY;
	cntr->slept_on = !alone || !ret;
	near_unlock(cntr->domain);
	if (ret == -FI_EAGAIN) {
		sched_yield();
		return;
	}
	if (ret) {
		poll(NULL, 0, NEAR_NAP_MS);
		return;
	}
	near_waiter_sleep(&cntr->waiter, left);
	near_lock(cntr->domain);
	cntr->waiter.asleep = cntr->slept_on = false;
	near_unlock(cntr->domain);
}
