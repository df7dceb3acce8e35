/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Waiting. A CQ with a wait object has one descriptor for all that can wake
 * who sleeps: the core's, those of near's ports, which peers write to when
 * they are armed, and an event for what other threads of this process do.
 * Where somebody cannot signal, libfabric's shm or a core without wait
 * objects, a timer stands for it: fi_trywait, which fi_cq(3) demands before
 * poll(2), sets it to wait_interval.
 */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "base/log.h"
#include "base/params.h"
#include "core/lazy.h"
#include "cq/cq.h"
#include "cq/nap.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "peer/peer.h"

/* A peer of near that closes rings no bell: so often it is looked for. */
#define DUO_SLEEP_MS 1000

static bool duo_cq_peer_signals(const struct duo_cq *cq)
{
	const struct duo_peer *peer = cq->domain->peer;

	return !peer || peer->arm;
}

/* UNSPEC is for blocking reads: they nap where a timer would have to serve. */
int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj)
{
	bool signals = duo_cq_peer_signals(cq);
	int ret;

	cq->wait_obj = wait_obj;
	cq->wait_fd = cq->event_fd = cq->timer_fd = -1;
	if (wait_obj != FI_WAIT_FD && (wait_obj != FI_WAIT_UNSPEC || !signals))
		return 0;
	cq->core_signals = signals;
	cq->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	cq->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	ret = cq->wait_fd < 0 || cq->event_fd < 0 ? -errno :
	      duo_cq_wait_add(cq, cq->event_fd);
	if (ret)
		duo_cq_wait_close(cq);
	return ret;
}

void duo_cq_wait_close(struct duo_cq *cq)
{
	if (cq->wait_fd >= 0)
		close(cq->wait_fd);
	if (cq->event_fd >= 0)
		close(cq->event_fd);
	if (cq->timer_fd >= 0)
		close(cq->timer_fd);
	cq->wait_fd = cq->event_fd = cq->timer_fd = -1;
}

int duo_cq_wait_core(struct duo_cq *cq)
{
	int fd = -1;
	int ret = fi_control(&cq->path_cq[FI_DUO_CORE]->fid, FI_GETWAIT, &fd);

	return ret ? ret : duo_cq_wait_add(cq, fd);
}

int duo_cq_wait_timer(struct duo_cq *cq)
{
	if (cq->wait_fd < 0 || cq->core_signals)
		return 0;
	DUO_INFO(CQ, "cq %p: %s cannot signal, a timer of %zu us does\n",
		 (void *) cq, duo_cq_peer_signals(cq) ?
		 cq->domain->fabric->core_name : cq->domain->peer->name,
		 duo_params.wait_interval);
	cq->timer_fd = timerfd_create(CLOCK_MONOTONIC,
				      TFD_NONBLOCK | TFD_CLOEXEC);
	return cq->timer_fd < 0 ? -errno : duo_cq_wait_add(cq, cq->timer_fd);
}

/* Any thread, with or without the lock. */
int duo_cq_signal(struct fid_cq *cq_fid)
{
	struct duo_cq *cq = duo_cq_of(cq_fid);

	atomic_store(&cq->signaled, true);
	if (cq->event_fd >= 0)
		eventfd_write(cq->event_fd, 1);
	return 0;
}

/* Also clears an expiry that has not been read. */
static int duo_cq_set_timer(struct duo_cq *cq)
{
	const struct itimerspec when = {
		.it_value = {
			.tv_sec = duo_params.wait_interval / 1000000,
			.tv_nsec = duo_params.wait_interval % 1000000 * 1000,
		},
	};

	return timerfd_settime(cq->timer_fd, 0, &when, NULL) ? -errno : 0;
}

/* The caller is about to sleep: the core must know what it may deliver. */
int duo_cq_before_sleep(struct duo_cq *cq)
{
	struct duo_ep *ep;
	int ret = 0;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		ret = duo_lazy_flush(ep) ? -FI_EAGAIN : ret;
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		ret = duo_lazy_flush(ep) ? -FI_EAGAIN : ret;
	return ret;
}

/* -FI_EAGAIN: something has come, and the next polls look for it. */
static int duo_cq_arm(struct duo_cq *cq)
{
	struct fid *core = &cq->path_cq[FI_DUO_CORE]->fid;
	int ret = 0;

	cq->asleep = true;
	if (cq->peer && cq->peer->arm)
		ret = cq->peer->arm(cq);
	if (!ret && cq->core_signals)
		ret = fi_trywait(cq->domain->fabric->path_fabric[FI_DUO_CORE],
				 &core, 1);
	if (!ret && cq->timer_fd >= 0)
		ret = duo_cq_set_timer(cq);
	if (!ret)
		return 0;
	cq->asleep = false;
	cq->local_idle = 0;
	duo_cq_core_active(cq);
	return ret;
}

/* 0: who sleeps on wait_fd is woken. -FI_EAGAIN: there is something to read. */
static int duo_cq_fall_asleep(struct duo_cq *cq)
{
	eventfd_t events;
	int ret = -FI_EAGAIN;

	duo_lock(&cq->domain->lock);
	eventfd_read(cq->event_fd, &events);
	if (cq->peer && cq->peer->woken)
		cq->peer->woken(cq);
	duo_cq_progress(cq);
	if (!duo_cq_before_sleep(cq) && duo_ring_empty(&cq->ring) &&
	    !duo_err_due(&cq->errs, &cq->ring) && !atomic_load(&cq->signaled))
		ret = duo_cq_arm(cq);
	duo_unlock(&cq->domain->lock);
	return ret;
}

void duo_cq_sleep(struct duo_cq *cq, struct duo_nap *nap)
{
	struct pollfd fd = { .fd = cq->wait_fd, .events = POLLIN };
	int ms = DUO_SLEEP_MS;

	if (cq->wait_fd < 0 || cq->timer_fd >= 0) {
		duo_lock(&cq->domain->lock);
		duo_cq_before_sleep(cq);
		duo_unlock(&cq->domain->lock);
		if (cq->wait_obj == FI_WAIT_YIELD)
			sched_yield();
		else
			duo_nap();
		return;
	}
	if (!duo_cq_fall_asleep(cq)) {
		nap->refused = 0;
		if (nap->timeout >= 0 && duo_nap_left_ms(nap) < ms)
			ms = duo_nap_left_ms(nap);
		poll(&fd, 1, ms);
	} else if (nap->refused++) {
		duo_nap();	/* near is at work for somebody slow */
	}
}

static int duo_cq_trywait(struct duo_cq *cq)
{
	int ret;

	if (cq->wait_obj != FI_WAIT_FD)
		return -FI_EINVAL;
	ret = duo_cq_fall_asleep(cq);
	atomic_store(&cq->signaled, false);
	return ret;
}

/* Event queues are the core's own objects, so the core waits for them. */
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count)
{
	struct duo_fabric *fabric = duo_fabric_of(fabric_fid);
	int i, ret;

	for (i = 0; i < count; i++) {
		if (!fids[i] || fids[i]->fclass == FI_CLASS_CNTR)
			return -FI_EINVAL;	/* these have no descriptor */
		if (fids[i]->fclass == FI_CLASS_CQ)
			ret = duo_cq_trywait(duo_container_of(
				fids[i], struct duo_cq, cq_fid.fid));
		else
			ret = fi_trywait(fabric->path_fabric[FI_DUO_CORE],
					 &fids[i], 1);
		if (ret)
			return ret;
	}
	return 0;
}

int duo_cq_control(struct fid *fid, int command, void *arg)
{
	struct duo_cq *cq = duo_container_of(fid, struct duo_cq, cq_fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (cq->wait_obj != FI_WAIT_FD)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(int *) arg = cq->wait_fd;
		return 0;
	case FI_GETWAITOBJ:
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *) arg = cq->wait_obj;
		return 0;
	default:
		return duo_core_control(fid, command, arg);
	}
}
