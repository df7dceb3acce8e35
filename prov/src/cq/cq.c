/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Opening and closing CQs; the slow path of reads (fast path: read.c). */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/proc.h"
#include "base/enosys.h"
#include "cq/cq.h"
#include "obj/domain.h"
#include "obj/ep.h"
#include "obj/fabric.h"
#include "obj/forward.h"
#include "transport/transport.h"

#define DUO_RING_READS 128	/* maximum of cq->ring_every, reads */
/*
 * least time between two calls of duo_cq_ring_poll() for which the second call
 * sets cq->ring_every to 1 again, ms
 */
#define DUO_RING_SLOW 100

/*
 * Polls in a read for which cq->ring already has entries, and computes the
 * number of reads until the next poll of this kind. Why: docs/completions.md,
 * "Reads that poll although the ring has entries".
 */
DUO_NOINLINE void duo_cq_ring_poll(struct duo_cq *cq)
{
	uint64_t now = duo_clock_coarse_ms();

	if (!cq->ring_every || now - cq->ring_ms >= DUO_RING_SLOW)
		cq->ring_every = 1;
	else if (cq->ring_every < DUO_RING_READS)
		cq->ring_every *= 2;
	cq->ring_left = cq->ring_every - 1;
	cq->ring_ms = now;
	duo_cq_progress(cq);
}

/*
 * Must be called after each removal of an entry from cq->ring, or of an error
 * from cq->errs. If both are empty now, the next read may take the fast path.
 */
static inline void duo_cq_entry_read(struct duo_cq *cq)
{
	if (!duo_ring_empty(&cq->ring) || !duo_err_none(&cq->errs))
		return;
	duo_ring_rewind(&cq->ring);
	cq->attention &= ~(uint32_t) DUO_CQ_ENTRIES;
}

/* Releases the group's lock. Returns ret, so that callers make tail calls. */
DUO_INLINE ssize_t duo_cq_unlock(struct duo_cq *cq, ssize_t ret)
{
	return duo_unlock_last(&cq->group->lock, ret);
}

DUO_NOINLINE ssize_t duo_cq_read_many(struct duo_cq *cq, void *buf,
				      size_t count, fi_addr_t *src)
{
	count = duo_ring_read(&cq->ring, cq->format, buf, count, src);
	duo_cq_entry_read(cq);
	return duo_cq_unlock(cq, count ? (ssize_t) count : -FI_EAGAIN);
}

/*
 * Moves entries from cq->ring to buf: at most `count`, and only entries that
 * precede the first error. Releases the group's lock. Returns the number of
 * moved entries; -FI_EAVAIL: the application must read an error first
 * (fi_cq_readerr).
 */
DUO_INLINE ssize_t duo_cq_read_ring(struct duo_cq *cq, void *buf, size_t count,
				    fi_addr_t *src)
{
	uint32_t before_err = duo_err_after(&cq->errs, &cq->ring);

	if (__builtin_expect(!before_err, false))
		return duo_cq_unlock(cq, -FI_EAVAIL);
	if (before_err > 1 && count != 1)
		return duo_cq_read_many(cq, buf, count < before_err ?
					count : before_err, src);
	duo_ring_read_one(&cq->ring, cq->format, buf, src);
	duo_cq_entry_read(cq);
	return duo_cq_unlock(cq, 1);
}

DUO_NOINLINE ssize_t duo_cq_read_fresh(struct duo_cq *cq, void *buf,
				       size_t count, fi_addr_t *src)
{
	cq->sink = (struct duo_sink) { buf, src, count, 0 };
	duo_cq_progress(cq);
	cq->sink.space = 0;
	return duo_cq_unlock(cq, cq->sink.count ? (ssize_t) cq->sink.count :
						    duo_cq_read_none(cq));
}

ssize_t duo_cq_read_all(struct duo_cq *cq, void *buf, size_t count,
			fi_addr_t *src)
{
	if (!(cq->attention & DUO_CQ_ENTRIES) ||
	    __builtin_expect(!count, false))
		return duo_cq_read_fresh(cq, buf, count, src);
	if (__builtin_expect(!cq->ring_left--, false))
		duo_cq_ring_poll(cq);
	return duo_cq_read_ring(cq, buf, count, src);
}

static void duo_cq_pop_err(struct duo_cq *cq, struct fi_cq_err_entry *entry)
{
	uint32_t version = cq->domain->fabric->fabric_fid.api_version;
	size_t size = duo_caller_cq_err(version);
	struct fi_cq_err_entry whole = { 0 };

	memcpy(&whole, entry, size);
	cq->err_path = duo_err_pop(&cq->errs, &whole, cq->err_data);
	memcpy(entry, &whole, size);
	duo_cq_entry_read(cq);
}

ssize_t duo_cq_readerr(struct fid_cq *cq_fid, struct fi_cq_err_entry *entry,
		       uint64_t flags)
{
	struct duo_cq *cq = duo_cq_of(cq_fid);
	ssize_t ret = -FI_EAGAIN;

	duo_group_lock(&cq->group);
	if (duo_err_due(&cq->errs, &cq->ring)) {
		duo_cq_pop_err(cq, entry);
		ret = 1;
	}
	duo_unlock(&cq->group->lock);
	return ret;
}

/*
 * Returns a text for prov_errno. prov_errno must be that of the last error that
 * duo_cq_readerr() has returned, because cq->err_path has the path of only this
 * error.
 */
const char *duo_cq_strerror(struct fid_cq *cq_fid, int prov_errno,
			    const void *err_data, char *buf, size_t len)
{
	struct duo_cq *cq = duo_cq_of(cq_fid);
	const char *text;

	if (cq->err_path == FI_DUO_CORE)
		return fi_cq_strerror(cq->path_cq[FI_DUO_CORE], prov_errno,
				      err_data, buf, len);
	text = fi_strerror(abs(prov_errno));
	if (buf && len) {
		strncpy(buf, text, len - 1);
		buf[len - 1] = '\0';
	}
	return text;
}

/* Frees the CQ. Closes the CQs of both paths, if they are open. */
static void duo_cq_free(struct duo_cq *cq)
{
	int i;

	for (i = 0; i < FI_DUO_PATH_COUNT; i++)
		if (cq->path_cq[i])
			fi_close(&cq->path_cq[i]->fid);
	duo_waiter_close(&cq->waiter);
	duo_err_fini(&cq->errs);
	duo_ring_fini(&cq->ring);
	free(cq);
}

/*
 * Takes only the domain's lock. This is sufficient, because no endpoint uses
 * the CQ. If each close took the locks of all CQs, closing n CQs would take
 * time in proportion to the square of n.
 */
static int duo_cq_close(struct fid *fid)
{
	struct duo_cq *cq = duo_container_of(fid, struct duo_cq, cq_fid.fid);
	struct duo_domain *domain = cq->domain;
	int ret;

	if (atomic_load(&cq->refs))
		return -FI_EBUSY;
	duo_lock(&domain->group.lock);
	ret = fi_close(&cq->path_cq[FI_DUO_CORE]->fid);
	if (!ret)
		duo_cq_ungroup(cq);
	duo_unlock(&domain->group.lock);
	if (ret)
		return ret;
	cq->path_cq[FI_DUO_CORE] = NULL;
	duo_cq_free(cq);
	atomic_fetch_sub(&domain->refs, 1);
	return 0;
}

static struct fi_ops duo_cq_fi_ops = {
	.size = sizeof(struct fi_ops),
	.close = duo_cq_close,
	.bind = duo_no_bind,
	.control = duo_cq_control,
	.ops_open = duo_core_ops_open,
};

/*
 * Opens the core's CQ. If core_signals is set, first tries to open it with a
 * wait object. If core_signals is not set, or the first attempt fails, opens
 * the core's CQ without a wait object, and clears core_signals.
 */
static int duo_cq_open_core(struct duo_cq *cq, struct fi_cq_attr *attr)
{
	struct fid_domain *domain = cq->domain->path_domain[FI_DUO_CORE];
	struct fid_cq **core_cq = &cq->path_cq[FI_DUO_CORE];
	int ret;

	attr->format = FI_CQ_FORMAT_TAGGED;
	attr->wait_obj = FI_WAIT_FD;
	if (cq->core_signals && !fi_cq_open(domain, attr, core_cq, NULL)) {
		if (!duo_cq_wait_core(cq))
			return 0;
		fi_close(&(*core_cq)->fid);
	}
	cq->core_signals = false;
	attr->wait_obj = FI_WAIT_NONE;
	ret = fi_cq_open(domain, attr, core_cq, NULL);
	if (ret)
		*core_cq = NULL;
	return ret;
}

/* Opens the CQs of both paths. Sets attr->size to that of the core's CQ. */
static int duo_cq_open_paths(struct duo_cq *cq, struct fi_cq_attr *attr)
{
	struct fi_cq_attr core_attr = duo_cq_attr_copy(attr);
	int ret = duo_cq_open_core(cq, &core_attr);

	if (!ret && cq->peer && cq->peer->cq_open)
		ret = cq->peer->cq_open(cq, attr->size);
	if (!ret)
		attr->size = core_attr.size;
	return ret;
}

int duo_cq_open(struct fid_domain *domain_fid, struct fi_cq_attr *attr,
		struct fid_cq **cq_fid, void *context)
{
	struct duo_cq *cq;
	int ret;

	if (!attr || attr->format > FI_CQ_FORMAT_TAGGED)
		return -FI_EINVAL;
	if (attr->flags & FI_PEER)
		/* unsupported: another provider owns an FI_PEER CQ */
		return -FI_ENOSYS;
	cq = duo_alloc(sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = duo_domain_of(domain_fid);
	cq->peer = cq->domain->peer;
	cq->local_busy = cq->peer ? DUO_CORE_UNUSED : 0;
	cq->format = attr->format == FI_CQ_FORMAT_UNSPEC ?
		     FI_CQ_FORMAT_CONTEXT : attr->format;
	LIST_INIT(&cq->rx_eps);
	LIST_INIT(&cq->tx_eps);
	duo_err_init(&cq->errs);
	ret = duo_cq_wait_open(cq, attr->wait_obj);
	if (!ret)
		ret = duo_ring_init(&cq->ring, attr->size ? attr->size : 1024);
	if (!ret)
		ret = duo_cq_open_paths(cq, attr);
	if (!ret)
		ret = duo_cq_wait_timer(cq);
	if (ret) {
		duo_cq_free(cq);
		return ret;
	}

	cq->cq_fid.fid.fclass = FI_CLASS_CQ;
	cq->cq_fid.fid.context = context;
	cq->cq_fid.fid.ops = &duo_cq_fi_ops;
	duo_cq_attend(cq);
	duo_cq_group(cq);
	atomic_fetch_add(&cq->domain->refs, 1);
	*cq_fid = &cq->cq_fid;
	return 0;
}

int duo_cq_open_hidden(struct duo_domain *domain, struct duo_cq **cq)
{
	struct fi_cq_attr attr = { .size = 1, .wait_obj = FI_WAIT_NONE };
	struct fid_cq *cq_fid;
	int ret = duo_cq_open(&domain->domain_fid, &attr, &cq_fid, NULL);

	if (ret)
		return ret;
	*cq = duo_cq_of(cq_fid);
	(*cq)->hidden = true;
	duo_cq_set_asleep(*cq, false);
	return 0;
}
