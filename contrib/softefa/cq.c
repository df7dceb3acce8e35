/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Completion queues. A ring has the requested number of entries, rounded up to
 * a power of two. As on the device, a completion is lost if all entries are in
 * use.
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

/*
 * Reports the first overrun on stderr, because device and kernel report none.
 * The completion is lost, and its work request counts as outstanding forever.
 */
static void se_cq_overrun(struct se_cq *cq)
{
	if (!cq->overruns++)
		fprintf(stderr, "softefa: completion queue overrun: all %d entries are in use; a completion is lost, create the queue larger or poll it more often\n",
			cq->ex.cqe);
}

void se_cq_push(struct se_cq *cq, const struct se_cqe *cqe)
{
	uint64_t tail;

	pthread_mutex_lock(&cq->push_lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	if (tail - atomic_load_explicit(&cq->head, memory_order_acquire) >
	    cq->mask) {
		se_cq_overrun(cq);
	} else {
		cq->ring[tail & cq->mask] = *cqe;
		atomic_store_explicit(&cq->tail, tail + 1,
				      memory_order_release);
	}
	pthread_mutex_unlock(&cq->push_lock);
	if (cq->notify)
		se_notify_fire(cq->notify);
}

/* every n-th empty poll does additional work; powers of two */
#define SE_DRIVE_POLLS 8   /* drives the QPs of other CQs */
#define SE_TIDY_POLLS 8192 /* frees flows and ring blocks of failed peers */

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
 * Drives this CQ's QPs. This does not need se_qps_lock, for which threads would
 * compete. Only every SE_DRIVE_POLLS-th call drives all other QPs, because each
 * QP costs a system call on the udp wire.
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

/*
 * Moves the poll to the next completion. Returns 0, ENOENT: there is none, or
 * EINVAL: its QP was destroyed. The caller holds poll_lock.
 */
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
	if (!cq->cur.qp)
		return EINVAL; /* the QP of the completion was destroyed */
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
	int i, ret = 0;

	pthread_mutex_lock(&cq->poll_lock);
	for (i = 0; i < count; i++) {
		ret = se_cq_next(cq);
		if (ret)
			break;
		se_cqe_to_wc(&cq->cur, &wc[i]);
	}
	pthread_mutex_unlock(&cq->poll_lock);
	return i || ret == ENOENT ? i : -ret;
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

int se_cq_attach(struct se_cq *cq, struct se_qp *qp)
{
	struct se_qp **qps;
	uint32_t i;
	int ret = 0;

	se_cq_lock(cq);
	for (i = 0; i < cq->qp_count && cq->qps[i] != qp; i++)
		;
	if (i == cq->qp_count) {
		qps = realloc(cq->qps, (i + 1) * sizeof(*qps));
		if (qps) {
			cq->qps = qps;
			qps[cq->qp_count++] = qp;
		} else {
			ret = ENOMEM;
		}
	}
	se_cq_unlock(cq);
	return ret;
}

/*
 * Removes the QP from the CQ. A poll that reaches one of the QP's completions
 * returns EINVAL.
 */
void se_cq_detach(struct se_cq *cq, struct se_qp *qp)
{
	uint64_t pos;
	uint32_t i;

	se_cq_lock(cq);
	for (i = 0; i < cq->qp_count; i++) {
		if (cq->qps[i] == qp) {
			cq->qps[i] = cq->qps[--cq->qp_count];
			break;
		}
	}
	for (pos = cq->head; pos < cq->tail; pos++) {
		if (cq->ring[pos & cq->mask].qp == qp)
			cq->ring[pos & cq->mask].qp = NULL;
	}
	se_cq_unlock(cq);
}

static bool se_cq_count_take(struct se_dev *dev)
{
	bool space;

	pthread_mutex_lock(&dev->lock);
	space = dev->cq_count < se_cfg.max_cq;
	if (space)
		dev->cq_count++;
	pthread_mutex_unlock(&dev->lock);
	return space;
}

static void se_cq_count_drop(struct se_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->cq_count--;
	pthread_mutex_unlock(&dev->lock);
}

static struct ibv_cq_ex *se_cq_reject(int err)
{
	errno = err;
	return NULL;
}

/*
 * Checks the attributes of a new CQ, in the order of the real device:
 * create_cq() of rdma-core first, and the kernel last. Returns 0 or an errno.
 */
static int se_cq_check(const struct ibv_cq_init_attr_ex *attr)
{
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS |
					  IBV_CQ_INIT_ATTR_MASK_PD))
		return EOPNOTSUPP;
	if (attr->wc_flags & ~(uint64_t)IBV_WC_STANDARD_FLAGS)
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	    (attr->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		return EINVAL; /* this device has no parent domains */
	if (!attr->cqe || attr->cqe > SE_MAX_CQE ||
	    attr->comp_vector >= SE_COMP_VECTORS)
		return EINVAL;
	return 0;
}

static void se_cq_init(struct se_cq *cq, struct ibv_context *ctx,
		       struct ibv_cq_init_attr_ex *attr, uint64_t dv_flags)
{
	attr->cqe = cq->mask + 1;
	cq->dev = se_dev_of(ctx);
	cq->ex.context = ctx;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	cq->ex.cqe = (int)attr->cqe;
	cq->ex.start_poll = se_cq_start_poll;
	cq->ex.next_poll = se_cq_next_poll;
	cq->ex.end_poll = se_cq_end_poll;
	se_cq_read_init(cq, attr->wc_flags, dv_flags);
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	pthread_mutex_init(&cq->poll_lock, NULL);
	pthread_mutex_init(&cq->push_lock, NULL);
}

static struct ibv_cq_ex *se_cq_create(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr,
				      uint64_t dv_flags)
{
	struct se_dev *dev = se_dev_of(ctx);
	struct se_cq *cq;
	int ret;

	ret = se_cq_check(attr);
	if (ret)
		return se_cq_reject(ret);
	if (!se_cq_count_take(dev))
		return se_cq_reject(ENOMEM);
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		goto err_drop_count;
	cq->mask = se_roundup_pow2(attr->cqe) - 1;
	cq->ring = calloc(cq->mask + 1, sizeof(*cq->ring));
	if (!cq->ring)
		goto err_free_cq;
	se_cq_init(cq, ctx, attr, dv_flags);
	if (attr->channel && se_notify_open(cq))
		goto err_free_ring;
	return &cq->ex;

err_free_ring:
	free(cq->ring);
err_free_cq:
	free(cq);
err_drop_count:
	se_cq_count_drop(dev);
	return se_cq_reject(ENOMEM);
}

struct ibv_cq_ex *se_cq_create_ex(struct ibv_context *ctx,
				  struct ibv_cq_init_attr_ex *attr)
{
	return se_cq_create(ctx, attr, 0);
}

SE_EXPORT struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe,
				       void *cq_context,
				       struct ibv_comp_channel *channel,
				       int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};

	return (struct ibv_cq *)se_cq_create(ctx, &attr, 0);
}

SE_EXPORT struct ibv_cq_ex *efadv_create_cq(struct ibv_context *ctx,
					    struct ibv_cq_init_attr_ex *attr,
					    struct efadv_cq_init_attr *efa_attr,
					    uint32_t inlen)
{
	uint64_t supported = SE_WC_WITH_SGID;
	struct se_dv_cq_attr dv;

	se_copy_out(&dv, sizeof(dv), efa_attr, inlen);
	if (inlen < offsetof(struct se_dv_cq_attr, flags) || dv.comp_mask ||
	    !se_rest_is_zero(efa_attr, inlen, sizeof(dv)))
		return se_cq_reject(EINVAL);
	if (se_cfg.caps & SE_CAP_UNSOLICITED)
		supported |= SE_WC_WITH_UNSOLICITED;
	if (dv.flags || (dv.wc_flags & ~supported))
		return se_cq_reject(EOPNOTSUPP);
	return se_cq_create(ctx, attr, dv.wc_flags);
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
