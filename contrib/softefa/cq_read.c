/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions that read the current completion of a poll. */
#include <errno.h>
#include <string.h>

#include "softefa.h"

/*
 * Returns the verbs status for a completion status of the device (enum
 * se_status). The mapping is that of to_ibv_status() in rdma-core.
 */
enum ibv_wc_status se_wc_status(uint8_t status)
{
	static const enum ibv_wc_status table[] = {
		[SE_OK] = IBV_WC_SUCCESS,
		[SE_FLUSHED] = IBV_WC_WR_FLUSH_ERR,
		[SE_QP_INTERNAL_ERROR] = IBV_WC_LOC_QP_OP_ERR,
		[SE_UNSUPPORTED_OP] = IBV_WC_LOC_QP_OP_ERR,
		[SE_INVALID_AH] = IBV_WC_LOC_QP_OP_ERR,
		[SE_INVALID_LKEY] = IBV_WC_LOC_PROT_ERR,
		[SE_BAD_LENGTH] = IBV_WC_LOC_LEN_ERR,
		[SE_REMOTE_BAD_ADDRESS] = IBV_WC_REM_ACCESS_ERR,
		[SE_REMOTE_ABORT] = IBV_WC_REM_ABORT_ERR,
		[SE_REMOTE_BAD_DEST_QPN] = IBV_WC_REM_INV_RD_REQ_ERR,
		[SE_REMOTE_RNR] = IBV_WC_RNR_RETRY_EXC_ERR,
		[SE_REMOTE_BAD_LENGTH] = IBV_WC_REM_INV_REQ_ERR,
		[SE_REMOTE_BAD_STATUS] = IBV_WC_BAD_RESP_ERR,
		[SE_UNRESP_REMOTE] = IBV_WC_RESP_TIMEOUT_ERR,
		[SE_REMOTE_UNKNOWN_PEER] = IBV_WC_REM_OP_ERR,
		[SE_UNREACH_REMOTE] = IBV_WC_RESP_TIMEOUT_ERR,
	};

	if (status >= sizeof(table) / sizeof(table[0]))
		return IBV_WC_GENERAL_ERR;
	return table[status];
}

static const struct se_cqe *se_cur(struct ibv_cq_ex *cq_ex)
{
	return &((struct se_cq *)cq_ex)->cur;
}

static enum ibv_wc_opcode se_cqe_opcode(const struct se_cqe *cqe)
{
	if (!cqe->recv)
		return (enum ibv_wc_opcode)cqe->opcode;
	return cqe->opcode == IBV_WC_RDMA_WRITE ? IBV_WC_RECV_RDMA_WITH_IMM :
						  IBV_WC_RECV;
}

static enum ibv_wc_opcode se_read_opcode(struct ibv_cq_ex *cq_ex)
{
	return se_cqe_opcode(se_cur(cq_ex));
}

static uint32_t se_read_vendor_err(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->status;
}

static uint32_t se_read_byte_len(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->byte_len;
}

static __be32 se_read_imm_data(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->imm;
}

static uint32_t se_read_qp_num(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->qp_num;
}

static uint32_t se_read_src_qp(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->src_qp;
}

static unsigned int se_read_wc_flags(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->wc_flags;
}

static uint32_t se_read_slid(struct ibv_cq_ex *cq_ex)
{
	return se_cur(cq_ex)->ahn;
}

static uint8_t se_read_zero(struct ibv_cq_ex *cq_ex)
{
	return 0;
}

static struct se_cq *se_cq_of_dv(struct efadv_cq *dv)
{
	return (struct se_cq *)((char *)dv - offsetof(struct se_cq, dv));
}

/*
 * Stores the sender's GID and returns 0. As on the device, returns -ENOENT if
 * this process has an address handle of the sender.
 */
static int se_read_sgid(struct efadv_cq *dv, union ibv_gid *sgid)
{
	struct se_cq *cq = se_cq_of_dv(dv);

	if (cq->cur.ahn != SE_AH_UNKNOWN)
		return -ENOENT;
	*sgid = cq->cur.sgid;
	return 0;
}

void se_cqe_to_wc(const struct se_cqe *cqe, struct ibv_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = se_wc_status(cqe->status);
	wc->opcode = se_cqe_opcode(cqe);
	wc->vendor_err = cqe->status;
	wc->byte_len = cqe->byte_len;
	wc->imm_data = cqe->imm;
	wc->qp_num = cqe->qp_num;
	wc->src_qp = cqe->src_qp;
	wc->wc_flags = cqe->wc_flags;
	wc->slid = cqe->ahn;
}

static bool se_is_unsolicited(struct efadv_cq *dv)
{
	return se_cq_of_dv(dv)->cur.unsolicited;
}

/*
 * Sets the read functions of the requested fields. The functions of all other
 * fields stay NULL, as in rdma-core: a program that calls one of them crashes.
 */
void se_cq_read_init(struct se_cq *cq, uint64_t flags, uint64_t dv_flags)
{
	struct ibv_cq_ex *ex = &cq->ex;

	ex->read_opcode = se_read_opcode;
	ex->read_vendor_err = se_read_vendor_err;
	ex->read_wc_flags = se_read_wc_flags;
	if (flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = se_read_byte_len;
	if (flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = se_read_imm_data;
	if (flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = se_read_qp_num;
	if (flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = se_read_src_qp;
	if (flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = se_read_slid;
	if (flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = se_read_zero;
	if (flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = se_read_zero;
	if (dv_flags & SE_WC_WITH_SGID)
		cq->dv.wc_read_sgid = se_read_sgid;
	if (dv_flags & SE_WC_WITH_UNSOLICITED)
		cq->dv.wc_is_unsolicited = se_is_unsolicited;
}
