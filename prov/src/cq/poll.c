/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <sys/queue.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "cq/cntr.h"
#include "cq/cq.h"
#include "cq/poll.h"
#include "obj/cntr.h"
#include "obj/cq.h"
#include "obj/domain.h"
#include "obj/forward.h"

struct duo_poll_member {
	struct fid *fid;	/* a CQ or a counter of the domain */
	LIST_ENTRY(duo_poll_member) link;
};

struct duo_poll {
	struct fid_poll poll_fid;
	struct duo_domain *domain;
	LIST_HEAD(, duo_poll_member) members;
	LIST_ENTRY(duo_poll) link;	/* in domain->polls */
};

static struct duo_poll *duo_poll_of(struct fid_poll *poll_fid)
{
	return duo_container_of(poll_fid, struct duo_poll, poll_fid);
}

static struct duo_cq *duo_poll_cq(struct fid *fid)
{
	return duo_container_of(fid, struct duo_cq, cq_fid.fid);
}

/* Returns the domain of a CQ or counter of ofi_duo; NULL: it is neither. */
static struct duo_domain *duo_poll_domain(struct fid *fid)
{
	if (!fid || fid->ops->ops_open != duo_core_ops_open)
		return NULL;
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return duo_poll_cq(fid)->domain;
	case FI_CLASS_CNTR:
		return duo_cntr_of(fid)->domain;
	default:
		return NULL;
	}
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

/* Removes the member, if the set has it. Needs the lock. */
static void duo_poll_remove(const struct duo_poll *poll, const struct fid *fid)
{
	struct duo_poll_member *member = duo_poll_find(poll, fid);

	if (!member)
		return;
	LIST_REMOVE(member, link);
	free(member);
}

void duo_poll_forget(struct duo_domain *domain, const struct fid *fid)
{
	const struct duo_poll *poll;

	LIST_FOREACH(poll, &domain->polls, link)
		duo_poll_remove(poll, fid);
}

/* A second fi_poll_add() of a member changes nothing, as in the cores. */
static int duo_poll_add(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);
	struct duo_poll_member *member;

	if (duo_poll_domain(fid) != poll->domain)
		return -FI_EINVAL;
	member = malloc(sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = fid;
	duo_lock(&poll->domain->lock);
	duo_poll_remove(poll, fid);
	LIST_INSERT_HEAD(&poll->members, member, link);
	duo_unlock(&poll->domain->lock);
	return 0;
}

static int duo_poll_del(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);

	duo_lock(&poll->domain->lock);
	duo_poll_remove(poll, fid);
	duo_unlock(&poll->domain->lock);
	return 0;
}

/*
 * True if the counter has changed since the last true result. If `wanted` is
 * false, returns false, and leaves the change to a later call.
 */
static bool duo_poll_cntr(struct duo_cntr *cntr, bool wanted)
{
	uint64_t good, bad;

	duo_cntr_progress(cntr);
	duo_cntr_value(cntr, &good, &bad);
	if (!wanted ||
	    (good == cntr->polled_good && bad == cntr->polled_bad))
		return false;
	cntr->polled_good = good;
	cntr->polled_bad = bad;
	return true;
}

static bool duo_poll_entries(struct duo_cq *cq)
{
	duo_cq_progress(cq);
	return cq->attention & DUO_CQ_ENTRIES;
}

/*
 * Polls all members. If the array has no space for a member's context, the
 * member keeps its event for the next call.
 */
static int duo_poll_run(struct fid_poll *poll_fid, void **context, int count)
{
	struct duo_poll *poll = duo_poll_of(poll_fid);
	struct duo_poll_member *member;
	struct duo_cq *cq = NULL;
	bool ready;
	int n = 0;

	duo_lock(&poll->domain->lock);
	LIST_FOREACH(member, &poll->members, link) {
		if (member->fid->fclass == FI_CLASS_CQ) {
			cq = duo_poll_cq(member->fid);
			ready = duo_poll_entries(cq);
		} else {
			ready = duo_poll_cntr(duo_cntr_of(member->fid),
					      n < count);
		}
		if (ready && n < count)
			context[n++] = member->fid->context;
	}
	if (!n && cq)	/* as after an empty read, yields the CPU if due */
		duo_cq_read_none(cq);
	duo_unlock(&poll->domain->lock);
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

	duo_lock(&poll->domain->lock);
	LIST_REMOVE(poll, link);
	duo_unlock(&poll->domain->lock);
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
	LIST_INIT(&poll->members);
	poll->poll_fid.fid.fclass = FI_CLASS_POLL;
	poll->poll_fid.fid.ops = &duo_poll_fi_ops;
	poll->poll_fid.ops = &duo_poll_ops;
	duo_lock(&domain->lock);
	LIST_INSERT_HEAD(&domain->polls, poll, link);
	duo_unlock(&domain->lock);
	atomic_fetch_add(&domain->refs, 1);
	*poll_fid = &poll->poll_fid;
	return 0;
}
