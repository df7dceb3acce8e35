/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * RDMA reads at the initiator, and the loss of their responses. The caller of
 * each function holds qp->lock.
 *
 * If the target's flow to the initiator fails, the target drops the response.
 * The flow fails, for example, if the initiator has not polled its CQ within
 * SOFTEFA_TIMEOUT_MS. Afterwards the target still acknowledges other packets of
 * the initiator, so the read would wait forever. Therefore the initiator sends
 * READ_ASK for each waiting read. If the target does not have the response, the
 * target replies READ_GONE, and the initiator fails the read.
 */
#include <string.h>

#include "softefa.h"

#define SE_ASK_NS 50000000ull

static void se_op_scatter(const struct se_op *op, uint64_t off,
			  const uint8_t *data, uint64_t len)
{
	const struct ibv_sge *sge = op->sge;
	uint64_t part;
	int i;

	for (i = 0; i < op->sge_count && len; i++, sge++) {
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = sge->length - off < len ? sge->length - off : len;
		memcpy((char *)(uintptr_t)sge->addr + off, data, part);
		data += part;
		len -= part;
		off = 0;
	}
}

/* Returns the read of this packet; NULL: the read has completed. */
static struct se_op *se_read_find(struct se_qp *qp, const struct se_pkt *pkt)
{
	uint32_t index = pkt->op_id & 0xffff;
	struct se_op *op;

	if (index >= qp->sq_cap)
		return NULL;
	op = &qp->ops[index];
	if (op->id != pkt->op_id || !op->flow || op->kind != SE_OP_READ ||
	    op->flow->qpn != pkt->src_qpn)
		return NULL;
	return op;
}

/* Stores the data, or ends the read if its region has been deregistered. */
static void se_read_store(struct se_qp *qp, struct se_op *op,
			  const struct se_pkt *pkt, const void *data)
{
	struct se_mr_entry *pins[SE_MAX_SQ_SGE];

	if (!se_mr_pin_list(qp, op->sge, op->sge_count, IBV_ACCESS_LOCAL_WRITE,
			    pins)) {
		op->status = SE_INVALID_LKEY;
		return;
	}
	se_op_scatter(op, pkt->raddr, data, pkt->len);
	se_mr_unpin_list(pins, op->sge_count);
	op->got += pkt->len;
}

void se_read_data(struct se_qp *qp, const struct se_pkt *pkt, const void *data)
{
	struct se_op *op = se_read_find(qp, pkt);

	if (!op || pkt->raddr > op->len || pkt->len > op->len - pkt->raddr)
		return;
	if (pkt->flags & SE_PKT_ABORT)
		op->status = SE_REMOTE_BAD_ADDRESS;
	if (pkt->len)
		se_read_store(qp, op, pkt, data);
	se_op_check(qp, op);
}

/* True if op is a read with an acknowledged request, but no full response. */
static bool se_read_waits(const struct se_op *op, const struct se_flow *flow)
{
	return op->flow == flow && op->kind == SE_OP_READ && op->segmented &&
	       !op->unacked;
}

static void se_read_ask_all(struct se_qp *qp, struct se_flow *flow)
{
	uint32_t i, left = flow->waiting_reads;

	for (i = 0; left && i < qp->sq_cap; i++) {
		if (!se_read_waits(&qp->ops[i], flow))
			continue;
		se_flow_tell(qp, flow, SE_PKT_READ_ASK, qp->ops[i].id);
		left--;
	}
}

/* Sends READ_ASK for each waiting read, at most every SE_ASK_NS. */
void se_read_ask(struct se_qp *qp, struct se_flow *flow)
{
	uint64_t now;

	if (!flow->waiting_reads)
		return;
	now = se_now();
	if (now - flow->asked < SE_ASK_NS)
		return;
	flow->asked = now;
	se_read_ask_all(qp, flow);
}

/* Answers READ_ASK, at the target. */
void se_read_asked(struct se_qp *qp, struct se_flow *flow,
		   const struct se_pkt *pkt)
{
	const struct se_op *op = qp->ops + qp->sq_cap;
	const struct se_op *end = qp->ops + qp->op_count;

	for (; op < end; op++) {
		if (op->flow != flow || op->remote_id != pkt->op_id)
			continue;
		/* the response is pending: only acknowledge */
		se_ack_later(qp, flow);
		return;
	}
	se_flow_tell(qp, flow, SE_PKT_READ_GONE, pkt->op_id);
}

void se_read_gone(struct se_qp *qp, struct se_flow *flow,
		  const struct se_pkt *pkt)
{
	struct se_op *op = se_read_find(qp, pkt);

	if (!op || !se_read_waits(op, flow))
		return;
	op->status = SE_REMOTE_ABORT;
	se_op_finish(qp, op);
}
