/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Poll sets: which of some CQs and counters have something new. An object that
 * is closed leaves the sets that it is in.
 */

#include <stdlib.h>
#include <rdma/fi_errno.h>

#include "base/enosys.h"
#include "base/log.h"
#include "cq/cntr.h"
#include "cq/cq.h"
#include "obj/domain.h"

struct duo_poll_member {
	struct fid *fid;
	uint64_t good, bad;	/* of a counter, when it was last reported */
	LIST_ENTRY(duo_poll_member) link;
};

struct duo_poll {
	struct fid_poll poll_fid;
	struct duo_domain *domain;
	LIST_HEAD(, duo_poll_member) members;
	LIST_ENTRY(duo_poll) link;	/* in domain->polls */
};

static struct duo_poll *duo_poll_of(struct fid *fid)
{
	return duo_container_of(fid, struct duo_poll, poll_fid.fid);
}

static struct duo_poll_member *duo_poll_find(struct duo_poll *poll,
					     const struct fid *fid)
{
	struct duo_poll_member *member;

	LIST_FOREACH(member, &poll->members, link) {
		if (member->fid == fid)
			break;
	}
	return member;
}

static void duo_poll_remove(struct duo_poll *poll, const struct fid *fid)
{
	struct duo_poll_member *member = duo_poll_find(poll, fid);

	if (!member)
		return;
	LIST_REMOVE(member, link);
	free(member);
}

void duo_poll_forget(struct duo_domain *domain, const struct fid *fid)
{
	struct duo_poll *poll;

	LIST_FOREACH(poll, &domain->polls, link)
		duo_poll_remove(poll, fid);
}

static const struct duo_domain *duo_poll_domain(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return duo_container_of(fid, struct duo_cq,
					cq_fid.fid)->domain;
	case FI_CLASS_CNTR:
		return duo_cntr_of(fid)->domain;
	default:
		return NULL;	/* an event queue is the core's own */
	}
}

static int duo_poll_add(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(&poll_fid->fid);
	struct duo_poll_member *member;
	bool known;

	if (!fid || duo_poll_domain(fid) != poll->domain)
		return -FI_EINVAL;
	member = calloc(1, sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	member->fid = fid;
	duo_lock(&poll->domain->lock);
	known = duo_poll_find(poll, fid);
	if (!known)
		LIST_INSERT_HEAD(&poll->members, member, link);
	duo_unlock(&poll->domain->lock);
	if (known)
		free(member);
	return 0;
}

static int duo_poll_del(struct fid_poll *poll_fid, struct fid *fid,
			uint64_t flags)
{
	struct duo_poll *poll = duo_poll_of(&poll_fid->fid);

	duo_lock(&poll->domain->lock);
	duo_poll_remove(poll, fid);
	duo_unlock(&poll->domain->lock);
	return 0;
}

static bool duo_poll_cq(struct fid *fid)
{
	struct duo_cq *cq = duo_container_of(fid, struct duo_cq, cq_fid.fid);

	duo_cq_progress(cq);
	return !duo_ring_empty(&cq->ring) || duo_err_due(&cq->errs, &cq->ring);
}

static bool duo_poll_cntr(struct duo_poll_member *member)
{
	struct duo_cntr *cntr = duo_cntr_of(member->fid);
	uint64_t good, bad;
	bool moved;

	duo_cntr_progress(cntr);
	duo_cntr_value(cntr, &good, &bad);
	moved = good != member->good || bad != member->bad;
	member->good = good;
	member->bad = bad;
	return moved;
}

static int duo_poll_run(struct fid_poll *poll_fid, void **context, int count)
{
	struct duo_poll *poll = duo_poll_of(&poll_fid->fid);
	struct duo_poll_member *member;
	int n = 0;

	duo_lock(&poll->domain->lock);
	LIST_FOREACH(member, &poll->members, link) {
		if (n == count)
			break;
		if (member->fid->fclass == FI_CLASS_CQ ?
		    duo_poll_cq(member->fid) : duo_poll_cntr(member))
			context[n++] = member->fid->context;
	}
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
	struct duo_poll *poll = duo_poll_of(fid);
	struct duo_poll_member *member;

	duo_lock(&poll->domain->lock);
	while ((member = LIST_FIRST(&poll->members))) {
		LIST_REMOVE(member, link);
		free(member);
	}
	LIST_REMOVE(poll, link);
	duo_unlock(&poll->domain->lock);
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
	struct duo_poll *poll;

	if (attr && attr->flags)
		return -FI_EINVAL;
	poll = calloc(1, sizeof(*poll));
	if (!poll)
		return -FI_ENOMEM;
	poll->domain = duo_domain_of(domain_fid);
	LIST_INIT(&poll->members);
	poll->poll_fid.fid.fclass = FI_CLASS_POLL;
	poll->poll_fid.fid.ops = &duo_poll_fi_ops;
	poll->poll_fid.ops = &duo_poll_ops;
	atomic_fetch_add(&poll->domain->refs, 1);
	duo_lock(&poll->domain->lock);
	LIST_INSERT_HEAD(&poll->domain->polls, poll, link);
	duo_unlock(&poll->domain->lock);
	*poll_fid = &poll->poll_fid;
	return 0;
}
