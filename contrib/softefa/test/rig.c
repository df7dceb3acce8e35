/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "softefa.h"
#include "rig.h"

void rig_env(const char *name, const char *value)
{
	ck_assert_int_eq(setenv(name, value, 1), 0);
}

void rig_wire(int wire)
{
	rig_env("SOFTEFA_WIRE", wire == RIG_UDP ? "udp" : "shm");
	rig_env("SOFTEFA_ADDR", "127.0.0.1");
}

uint64_t rig_now_ms(void)
{
	return se_now() / 1000000;
}

struct ibv_context *rig_context(int dev)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	int count;

	list = ibv_get_device_list(&count);
	ck_assert_ptr_nonnull(list);
	ck_assert_int_gt(count, dev);
	ctx = ibv_open_device(list[dev]);
	ck_assert_ptr_nonnull(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static struct ibv_cq_ex *rig_cq(struct rig_node *node,
				struct ibv_comp_channel *channel, uint32_t cqe)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe ? cqe : RIG_DEPTH,
		.channel = channel,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
	};
	struct efadv_cq_init_attr dv = { .wc_flags = EFADV_WC_EX_WITH_SGID };
	struct ibv_cq_ex *cq;

	if (se_cfg.caps & SE_CAP_UNSOLICITED)
		dv.wc_flags |= SE_WC_WITH_UNSOLICITED;
	cq = efadv_create_cq(node->ctx, &attr, &dv, sizeof(dv));
	ck_assert_ptr_nonnull(cq);
	return cq;
}

static void rig_qp(struct rig_node *node, const struct rig_opt *opt)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = ibv_cq_ex_to_cq(node->scq),
		.recv_cq = ibv_cq_ex_to_cq(node->rcq),
		.cap = { .max_send_wr = RIG_DEPTH, .max_recv_wr = RIG_DEPTH,
			 .max_send_sge = 2, .max_recv_sge = 1,
			 .max_inline_data = SE_MAX_INLINE },
		.qp_type = opt->ud ? IBV_QPT_UD : IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = node->pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND |
				  IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct se_dv_qp_attr dv = { .driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD,
				    .flags = opt->qp_flags };

	if (!opt->ud && (se_cfg.caps & SE_CAP_RDMA_READ))
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_READ;
	if (!opt->ud && (se_cfg.caps & SE_CAP_RDMA_WRITE))
		attr.send_ops_flags |= IBV_QP_EX_WITH_RDMA_WRITE |
				       IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
	node->qp = opt->ud ?
			   ibv_create_qp_ex(node->ctx, &attr) :
			   efadv_create_qp_ex(node->ctx, &attr,
					      (struct efadv_qp_init_attr *)&dv,
					      sizeof(dv));
	ck_assert_ptr_nonnull(node->qp);
	ibv_qp_to_qp_ex(node->qp)->wr_flags = IBV_SEND_SIGNALED;
}

static void rig_ready(struct rig_node *node, const struct rig_opt *opt)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qkey = RIG_QKEY,
				    .rnr_retry = opt->rnr_retry };

	ck_assert_int_eq(ibv_modify_qp(node->qp, &attr,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
				       IBV_QP_PORT | IBV_QP_QKEY), 0);
	attr.qp_state = IBV_QPS_RTR;
	ck_assert_int_eq(ibv_modify_qp(node->qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	ck_assert_int_eq(ibv_modify_qp(node->qp, &attr,
				       IBV_QP_STATE | IBV_QP_SQ_PSN |
				       (opt->ud ? 0 : IBV_QP_RNR_RETRY)), 0);
}

/* Disables AddressSanitizer's leak check: some tests exit with open objects. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

int rig_access(void)
{
	int access = IBV_ACCESS_LOCAL_WRITE;

	if (se_cfg.caps & SE_CAP_RDMA_READ)
		access |= IBV_ACCESS_REMOTE_READ;
	if (se_cfg.caps & SE_CAP_RDMA_WRITE)
		access |= IBV_ACCESS_REMOTE_WRITE;
	return access;
}

void rig_open(struct rig_node *node, const struct rig_opt *opt)
{
	static const struct rig_opt plain = { .rnr_retry = 7 };

	if (!opt)
		opt = &plain;
	memset(node, 0, sizeof(*node));
	node->ctx = rig_context(opt->dev);
	node->pd = ibv_alloc_pd(node->ctx);
	ck_assert_ptr_nonnull(node->pd);
	if (opt->channel || opt->send_channel) {
		node->channel = ibv_create_comp_channel(node->ctx);
		ck_assert_ptr_nonnull(node->channel);
	}
	node->scq = rig_cq(node, opt->send_channel ? node->channel : NULL, 0);
	node->rcq = rig_cq(node, opt->channel ? node->channel : NULL,
			   opt->cqe);
	rig_qp(node, opt);
	rig_ready(node, opt);
	node->buf = calloc(1, RIG_BUF);
	ck_assert_ptr_nonnull(node->buf);
	node->mr = ibv_reg_mr(node->pd, node->buf, RIG_BUF, rig_access());
	ck_assert_ptr_nonnull(node->mr);
	ck_assert_int_eq(ibv_query_gid(node->ctx, 1, 0, &node->gid), 0);
}

void rig_close(struct rig_node *node)
{
	ck_assert_int_eq(ibv_destroy_qp(node->qp), 0);
	while (node->ah_count)
		ck_assert_int_eq(ibv_destroy_ah(node->ah[--node->ah_count]),
				 0);
	ck_assert_int_eq(ibv_dereg_mr(node->mr), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(node->scq)), 0);
	ck_assert_int_eq(ibv_destroy_cq(ibv_cq_ex_to_cq(node->rcq)), 0);
	if (node->channel)
		ck_assert_int_eq(ibv_destroy_comp_channel(node->channel), 0);
	ck_assert_int_eq(ibv_dealloc_pd(node->pd), 0);
	ck_assert_int_eq(ibv_close_device(node->ctx), 0);
	free(node->buf);
}

struct rig_to rig_to(struct rig_node *from, const union ibv_gid *gid,
		     uint32_t qpn)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1,
				    .grh.dgid = *gid };
	struct rig_to to = { .qpn = qpn, .qkey = RIG_QKEY };

	ck_assert_uint_lt(from->ah_count, RIG_AH);
	to.ah = ibv_create_ah(from->pd, &attr);
	ck_assert_ptr_nonnull(to.ah);
	from->ah[from->ah_count++] = to.ah;
	return to;
}

struct rig_to rig_to_node(struct rig_node *from, struct rig_node *to)
{
	return rig_to(from, &to->gid, to->qp->qp_num);
}

int rig_recv(struct rig_node *node, uint64_t wr_id, uint32_t off, uint32_t len)
{
	struct ibv_sge sge = { (uintptr_t)node->buf + off, len,
			       node->mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = wr_id, .sg_list = &sge,
					.num_sge = 1 };

	return ibv_post_recv(node->qp, &wr, &bad);
}

int rig_send(struct rig_node *node, const struct rig_to *to, uint64_t wr_id,
	     uint32_t off, uint32_t len)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(node->qp);

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, node->mr->lkey, (uintptr_t)node->buf + off, len);
	ibv_wr_set_ud_addr(ex, to->ah, to->qpn, to->qkey);
	return ibv_wr_complete(ex);
}

int rig_send_imm(struct rig_node *node, const struct rig_to *to,
		 uint64_t wr_id, uint32_t imm)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(node->qp);

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	ibv_wr_send_imm(ex, imm);
	ibv_wr_set_inline_data(ex, &wr_id, sizeof(wr_id));
	ibv_wr_set_ud_addr(ex, to->ah, to->qpn, to->qkey);
	return ibv_wr_complete(ex);
}

int rig_rdma(struct rig_node *node, const struct rig_to *to,
	     enum ibv_wr_opcode op, uint64_t wr_id, uint32_t off, uint32_t len,
	     uint32_t rkey, uint64_t raddr)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(node->qp);

	ibv_wr_start(ex);
	ex->wr_id = wr_id;
	if (op == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(ex, rkey, raddr);
	else if (op == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(ex, rkey, raddr);
	else
		ibv_wr_rdma_write_imm(ex, rkey, raddr, (uint32_t)wr_id);
	ibv_wr_set_sge(ex, node->mr->lkey, (uintptr_t)node->buf + off, len);
	ibv_wr_set_ud_addr(ex, to->ah, to->qpn, to->qkey);
	return ibv_wr_complete(ex);
}

bool rig_poll(struct ibv_cq_ex *cq, struct rig_wc *wc)
{
	struct ibv_poll_cq_attr attr = { 0 };

	if (ibv_start_poll(cq, &attr))
		return false;
	wc->wr_id = cq->wr_id;
	wc->status = cq->status;
	wc->opcode = ibv_wc_read_opcode(cq);
	wc->vendor_err = ibv_wc_read_vendor_err(cq);
	wc->byte_len = ibv_wc_read_byte_len(cq);
	wc->src_qp = ibv_wc_read_src_qp(cq);
	wc->slid = ibv_wc_read_slid(cq);
	wc->flags = ibv_wc_read_wc_flags(cq);
	wc->imm = ibv_wc_read_imm_data(cq);
	ibv_end_poll(cq);
	return true;
}

void rig_progress(struct rig_node *node)
{
	struct se_qp *qp = (struct se_qp *)node->qp;

	pthread_mutex_lock(&qp->lock);
	se_srd_progress(qp);
	pthread_mutex_unlock(&qp->lock);
}

bool rig_wait(struct ibv_cq_ex *cq, struct rig_wc *wc, struct rig_node *other,
	      uint32_t ms)
{
	uint64_t end = rig_now_ms() + ms;

	do {
		if (rig_poll(cq, wc))
			return true;
		if (other)
			rig_progress(other);
	} while (rig_now_ms() < end);
	return false;
}

struct se_stats rig_stats(const struct rig_node *node)
{
	return ((const struct se_qp *)node->qp)->stats;
}
