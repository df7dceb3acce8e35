/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <sys/queue.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "cq/poll.h"
#include "obj/domain.h"

struct duo_poll_member {
	struct fid *fid;	/* a CQ or counter, of ofi_duo or of the core */
	/* counter's successes and errors when fi_poll() last reported it */
	uint64_t good, bad;
	LIST_ENTRY(duo_poll_member) link;
};

struct duo_poll {
	struct fid_poll poll_fid;
	struct duo_domain *domain;
	struct duo_lock lock;	/* never taken if the domain's lock is off */
	LIST_HEAD(, duo_poll_member) members;
};

static struct duo_poll *duo_poll_of(struct fid_poll *poll_fid)
{
	return duo_container_of(poll_fid, struct duo_poll, poll_fid);
}

static struct duo_poll_member *duo_poll_find(const struct duo_poll *poll,
					     const struct fid *fid)
{
	struct duo_poll_member *member;

	LIST_FOREACH(member, &poll->members, link) {
		if (member->fid == fid)
			return member;
	}
	return NULL;
}

/*
 * Adds an object to the poll set. As in libfabric's providers, adding it a
 * second time changes nothing.
 */
static int duo_poll_add(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);
	struct duo_poll_member *member;

	if (!fid || (fid->fclass != FI_CLASS_CQ &&
		     fid->fclass != FI_CLASS_CNTR))
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = fid;
	duo_lock(&poll->lock);
	if (duo_poll_find(poll, fid))
		free(member);
	else
		LIST_INSERT_HEAD(&poll->members, member, link);
	duo_unlock(&poll->lock);
	return 0;
}

static int duo_poll_del(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);
	struct duo_poll_member *member;

	duo_lock(&poll->lock);
	member = duo_poll_find(poll, fid);
	if (member)
		LIST_REMOVE(member, link);
	duo_unlock(&poll->lock);
	free(member);
	return 0;
}

static bool duo_poll_cq(const struct duo_poll_member *member)
{
	struct fid_cq *cq =
		duo_container_of(member->fid, struct fid_cq, fid);
	ssize_t ret = fi_cq_read(cq, NULL, 0);

	return !ret || ret == -FI_EAVAIL;
}

/*
 * True if the counter has changed since this function last returned true.
 * wanted: false if the caller's array is full. The function then returns false,
 * and a later call reports the change.
 */
static bool duo_poll_cntr(struct duo_poll_member *member, bool wanted)
{
	struct fid_cntr *cntr =
		duo_container_of(member->fid, struct fid_cntr, fid);
	uint64_t good = fi_cntr_read(cntr);
	uint64_t bad = fi_cntr_readerr(cntr);

	if (!wanted || (good == member->good && bad == member->bad))
		return false;
	member->good = good;
	member->bad = bad;
	return true;
}

/*
 * Stores the contexts of up to `count` members that have events. Returns their
 * number. A later call reports the members that the array had no space for.
 */
static int duo_poll_run(struct fid_poll *poll_fid, void **context, int count)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);
	struct duo_poll_member *member;
	bool ready;
	int n = 0;

	duo_lock(&poll->lock);
	LIST_FOREACH(member, &poll->members, link) {
		if (member->fid->fclass == FI_CLASS_CQ)
			ready = duo_poll_cq(member);
		else
			ready = duo_poll_cntr(member, n < count);
		if (ready && n < count)
			context[n++] = member->fid->context;
	}
	duo_unlock(&poll->lock);
	return n;
}

static struct fi_ops_poll duo_poll_ops = {
	.size = sizeof(struct fi_ops_poll),
	.poll = duo_poll_run,
	.poll_add = duo_poll_add,
	.poll_del = duo_poll_del,
};

static int duo_poll_close(struct fid *fid)
{
	struct duo_poll *poll = duo_container_of(fid, struct duo_poll,
						 poll_fid.fid);
	struct duo_poll_member *member;

	while ((member = LIST_FIRST(&poll->members))) {
		LIST_REMOVE(member, link);
		free(member);
	}
	atomic_fetch_sub(&poll->domain->refs, 1);
	free(poll);
	return 0;
}

static struct fi_ops duo_poll_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_poll_close,
	.bind = duo_no_bind,
	.control = duo_no_control,
	.ops_open = duo_no_ops_open,
};

int duo_poll_open(struct fid_domain *domain_fid, struct fi_poll_attr *attr,
		  struct fid_poll **poll_fid)
{
	struct duo_domain *domain = duo_domain_of(domain_fid);
	struct duo_poll *poll;

	if (attr && attr->flags)
		return -FI_EINVAL;
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->domain = domain;
	duo_lock_init(&poll->lock, domain->group.lock.on);
	LIST_INIT(&poll->members);
	poll->poll_fid.fid.fclass = FI_CLASS_POLL;
	poll->poll_fid.fid.ops = &duo_poll_fi_ops;
	poll->poll_fid.ops = &duo_poll_ops;
	atomic_fetch_add(&domain->refs, 1);
	*poll_fid = &poll->poll_fid;
	return 0;
}
