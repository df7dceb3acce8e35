/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Wait sets: CQs and counters that are opened with FI_WAIT_SET have a
 * descriptor, as with FI_WAIT_FD, and fi_wait sleeps on all of them.
 */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "base/lock.h"
#include "base/log.h"
#include "cq/cq.h"
#include "cq/nap.h"
#include "cq/wait.h"
#include "obj/fabric.h"

struct duo_waitset_member {
	struct fid *fid;
	LIST_ENTRY(duo_waitset_member) link;
};

/* The lock is taken before the domains'. */
struct duo_waitset {
	struct fid_wait wait_fid;
	struct duo_fabric *fabric;
	struct duo_waiter waiter;
	struct duo_lock lock;
	LIST_HEAD(, duo_waitset_member) members;
};

static struct duo_waitset *duo_waitset_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_waitset, wait_fid.fid);
}

int duo_waitset_join(struct fid_wait *set_fid, struct duo_fabric *fabric,
		     struct fid *fid, int fd)
{
	struct duo_waitset_member *member;
	struct duo_waitset *set;
	int ret;

	if (!set_fid || set_fid->fid.fclass != FI_CLASS_WAIT)
		return -FI_EINVAL;
	set = duo_waitset_of(&set_fid->fid);
	if (set->fabric != fabric)
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = fid;
	ret = duo_waiter_add(&set->waiter, fd);
	if (ret) {
		free(member);
		return ret;
	}
	duo_lock(&set->lock);
	LIST_INSERT_HEAD(&set->members, member, link);
	duo_unlock(&set->lock);
	duo_waiter_ring(&set->waiter);	/* who waits is to look at it */
	return 0;
}

void duo_waitset_lock(struct fid_wait *set_fid)
{
	if (set_fid)
		duo_lock(&duo_waitset_of(&set_fid->fid)->lock);
}

void duo_waitset_unlock(struct fid_wait *set_fid)
{
	if (set_fid)
		duo_unlock(&duo_waitset_of(&set_fid->fid)->lock);
}

/* Its descriptor leaves the waiter's when it is closed. */
void duo_waitset_leave(struct fid_wait *set_fid, const struct fid *fid)
{
	struct duo_waitset_member *member;
	struct duo_waitset *set;

	if (!set_fid)
		return;
	set = duo_waitset_of(&set_fid->fid);
	LIST_FOREACH(member, &set->members, link) {
		if (member->fid == fid)
			break;
	}
	if (member)
		LIST_REMOVE(member, link);
	free(member);
}

/* 0: who sleeps on it is woken; -FI_EAGAIN: there is something to look at. */
int duo_waitset_trywait(struct fid *fid)
{
	struct duo_waitset *set = duo_waitset_of(fid);
	struct duo_waitset_member *member;
	int ret = 0;

	duo_waiter_clear(&set->waiter);
	duo_lock(&set->lock);
	LIST_FOREACH(member, &set->members, link) {
		if (!ret)
			ret = duo_trywait(&set->fabric->fabric_fid,
					  &member->fid, 1);
	}
	duo_unlock(&set->lock);
	return ret;
}

static int duo_waitset_wait(struct fid_wait *set_fid, int timeout)
{
	struct duo_waitset *set = duo_waitset_of(&set_fid->fid);
	struct duo_nap nap = duo_nap_begin(timeout);
	int ret;

	for (;;) {
		ret = duo_waitset_trywait(&set_fid->fid);
		if (ret)
			return ret == -FI_EAGAIN ? 0 : ret;
		if (duo_nap_over(&nap))
			return -FI_ETIMEDOUT;
		duo_waiter_sleep(&set->waiter, &nap);
	}
}

static int duo_waitset_control(struct fid *fid, int command, void *arg)
{
	return duo_waiter_control(&duo_waitset_of(fid)->waiter, command, arg);
}

static int duo_waitset_close(struct fid *fid)
{
	struct duo_waitset *set = duo_waitset_of(fid);

	if (!LIST_EMPTY(&set->members))
		return -FI_EBUSY;
	duo_waiter_close(&set->waiter);
	duo_lock_destroy(&set->lock);
	atomic_fetch_sub(&set->fabric->refs, 1);
	free(set);
	return 0;
}

static struct fi_ops_wait duo_waitset_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = duo_waitset_wait,
};

static struct fi_ops duo_waitset_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_waitset_close,
	.bind = duo_no_bind,
	.control = duo_waitset_control,
	.ops_open = duo_no_ops_open,
};

static int duo_waitset_check(const struct fi_wait_attr *attr)
{
	if (attr->flags)
		return -FI_EINVAL;
	if (attr->wait_obj == FI_WAIT_UNSPEC || attr->wait_obj == FI_WAIT_FD)
		return 0;
	DUO_WARN(FABRIC, "wait object %d of a wait set: use FI_WAIT_UNSPEC or "
		 "FI_WAIT_FD\n", attr->wait_obj);
	return -FI_ENOSYS;
}

int duo_waitset_open(struct fid_fabric *fabric_fid, struct fi_wait_attr *attr,
		     struct fid_wait **set_fid)
{
	struct duo_waitset *set;
	int ret = duo_waitset_check(attr);

	if (ret)
		return ret;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fabric = duo_fabric_of(fabric_fid);
	LIST_INIT(&set->members);
	ret = duo_lock_init(&set->lock, true);
	if (ret)
		goto free_set;
	ret = duo_waiter_open(&set->waiter, attr->wait_obj, true);
	if (ret)
		goto destroy_lock;
	set->wait_fid.fid.fclass = FI_CLASS_WAIT;
	set->wait_fid.fid.ops = &duo_waitset_fi_ops;
	set->wait_fid.ops = &duo_waitset_ops;
	atomic_fetch_add(&set->fabric->refs, 1);
	*set_fid = &set->wait_fid;
	return 0;

destroy_lock:
	duo_lock_destroy(&set->lock);
free_set:
	free(set);
	return ret;
}
