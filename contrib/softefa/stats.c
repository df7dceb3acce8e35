/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* SOFTEFA_STATS=1: one line per QP that was ready to receive. */
#include <unistd.h>

#include "softefa.h"

static pthread_mutex_t se_stats_lock = PTHREAD_MUTEX_INITIALIZER;
static struct se_qp *se_stats_qps;

/* One write, so that lines of several processes do not mix. */
static void se_stats_print(struct se_qp *qp)
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
		       "forged=%lu\n",
		       (int)getpid(), qp->dev->ibv.name, qp->wire->name,
		       qp->ud ? "ud" : "srd", qp->ex.qp_base.qp_num,
		       st->tx_pkts, st->tx_bytes, st->rx_pkts, st->rx_bytes,
		       st->rnr, st->retrans, st->dup, st->lost, st->errors,
		       st->forged);
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return; /* nobody to tell */
}

void se_stats_add(struct se_qp *qp)
{
	pthread_mutex_lock(&se_stats_lock);
	qp->next = se_stats_qps;
	se_stats_qps = qp;
	pthread_mutex_unlock(&se_stats_lock);
}

void se_stats_remove(struct se_qp *qp)
{
	struct se_qp **link;

	pthread_mutex_lock(&se_stats_lock);
	for (link = &se_stats_qps; *link; link = &(*link)->next) {
		if (*link == qp) {
			*link = qp->next;
			break;
		}
	}
	pthread_mutex_unlock(&se_stats_lock);
	se_stats_print(qp);
}

/*
 * The process ends with these QPs open: what it owes its peers is still sent,
 * what others would find of it is removed.
 */
void se_stats_exit(void)
{
	struct se_qp *qp;

	pthread_mutex_lock(&se_stats_lock);
	for (qp = se_stats_qps; qp; qp = qp->next) {
		se_stats_print(qp);
		se_srd_drain(qp);
		qp->wire->leave(qp);
	}
	se_stats_qps = NULL;
	pthread_mutex_unlock(&se_stats_lock);
}
