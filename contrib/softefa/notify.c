/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion channels. The device makes progress only when it is polled, so a
 * channel's descriptor is readable when a poll might produce a completion. The
 * descriptor is an epoll set with, for each CQ:
 * - an eventfd: a completion was written,
 * - a timer: an operation is outstanding and may need a retransmission,
 * - the descriptors of the wire.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "softefa.h"

/* interval of a CQ's timer while an operation is outstanding, ns */
#define SE_NOTIFY_TICK_NS 2000000

struct se_notify {
	struct se_cq *cq;
	int epoll_fd, event_fd, timer_fd;
	_Atomic bool armed, ticking;
};

static int se_notify_watch(struct se_notify *notify, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = notify };

	return epoll_ctl(notify->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? errno :
									0;
}

int se_notify_open(struct se_cq *cq)
{
	struct se_notify *notify = calloc(1, sizeof(*notify));

	if (!notify)
		return ENOMEM;
	notify->cq = cq;
	notify->epoll_fd = cq->ex.channel->fd;
	notify->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (notify->event_fd < 0)
		goto err_free;
	notify->timer_fd = timerfd_create(CLOCK_MONOTONIC,
					  TFD_NONBLOCK | TFD_CLOEXEC);
	if (notify->timer_fd < 0)
		goto err_close_event;
	if (se_notify_watch(notify, notify->event_fd, EPOLLIN) ||
	    se_notify_watch(notify, notify->timer_fd, EPOLLIN))
		goto err_close_timer;
	cq->notify = notify;
	return 0;

err_close_timer:
	close(notify->timer_fd);
err_close_event:
	close(notify->event_fd);
err_free:
	free(notify);
	return ENOMEM;
}

void se_notify_close(struct se_cq *cq)
{
	struct se_notify *notify = cq->notify;

	if (!notify)
		return;
	cq->notify = NULL;
	close(notify->timer_fd);
	close(notify->event_fd);
	free(notify);
}

/*
 * Adds the QP's wire to the CQ's channel. If both CQs of a QP share a channel,
 * only the CQ that is attached first gets the wire. A poll of this CQ also
 * writes the other CQ's completions, and so makes that CQ's eventfd readable.
 */
int se_notify_attach(struct se_cq *cq, struct se_qp *qp)
{
	int ret, fd = cq->notify ? qp->wire->event_fd(qp) : -1;

	if (fd < 0)
		return 0;
	ret = se_notify_watch(cq->notify, fd, EPOLLIN | EPOLLONESHOT);
	return ret == EEXIST ? 0 : ret;
}

void se_notify_detach(struct se_cq *cq, struct se_qp *qp)
{
	int fd = cq->notify ? qp->wire->event_fd(qp) : -1;

	if (fd >= 0)
		epoll_ctl(cq->notify->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void se_notify_fire(struct se_notify *notify)
{
	uint64_t one = 1;

	if (!atomic_load_explicit(&notify->armed, memory_order_relaxed))
		return;
	if (atomic_exchange(&notify->armed, false) &&
	    write(notify->event_fd, &one, sizeof(one)) < 0)
		return; /* at its maximum the eventfd is readable anyway */
}

static void se_notify_timer(struct se_notify *notify, bool on)
{
	struct itimerspec spec = {
		.it_value.tv_nsec = on ? SE_NOTIFY_TICK_NS : 0,
	};

	timerfd_settime(notify->timer_fd, 0, &spec, NULL);
}

/*
 * Starts the timer if the CQ is armed and an operation is outstanding: its
 * packet may be lost, rejected or delayed.
 *
 * Store buffering with se_notify_arm(): the caller stores qp->work, then this
 * function loads armed. se_notify_arm() stores armed, then loads qp->work. Both
 * have a fence in between, so at least one of them starts the timer.
 */
static void se_notify_tick(struct se_notify *notify)
{
	if (!notify)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&notify->armed, memory_order_relaxed) ||
	    atomic_exchange(&notify->ticking, true))
		return;
	se_notify_timer(notify, true);
}

void se_notify_work(struct se_qp *qp)
{
	se_notify_tick(qp->scq->notify);
	if (qp->rcq != qp->scq)
		se_notify_tick(qp->rcq->notify);
}

int se_notify_arm(struct ibv_cq *cq_fid, int solicited_only)
{
	struct se_cq *cq = (struct se_cq *)cq_fid;
	struct se_notify *notify = cq->notify;
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT,
				     .data.ptr = notify };
	bool busy = false;
	uint32_t i;
	int fd;

	if (solicited_only)
		return EOPNOTSUPP;
	if (!notify)
		return EINVAL;
	pthread_mutex_lock(&cq->poll_lock);
	atomic_store(&notify->armed, true);
	atomic_thread_fence(memory_order_seq_cst);
	for (i = 0; i < cq->qp_count; i++) {
		busy |= cq->qps[i]->work;
		fd = cq->qps[i]->wire->event_fd(cq->qps[i]);
		if (fd < 0)
			continue;
		cq->qps[i]->wire->arm(cq->qps[i]);
		epoll_ctl(notify->epoll_fd, EPOLL_CTL_MOD, fd, &event);
	}
	if (busy)
		se_notify_tick(notify);
	/* a completion may have come since the caller's last poll */
	if (!se_cq_empty(cq))
		se_notify_fire(notify);
	pthread_mutex_unlock(&cq->poll_lock);
	return 0;
}

SE_EXPORT struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	if (!channel)
		return NULL;
	channel->fd = epoll_create1(EPOLL_CLOEXEC);
	if (channel->fd < 0) {
		free(channel);
		return NULL;
	}
	channel->context = ctx;
	return channel;
}

SE_EXPORT int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	close(channel->fd);
	free(channel);
	return 0;
}

static void se_notify_clear(struct se_notify *notify)
{
	struct se_cq *cq = notify->cq;
	uint64_t count;

	pthread_mutex_lock(&cq->poll_lock);
	atomic_store(&notify->armed, false);
	if (read(notify->event_fd, &count, sizeof(count)) < 0)
		count = 0; /* the timer or the wire woke the thread */
	se_notify_timer(notify, false);
	atomic_store(&notify->ticking, false);
	pthread_mutex_unlock(&cq->poll_lock);
}

SE_EXPORT int ibv_get_cq_event(struct ibv_comp_channel *channel,
			       struct ibv_cq **cq, void **cq_context)
{
	bool block = !(fcntl(channel->fd, F_GETFL) & O_NONBLOCK);
	struct se_notify *notify;
	struct epoll_event event;
	int ret;

	do {
		ret = epoll_wait(channel->fd, &event, 1, block ? -1 : 0);
	} while (ret < 0 && errno == EINTR && block);
	if (ret <= 0) {
		if (!ret)
			errno = EAGAIN;
		return -1;
	}
	notify = event.data.ptr;
	se_notify_clear(notify);
	*cq = &notify->cq->ibv;
	*cq_context = notify->cq->ex.cq_context;
	return 0;
}

SE_EXPORT void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count)
{
}
