/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The sending half of SRD: segmentation, windows, timers, fault injection. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "softefa.h"

#define SE_MS 1000000ull
#define SE_SCAN_NS (20 * SE_MS) /* interval between scans of an active flow */
#define SE_ALIVE_NS (50 * SE_MS) /* peer's silence before a call of alive() */
#define SE_RTO_MAX_NS (200 * SE_MS)
#define SE_RX_BUDGET 32

static int se_iov_sge(const struct se_op *op, const struct se_slot *slot,
		      struct iovec *iov)
{
	uint64_t off = slot->off, len = slot->len, part;
	const struct ibv_sge *sge = op->sge;
	int i, count = 0;

	for (i = 0; i < op->sge_count && len; i++, sge++) {
		if (off >= sge->length) {
			off -= sge->length;
			continue;
		}
		part = sge->length - off < len ? sge->length - off : len;
		iov[count].iov_base = (char *)(uintptr_t)sge->addr + off;
		iov[count++].iov_len = part;
		len -= part;
		off = 0;
	}
	return count;
}

static int se_slot_iov(struct se_slot *slot, struct iovec *iov)
{
	struct se_op *op = slot->op;

	if (!slot->len || slot->type == SE_PKT_READ)
		return 0;
	if (op->is_inline) {
		iov[0].iov_base = op->inline_data + slot->off;
		iov[0].iov_len = slot->len;
		return 1;
	}
	if (op->kind == SE_OP_RESPONSE) {
		iov[0].iov_base = (char *)(uintptr_t)op->raddr + slot->off;
		iov[0].iov_len = slot->len;
		return 1;
	}
	return se_iov_sge(op, slot, iov);
}

static void se_slot_header(struct se_qp *qp, struct se_flow *flow,
			   struct se_slot *slot, uint32_t seq,
			   struct se_pkt *pkt)
{
	struct se_op *op = slot->op;

	se_flow_header(qp, flow, pkt);
	pkt->type = slot->type;
	pkt->flags = slot->flags;
	if (!flow->una)
		pkt->flags |= SE_PKT_START;
	pkt->status = slot->tries;
	pkt->seq = seq;
	pkt->len = slot->len;
	if (!op)
		return;
	pkt->qkey = op->qkey;
	pkt->imm = op->imm;
	pkt->op_len = (uint32_t)op->len;
	if (op->kind == SE_OP_RESPONSE) {
		pkt->op_id = op->remote_id;
		pkt->raddr = slot->off;
		return;
	}
	pkt->op_id = op->id;
	pkt->rkey = op->rkey;
	pkt->raddr = op->raddr + slot->off;
	if (slot->type == SE_PKT_READ)
		pkt->len = 0;
}

/* True if fault injection loses or delays the packet: then do not send it. */
static bool se_slot_faulty(struct se_qp *qp, struct se_flow *flow,
			   struct se_slot *slot, uint32_t seq, uint64_t now)
{
	uint64_t hash, hold = 0;

	if (!slot->held) {
		slot->held = true;
		if (se_cfg.delay_us)
			hold = se_cfg.delay_us;
		if (se_fault(SE_FAULT_REORDER, qp->serial, flow->number,
			     seq)) {
			hash = se_fault_hash(SE_FAULT_REORDER, seq,
					     flow->number, qp->serial);
			hold += 20 + hash % 200;
		}
		if (hold) {
			slot->state = SE_SLOT_WAIT;
			slot->time = now + hold * 1000;
			if (slot->time < flow->due)
				flow->due = slot->time;
			return true;
		}
	}
	if (!se_fault(SE_FAULT_LOSS, qp->serial ^ (uint32_t)slot->tries << 16,
		      flow->number, seq))
		return false;
	qp->stats.lost++;
	qp->lossy = true;
	slot->state = SE_SLOT_SENT;
	slot->time = now;
	slot->cookie = SE_COOKIE_LOST;
	return true;
}

/*
 * Pins the payload of a packet. Each transmission pins again, because the
 * application may have deregistered the region in between. If it has, changes
 * the packet into one without payload: it aborts the read response, or is VOID
 * and ends the operation. Returns the number of pins.
 */
static int se_slot_pin(struct se_qp *qp, struct se_flow *flow,
		       struct se_slot *slot, struct se_mr_entry **pins)
{
	struct se_op *op = slot->op;
	struct ibv_sge part;

	if (!op || !slot->len || op->is_inline || slot->type == SE_PKT_READ)
		return 0;
	if (op->kind != SE_OP_RESPONSE) {
		if (se_mr_pin_list(qp, op->sge, op->sge_count, 0, pins))
			return op->sge_count;
		se_slot_void(qp, flow, slot, SE_INVALID_LKEY);
		return 0;
	}
	part = (struct ibv_sge){ op->raddr + slot->off, slot->len, op->rkey };
	if (se_mr_pin_list(qp, &part, 1, IBV_ACCESS_REMOTE_READ, pins))
		return 1;
	op->status = SE_REMOTE_BAD_ADDRESS;
	slot->flags = SE_PKT_ABORT;
	slot->len = 0;
	return 0;
}

static int se_slot_tx(struct se_qp *qp, struct se_flow *flow,
		      struct se_slot *slot, uint32_t seq)
{
	struct iovec iov[SE_MAX_IOV];
	struct se_pkt pkt;
	int ret, count;

	se_slot_header(qp, flow, slot, seq, &pkt);
	count = se_slot_iov(slot, iov);
	ret = qp->wire->tx(qp, flow, &pkt, iov, count, &slot->cookie);
	if (!ret && se_fault(SE_FAULT_DUP, qp->serial, flow->number, seq))
		qp->wire->tx(qp, flow, &pkt, iov, count, &slot->cookie);
	return ret;
}

/* Sends packet seq. False: the flow has failed, or the wire has no space. */
static bool se_slot_put(struct se_qp *qp, struct se_flow *flow, uint32_t seq,
			uint64_t now)
{
	struct se_slot *slot = &flow->slot[seq % SE_WINDOW];
	struct se_mr_entry *pins[SE_MAX_SQ_SGE];
	int ret, count;

	if (se_slot_faulty(qp, flow, slot, seq, now))
		return true;
	count = se_slot_pin(qp, flow, slot, pins);
	ret = se_slot_tx(qp, flow, slot, seq);
	se_mr_unpin_list(pins, count);
	if (ret > 0) {
		se_flow_fail(qp, flow, (enum se_status)ret);
		return false;
	}
	if (ret) {
		slot->state = SE_SLOT_WAIT;
		slot->time = 0;
		flow->blocked = true;
		return false;
	}
	flow->ack_due = false; /* this packet contains the acknowledgment */
	slot->state = SE_SLOT_SENT;
	slot->time = now;
	return true;
}

/*
 * Fills the slot with the operation's next packet. False: the packet must wait
 * for the ACKs of the operation's other packets.
 */
static bool se_op_segment(struct se_qp *qp, struct se_op *op,
			  struct se_slot *slot)
{
	static const uint8_t types[] = {
		[SE_OP_SEND] = SE_PKT_SEND,
		[SE_OP_WRITE] = SE_PKT_WRITE,
		[SE_OP_READ] = SE_PKT_READ,
		[SE_OP_RESPONSE] = SE_PKT_READ_DATA,
	};
	uint64_t left = op->len - op->done;

	if (op->kind != SE_OP_READ && left > se_cfg.mtu)
		left = se_cfg.mtu;
	memset(slot, 0, sizeof(*slot));
	if (op->kind == SE_OP_RESPONSE && op->status) {
		op->done = op->len;
		left = 0;
		slot->flags = SE_PKT_ABORT;
	}
	if (op->has_imm && op->done + left == op->len) {
		/*
		 * the target reports the whole write when it gets this packet,
		 * so wait for the ACKs of the write's other packets
		 */
		if (op->unacked)
			return false;
		slot->flags = SE_PKT_IMM;
	}
	slot->op = op;
	slot->off = op->done;
	slot->len = (uint32_t)left;
	slot->type = types[op->kind];
	slot->state = SE_SLOT_WAIT;
	op->done += left;
	op->unacked++;
	if (op->kind != SE_OP_RESPONSE) {
		qp->stats.tx_pkts++;
		qp->stats.tx_bytes += op->kind == SE_OP_READ ? 0 : left;
	}
	op->segmented = op->done == op->len;
	return true;
}

static void se_flow_pump(struct se_qp *qp, struct se_flow *flow, uint64_t now)
{
	struct se_op *op;
	uint32_t seq;

	while ((op = flow->queue) && !flow->blocked &&
	       now >= flow->rnr_until &&
	       flow->next_seq - flow->una < flow->window) {
		seq = flow->next_seq;
		if (!se_op_segment(qp, op, &flow->slot[seq % SE_WINDOW]))
			return;
		flow->next_seq++;
		if (op->segmented) {
			flow->queue = op->next;
			if (!op->next)
				flow->queue_tail = &flow->queue;
			op->queued = false;
		}
		if (!se_slot_put(qp, flow, seq, now))
			return;
	}
}

/*
 * Sends or retransmits the slot's packet if its time has come. Returns the time
 * of the slot's next scan, ns; 0: the flow cannot send now. *probed: this scan
 * of the flow has already retransmitted a packet.
 */
static uint64_t se_slot_scan(struct se_qp *qp, struct se_flow *flow,
			     uint32_t seq, uint64_t now, bool *probed)
{
	struct se_slot *slot = &flow->slot[seq % SE_WINDOW];
	uint32_t shift = slot->tries < 7 ? slot->tries : 7;
	uint64_t rto = (uint64_t)qp->wire->rto_us * 1000 << shift;

	if (slot->state == SE_SLOT_WAIT) {
		if (now < slot->time)
			return slot->time;
		return se_slot_put(qp, flow, seq, now) ? now + rto : 0;
	}
	if (rto > SE_RTO_MAX_NS)
		rto = SE_RTO_MAX_NS;
	if (now - slot->time < rto)
		return slot->time + rto;
	if (slot->cookie != SE_COOKIE_LOST &&
	    qp->wire->unread(qp, flow, slot->cookie)) {
		slot->time = now;
		return now + rto;
	}
	/* a scan retransmits only one packet to a silent peer */
	if (*probed && flow->heard < slot->time)
		return now + rto;
	*probed = true;
	slot->tries++;
	qp->stats.retrans++;
	qp->lossy = true;
	flow->window = flow->window / 2 < 4 ? 4 : flow->window / 2;
	return se_slot_put(qp, flow, seq, now) ? now + 2 * rto : 0;
}

/* Sends a packet without a number; it is lost if the wire has no space. */
void se_flow_tell(struct se_qp *qp, struct se_flow *flow,
		  enum se_pkt_type type, uint32_t op_id)
{
	struct se_pkt pkt;
	uint64_t cookie;

	se_flow_header(qp, flow, &pkt);
	pkt.type = (uint8_t)type;
	pkt.op_id = op_id;
	qp->wire->tx(qp, flow, &pkt, NULL, 0, &cookie);
}

/* If the peer has failed, fails the flow and returns false. */
static bool se_flow_check_alive(struct se_qp *qp, struct se_flow *flow,
				uint64_t now)
{
	uint64_t last = flow->heard > flow->checked ? flow->heard :
						      flow->checked;
	enum se_status status;

	if (now - last < SE_ALIVE_NS || se_flow_idle(flow))
		return true;
	flow->checked = now;
	status = qp->wire->alive(qp, flow);
	if (!status && !qp->wire->reports_death &&
	    now - flow->heard > se_cfg.timeout_ms * SE_MS)
		status = flow->responsive ? SE_UNRESP_REMOTE :
					    SE_UNREACH_REMOTE;
	if (status) {
		se_flow_fail(qp, flow, status);
		return false;
	}
	return true;
}

static void se_flow_scan(struct se_qp *qp, struct se_flow *flow, uint64_t now)
{
	uint64_t due = now + SE_SCAN_NS, when;
	uint32_t seq, end = flow->next_seq;
	bool probed = false;

	flow->blocked = false;
	for (seq = flow->una; seq != end; seq++) {
		if (flow->slot[seq % SE_WINDOW].state == SE_SLOT_FREE)
			continue;
		when = se_slot_scan(qp, flow, seq, now, &probed);
		if (!when)
			break;
		if (when < due)
			due = when;
	}
	if (flow->rnr_until > now && flow->rnr_until < due)
		due = flow->rnr_until;
	flow->due = flow->blocked ? 0 : due;
	if (se_flow_check_alive(qp, flow, now))
		se_read_ask(qp, flow);
}

static void se_flows_progress(struct se_qp *qp)
{
	struct se_flow **link = &qp->active, *flow;
	uint64_t now = se_now();

	while ((flow = *link)) {
		if (now >= flow->due)
			se_flow_scan(qp, flow, now);
		se_flow_pump(qp, flow, now);
		if (se_flow_idle(flow)) {
			flow->is_active = false;
			*link = flow->active_next;
		} else {
			link = &flow->active_next;
		}
	}
}

void se_srd_progress(struct se_qp *qp)
{
	if (qp->ex.qp_base.state < IBV_QPS_INIT)
		return;
	qp->wire->rx(qp, SE_RX_BUDGET);
	if (qp->ack_list)
		se_srd_send_acks(qp);
	if (qp->active)
		se_flows_progress(qp);
	qp->work = qp->active || qp->ack_list;
	if (qp->work)
		se_notify_work(qp);
}

bool se_srd_busy(struct se_qp *qp)
{
	return atomic_load_explicit(&qp->work, memory_order_relaxed) ||
	       qp->wire->rx_pending(qp);
}

/* Checks an operation as the device does. Returns SE_OK or the failure. */
static enum se_status se_op_validate(struct se_qp *qp, struct se_op *op)
{
	int i;

	if (qp->ex.qp_base.state == IBV_QPS_ERR || qp->closing)
		return SE_FLUSHED;
	if (!op->ah || op->ah->ibv.pd != qp->ex.qp_base.pd)
		return SE_INVALID_AH;
	if (op->kind == SE_OP_SEND && op->len > se_cfg.mtu)
		return SE_BAD_LENGTH;
	if (op->kind != SE_OP_SEND && op->len > 1u << 30)
		return SE_BAD_LENGTH;
	for (i = 0; i < op->sge_count; i++) {
		if (!se_mr_local_ok(qp, &op->sge[i],
				    op->kind == SE_OP_READ))
			return SE_INVALID_LKEY;
	}
	if (se_fault(SE_FAULT_ERROR, qp->serial, 0, qp->op_serial++))
		return (enum se_status)se_cfg.error_status;
	return SE_OK;
}

/* Sends a UD message, which completes at once, even if it is dropped. */
static void se_ud_send(struct se_qp *qp, struct se_flow *flow,
		       struct se_op *op)
{
	struct se_slot slot = { .op = op, .len = (uint32_t)op->len,
				.type = SE_PKT_DGRAM };
	struct iovec iov[SE_MAX_IOV];
	struct se_pkt pkt;

	if (op->has_imm)
		slot.flags = SE_PKT_IMM;
	se_slot_header(qp, flow, &slot, 0, &pkt);
	qp->stats.tx_pkts++;
	qp->stats.tx_bytes += op->len;
	if (se_fault(SE_FAULT_LOSS, qp->serial, flow->number, qp->op_serial++))
		qp->stats.lost++;
	else
		qp->wire->tx(qp, flow, &pkt, iov, se_slot_iov(&slot, iov),
			     &slot.cookie);
	se_op_finish(qp, op);
}

/*
 * Stores the peer's qkey. If the qkey has changed, another QP has reused the
 * peer's QP number: fails all operations with the previous QP.
 */
static void se_flow_meet(struct se_qp *qp, struct se_flow *flow, uint32_t qkey)
{
	if (flow->has_qkey && flow->qkey != qkey)
		se_flow_fail(qp, flow, SE_REMOTE_BAD_DEST_QPN);
	flow->has_qkey = true;
	flow->qkey = qkey;
}

void se_srd_submit(struct se_qp *qp, struct se_op *op)
{
	struct se_flow *flow = NULL;

	op->done = 0;
	op->got = 0;
	op->rnr_tries = 0;
	op->unacked = 0;
	op->segmented = false;
	op->queued = false;
	op->next = NULL;
	op->flow = NULL;
	op->status = (uint8_t)se_op_validate(qp, op);
	if (!op->status) {
		flow = se_flow_get(qp, &op->ah->gid, op->qpn);
		if (!flow && se_flow_reap_all(qp, true))
			flow = se_flow_get(qp, &op->ah->gid, op->qpn);
		if (!flow)
			op->status = SE_UNREACH_REMOTE;
	}
	if (!flow) {
		se_op_finish(qp, op);
		return;
	}
	if (!qp->ud)
		se_flow_meet(qp, flow, op->qkey);
	op->flow = flow;
	if (qp->ud) {
		se_ud_send(qp, flow, op);
		return;
	}
	if (op->kind == SE_OP_READ)
		flow->waiting_reads++;
	if (op->kind != SE_OP_SEND)
		qp->stats.rdma++;
	op->queued = true;
	*flow->queue_tail = op;
	flow->queue_tail = &op->next;
	se_flow_activate(qp, flow);
	se_flow_pump(qp, flow, se_now());
}
