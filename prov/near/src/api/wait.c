/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sleeping. A completion queue with a wait object has a descriptor for all
 * that can wake it: the ports of its endpoints, which peers write to when they
 * are armed, and an event for what other threads put into the queue.
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

static int near_wait_add(struct near_cq *cq, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (fd < 0)
		return fd;
	if (epoll_ctl(cq->wait_fd, EPOLL_CTL_ADD, fd, &event) &&
	    errno != EEXIST)
		return -errno;
	return 0;
}

int near_cq_wait_open(struct near_cq *cq, enum fi_wait_obj wait_obj)
{
	int ret;

	cq->wait_fd = cq->event_fd = -1;
	if (wait_obj == FI_WAIT_NONE)
		return 0;
	if (wait_obj != FI_WAIT_UNSPEC && wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	cq->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	cq->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = cq->wait_fd < 0 || cq->event_fd < 0 ? -errno :
		near_wait_add(cq, cq->event_fd);
	if (ret)
		near_cq_wait_close(cq);
	return ret;
}

void near_cq_wait_close(struct near_cq *cq)
{
	if (cq->wait_fd >= 0)
		close(cq->wait_fd);
	if (cq->event_fd >= 0)
		close(cq->event_fd);
	cq->wait_fd = cq->event_fd = -1;
}

int near_cq_wait_ep(struct near_cq *cq, struct near_ep *ep)
{
	return cq->wait_fd < 0 ? 0 : near_wait_add(cq, near_wait_fd(ep->port));
}

void near_cq_wake(struct near_cq *cq)
{
	cq->asleep = false;
	eventfd_write(cq->event_fd, 1);
}

int near_cq_signal(struct fid_cq *cq_fid)
{
	struct near_cq *cq = near_cq_of(cq_fid);

	if (cq->wait_fd < 0)
		return -FI_ENOSYS;
	near_lock(cq->domain);
	cq->signalled = true;
	near_cq_wake(cq);
	near_unlock(cq->domain);
	return 0;
}

/* Who sleeps on the endpoint's other CQ has been woken by the same byte. */
static void near_ep_woken(const struct near_cq *cq, const struct near_ep *ep)
{
	if (!near_woken(ep->port))
		return;
	if (ep->tx_cq && ep->tx_cq != cq && ep->tx_cq->asleep)
		near_cq_wake(ep->tx_cq);
	if (ep->rx_cq && ep->rx_cq != cq && ep->rx_cq->asleep)
		near_cq_wake(ep->rx_cq);
}

static void near_cq_woken(struct near_cq *cq)
{
	struct near_link *link;
	eventfd_t value;

	cq->asleep = false;
	eventfd_read(cq->event_fd, &value);
	for (link = cq->eps.next; link != &cq->eps; link = link->next)
		near_ep_woken(cq, ((struct near_ep_link *)link)->ep);
}

/* Under the lock. 0: whoever sleeps on the descriptor will be woken. */
static int near_cq_arm(struct near_cq *cq)
{
	struct near_link *link;

	near_cq_woken(cq);
	near_cq_progress(cq);
	if (cq->head != cq->tail || cq->err_first || cq->signalled)
		return -FI_EAGAIN;
	cq->asleep = true;
	for (link = cq->eps.next; link != &cq->eps; link = link->next)
		if (near_arm(((struct near_ep_link *)link)->ep->port))
			return -FI_EAGAIN;
	return 0;
}

static int near_cq_trywait(struct near_cq *cq)
{
	int ret;

	if (cq->wait_fd < 0)
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

	if (command != FI_GETWAIT || cq->wait_fd < 0)
		return -FI_ENOSYS;
	*(int *)arg = cq->wait_fd;
	return 0;
}

/*
 * Until woken, or the time is over: 0; -FI_EINTR; -FI_EAGAIN: by fi_cq_signal().
 * That is looked for under the same lock as what armed the descriptor, or one in
 * between would be forgotten.
 */
static int near_cq_sleep(struct near_cq *cq, uint64_t left)
{
	struct pollfd fd = { .fd = cq->wait_fd, .events = POLLIN };
	int ms = left < NEAR_SLEEP_MS ? (int)left : NEAR_SLEEP_MS;
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
	return poll(&fd, 1, ms) < 0 ? -errno : 0;
}

ssize_t near_cq_sreadfrom(struct fid_cq *cq_fid, void *buf, size_t count,
			  fi_addr_t *src, const void *cond, int timeout)
{
	struct near_cq *cq = near_cq_of(cq_fid);
	uint64_t now = near_now_ms(), end;
	ssize_t ret;

	if (cq->wait_fd < 0)
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
