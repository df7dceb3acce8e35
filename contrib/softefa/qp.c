/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Queue pairs: creation, state, destruction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

/*
 * Reserves a QP number. Returns false if its low bits are in use: the provider
 * indexes its table of QPs by the number modulo the device's limit.
 */
bool se_qpn_take(struct se_dev *dev, uint32_t qpn)
{
	uint32_t index = qpn & dev->qpn_mask;
	bool taken;

	pthread_mutex_lock(&dev->lock);
	taken = dev->qpn_taken[index];
	dev->qpn_taken[index] = 1;
	pthread_mutex_unlock(&dev->lock);
	return !taken;
}

void se_qpn_release(struct se_dev *dev, uint32_t qpn)
{
	pthread_mutex_lock(&dev->lock);
	dev->qpn_taken[qpn & dev->qpn_mask] = 0;
	pthread_mutex_unlock(&dev->lock);
}

/* Checks the attributes in the order of rdma-core's efa_check_qp_attr(). */
static int se_qp_check_attr(const struct ibv_qp_init_attr_ex *attr,
			    const struct se_dv_qp_attr *dv)
{
	uint32_t caps = attr->qp_type == IBV_QPT_DRIVER ? se_cfg.caps : 0;
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (caps & SE_CAP_RDMA_READ)
		ops |= IBV_QP_EX_WITH_RDMA_READ;
	if (caps & SE_CAP_RDMA_WRITE)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE |
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if (dv->driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD)
		return EOPNOTSUPP;
	if ((dv->flags & ~SE_QP_UNSOLICITED) ||
	    ((dv->flags & SE_QP_UNSOLICITED) && !(caps & SE_CAP_UNSOLICITED)))
		return EOPNOTSUPP;
	if (attr->comp_mask & ~(uint64_t)(IBV_QP_INIT_ATTR_PD |
					  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD))
		return EINVAL;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & ~ops))
		return EOPNOTSUPP;
	if (dv->wr_flags & ~(uint64_t)SE_WR_PROCESSING_HINTS)
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || attr->srq)
		return EINVAL;
	return 0;
}

/*
 * Checks a QP's limits. max_rq_wr counts scatter elements, so a receive with n
 * elements counts n times. If max_recv_sge is 0, rdma-core crashes; this
 * function returns EINVAL.
 */
static int se_qp_check_limits(const struct ibv_qp_cap *cap)
{
	if (cap->max_send_sge > SE_MAX_SQ_SGE || !cap->max_recv_sge ||
	    cap->max_recv_sge > SE_MAX_RQ_SGE ||
	    cap->max_inline_data > SE_MAX_INLINE ||
	    cap->max_send_wr > se_cfg.max_sq_wr ||
	    cap->max_recv_wr > se_cfg.max_rq_wr / cap->max_recv_sge)
		return EINVAL;
	return 0;
}

static int se_qp_alloc(struct se_qp *qp, const struct ibv_qp_cap *cap)
{
	uint32_t i;

	qp->sq_cap = se_roundup_pow2(cap->max_send_wr ? cap->max_send_wr : 1);
	qp->rq_sge = cap->max_recv_sge;
	/* the device's receive ring has an entry per scatter element */
	qp->rq_cap = se_roundup_pow2(cap->max_recv_wr * qp->rq_sge) /
		     qp->rq_sge;
	if (!qp->rq_cap)
		qp->rq_cap = 1;
	qp->sq_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	qp->inline_max = cap->max_inline_data;
	qp->rq_mask = se_roundup_pow2(qp->rq_cap) - 1;
	qp->op_count = qp->sq_cap + SE_RESPONSES;
	qp->rq = calloc(qp->rq_mask + 1, sizeof(*qp->rq));
	qp->ops = calloc(qp->op_count, sizeof(*qp->ops));
	if (!qp->rq || !qp->ops)
		return ENOMEM;
	for (i = qp->op_count; i-- > 0;) {
		struct se_op **list = i < qp->sq_cap ? &qp->free_ops :
						       &qp->free_resp;

		qp->ops[i].id = i;
		qp->ops[i].next = *list;
		*list = &qp->ops[i];
	}
	return 0;
}

static int se_qp_attach(struct se_qp *qp)
{
	int ret;

	ret = se_cq_attach(qp->scq, qp);
	if (ret)
		return ret;
	ret = se_cq_attach(qp->rcq, qp);
	if (ret)
		goto err_detach_send;
	ret = se_notify_attach(qp->rcq, qp);
	if (ret)
		goto err_detach_recv;
	ret = se_notify_attach(qp->scq, qp);
	if (ret)
		goto err_unwatch_recv;
	return 0;

err_unwatch_recv:
	se_notify_detach(qp->rcq, qp);
err_detach_recv:
	se_cq_detach(qp->rcq, qp);
err_detach_send:
	se_cq_detach(qp->scq, qp);
	return ret;
}

static void se_qp_detach(struct se_qp *qp)
{
	se_notify_detach(qp->scq, qp);
	se_notify_detach(qp->rcq, qp);
	se_cq_detach(qp->rcq, qp);
	se_cq_detach(qp->scq, qp);
}

static void se_qp_init(struct se_qp *qp, struct ibv_context *ctx,
		       const struct ibv_qp_init_attr_ex *attr,
		       const struct se_dv_qp_attr *dv)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	base->context = ctx;
	base->pd = attr->pd;
	base->qp_context = attr->qp_context;
	base->send_cq = attr->send_cq;
	base->recv_cq = attr->recv_cq;
	base->qp_type = attr->qp_type;
	base->state = IBV_QPS_RESET;
	qp->dev = se_dev_of(ctx);
	qp->scq = (struct se_cq *)attr->send_cq;
	qp->rcq = (struct se_cq *)attr->recv_cq;
	qp->ud = attr->qp_type == IBV_QPT_UD;
	qp->unsolicited = dv->flags & SE_QP_UNSOLICITED;
	qp->sig_all = attr->sq_sig_all;
	qp->rnr_retry = 7;
	qp->epoch = (uint32_t)(se_now() / 1000000) | 1;
	qp->wire = se_cfg.udp ? &se_wire_udp : &se_wire_shm;
	pthread_mutex_init(&qp->lock, NULL);
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		se_wr_init(qp, attr->send_ops_flags, dv->wr_flags);
}

static bool se_qp_count_take(struct se_qp *qp)
{
	struct se_dev *dev = qp->dev;
	bool space;

	pthread_mutex_lock(&dev->lock);
	space = dev->qp_count < se_cfg.max_qp;
	if (space) {
		dev->qp_count++;
		qp->serial = ++dev->qp_serial;
	}
	pthread_mutex_unlock(&dev->lock);
	return space;
}

static void se_qp_count_release(struct se_dev *dev)
{
	pthread_mutex_lock(&dev->lock);
	dev->qp_count--;
	pthread_mutex_unlock(&dev->lock);
}

static void se_qp_free(struct se_qp *qp)
{
	pthread_mutex_destroy(&qp->lock);
	pthread_mutex_destroy(&qp->sq_lock);
	pthread_mutex_destroy(&qp->rq_lock);
	free(qp->rq);
	free(qp->ops);
	free(qp);
}

static struct ibv_qp *se_qp_create(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr,
				   const struct se_dv_qp_attr *dv)
{
	struct se_qp *qp;
	int ret;

	ret = se_qp_check_attr(attr, dv);
	if (!ret)
		ret = se_qp_check_limits(&attr->cap);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	se_qp_init(qp, ctx, attr, dv);
	ret = ENOMEM;
	if (se_qp_alloc(qp, &attr->cap))
		goto err_free;
	if (!se_qp_count_take(qp))
		goto err_free;
	ret = qp->wire->open(qp);
	if (ret)
		goto err_drop_count;
	ret = se_qp_attach(qp);
	if (ret)
		goto err_close_wire;
	attr->cap.max_send_wr = qp->sq_cap;
	attr->cap.max_recv_wr = qp->rq_cap;
	se_qps_add(qp);
	return &qp->ex.qp_base;

err_close_wire:
	qp->wire->close(qp);
	se_qpn_release(qp->dev, qp->ex.qp_base.qp_num);
err_drop_count:
	se_qp_count_release(qp->dev);
err_free:
	se_qp_free(qp);
	errno = ret;
	return NULL;
}

static struct ibv_qp *se_qp_reject(int err)
{
	errno = err;
	return NULL;
}

SE_EXPORT struct ibv_qp *efadv_create_qp_ex(struct ibv_context *ctx,
					    struct ibv_qp_init_attr_ex *attr,
					    struct efadv_qp_init_attr *efa_attr,
					    uint32_t inlen)
{
	struct se_dv_qp_attr dv;

	se_copy_out(&dv, sizeof(dv), efa_attr, inlen);
	if (attr->qp_type != IBV_QPT_DRIVER ||
	    inlen < offsetof(struct se_dv_qp_attr, flags) || dv.comp_mask ||
	    dv.reserved[0] || !se_rest_is_zero(efa_attr, inlen, sizeof(dv)))
		return se_qp_reject(EINVAL);
	return se_qp_create(ctx, attr, &dv);
}

struct ibv_qp *se_qp_create_ex(struct ibv_context *ctx,
			       struct ibv_qp_init_attr_ex *attr)
{
	static const struct se_dv_qp_attr none;

	if (attr->qp_type != IBV_QPT_UD)
		return se_qp_reject(EOPNOTSUPP);
	return se_qp_create(ctx, attr, &none);
}

static struct ibv_qp *se_create_qp_old(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *attr,
				       const struct se_dv_qp_attr *dv)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = se_qp_create(pd->context, &ex, dv);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

SE_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *attr)
{
	static const struct se_dv_qp_attr none;

	if (attr->qp_type != IBV_QPT_UD)
		return se_qp_reject(EOPNOTSUPP);
	return se_create_qp_old(pd, attr, &none);
}

SE_EXPORT struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd,
						struct ibv_qp_init_attr *attr,
						uint32_t driver_qp_type)
{
	struct se_dv_qp_attr dv = { .driver_qp_type = driver_qp_type };

	if (attr->qp_type != IBV_QPT_DRIVER)
		return se_qp_reject(EINVAL);
	return se_create_qp_old(pd, attr, &dv);
}

/* Returns NULL for a QP without send_ops_flags: it has only ibv_post_send(). */
SE_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct ibv_qp_ex *ex = (struct ibv_qp_ex *)qp;

	return ex->wr_start ? ex : NULL;
}

SE_EXPORT int ibv_query_qp_data_in_order(struct ibv_qp *qp,
					 enum ibv_wr_opcode op, uint32_t flags)
{
	return 0;
}

SE_EXPORT int ibv_destroy_qp(struct ibv_qp *qp_fid)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;

	se_srd_drain(qp);
	se_qps_remove(qp);
	se_qp_detach(qp);
	se_stats_print(qp);
	pthread_mutex_lock(&qp->lock);
	se_srd_close(qp);
	qp->wire->close(qp);
	pthread_mutex_unlock(&qp->lock);
	se_qpn_release(qp->dev, qp_fid->qp_num);
	se_qp_count_release(qp->dev);
	se_qp_free(qp);
	return 0;
}
