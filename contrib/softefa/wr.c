/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Posting: from ibv_wr_start() to ibv_wr_complete(), and older functions. */
#include <errno.h>
#include <string.h>

#include "softefa.h"

static void se_wr_start(struct ibv_qp_ex *qp_ex)
{
	struct se_qp *qp = (struct se_qp *)qp_ex;

	pthread_mutex_lock(&qp->sq_lock);
	qp->session = NULL;
	qp->session_tail = &qp->session;
	qp->session_cur = NULL;
	qp->session_count = 0;
	qp->session_err = 0;
}

/*
 * Returns a free operation, or NULL. Refills session_free from free_ops. The
 * caller holds sq_lock; this function takes qp->lock.
 */
static struct se_op *se_wr_alloc(struct se_qp *qp)
{
	struct se_op *op;

	if (!qp->session_free) {
		pthread_mutex_lock(&qp->lock);
		qp->session_free = qp->free_ops;
		qp->free_ops = NULL;
		pthread_mutex_unlock(&qp->lock);
	}
	op = qp->session_free;
	if (op)
		qp->session_free = op->next;
	return op;
}

/* Returns EINVAL if the request is fenced or solicited, or not signaled. */
static int se_wr_check_flags(const struct se_qp *qp)
{
	unsigned int flags = qp->ex.wr_flags;

	if (!(flags & IBV_SEND_SIGNALED) && !qp->sig_all)
		return EINVAL;
	return flags & ~(unsigned int)(IBV_SEND_SIGNALED | IBV_SEND_INLINE) ?
		       EINVAL : 0;
}

static struct se_op *se_wr_new(struct se_qp *qp, enum se_op_kind kind,
			       uint64_t wr_id)
{
	struct se_op *op = NULL;

	qp->session_cur = NULL;
	if (!qp->session_err)
		qp->session_err = se_wr_check_flags(qp);
	if (qp->session_err)
		return NULL;
	if (qp->sq_used + qp->session_count < qp->sq_cap)
		op = se_wr_alloc(qp);
	if (!op) {
		qp->session_err = ENOMEM;
		return NULL;
	}
	op->next = NULL;
	op->flow = NULL;
	op->ah = NULL;
	op->wr_id = wr_id;
	op->kind = (uint8_t)kind;
	op->has_imm = false;
	op->is_inline = false;
	op->sge_count = 0;
	op->len = 0;
	*qp->session_tail = op;
	qp->session_tail = &op->next;
	qp->session_cur = op;
	qp->session_count++;
	return op;
}

static void se_wr_give_back(struct se_qp *qp)
{
	*qp->session_tail = qp->session_free;
	qp->session_free = qp->session;
	qp->session = NULL;
	qp->session_tail = &qp->session;
}

/*
 * Submits the session's operations and returns 0. If one is invalid, or the QP
 * cannot send in its state, frees all and returns an errno. In both cases the
 * session is then empty. The caller holds sq_lock.
 */
static int se_wr_submit(struct se_qp *qp)
{
	struct se_op *op, *next;
	int ret = qp->session_err;

	if (!ret && qp->ex.qp_base.state != IBV_QPS_RTS &&
	    qp->ex.qp_base.state != IBV_QPS_SQD)
		ret = EINVAL;
	if (ret) {
		se_wr_give_back(qp);
		return ret;
	}
	pthread_mutex_lock(&qp->lock);
	qp->sq_used += qp->session_count;
	for (op = qp->session; op; op = next) {
		next = op->next;
		se_srd_submit(qp, op);
	}
	if (qp->work)
		se_notify_work(qp);
	pthread_mutex_unlock(&qp->lock);
	return 0;
}

static int se_wr_complete(struct ibv_qp_ex *qp_ex)
{
	struct se_qp *qp = (struct se_qp *)qp_ex;
	int ret = se_wr_submit(qp);

	pthread_mutex_unlock(&qp->sq_lock);
	return ret;
}

static void se_wr_abort(struct ibv_qp_ex *qp_ex)
{
	struct se_qp *qp = (struct se_qp *)qp_ex;

	se_wr_give_back(qp);
	pthread_mutex_unlock(&qp->sq_lock);
}

static void se_wr_op(struct ibv_qp_ex *qp_ex, enum se_op_kind kind,
		     uint32_t rkey, uint64_t raddr)
{
	struct se_op *op = se_wr_new((struct se_qp *)qp_ex, kind,
				     qp_ex->wr_id);

	if (op) {
		op->rkey = rkey;
		op->raddr = raddr;
	}
}

static void se_wr_imm(struct ibv_qp_ex *qp_ex, __be32 imm)
{
	struct se_op *op = ((struct se_qp *)qp_ex)->session_cur;

	if (op) {
		op->has_imm = true;
		op->imm = imm;
	}
}

static void se_wr_send(struct ibv_qp_ex *qp_ex)
{
	se_wr_op(qp_ex, SE_OP_SEND, 0, 0);
}

static void se_wr_send_imm(struct ibv_qp_ex *qp_ex, __be32 imm)
{
	se_wr_op(qp_ex, SE_OP_SEND, 0, 0);
	se_wr_imm(qp_ex, imm);
}

static void se_wr_rdma_read(struct ibv_qp_ex *qp_ex, uint32_t rkey,
			    uint64_t raddr)
{
	se_wr_op(qp_ex, SE_OP_READ, rkey, raddr);
}

static void se_wr_rdma_write(struct ibv_qp_ex *qp_ex, uint32_t rkey,
			     uint64_t raddr)
{
	se_wr_op(qp_ex, SE_OP_WRITE, rkey, raddr);
}

static void se_wr_rdma_write_imm(struct ibv_qp_ex *qp_ex, uint32_t rkey,
				 uint64_t raddr, __be32 imm)
{
	se_wr_op(qp_ex, SE_OP_WRITE, rkey, raddr);
	se_wr_imm(qp_ex, imm);
}

static void se_wr_set_ud_addr(struct ibv_qp_ex *qp_ex, struct ibv_ah *ah,
			      uint32_t qpn, uint32_t qkey)
{
	struct se_op *op = ((struct se_qp *)qp_ex)->session_cur;

	if (op) {
		op->ah = (struct se_ah *)ah;
		op->qpn = qpn;
		op->qkey = qkey;
	}
}

static void se_wr_set_sge_list(struct ibv_qp_ex *qp_ex, size_t count,
			       const struct ibv_sge *list)
{
	struct se_qp *qp = (struct se_qp *)qp_ex;
	struct se_op *op = qp->session_cur;
	size_t i;

	if (!op)
		return;
	if (count > (op->kind == SE_OP_SEND ? qp->sq_sge : SE_MAX_RDMA_SGE)) {
		qp->session_err = EINVAL;
		return;
	}
	op->sge_count = (uint8_t)count;
	for (i = 0; i < count; i++) {
		op->sge[i] = list[i];
		op->len += list[i].length;
	}
}

static void se_wr_set_sge(struct ibv_qp_ex *qp_ex, uint32_t lkey,
			  uint64_t addr, uint32_t length)
{
	struct ibv_sge sge = { addr, length, lkey };

	se_wr_set_sge_list(qp_ex, 1, &sge);
}

static void se_wr_set_inline_list(struct ibv_qp_ex *qp_ex, size_t count,
				  const struct ibv_data_buf *list)
{
	struct se_qp *qp = (struct se_qp *)qp_ex;
	struct se_op *op = qp->session_cur;
	size_t i;

	if (!op)
		return;
	if (op->kind != SE_OP_SEND) {
		qp->session_err = EINVAL;
		return;
	}
	op->is_inline = true;
	for (i = 0; i < count; i++) {
		if (op->len + list[i].length > qp->inline_max) {
			qp->session_err = EINVAL;
			return;
		}
		memcpy(op->inline_data + op->len, list[i].addr,
		       list[i].length);
		op->len += list[i].length;
	}
}

static void se_wr_set_inline(struct ibv_qp_ex *qp_ex, void *addr,
			     size_t length)
{
	struct ibv_data_buf buf = { addr, length };

	se_wr_set_inline_list(qp_ex, 1, &buf);
}

/* Does nothing: the hint is about packet rates, which have no limit here. */
static void se_wr_set_hints(void *dv, uint32_t hints)
{
}

void se_wr_init(struct se_qp *qp, uint64_t ops, uint64_t wr_flags)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = se_wr_start;
	ex->wr_complete = se_wr_complete;
	ex->wr_abort = se_wr_abort;
	if (ops & IBV_QP_EX_WITH_SEND)
		ex->wr_send = se_wr_send;
	if (ops & IBV_QP_EX_WITH_SEND_WITH_IMM)
		ex->wr_send_imm = se_wr_send_imm;
	if (ops & IBV_QP_EX_WITH_RDMA_READ)
		ex->wr_rdma_read = se_wr_rdma_read;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE)
		ex->wr_rdma_write = se_wr_rdma_write;
	if (ops & IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
		ex->wr_rdma_write_imm = se_wr_rdma_write_imm;
	ex->wr_set_ud_addr = se_wr_set_ud_addr;
	ex->wr_set_sge = se_wr_set_sge;
	ex->wr_set_sge_list = se_wr_set_sge_list;
	ex->wr_set_inline_data = se_wr_set_inline;
	ex->wr_set_inline_data_list = se_wr_set_inline_list;
	if (wr_flags & SE_WR_PROCESSING_HINTS)
		qp->dv.wr_set_processing_hints = se_wr_set_hints;
}

static int se_post_one(struct se_qp *qp, const struct ibv_send_wr *wr)
{
	struct ibv_data_buf buf[SE_MAX_SQ_SGE];
	struct ibv_qp_ex *ex = &qp->ex;
	int i;

	if (wr->num_sge < 0 || wr->num_sge > SE_MAX_SQ_SGE)
		return EINVAL;
	if (wr->opcode != IBV_WR_SEND && wr->opcode != IBV_WR_SEND_WITH_IMM)
		return EINVAL;
	ex->wr_id = wr->wr_id;
	ex->wr_flags = wr->send_flags;
	if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		se_wr_send_imm(ex, wr->imm_data);
	else
		se_wr_send(ex);
	se_wr_set_ud_addr(ex, wr->wr.ud.ah, wr->wr.ud.remote_qpn,
			  wr->wr.ud.remote_qkey);
	if (!(wr->send_flags & IBV_SEND_INLINE)) {
		se_wr_set_sge_list(ex, (size_t)wr->num_sge, wr->sg_list);
		return qp->session_err;
	}
	for (i = 0; i < wr->num_sge; i++) {
		buf[i].addr = (void *)(uintptr_t)wr->sg_list[i].addr;
		buf[i].length = wr->sg_list[i].length;
	}
	se_wr_set_inline_list(ex, (size_t)wr->num_sge, buf);
	return qp->session_err;
}

int se_post_send(struct ibv_qp *qp_fid, struct ibv_send_wr *wr,
		 struct ibv_send_wr **bad)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;
	int ret = 0;

	for (; !ret && wr; wr = wr->next) {
		se_wr_start(&qp->ex);
		ret = se_post_one(qp, wr);
		if (ret)
			se_wr_abort(&qp->ex);
		else
			ret = se_wr_complete(&qp->ex);
		if (ret)
			*bad = wr;
	}
	return ret;
}

int se_post_recv(struct ibv_qp *qp_fid, struct ibv_recv_wr *wr,
		 struct ibv_recv_wr **bad)
{
	struct se_qp *qp = (struct se_qp *)qp_fid;
	struct se_recv *recv;
	uint32_t tail;
	int ret = 0;

	if (qp_fid->state == IBV_QPS_RESET || qp_fid->state == IBV_QPS_ERR) {
		*bad = wr;
		return EINVAL;
	}
	pthread_mutex_lock(&qp->rq_lock);
	tail = atomic_load_explicit(&qp->rq_tail, memory_order_relaxed);
	for (; wr; wr = wr->next) {
		if (wr->num_sge < 0 || (uint32_t)wr->num_sge > qp->rq_sge)
			ret = EINVAL;
		else if (qp->rq_used >= qp->rq_cap)
			ret = ENOMEM;
		if (ret) {
			*bad = wr;
			break;
		}
		recv = &qp->rq[tail & qp->rq_mask];
		recv->wr_id = wr->wr_id;
		recv->sge_count = wr->num_sge;
		memcpy(recv->sge, wr->sg_list,
		       (size_t)wr->num_sge * sizeof(recv->sge[0]));
		qp->rq_used++;
		/* pairs with the acquire in se_recv_next() */
		atomic_store_explicit(&qp->rq_tail, ++tail,
				      memory_order_release);
	}
	pthread_mutex_unlock(&qp->rq_lock);
	return ret;
}
