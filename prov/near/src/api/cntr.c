/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Counters of completed sends and receives. */

#include <stdlib.h>

#include "api/near_fi.h"
#include "link/proc.h"
#include "near_xpu.h"

#define NEAR_AWAKE 50000	/* ns that a wait polls before it sleeps */

static struct near_cntr *near_cntr_of(struct fid_cntr *fid)
{
	return near_container(fid, struct near_cntr, fid);
}

void near_cntr_poll(struct near_cntr *cntr)
{
	struct near_link *link;

	for (link = cntr->eps.next; link != &cntr->eps; link = link->next)
		near_ep_poll(((struct near_ep_link *)link)->ep);
}

static void near_cntr_progress(struct near_cntr *cntr)
{
	near_lock(cntr->domain);
	near_cntr_poll(cntr);
	near_unlock(cntr->domain);
}

/* By the application: who sleeps hears of it. */
static int near_cntr_moved(struct near_cntr *cntr)
{
	near_lock(cntr->domain);
	near_cntr_rouse(cntr);
	near_unlock(cntr->domain);
	return 0;
}

static uint64_t near_cntr_read(struct fid_cntr *fid)
{
	near_cntr_progress(near_cntr_of(fid));
	return __atomic_load_n(&near_cntr_of(fid)->good, __ATOMIC_RELAXED);
}

static uint64_t near_cntr_readerr(struct fid_cntr *fid)
{
	near_cntr_progress(near_cntr_of(fid));
	return __atomic_load_n(&near_cntr_of(fid)->bad, __ATOMIC_RELAXED);
}

static int near_cntr_add(struct fid_cntr *fid, uint64_t value)
{
	__atomic_fetch_add(&near_cntr_of(fid)->good, value, __ATOMIC_RELAXED);
	return near_cntr_moved(near_cntr_of(fid));
}

static int near_cntr_set(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&near_cntr_of(fid)->good, value, __ATOMIC_RELAXED);
	return near_cntr_moved(near_cntr_of(fid));
}

static int near_cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_fetch_add(&near_cntr_of(fid)->bad, value, __ATOMIC_RELAXED);
	return near_cntr_moved(near_cntr_of(fid));
}

static int near_cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	__atomic_store_n(&near_cntr_of(fid)->bad, value, __ATOMIC_RELAXED);
	return near_cntr_moved(near_cntr_of(fid));
}

/* Until threshold, an error, or timeout milliseconds have passed. */
static int near_cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct near_cntr *cntr = near_cntr_of(fid);
	const struct near_cntr_goal goal = {
		.good = threshold,
		.bad = __atomic_load_n(&cntr->bad, __ATOMIC_RELAXED),
	};
	uint64_t now = near_now_ms(), awake_ns = near_now_ns() + NEAR_AWAKE;
	uint64_t end = timeout < 0 ? UINT64_MAX : now + timeout;

	if (!cntr->waits)
		return -FI_ENOSYS;
	while (near_cntr_read(fid) < threshold) {
		if (__atomic_load_n(&cntr->bad, __ATOMIC_RELAXED) != goal.bad)
			return -FI_EAVAIL;
		now = near_now_ms();
		if (now >= end)
			return -FI_ETIMEDOUT;
		if (near_now_ns() >= awake_ns)
			near_cntr_sleep(cntr, &goal, end - now);
	}
	return 0;
}

static int near_cntr_close(struct fid *fid)
{
	struct near_cntr *cntr = near_container(fid, struct near_cntr,
						fid.fid);
	struct near_domain *domain = cntr->domain;
	bool busy;

	near_lock(domain);
	busy = cntr->refs;
	if (!busy)
		domain->refs--;
	near_unlock(domain);
	if (busy)
		return -FI_EBUSY;
	near_waiter_close(&cntr->waiter);
	free(cntr);
	return 0;
}

static struct fi_ops near_cntr_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = near_cntr_close,
	.bind = near_no_bind,
	.control = near_no_control,
	.ops_open = near_no_ops_open,
};

static struct fi_ops_cntr near_cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = near_cntr_read,
	.readerr = near_cntr_readerr,
	.add = near_cntr_add,
	.set = near_cntr_set,
	.wait = near_cntr_wait,
	.adderr = near_cntr_adderr,
	.seterr = near_cntr_seterr,
	NEAR_NO_XPU_CNTR
};

int near_cntr_open(struct fid_domain *domain_fid, struct fi_cntr_attr *attr,
		   struct fid_cntr **cntr_fid, void *context)
{
	struct near_cntr *cntr;

	if (attr && (attr->events != FI_CNTR_EVENTS_COMP || attr->flags ||
		     (attr->wait_obj != FI_WAIT_NONE &&
		      attr->wait_obj != FI_WAIT_UNSPEC)))
		return -FI_ENOSYS;
	cntr = calloc(1, sizeof(*cntr));
	if (!cntr)
		return -FI_ENOMEM;
	cntr->waits = attr && attr->wait_obj == FI_WAIT_UNSPEC;
	cntr->waiter.fd = cntr->waiter.event_fd = -1;
	near_list_init(&cntr->eps);
	cntr->domain = near_domain_of(domain_fid);
	cntr->fid.fid.fclass = FI_CLASS_CNTR;
	cntr->fid.fid.context = context;
	cntr->fid.fid.ops = &near_cntr_fi_ops;
	cntr->fid.ops = &near_cntr_ops;
	near_lock(cntr->domain);
	cntr->domain->refs++;
	near_unlock(cntr->domain);
	*cntr_fid = &cntr->fid;
	return 0;
}
