/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* States of a queue pair, and the kernel's rules for changing them. */
#include <errno.h>
#include <string.h>

#include "softefa.h"

#define SE_QP_MODIFIABLE \
	(IBV_QP_STATE | IBV_QP_CUR_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY | \
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | IBV_QP_SQ_PSN | \
	 IBV_QP_RNR_RETRY)
#define SE_QP_QUERYABLE \
	(IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY | \
	 IBV_QP_SQ_PSN | IBV_QP_CAP | IBV_QP_RNR_RETRY)

/* In addition, all states can change to RESET, and all but RESET to ERR. */
static const struct se_transition {
	enum ibv_qp_state from, to;
	int required, optional;
} se_transitions[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
	{ IBV_QPS_INIT, IBV_QPS_INIT, 0,
	  IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
	{ IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN,
	  IBV_QP_CUR_STATE | IBV_QP_QKEY | IBV_QP_RNR_RETRY },
	{ IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
	{ IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
	{ IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
	{ IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_CUR_STATE | IBV_QP_QKEY },
};

static bool se_transition_ok(const struct se_qp *qp, enum ibv_qp_state from,
			     enum ibv_qp_state to, int mask)
{
	int rest = mask & ~IBV_QP_STATE;
	const struct se_transition *step;
	size_t i;

	if (qp->ud && (mask & IBV_QP_RNR_RETRY))
		return false; /* the kernel's table has no such change for UD */
	if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
		return !rest && (to == IBV_QPS_RESET || from != IBV_QPS_RESET);
	for (i = 0; i < sizeof(se_transitions) / sizeof(se_transitions[0]);
	     i++) {
		step = &se_transitions[i];
		if (step->from == from && step->to == to)
			return !(step->required & ~rest) &&
			       !(rest & ~(step->required | step->optional));
	}
	return false;
}

static int se_qp_modify_check(const struct se_qp *qp,
			      const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state from = qp->ex.qp_base.state, to = from;

	if ((mask & IBV_QP_PORT) && attr->port_num != 1)
		return EINVAL;
	if (mask & ~SE_QP_MODIFIABLE)
		return EOPNOTSUPP;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != from)
		return EINVAL;
	if (mask & IBV_QP_STATE)
		to = attr->qp_state;
	if (!se_transition_ok(qp, from, to, mask))
		return EINVAL;
	if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index)
		return EOPNOTSUPP;
	if ((mask & IBV_QP_RNR_RETRY) && attr->rnr_retry > 7)
		return EINVAL;
	return 0;
}

static int se_qp_modify(struct se_qp *qp, const struct ibv_qp_attr *attr,
			int mask)
{
	struct ibv_qp *base = &qp->ex.qp_base;
	int ret = se_qp_modify_check(qp, attr, mask);

	if (ret)
		return ret;
	if (mask & IBV_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IBV_QP_RNR_RETRY)
		qp->rnr_retry = attr->rnr_retry;
	if (mask & IBV_QP_SQ_PSN)
		qp->sq_psn = attr->sq_psn;
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

	pthread_mutex_lock(&qp->lock);
	ret = se_qp_modify(qp, attr, mask);
	pthread_mutex_unlock(&qp->lock);
	return ret;
}

SE_EXPORT int ibv_query_qp(struct ibv_qp *qp_fid, struct ibv_qp_attr *attr,
			   int mask, struct ibv_qp_init_attr *init)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;

	if (mask & ~SE_QP_QUERYABLE)
		return EOPNOTSUPP;
	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qp_fid->state;
	attr->cur_qp_state = qp_fid->state;
	attr->qkey = qp->qkey;
	attr->sq_psn = qp->sq_psn;
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
	init->sq_sig_all = qp->sig_all;
	return 0;
}
