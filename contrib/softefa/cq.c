/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues.  The ring has an entry for everything that the attached
 * QPs can have outstanding, so that an overrun can be told and nothing is lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

bool se_cq_empty(struct se_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->tail, memory_order_acquire);
}

/* Said once: a device would lose a completion, or worse. */
static void se_cq_overrun(struct se_cq *cq)
{
	if (!cq->overruns++)
		fprintf(stderr, "softefa: completion queue overrun: %d entries were asked for and all are in use; a device would have lost a completion, create it larger\n",
			cq->ex.cqe);
}

void se_cq_push(struct se_cq *cq, const struct se_cqe *cqe)
{
	uint64_t tail;

	pthread_mutex_lock(&cq->push_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	if (tail - atomic_load_explicit(&cq->head, memory_order_relaxed) >=
	    (uint32_t)cq->ex.cqe)
		se_cq_overrun(cq);
	cq->ring[tail & cq->mask] = *cqe;
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
	pthread_mutex_unlock(&cq->push_lock);
	if (cq->notify)
		se_notify_fire(cq->notify);
}

/* Polls that find nothing, powers of two: from one to the next ... */
#define SE_DRIVE_POLLS 8   /* look at the QPs of other CQs */
#define SE_TIDY_POLLS 8192 /* search for what peers have left */

static void se_cq_tidy(struct se_cq *cq)
{
	uint32_t i;

	for (i = 0; i < cq->qp_count; i++) {
		if (pthread_mutex_trylock(&cq->qps[i]->lock))
			continue;
		se_srd_tidy(cq->qps[i]);
		pthread_mutex_unlock(&cq->qps[i]->lock);
	}
}

/*
 * The QPs of this CQ each time, without a lock of the process; those of others
 * seldom, since on the udp wire each costs a system call.
 */
static void se_cq_progress(struct se_cq *cq)
{
	uint32_t i;

	if (!(++cq->idle_polls % SE_TIDY_POLLS))
		se_cq_tidy(cq);

	for (i = 0; i < cq->qp_count; i++)
		se_qp_drive(cq->qps[i]);
	if (!(cq->idle_polls % SE_DRIVE_POLLS) && cq->qp_count < se_qps_total())
		se_qps_drive();
}

/* poll_lock held */
static int se_cq_next(struct se_cq *cq)
{
	uint64_t head;

	if (se_cq_empty(cq)) {
		se_cq_progress(cq);
		if (se_cq_empty(cq))
			return ENOENT;
	}
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	cq->cur = cq->ring[head & cq->mask];
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (!cq->cur.recv)
		cq->cur.qp->sq_used--;
	else if (cq->cur.unsolicited)
		cq->cur.qp->unsolicited_used--;
	else
		cq->cur.qp->rq_used--;
	cq->ex.wr_id = cq->cur.wr_id;
	cq->ex.status = se_wc_status(cq->cur.status);
	return 0;
}

static int se_cq_start_poll(struct ibv_cq_ex *cq_ex,
			    struct ibv_poll_cq_attr *attr)
{
	struct se_cq *cq = (struct se_cq *)cq_ex;
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	pthread_mutex_lock(&cq->poll_lock);
	ret = se_cq_next(cq);
	if (ret)
		pthread_mutex_unlock(&cq->poll_lock);
	return ret;
}

static int se_cq_next_poll(struct ibv_cq_ex *cq_ex)
{
	return se_cq_next((struct se_cq *)cq_ex);
}

static void se_cq_end_poll(struct ibv_cq_ex *cq_ex)
{
	pthread_mutex_unlock(&((struct se_cq *)cq_ex)->poll_lock);
}

int se_cq_poll(struct ibv_cq *cq_fid, int count, struct ibv_wc *wc)
{
	struct se_cq *cq = (struct se_cq *)cq_fid;
	int i;

	pthread_mutex_lock(&cq->poll_lock);
	for (i = 0; i < count && !se_cq_next(cq); i++)
		se_cqe_to_wc(&cq->cur, &wc[i]);
	pthread_mutex_unlock(&cq->poll_lock);
	return i;
}

/* Both locks held.  Entries of a QP that is gone (not NULL) are left out. */
static int se_cq_resize(struct se_cq *cq, uint32_t entries,
			const struct se_qp *gone)
{
	uint32_t size = se_roundup_pow2(entries);
	uint64_t i, tail = 0;
	struct se_cqe *ring;

	ring = calloc(size, sizeof(*ring));
	if (!ring)
		return ENOMEM;
	for (i = cq->head; i < cq->tail; i++) {
		if (cq->ring[i & cq->mask].qp != gone)
			ring[tail++] = cq->ring[i & cq->mask];
	}
	free(cq->ring);
	cq->ring = ring;
	cq->mask = size - 1;
	cq->head = 0;
	cq->tail = tail;
	return 0;
}

static void se_cq_lock(struct se_cq *cq)
{
	pthread_mutex_lock(&cq->poll_lock);
	pthread_mutex_lock(&cq->push_lock);
}

static void se_cq_unlock(struct se_cq *cq)
{
	pthread_mutex_unlock(&cq->push_lock);
	pthread_mutex_unlock(&cq->poll_lock);
}

int se_cq_attach(struct se_cq *cq, struct se_qp *qp, uint32_t entries)
{
	struct se_qp **qps;
	uint32_t i;
	int ret = 0;

	se_cq_lock(cq);
	if (cq->reserved + entries > cq->mask + 1)
		ret = se_cq_resize(cq, cq->reserved + entries, NULL);
	for (i = 0; i < cq->qp_count && cq->qps[i] != qp; i++)
		;
	if (!ret && i == cq->qp_count) {
		qps = realloc(cq->qps, (i + 1) * sizeof(*qps));
		if (qps) {
			cq->qps = qps;
			qps[cq->qp_count++] = qp;
		} else {
			ret = ENOMEM;
		}
	}
	if (!ret)
		cq->reserved += entries;
	se_cq_unlock(cq);
	return ret;
}

void se_cq_detach(struct se_cq *cq, struct se_qp *qp, uint32_t entries)
{
	uint64_t from, to;
	uint32_t i;

	se_cq_lock(cq);
	cq->reserved -= entries;
	for (i = 0; i < cq->qp_count; i++) {
		if (cq->qps[i] == qp) {
			cq->qps[i] = cq->qps[--cq->qp_count];
			break;
		}
	}
	to = cq->head;
	for (from = cq->head; from < cq->tail; from++) {
		if (cq->ring[from & cq->mask].qp != qp)
			cq->ring[to++ & cq->mask] = cq->ring[from & cq->mask];
	}
	cq->tail = to;
	se_cq_unlock(cq);
}

static bool se_cq_count_take(struct se_dev *dev)
{
	bool room;

	pthread_mutex_lock(&dev->lock);
	room = dev->cq_count < se_cfg.max_cq;
	if (room)
		dev->cq_count++;
	pthread_mutex_unlock(&dev->lock);
	return room;
}

static void se_cq_count_drop(struct se_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->cq_count--;
	pthread_mutex_unlock(&dev->lock);
}

struct ibv_cq_ex *se_cq_create(struct ibv_context *ctx, uint32_t cqe,
			       void *cq_context, struct ibv_comp_channel *ch)
{
	uint32_t size = se_roundup_pow2(cqe ? cqe : 1);
	struct se_dev *dev = se_dev_of(ctx);
	struct se_cq *cq;

	if (!cqe || cqe > 1 << 16) {
		errno = EINVAL;
		return NULL;
	}
	if (!se_cq_count_take(dev)) {
		errno = ENOMEM;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_drop_count;
	cq->ring = calloc(size, sizeof(*cq->ring));
	if (!cq->ring)
		goto err_free_cq;
	cq->dev = dev;
	cq->mask = size - 1;
	cq->ex.context = ctx;
	cq->ex.channel = ch;
	cq->ex.cq_context = cq_context;
	cq->ex.cqe = (int)size;
	cq->ex.start_poll = se_cq_start_poll;
	cq->ex.next_poll = se_cq_next_poll;
	cq->ex.end_poll = se_cq_end_poll;
	se_cq_read_init(cq);
	if (ch && se_notify_open(cq))
		goto err_free_ring;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	pthread_mutex_init(&cq->push_lock, NULL);
	return &cq->ex;

err_free_ring:
	free(cq->ring);
err_free_cq:
	free(cq);
err_drop_count:
	se_cq_count_drop(dev);
	errno = ENOMEM;
	return NULL;
}

SE_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe,
				       void *cq_context,
				       struct ibv_comp_channel *channel,
				       int comp_vector)
{
	return (struct ibv_cq *)se_cq_create(ctx, cqe < 0 ? 0 : (uint32_t)cqe,
					     cq_context, channel);
}

SE_EXPORT struct ibv_cq_ex *efadv_create_cq(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr,
					    struct efadv_cq_init_attr *efa_attr,
					    uint32_t inlen)
{
	struct se_dv_cq_attr dv = { 0 };

	if (efa_attr)
		se_copy_out(&dv, sizeof(dv), efa_attr, inlen);
	if (dv.comp_mask ||
	    (efa_attr && !se_rest_is_zero(efa_attr, inlen, sizeof(dv)))) {
		errno = EINVAL;
		return NULL;
	}
	if (dv.flags || (dv.wc_flags & ~(uint64_t)(SE_WC_WITH_SGID |
						   SE_WC_WITH_UNSOLICITED))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return se_cq_create(ctx, attr->cqe, attr->cq_context, attr->channel);
}

SE_EXPORT struct efadv_cq *efadv_cq_from_ibv_cq_ex(struct ibv_cq_ex *cq_ex)
{
	return (struct efadv_cq *)&((struct se_cq *)cq_ex)->dv;
}

SE_EXPORT int ibv_destroy_cq(struct ibv_cq *cq_fid)
{
	struct se_cq *cq = (struct se_cq *)cq_fid;

	if (cq->qp_count)
		return EBUSY;
	se_notify_close(cq);
	se_cq_count_drop(cq->dev);
	pthread_mutex_destroy(&cq->poll_lock);
	pthread_mutex_destroy(&cq->push_lock);
	free(cq->qps);
	free(cq->ring);
	free(cq);
	return 0;
}
