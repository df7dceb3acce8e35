/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Queue pairs: creation, state, destruction. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

/*
 * The provider indexes its table of QPs by number modulo the device's limit,
 * so two QPs of a device may not share the low bits.
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

static void se_qpn_drop(struct se_dev *dev, uint32_t qpn)
{
	pthread_mutex_lock(&dev->lock);
	dev->qpn_taken[qpn & dev->qpn_mask] = 0;
	dev->qp_count--;
	pthread_mutex_unlock(&dev->lock);
}

static int se_qp_check(const struct ibv_qp_init_attr_ex *attr, uint16_t flags)
{
	uint64_t ops = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;
	uint32_t caps = attr->qp_type == IBV_QPT_DRIVER ? se_cfg.caps : 0;

	if (attr->qp_type != IBV_QPT_UD && attr->qp_type != IBV_QPT_DRIVER)
		return EOPNOTSUPP;
	if (attr->comp_mask & ~(uint64_t)(IBV_QP_INIT_ATTR_PD |
					  IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if (caps & SE_CAP_RDMA_READ)
		ops |= IBV_QP_EX_WITH_RDMA_READ;
	if (caps & SE_CAP_RDMA_WRITE)
		ops |= IBV_QP_EX_WITH_RDMA_WRITE |
		       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & ~ops))
		return EOPNOTSUPP;
	if ((flags & ~SE_QP_UNSOLICITED) ||
	    ((flags & SE_QP_UNSOLICITED) && !(caps & SE_CAP_UNSOLICITED)))
		return EOPNOTSUPP;
	if (!attr->send_cq || !attr->recv_cq || attr->srq)
		return EINVAL;
	if (attr->cap.max_send_sge > SE_MAX_SQ_SGE ||
	    attr->cap.max_recv_sge > SE_MAX_RQ_SGE ||
	    attr->cap.max_inline_data > SE_MAX_INLINE ||
	    attr->cap.max_send_wr > se_cfg.max_sq_wr ||
	    attr->cap.max_recv_wr > se_cfg.max_rq_wr)
		return EINVAL;
	return 0;
}

static int se_qp_alloc(struct se_qp *qp, const struct ibv_qp_cap *cap)
{
	uint32_t i;

	qp->sq_cap = se_roundup_pow2(cap->max_send_wr ? cap->max_send_wr : 1);
	qp->rq_cap = se_roundup_pow2(cap->max_recv_wr ? cap->max_recv_wr : 1);
	qp->sq_sge = cap->max_send_sge ? cap->max_send_sge : 1;
	qp->rq_sge = cap->max_recv_sge ? cap->max_recv_sge : 1;
	qp->inline_max = SE_MAX_INLINE;
	qp->rq_mask = qp->rq_cap - 1;
	qp->op_count = qp->sq_cap + SE_RESPONSES;
	qp->rq = calloc(qp->rq_cap, sizeof(*qp->rq));
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

static uint32_t se_qp_rcq_entries(const struct se_qp *qp)
{
	return qp->unsolicited ? 2 * qp->rq_cap : qp->rq_cap;
}

static int se_qp_attach(struct se_qp *qp)
{
	int ret;

	ret = se_cq_attach(qp->scq, qp, qp->sq_cap);
	if (ret)
		return ret;
	ret = se_cq_attach(qp->rcq, qp, se_qp_rcq_entries(qp));
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
	se_cq_detach(qp->rcq, qp, se_qp_rcq_entries(qp));
err_detach_send:
	se_cq_detach(qp->scq, qp, qp->sq_cap);
	return ret;
}

static void se_qp_detach(struct se_qp *qp)
{
	se_notify_detach(qp->scq, qp);
	se_notify_detach(qp->rcq, qp);
	se_cq_detach(qp->rcq, qp, se_qp_rcq_entries(qp));
	se_cq_detach(qp->scq, qp, qp->sq_cap);
}

static void se_qp_init(struct se_qp *qp, struct ibv_context *ctx,
		       struct ibv_qp_init_attr_ex *attr, uint16_t flags)
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
	qp->unsolicited = flags & SE_QP_UNSOLICITED;
	qp->rnr_retry = 7;
	qp->epoch = (uint32_t)(se_now() / 1000000) | 1;
	qp->wire = se_cfg.udp ? &se_wire_udp : &se_wire_shm;
	pthread_mutex_init(&qp->lock, NULL);
	pthread_mutex_init(&qp->sq_lock, NULL);
	pthread_mutex_init(&qp->rq_lock, NULL);
	pthread_mutex_init(&base->mutex, NULL);
	pthread_cond_init(&base->cond, NULL);
	se_wr_init(qp);
}

static bool se_qp_count_take(struct se_qp *qp)
{
	struct se_dev *dev = qp->dev;
	bool room;

	pthread_mutex_lock(&dev->lock);
	room = dev->qp_count < se_cfg.max_qp;
	if (room) {
		dev->qp_count++;
		qp->serial = ++dev->qp_serial;
	}
	pthread_mutex_unlock(&dev->lock);
	return room;
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

struct ibv_qp *se_qp_create(struct ibv_context *ctx,
			    struct ibv_qp_init_attr_ex *attr, uint16_t flags)
{
	struct se_qp *qp;
	int ret;

	ret = se_qp_check(attr, flags);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	se_qp_init(qp, ctx, attr, flags);
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
	se_qpn_drop(qp->dev, qp->ex.qp_base.qp_num);
	goto err_free;
err_drop_count:
	pthread_mutex_lock(&qp->dev->lock);
	qp->dev->qp_count--;
	pthread_mutex_unlock(&qp->dev->lock);
err_free:
	se_qp_free(qp);
	errno = ret;
	return NULL;
}

SE_EXPORT struct ibv_qp *efadv_create_qp_ex(struct ibv_context *ctx,
					    struct ibv_qp_init_attr_ex *attr,
					    struct efadv_qp_init_attr *efa_attr,
					    uint32_t inlen)
{
	struct se_dv_qp_attr dv;

	se_copy_out(&dv, sizeof(dv), efa_attr, inlen);
	if (dv.comp_mask || dv.reserved[0] ||
	    !se_rest_is_zero(efa_attr, inlen, sizeof(dv))) {
		errno = EINVAL;
		return NULL;
	}
	if (dv.driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD ||
	    (dv.wr_flags & ~(uint64_t)SE_WR_PROCESSING_HINTS)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return se_qp_create(ctx, attr, dv.flags);
}

static struct ibv_qp *se_create_qp_old(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *attr)
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
	struct ibv_qp *qp = se_qp_create(pd->context, &ex, 0);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

SE_EXPORT struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
				       struct ibv_qp_init_attr *attr)
{
	return se_create_qp_old(pd, attr);
}

SE_EXPORT struct ibv_qp *efadv_create_driver_qp(struct ibv_pd *pd,
						struct ibv_qp_init_attr *attr,
						uint32_t driver_qp_type)
{
	if (driver_qp_type != EFADV_QP_DRIVER_TYPE_SRD) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	return se_create_qp_old(pd, attr);
}

SE_EXPORT struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return (struct ibv_qp_ex *)qp;
}

/* What the kernel lets pass for SRD and UD, and what has to come with it. */
static const struct se_transition {
	enum ibv_qp_state from, to;
	int required;
} se_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0 },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0 },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0 },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0 },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0 },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0 },
};

static bool se_transition_ok(enum ibv_qp_state from, enum ibv_qp_state to,
			     int mask)
{
	size_t i;

	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return true;
	for (i = 0; i < sizeof(se_transitions) / sizeof(se_transitions[0]);
	     i++) {
		if (se_transitions[i].from == from &&
		    se_transitions[i].to == to)
			return !(se_transitions[i].required & ~mask);
	}
	return false;
}

static int se_qp_modify(struct se_qp *qp, const struct ibv_qp_attr *attr,
			int mask)
{
	struct ibv_qp *base = &qp->ex.qp_base;

	if ((mask & IBV_QP_STATE) &&
	    !se_transition_ok(base->state, attr->qp_state, mask))
		return EINVAL;
	if (mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	if (!(mask & IBV_QP_STATE))
		return 0;
	base->state = attr->qp_state;
	if (base->state == IBV_QPS_ERR || base->state == IBV_QPS_RESET)
		se_srd_flush(qp);
	return 0;
}

SE_EXPORT int ibv_modify_qp(struct ibv_qp *qp_fid, struct ibv_qp_attr *attr,
			    int mask)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;
	int ret;

	if ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7)
		return EINVAL;
	pthread_mutex_lock(&qp->lock);
	ret = se_qp_modify(qp, attr, mask);
	pthread_mutex_unlock(&qp->lock);
	return ret;
}

SE_EXPORT int ibv_query_qp(struct ibv_qp *qp_fid, struct ibv_qp_attr *attr,
			   int mask, struct ibv_qp_init_attr *init)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qp_fid->state;
	attr->cur_qp_state = qp_fid->state;
	attr->qkey = qp->qkey;
	attr->port_num = 1;
	attr->rnr_retry = (uint8_t)qp->rnr_retry;
	attr->cap.max_send_wr = qp->sq_cap;
	attr->cap.max_recv_wr = qp->rq_cap;
	attr->cap.max_send_sge = qp->sq_sge;
	attr->cap.max_recv_sge = qp->rq_sge;
	attr->cap.max_inline_data = qp->inline_max;
	init->qp_context = qp_fid->qp_context;
	init->send_cq = qp_fid->send_cq;
	init->recv_cq = qp_fid->recv_cq;
	init->cap = attr->cap;
	init->qp_type = qp_fid->qp_type;
	return 0;
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
	se_qpn_drop(qp->dev, qp_fid->qp_num);
	se_qp_free(qp);
	return 0;
}
