/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Flows: the operations outstanding to a peer's QP, and their completion. The
 * caller of each function holds qp->lock.
 */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

#define SE_NAK_BUSY_NS 50000ull
#define SE_RNR_NS 100000ull /* first delay after a receiver-not-ready NAK */

static uint32_t se_flow_bucket(const union ibv_gid *gid, uint32_t qpn)
{
	return (qpn ^ gid->raw[15] ^ gid->raw[7]) % SE_FLOW_HASH;
}

struct se_flow *se_flow_find(struct se_qp *qp, const union ibv_gid *gid,
			     uint32_t qpn)
{
	struct se_flow *flow = qp->flows[se_flow_bucket(gid, qpn)];

	for (; flow; flow = flow->next) {
		if (flow->qpn == qpn && se_gid_equal(&flow->gid, gid))
			return flow;
	}
	return NULL;
}

/*
 * Returns the number of a new flow's stream, larger than the numbers of all
 * flows that this QP has freed. If one of these flows had the same peer, the
 * peer would drop packets with a smaller number.
 */
static uint32_t se_flow_new_stream(const struct se_qp *qp)
{
	struct timespec ts;
	uint32_t stream;

	clock_gettime(CLOCK_REALTIME, &ts);
	stream = (uint32_t)((uint64_t)ts.tv_sec * 1000 +
			    (uint64_t)ts.tv_nsec / 1000000);
	if (qp->stream_floor && (int32_t)(stream - qp->stream_floor) < 0)
		stream = qp->stream_floor;
	return stream | 1;
}

struct se_flow *se_flow_get(struct se_qp *qp, const union ibv_gid *gid,
			    uint32_t qpn)
{
	struct se_flow *flow = se_flow_find(qp, gid, qpn);
	uint32_t bucket = se_flow_bucket(gid, qpn);

	if (flow)
		return flow;
	se_flow_reap_some(qp);
	if (qp->flow_count >= se_cfg.max_flows)
		return NULL;
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->gid = *gid;
	flow->qpn = qpn;
	flow->number = ++qp->flow_serial;
	flow->ahn = SE_AH_UNKNOWN;
	flow->queue_tail = &flow->queue;
	flow->stream = se_flow_new_stream(qp);
	flow->window = qp->wire->window;
	flow->next = qp->flows[bucket];
	qp->flows[bucket] = flow;
	qp->flow_count++;
	return flow;
}

bool se_flow_idle(const struct se_flow *flow)
{
	return !flow->queue && flow->una == flow->next_seq &&
	       !flow->waiting_reads;
}

void se_flow_activate(struct se_qp *qp, struct se_flow *flow)
{
	if (flow->is_active)
		return;
	flow->is_active = true;
	flow->active_next = qp->active;
	qp->active = flow;
	flow->heard = se_now(); /* the peer's silence counts from now on */
	flow->checked = flow->heard;
	flow->asked = flow->heard;
	flow->due = flow->heard;
	flow->quiet_since = 0;
	qp->work = true;
}

void se_flow_header(struct se_qp *qp, struct se_flow *flow, struct se_pkt *pkt)
{
	memset(pkt, 0, sizeof(*pkt));
	pkt->magic = SE_PKT_MAGIC;
	pkt->src_qpn = qp->ex.qp_base.qp_num;
	pkt->dst_qpn = flow->qpn;
	pkt->stream = flow->stream;
	pkt->epoch = qp->epoch;
	pkt->dst_epoch = flow->peer_epoch;
	pkt->ack_stream = flow->rx_stream;
	pkt->ack_cum = flow->rx_cum;
	pkt->ack_map = flow->rx_map;
	memcpy(pkt->sgid, qp->dev->gid.raw, sizeof(pkt->sgid));
}

/* Returns a completion's opcode. As on the device, reads have that of sends. */
static enum ibv_wc_opcode se_op_opcode(const struct se_op *op)
{
	return op->kind == SE_OP_WRITE ? IBV_WC_RDMA_WRITE : IBV_WC_SEND;
}

/*
 * Frees an operation that has no packet left. Writes its completion; responses
 * have none.
 */
void se_op_finish(struct se_qp *qp, struct se_op *op)
{
	struct se_cqe cqe = {
		.wr_id = op->wr_id,
		.qp = qp,
		.qp_num = qp->ex.qp_base.qp_num,
		.status = op->status,
		.opcode = (uint8_t)se_op_opcode(op),
		.ahn = SE_AH_UNKNOWN,
	};

	if (op->kind == SE_OP_READ && op->flow)
		op->flow->waiting_reads--;
	op->flow = NULL;
	if (op->kind == SE_OP_RESPONSE) {
		op->next = qp->free_resp;
		qp->free_resp = op;
		return;
	}
	op->id += 1u << 16; /* late responses do not match the new id */
	op->next = qp->free_ops;
	qp->free_ops = op;
	if (cqe.status)
		qp->stats.errors++;
	se_cq_push(qp->scq, &cqe);
}

void se_op_check(struct se_qp *qp, struct se_op *op)
{
	if (!op->segmented || op->unacked)
		return;
	if (op->kind == SE_OP_READ && !op->status && op->got < op->len)
		return;
	se_op_finish(qp, op);
}

static void se_op_dequeue(struct se_flow *flow, struct se_op *op)
{
	struct se_op **link = &flow->queue;

	while (*link != op)
		link = &(*link)->next;
	*link = op->next;
	if (!op->next)
		flow->queue_tail = link;
	op->queued = false;
}

void se_slot_void(struct se_qp *qp, struct se_flow *flow, struct se_slot *slot,
		  enum se_status status)
{
	struct se_op *op = slot->op;

	slot->op = NULL;
	slot->type = SE_PKT_VOID;
	slot->flags = 0;
	slot->len = 0;
	slot->state = SE_SLOT_WAIT;
	slot->time = 0;
	flow->due = 0;
	if (!op)
		return;
	if (!op->status)
		op->status = (uint8_t)status;
	if (op->queued)
		se_op_dequeue(flow, op);
	op->segmented = true;
	op->unacked--;
	se_op_check(qp, op);
}

static void se_flow_fail_reads(struct se_qp *qp, struct se_flow *flow,
			       enum se_status status)
{
	struct se_op *op;
	uint32_t i;

	for (i = 0; flow->waiting_reads && i < qp->sq_cap; i++) {
		op = &qp->ops[i];
		if (op->flow != flow || op->kind != SE_OP_READ)
			continue;
		op->status = (uint8_t)status;
		se_op_finish(qp, op);
	}
}

/* Fails all operations to the peer. Later operations start a new stream. */
void se_flow_fail(struct se_qp *qp, struct se_flow *flow,
		  enum se_status status)
{
	struct se_slot *slot;
	struct se_op *op;
	uint32_t seq;

	while ((op = flow->queue)) {
		se_op_dequeue(flow, op);
		op->status = (uint8_t)status;
		op->segmented = true;
		se_op_check(qp, op);
	}
	for (seq = flow->una; seq != flow->next_seq; seq++) {
		slot = &flow->slot[seq % SE_WINDOW];
		op = slot->op;
		if (slot->state == SE_SLOT_FREE)
			continue;
		slot->state = SE_SLOT_FREE;
		slot->op = NULL;
		if (!op)
			continue;
		op->status = (uint8_t)status;
		op->unacked--;
		se_op_check(qp, op);
	}
	se_flow_fail_reads(qp, flow, status);
	flow->una = 0;
	flow->next_seq = 0;
	flow->stream++;
	flow->peer_epoch = 0;
	flow->responsive = false;
	flow->blocked = false;
	flow->window = qp->wire->window;
	qp->wire->flow_close(qp, flow);
}

static void se_slot_acked(struct se_qp *qp, struct se_flow *flow, uint32_t seq)
{
	struct se_slot *slot = &flow->slot[seq % SE_WINDOW];
	struct se_op *op = slot->op;

	if (slot->state == SE_SLOT_FREE)
		return;
	slot->state = SE_SLOT_FREE;
	slot->op = NULL;
	if (flow->window < SE_WINDOW)
		flow->window++;
	if (!op)
		return;
	op->unacked--;
	se_op_check(qp, op);
}

void se_flow_acked(struct se_qp *qp, struct se_flow *flow,
		   const struct se_pkt *pkt)
{
	uint32_t seq, bit, count = flow->next_seq - flow->una;

	if (pkt->ack_stream != flow->stream || !count)
		return;
	if (pkt->ack_cum - flow->una > count)
		return; /* older than the last ACK, or not a number in flight */
	for (seq = flow->una; seq != pkt->ack_cum; seq++)
		se_slot_acked(qp, flow, seq);
	count = flow->next_seq - pkt->ack_cum;
	for (bit = 0; pkt->ack_map >> bit && bit < count; bit++) {
		if (pkt->ack_map >> bit & 1)
			se_slot_acked(qp, flow, pkt->ack_cum + bit);
		if (bit == SE_WINDOW - 1)
			break;
	}
	while (flow->una != flow->next_seq &&
	       flow->slot[flow->una % SE_WINDOW].state == SE_SLOT_FREE)
		flow->una++;
	if (flow->queue)
		flow->due = 0; /* the window may have space */
}

static void se_flow_rnr(struct se_qp *qp, struct se_flow *flow,
			struct se_slot *slot)
{
	struct se_op *op = slot->op;
	uint32_t shift;

	qp->stats.rnr++;
	op->rnr_tries++;
	if (qp->rnr_retry < 7 && op->rnr_tries > qp->rnr_retry) {
		se_slot_void(qp, flow, slot, SE_REMOTE_RNR);
		return;
	}
	shift = op->rnr_tries < 7 ? op->rnr_tries - 1 : 6;
	slot->state = SE_SLOT_WAIT;
	slot->time = se_now() + (SE_RNR_NS << shift);
	slot->tries++;
	flow->rnr_until = slot->time;
	flow->due = 0;
}

void se_flow_nak(struct se_qp *qp, struct se_flow *flow,
		 const struct se_pkt *pkt)
{
	struct se_slot *slot = &flow->slot[pkt->seq % SE_WINDOW];

	if (pkt->status == SE_REMOTE_BAD_DEST_QPN ||
	    pkt->status == SE_UNREACH_REMOTE) {
		if (pkt->op_len == flow->stream)
			se_flow_fail(qp, flow, (enum se_status)pkt->status);
		return;
	}
	if (pkt->op_len != flow->stream || slot->state != SE_SLOT_SENT ||
	    pkt->seq - flow->una >= flow->next_seq - flow->una || !slot->op)
		return;
	switch (pkt->status) {
	case SE_REMOTE_RNR:
		se_flow_rnr(qp, flow, slot);
		break;
	case SE_BUSY:
		slot->state = SE_SLOT_WAIT;
		slot->time = se_now() + SE_NAK_BUSY_NS;
		flow->due = 0;
		break;
	default:
		se_slot_void(qp, flow, slot, (enum se_status)pkt->status);
	}
}
