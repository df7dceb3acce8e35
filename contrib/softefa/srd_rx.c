/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The receiving half of SRD. The caller of each function holds qp->lock. */
#include <string.h>

#include "softefa.h"

static void se_ack_list(struct se_qp *qp, struct se_flow *flow)
{
	if (flow->ack_listed)
		return;
	flow->ack_listed = true;
	flow->ack_next = qp->ack_list;
	qp->ack_list = flow;
}

void se_ack_later(struct se_qp *qp, struct se_flow *flow)
{
	flow->ack_due = true;
	se_ack_list(qp, flow);
}

static bool se_tx_nak(struct se_qp *qp, struct se_flow *flow, uint32_t seq,
		      uint32_t stream, enum se_status status)
{
	struct se_pkt pkt;
	uint64_t cookie;

	se_flow_header(qp, flow, &pkt);
	pkt.type = SE_PKT_NAK;
	pkt.status = (uint16_t)status;
	pkt.seq = seq;
	pkt.op_len = stream;
	return qp->wire->tx(qp, flow, &pkt, NULL, 0, &cookie) >= 0;
}

/* Sends the delayed NAKs. Returns false if the wire has no space for one. */
static bool se_tx_naks(struct se_qp *qp, struct se_flow *flow)
{
	uint32_t seq = flow->rx_cum;

	for (; flow->nak_map; seq++) {
		if (!(flow->nak_map >> seq % SE_WINDOW & 1))
			continue;
		if (!se_tx_nak(qp, flow, seq, flow->rx_stream,
			       flow->nak_status[seq % SE_WINDOW]))
			return false;
		flow->nak_map &= ~(1ull << seq % SE_WINDOW);
	}
	return true;
}

static bool se_tx_ack(struct se_qp *qp, struct se_flow *flow)
{
	struct se_pkt pkt;
	uint64_t cookie;

	if (!flow->ack_due)
		return true; /* a data packet contained the ACK */
	if (se_fault(SE_FAULT_ACK_LOSS, qp->serial, flow->number,
		     flow->ack_serial++)) {
		qp->stats.lost++;
		qp->lossy = true;
	} else {
		se_flow_header(qp, flow, &pkt);
		pkt.type = SE_PKT_ACK;
		if (qp->wire->tx(qp, flow, &pkt, NULL, 0, &cookie) < 0)
			return false;
	}
	flow->ack_due = false;
	return true;
}

void se_srd_send_acks(struct se_qp *qp)
{
	struct se_flow *flow, *left = NULL;

	while ((flow = qp->ack_list)) {
		qp->ack_list = flow->ack_next;
		if (se_tx_naks(qp, flow) && se_tx_ack(qp, flow)) {
			flow->ack_listed = false;
			continue;
		}
		flow->ack_next = left;
		left = flow;
	}
	qp->ack_list = left;
}

/*
 * Sends a NAK for the packet "cause", now or later in se_tx_naks(). The number
 * counts as not received: the sender repeats the packet, or sends a VOID one.
 */
static void se_send_nak(struct se_qp *qp, struct se_flow *flow,
			const struct se_pkt *cause, enum se_status status)
{
	uint32_t bit = cause->seq % SE_WINDOW;

	if (se_tx_nak(qp, flow, cause->seq, cause->stream, status) ||
	    cause->stream != flow->rx_stream ||
	    cause->seq - flow->rx_cum >= SE_WINDOW)
		return;
	flow->nak_map |= 1ull << bit;
	flow->nak_status[bit] = (uint8_t)status;
	se_ack_list(qp, flow);
}

/* Rejects a packet of a peer that cannot get a flow. */
static void se_reject(struct se_qp *qp, const union ibv_gid *gid,
		      const struct se_pkt *cause)
{
	struct se_flow flow = { .gid = *gid, .qpn = cause->src_qpn };

	se_tx_nak(qp, &flow, cause->seq, cause->stream, SE_UNREACH_REMOTE);
	qp->wire->flow_close(qp, &flow);
}

/* Returns the next posted receive, or NULL. se_recv_claim() consumes it. */
static struct se_recv *se_recv_next(struct se_qp *qp)
{
	uint32_t head = qp->rq_head;

	/* pairs with the release in se_post_recv() */
	if (head == atomic_load_explicit(&qp->rq_tail, memory_order_acquire))
		return NULL;
	return &qp->rq[head & qp->rq_mask];
}

static void se_recv_claim(struct se_qp *qp)
{
	qp->rq_head++;
}

static uint64_t se_recv_space(const struct se_recv *recv)
{
	uint64_t space = 0;
	int i;

	for (i = 0; i < recv->sge_count; i++)
		space += recv->sge[i].length;
	return space;
}

static void se_recv_fill(const struct se_recv *recv, uint64_t skip,
			 const uint8_t *data, uint64_t len)
{
	const struct ibv_sge *sge = recv->sge;
	uint64_t part;
	int i;

	for (i = 0; i < recv->sge_count && len; i++, sge++) {
		if (skip >= sge->length) {
			skip -= sge->length;
			continue;
		}
		part = sge->length - skip < len ? sge->length - skip : len;
		memcpy((char *)(uintptr_t)sge->addr + skip, data, part);
		data += part;
		len -= part;
		skip = 0;
	}
}

static uint16_t se_flow_ahn(struct se_qp *qp, struct se_flow *flow)
{
	uint32_t gen = atomic_load_explicit(&qp->dev->ah_gen,
					    memory_order_acquire);

	if (flow->ah_gen != gen) {
		flow->ahn = se_ah_find(qp->dev, &flow->gid);
		flow->ah_gen = gen;
	}
	return flow->ahn;
}

static void se_recv_done(struct se_qp *qp, struct se_flow *flow,
			 const struct se_pkt *pkt, struct se_cqe *cqe)
{
	cqe->qp = qp;
	cqe->qp_num = qp->ex.qp_base.qp_num;
	cqe->src_qp = pkt->src_qpn;
	cqe->ahn = se_flow_ahn(qp, flow);
	cqe->sgid = flow->gid;
	cqe->recv = true;
	if (pkt->flags & SE_PKT_IMM) {
		cqe->imm = pkt->imm;
		cqe->wc_flags = IBV_WC_WITH_IMM;
	}
	if (cqe->status)
		qp->stats.errors++;
	se_cq_push(qp->rcq, cqe);
}

static enum se_status se_take_send(struct se_qp *qp, struct se_flow *flow,
				   const struct se_pkt *pkt, const void *data)
{
	uint64_t grh = qp->ud ? SE_GRH_LEN : 0;
	struct se_recv *recv = se_recv_next(qp);
	struct se_cqe cqe = { .opcode = IBV_WC_SEND };
	struct se_mr_entry *pins[SE_MAX_RQ_SGE];

	if (!recv)
		return SE_REMOTE_RNR;
	if (se_recv_space(recv) < grh + pkt->len)
		return SE_REMOTE_BAD_LENGTH;
	cqe.wr_id = recv->wr_id;
	cqe.byte_len = (uint32_t)(grh + pkt->len);
	if (se_mr_pin_list(qp, recv->sge, recv->sge_count,
			   IBV_ACCESS_LOCAL_WRITE, pins)) {
		se_recv_fill(recv, grh, data, pkt->len);
		se_mr_unpin_list(pins, recv->sge_count);
	} else {
		cqe.status = SE_INVALID_LKEY;
	}
	se_recv_claim(qp);
	se_recv_done(qp, flow, pkt, &cqe);
	return cqe.status ? SE_REMOTE_BAD_STATUS : SE_OK;
}

/* Consumes a receive for immediate data, or counts an unsolicited write. */
static enum se_status se_take_imm(struct se_qp *qp, struct se_cqe *cqe)
{
	struct se_recv *recv;

	if (qp->unsolicited) {
		if (qp->unsolicited_used >= qp->rq_cap)
			return SE_REMOTE_RNR;
		qp->unsolicited_used++;
		cqe->unsolicited = true;
		return SE_OK;
	}
	recv = se_recv_next(qp);
	if (!recv)
		return SE_REMOTE_RNR;
	cqe->wr_id = recv->wr_id;
	se_recv_claim(qp);
	return SE_OK;
}

static enum se_status se_take_write(struct se_qp *qp, struct se_flow *flow,
				    const struct se_pkt *pkt, const void *data)
{
	struct se_cqe cqe = { .opcode = IBV_WC_RDMA_WRITE,
			      .byte_len = pkt->op_len };
	struct se_mr_entry *entry = NULL;
	enum se_status status = SE_OK;

	if (se_flow_ahn(qp, flow) == SE_AH_UNKNOWN)
		return SE_REMOTE_UNKNOWN_PEER;
	if (pkt->len) {
		entry = se_mr_pin(qp, pkt->rkey, pkt->raddr, pkt->len,
				  IBV_ACCESS_REMOTE_WRITE);
		if (!entry)
			return SE_REMOTE_BAD_ADDRESS;
	}
	if (pkt->flags & SE_PKT_IMM)
		status = se_take_imm(qp, &cqe);
	if (entry && !status)
		memcpy((void *)(uintptr_t)pkt->raddr, data, pkt->len);
	if (entry)
		se_mr_unpin(entry);
	if (!status && (pkt->flags & SE_PKT_IMM))
		se_recv_done(qp, flow, pkt, &cqe);
	return status;
}

static enum se_status se_take_read(struct se_qp *qp, struct se_flow *flow,
				   const struct se_pkt *pkt)
{
	struct se_mr_entry *entry;
	struct se_op *op;

	if (se_flow_ahn(qp, flow) == SE_AH_UNKNOWN)
		return SE_REMOTE_UNKNOWN_PEER;
	if (pkt->op_len) {
		entry = se_mr_pin(qp, pkt->rkey, pkt->raddr, pkt->op_len,
				  IBV_ACCESS_REMOTE_READ);
		if (!entry)
			return SE_REMOTE_BAD_ADDRESS;
		se_mr_unpin(entry); /* each response packet pins the region */
	}
	op = qp->free_resp;
	if (!op)
		return SE_BUSY;
	qp->free_resp = op->next;
	op->next = NULL;
	op->flow = flow;
	op->kind = SE_OP_RESPONSE;
	op->raddr = pkt->raddr;
	op->rkey = pkt->rkey;
	op->remote_id = pkt->op_id;
	op->len = pkt->op_len;
	op->done = 0;
	op->unacked = 0;
	op->status = SE_OK;
	op->segmented = false;
	op->has_imm = false;
	op->is_inline = false;
	op->queued = true;
	*flow->queue_tail = op;
	flow->queue_tail = &op->next;
	se_flow_activate(qp, flow);
	return SE_OK;
}

static enum se_status se_take(struct se_qp *qp, struct se_flow *flow,
			      const struct se_pkt *pkt, const void *data)
{
	if (pkt->type == SE_PKT_VOID)
		return SE_OK;
	if (pkt->type == SE_PKT_READ_DATA) {
		se_read_data(qp, pkt, data);
		return SE_OK;
	}
	if (qp->closing || qp->ex.qp_base.state == IBV_QPS_ERR)
		return SE_REMOTE_BAD_DEST_QPN;
	if (pkt->qkey != qp->qkey)
		return SE_UNRESP_REMOTE;
	if ((pkt->type == SE_PKT_SEND || (pkt->flags & SE_PKT_IMM)) &&
	    se_fault(SE_FAULT_RNR, qp->serial, flow->number,
		     pkt->seq ^ (uint32_t)pkt->status << 24))
		return SE_REMOTE_RNR;
	switch (pkt->type) {
	case SE_PKT_SEND:
		return se_take_send(qp, flow, pkt, data);
	case SE_PKT_WRITE:
		return se_take_write(qp, flow, pkt, data);
	default:
		return se_take_read(qp, flow, pkt);
	}
}

static void se_rx_number(struct se_flow *flow, uint32_t ahead)
{
	flow->rx_map |= 1ull << ahead;
	while (flow->rx_map & 1) {
		flow->rx_map >>= 1;
		flow->rx_cum++;
	}
}

/* Delivers a packet with a sequence number once, or rejects it. */
static void se_rx_numbered(struct se_qp *qp, struct se_flow *flow,
			   const struct se_pkt *pkt, const void *data)
{
	enum se_status status;
	uint32_t ahead;

	if (flow->rx_stream != pkt->stream) {
		if (flow->rx_stream &&
		    (int32_t)(pkt->stream - flow->rx_stream) < 0)
			return; /* late packet of the peer's previous stream */
		if (!(pkt->flags & SE_PKT_START)) {
			/*
			 * This QP has acknowledged packets of the stream, and
			 * then freed the flow. The NAK fails the peer's flow.
			 */
			se_send_nak(qp, flow, pkt, SE_REMOTE_BAD_DEST_QPN);
			return;
		}
		flow->rx_stream = pkt->stream;
		flow->rx_cum = 0;
		flow->rx_map = 0;
		flow->nak_map = 0;
	}
	flow->nak_map &= ~(1ull << pkt->seq % SE_WINDOW);
	ahead = pkt->seq - flow->rx_cum;
	if ((int32_t)ahead < 0 ||
	    (ahead < SE_WINDOW && (flow->rx_map >> ahead & 1))) {
		qp->stats.dup++;
		se_ack_later(qp, flow);
		return;
	}
	if (ahead >= SE_WINDOW)
		return;
	status = se_take(qp, flow, pkt, data);
	if (status) {
		se_send_nak(qp, flow, pkt, status);
		return;
	}
	if (pkt->type != SE_PKT_VOID) {
		qp->stats.rx_pkts++;
		qp->stats.rx_bytes += pkt->len;
		qp->stats.late += flow->rx_map >> ahead != 0;
	}
	se_rx_number(flow, ahead);
	se_ack_later(qp, flow);
}

/* Returns false if the packet comes from or goes to a destroyed QP. */
static bool se_rx_epochs(struct se_qp *qp, struct se_flow *flow,
			 const struct se_pkt *pkt)
{
	if (pkt->dst_epoch && pkt->dst_epoch != qp->epoch) {
		if (pkt->type != SE_PKT_ACK && pkt->type != SE_PKT_NAK)
			se_send_nak(qp, flow, pkt, SE_REMOTE_BAD_DEST_QPN);
		return false;
	}
	if (flow->peer_epoch == pkt->epoch)
		return true;
	if (flow->peer_epoch && (int32_t)(pkt->epoch - flow->peer_epoch) < 0)
		return false;
	if (flow->peer_epoch) {
		se_flow_fail(qp, flow, SE_REMOTE_BAD_DEST_QPN);
		flow->rx_stream = 0;
	}
	flow->peer_epoch = pkt->epoch;
	return true;
}

static void se_rx_dgram(struct se_qp *qp, const struct se_pkt *pkt,
			const void *data)
{
	struct se_flow *flow;
	union ibv_gid gid;

	memcpy(gid.raw, pkt->sgid, sizeof(gid.raw));
	flow = se_flow_get(qp, &gid, pkt->src_qpn);
	if (!flow || qp->closing || pkt->qkey != qp->qkey)
		return;
	if (se_take_send(qp, flow, pkt, data) == SE_OK) {
		qp->stats.rx_pkts++;
		qp->stats.rx_bytes += pkt->len;
	}
}

/* Returns the flow of a new peer; NULL: packet rejected or dropped. */
static struct se_flow *se_rx_flow(struct se_qp *qp, const union ibv_gid *gid,
				  const struct se_pkt *pkt)
{
	struct se_flow *flow = se_flow_get(qp, gid, pkt->src_qpn);

	if (flow || !se_flow_reap_all(qp, false))
		return flow;
	flow = se_flow_get(qp, gid, pkt->src_qpn);
	if (!flow)
		se_reject(qp, gid, pkt);
	return flow;
}

void se_srd_rx(struct se_qp *qp, const struct se_pkt *pkt, const void *data)
{
	struct se_flow *flow;
	union ibv_gid gid;

	if (pkt->magic != SE_PKT_MAGIC || !pkt->type ||
	    pkt->type >= SE_PKT_TYPES ||
	    pkt->dst_qpn != qp->ex.qp_base.qp_num ||
	    qp->ex.qp_base.state < IBV_QPS_RTR)
		return;
	if ((pkt->type == SE_PKT_DGRAM) != qp->ud)
		return;
	if (qp->ud) {
		se_rx_dgram(qp, pkt, data);
		return;
	}
	memcpy(gid.raw, pkt->sgid, sizeof(gid.raw));
	flow = se_flow_find(qp, &gid, pkt->src_qpn);
	if (!flow && pkt->type >= SE_PKT_ACK)
		return; /* an ACK or the like, for a flow that does not exist */
	if (!flow)
		flow = se_rx_flow(qp, &gid, pkt);
	if (!flow)
		return;
	if (!se_rx_epochs(qp, flow, pkt))
		return;
	flow->quiet_since = 0;
	if (flow->is_active)
		flow->heard = se_now();
	flow->responsive = true;
	se_flow_acked(qp, flow, pkt);
	switch (pkt->type) {
	case SE_PKT_ACK:
		break;
	case SE_PKT_NAK:
		se_flow_nak(qp, flow, pkt);
		break;
	case SE_PKT_PING:
		se_ack_later(qp, flow);
		break;
	case SE_PKT_READ_ASK:
		se_read_asked(qp, flow, pkt);
		break;
	case SE_PKT_READ_GONE:
		se_read_gone(qp, flow, pkt);
		break;
	default:
		se_rx_numbered(qp, flow, pkt, data);
	}
}
