/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Frees flows of failed peers. A flow records the packets received from its
 * peer, so flows of live peers are kept. Some flows are checked when a flow is
 * added, and at intervals while polls of a CQ find nothing. All flows are
 * checked when there is no space for a new one. The caller of each function
 * holds qp->lock.
 */
#include <stdlib.h>

#include "softefa.h"

#define SE_MS 1000000ull
#define SE_ADD_BUCKETS 2 /* hash buckets that are checked for each new flow */
/* interval of the checks of all flows, in multiples of a check's duration */
#define SE_FULL_SHARE 10
#define SE_QUIET_NS (10000 * SE_MS)  /* silence after which a PING is sent */

static void se_flow_unlist(struct se_qp *qp, struct se_flow *flow)
{
	struct se_flow **link = &qp->ack_list;

	while (*link != flow)
		link = &(*link)->ack_next;
	*link = flow->ack_next;
}

void se_flow_free(struct se_qp *qp, struct se_flow *flow)
{
	if (flow->ack_listed)
		se_flow_unlist(qp, flow);
	/* a later flow to this peer must have a larger stream number */
	if (!qp->stream_floor ||
	    (int32_t)(flow->stream - qp->stream_floor) >= 0)
		qp->stream_floor = flow->stream + 1;
	qp->wire->flow_close(qp, flow);
	qp->flow_count--;
	free(flow);
}

/*
 * Sends a PING if the peer has been silent for SE_QUIET_NS, on a wire that does
 * not report failures. The host of an exited peer rejects the PING.
 */
static void se_flow_ask(struct se_qp *qp, struct se_flow *flow, uint64_t now)
{
	if (!flow->quiet_since)
		flow->quiet_since = now;
	else if (now - flow->quiet_since > SE_QUIET_NS)
		se_flow_tell(qp, flow, SE_PKT_PING, 0);
}

/*
 * True if the flow is idle and its peer has failed. With "full", a long silence
 * is a failure on wires that do not report failures.
 */
static bool se_flow_gone(struct se_qp *qp, struct se_flow *flow, bool full,
			 uint64_t now)
{
	if (!se_flow_idle(flow) || flow->is_active)
		return false;
	if (qp->wire->alive(qp, flow))
		return true;
	if (qp->wire->reports_death)
		return false;
	se_flow_ask(qp, flow, now);
	return full && now - flow->quiet_since >
			       SE_QUIET_NS + se_cfg.timeout_ms * SE_MS;
}

static void se_flow_reap(struct se_qp *qp, uint32_t bucket, bool full)
{
	struct se_flow **link = &qp->flows[bucket], *flow;
	uint64_t now = *link ? se_now() : 0;

	while ((flow = *link)) {
		if (!se_flow_gone(qp, flow, full, now)) {
			link = &flow->next;
			continue;
		}
		*link = flow->next;
		se_flow_free(qp, flow);
	}
}

void se_flow_reap_some(struct se_qp *qp)
{
	int i;

	for (i = 0; i < SE_ADD_BUCKETS; i++)
		se_flow_reap(qp, qp->reap_bucket++ % SE_FLOW_HASH, false);
}

bool se_flow_reap_all(struct se_qp *qp, bool often)
{
	uint64_t start = se_now();
	uint32_t i;

	if (!often && start < qp->reap_again)
		return false;
	for (i = 0; i < SE_FLOW_HASH; i++)
		se_flow_reap(qp, i, true);
	qp->reap_again = start + SE_FULL_SHARE * (se_now() - start);
	return true;
}

void se_srd_tidy(struct se_qp *qp)
{
	uint32_t i, bucket;

	if (qp->ex.qp_base.state < IBV_QPS_INIT)
		return;
	if (qp->wire->tidy)
		qp->wire->tidy(qp);
	for (i = 0; i < SE_FLOW_HASH; i++) {
		bucket = qp->reap_bucket++ % SE_FLOW_HASH;
		if (!qp->flows[bucket])
			continue;
		se_flow_reap(qp, bucket, false);
		return;
	}
}
