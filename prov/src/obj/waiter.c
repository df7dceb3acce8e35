/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "obj/forward.h"
#include "obj/waiter.h"

int duo_waiter_open(struct duo_waiter *waiter, enum fi_wait_obj obj,
		    bool events)
{
	int ret;

	*waiter = (struct duo_waiter) { obj, -1, -1, -1 };
	if (obj != FI_WAIT_NONE && obj != FI_WAIT_UNSPEC &&
	    obj != FI_WAIT_YIELD && obj != FI_WAIT_FD) {
		DUO_WARN(CQ, "wait object %d is not supported; use "
			 "FI_WAIT_NONE, FI_WAIT_UNSPEC, FI_WAIT_YIELD or "
			 "FI_WAIT_FD\n", obj);
		return -FI_ENOSYS;
	}
	if (!events)
		return 0;
	waiter->fd = epoll_create1(EPOLL_CLOEXEC);
	waiter->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = waiter->fd < 0 || waiter->event_fd < 0 ? -errno :
	      duo_waiter_add(waiter, waiter->event_fd);
	if (ret)
		duo_waiter_close(waiter);
	return ret;
}

void duo_waiter_close(struct duo_waiter *waiter)
{
	if (waiter->fd >= 0)
		close(waiter->fd);
	if (waiter->event_fd >= 0)
		close(waiter->event_fd);
	if (waiter->timer_fd >= 0)
		close(waiter->timer_fd);
	waiter->fd = waiter->event_fd = waiter->timer_fd = -1;
}

int duo_waiter_add(struct duo_waiter *waiter, int fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	if (fd < 0)
		return fd;
	/* EEXIST: another source has the same file descriptor */
	if (epoll_ctl(waiter->fd, EPOLL_CTL_ADD, fd, &event) && errno != EEXIST)
		return -errno;
	return 0;
}

int duo_waiter_add_timer(struct duo_waiter *waiter)
{
	waiter->timer_fd = timerfd_create(CLOCK_MONOTONIC,
					  TFD_NONBLOCK | TFD_CLOEXEC);
	if (waiter->timer_fd < 0)
		return -errno;
	return waiter->fd < 0 ? 0 : duo_waiter_add(waiter, waiter->timer_fd);
}

void duo_waiter_wake(const struct duo_waiter *waiter)
{
	if (waiter->event_fd >= 0)
		eventfd_write(waiter->event_fd, 1);
}

void duo_waiter_clear(const struct duo_waiter *waiter)
{
	eventfd_t events;

	eventfd_read(waiter->event_fd, &events);
}

int duo_waiter_set_timer(const struct duo_waiter *waiter)
{
	const struct itimerspec when = {
		.it_value = {
			.tv_sec = duo_params.wait_poll_us / 1000000,
			.tv_nsec = duo_params.wait_poll_us % 1000000 * 1000,
		},
	};

	return timerfd_settime(waiter->timer_fd, 0, &when, NULL) ? -errno : 0;
}

int duo_waiter_control(const struct duo_waiter *waiter, struct fid *fid,
		       int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (waiter->obj != FI_WAIT_FD)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(int *) arg = waiter->fd < 0 ? waiter->timer_fd : waiter->fd;
		return 0;
	case FI_GETWAITOBJ:
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *) arg = waiter->obj;
		return 0;
	default:
		return duo_core_control(fid, command, arg);
	}
}
