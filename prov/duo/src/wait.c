/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Waiting. shm cannot signal a descriptor, so the one behind FI_WAIT_FD is a
 * timer: fi_trywait, which fi_cq(3) demands before poll(2), arms it for
 * wait_interval. The application then reads the CQ at least that often.
 */

#include <errno.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <rdma/fi_errno.h>

#include "duo.h"

int duo_cq_wait_open(struct duo_cq *cq, enum fi_wait_obj wait_obj)
{
	cq->wait_fd = -1;
	if (wait_obj != FI_WAIT_FD)
		return 0;
	cq->wait_fd = timerfd_create(CLOCK_MONOTONIC,
				     TFD_NONBLOCK | TFD_CLOEXEC);
	return cq->wait_fd < 0 ? -errno : 0;
}

void duo_cq_wait_close(struct duo_cq *cq)
{
	if (cq->wait_fd >= 0)
		close(cq->wait_fd);
}

/* Also clears an expiry that has not been read. */
static int duo_cq_wait_arm(struct duo_cq *cq)
{
	const struct itimerspec when = {
		.it_value = {
			.tv_sec = duo_params.wait_interval / 1000000,
			.tv_nsec = duo_params.wait_interval % 1000000 * 1000,
		},
	};

	return timerfd_settime(cq->wait_fd, 0, &when, NULL) ? -errno : 0;
}

/* The caller is about to sleep: the core must know what it may deliver. */
void duo_cq_before_sleep(struct duo_cq *cq)
{
	struct duo_ep *ep;

	LIST_FOREACH(ep, &cq->rx_eps, rx_link)
		duo_lazy_flush(ep);
	LIST_FOREACH(ep, &cq->tx_eps, tx_link)
		duo_lazy_flush(ep);
}

/* 0: it may sleep; -FI_EAGAIN: there is something to read. */
static int duo_cq_trywait(struct duo_cq *cq)
{
	int ret;

	if (cq->wait_fd < 0)
		return -FI_EINVAL;
	duo_lock(&cq->domain->lock);
	duo_cq_progress(cq);
	duo_cq_before_sleep(cq);
	if (!duo_ring_empty(&cq->ring) || duo_err_due(&cq->errs, &cq->ring) ||
	    atomic_exchange(&cq->signaled, false))
		ret = -FI_EAGAIN;
	else
		ret = duo_cq_wait_arm(cq);
	duo_unlock(&cq->domain->lock);
	return ret;
}

/* Event queues are the core's own objects, so the core waits for them. */
int duo_trywait(struct fid_fabric *fabric_fid, struct fid **fids, int count)
{
	struct duo_fabric *fabric = duo_fabric_of(fabric_fid);
	int i, ret;

	for (i = 0; i < count; i++) {
		if (!fids[i])
			return -FI_EINVAL;
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

/* FI_GETWAIT of a CQ. */
int duo_cq_control(struct fid *fid, int command, void *arg)
{
	struct duo_cq *cq = duo_container_of(fid, struct duo_cq, cq_fid.fid);

	switch (command) {
	case FI_GETWAIT:
		if (cq->wait_fd < 0)
			return -FI_ENODATA;
		if (!arg)
			return -FI_EINVAL;
		*(int *) arg = cq->wait_fd;
		return 0;
	case FI_GETWAITOBJ:
		if (!arg)
			return -FI_EINVAL;
		*(enum fi_wait_obj *) arg = cq->wait_fd < 0 ? FI_WAIT_NONE :
							      FI_WAIT_FD;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
