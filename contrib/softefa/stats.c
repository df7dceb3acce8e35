/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* SOFTEFA_STATS=1: prints a line for each QP that was ready to receive. */
#include <unistd.h>

#include "softefa.h"

/* Prints by one write(), so that lines of several processes do not mix. */
void se_stats_print(struct se_qp *qp)
{
	const struct se_stats *st = &qp->stats;
	char line[512];
	int len;

	if (!se_cfg.stats || qp->reported ||
	    qp->ex.qp_base.state < IBV_QPS_RTR)
		return;
	qp->reported = true;
	len = snprintf(line, sizeof(line),
		       "softefa stats: pid=%d dev=%s wire=%s type=%s qpn=%u "
		       "tx_pkts=%lu tx_bytes=%lu rx_pkts=%lu rx_bytes=%lu "
		       "rnr=%lu retrans=%lu dup=%lu lost=%lu errors=%lu "
		       "forged=%lu late=%lu rdma=%lu\n",
		       (int)getpid(), qp->dev->ibv.name, qp->wire->name,
		       qp->ud ? "ud" : "srd", qp->ex.qp_base.qp_num,
		       st->tx_pkts, st->tx_bytes, st->rx_pkts, st->rx_bytes,
		       st->rnr, st->retrans, st->dup, st->lost, st->errors,
		       st->forged, st->late, st->rdma);
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* stderr is closed */
}
