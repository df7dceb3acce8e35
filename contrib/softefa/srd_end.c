/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Flushing, draining and freeing a queue pair. */
#include <unistd.h>

#include "softefa.h"

#define SE_MS 1000000ull
/* limit of the time that ibv_destroy_qp() drains */
#define SE_DRAIN_NS (500 * SE_MS)
/* time without duplicates after which all peers seem to have their ACKs, ns */
#define SE_LINGER_NS (40 * SE_MS)

static void se_rq_flush(struct se_qp *qp)
{
	uint32_t head = qp->rq_head;
	struct se_cqe cqe = {
		.qp = qp,
		.qp_num = qp->ex.qp_base.qp_num,
		.status = SE_FLUSHED,
		.recv = true,
		.ahn = SE_AH_UNKNOWN,
	};

	for (; head != qp->rq_tail; head++) {
		cqe.wr_id = qp->rq[head & qp->rq_mask].wr_id;
		se_cq_push(qp->rcq, &cqe);
	}
	qp->rq_head = head;
}

void se_srd_flush(struct se_qp *qp)
{
	struct se_flow *flow;
	int i;

	for (i = 0; i < SE_FLOW_HASH; i++) {
		for (flow = qp->flows[i]; flow; flow = flow->next)
			se_flow_fail(qp, flow, SE_FLUSHED);
	}
	se_rq_flush(qp);
}

void se_srd_close(struct se_qp *qp)
{
	struct se_flow *flow;
	int i;

	for (i = 0; i < SE_FLOW_HASH; i++) {
		while ((flow = qp->flows[i])) {
			qp->flows[i] = flow->next;
			se_flow_free(qp, flow);
		}
	}
	qp->active = NULL;
}

/* True if a packet is not on the wire yet, or may be lost there. */
static bool se_srd_owes(struct se_qp *qp)
{
	struct se_flow *flow;
	uint32_t seq;

	if (qp->ack_list)
		return true;
	for (flow = qp->active; flow; flow = flow->active_next) {
		if (flow->queue)
			return true;
		if (qp->lossy && flow->una != flow->next_seq)
			return true;
		for (seq = flow->una; seq != flow->next_seq; seq++) {
			if (flow->slot[seq % SE_WINDOW].state == SE_SLOT_WAIT)
				return true;
		}
	}
	return false;
}

/*
 * Sends all queued packets before the QP is destroyed. If packets have been
 * lost, continues to acknowledge until no peer retransmits. Rejects new data,
 * as if the QP did not exist. Takes at most SE_DRAIN_NS. The caller must not
 * hold qp->lock.
 */
void se_srd_drain(struct se_qp *qp)
{
	uint64_t start = se_now(), now = start, quiet = start, seen = 0;
	bool stay = true;

	while (stay && now - start < SE_DRAIN_NS) {
		if (!pthread_mutex_trylock(&qp->lock)) {
			qp->closing = true;
			se_srd_progress(qp);
			if (qp->stats.dup != seen)
				quiet = now;
			seen = qp->stats.dup;
			stay = se_srd_owes(qp) ||
			       (qp->lossy && now - quiet < SE_LINGER_NS);
			pthread_mutex_unlock(&qp->lock);
		}
		if (!stay)
			break;
		/* peers may wait for other QPs of this process */
		se_qps_drive();
		usleep(200);
		now = se_now();
	}
}
