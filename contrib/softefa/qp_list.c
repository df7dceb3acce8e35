/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * All QPs of the process. A real device makes progress without polls, so empty
 * polls of any CQ also drive the QPs of other CQs (SE_DRIVE_POLLS): a process
 * that waits for one endpoint still acknowledges messages to its others.
 *
 * Threads that drive the listed QPs take se_qps_lock for reading, or drive none
 * if the lock is not free. se_qps_add() and se_qps_remove() take it for
 * writing. The lock prefers writers, so that polls without pause do not block
 * ibv_destroy_qp().
 */
#include "softefa.h"

static pthread_rwlock_t se_qps_lock =
	PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static struct se_qp *se_qps;
static _Atomic uint32_t se_qps_count;

void se_qps_add(struct se_qp *qp)
{
	pthread_rwlock_wrlock(&se_qps_lock);
	qp->next = se_qps;
	se_qps = qp;
	se_qps_count++;
	pthread_rwlock_unlock(&se_qps_lock);
}

void se_qps_remove(struct se_qp *qp)
{
	struct se_qp **link;

	pthread_rwlock_wrlock(&se_qps_lock);
	for (link = &se_qps; *link && *link != qp; link = &(*link)->next)
		;
	if (*link) {
		*link = qp->next;
		se_qps_count--;
	}
	pthread_rwlock_unlock(&se_qps_lock);
}

uint32_t se_qps_total(void)
{
	return atomic_load_explicit(&se_qps_count, memory_order_relaxed);
}

void se_qp_drive(struct se_qp *qp)
{
	if (!se_srd_busy(qp) || pthread_mutex_trylock(&qp->lock))
		return;
	se_srd_progress(qp);
	pthread_mutex_unlock(&qp->lock);
}

void se_qps_drive(void)
{
	struct se_qp *qp;

	if (pthread_rwlock_tryrdlock(&se_qps_lock))
		return; /* a QP is being added or removed */
	for (qp = se_qps; qp; qp = qp->next)
		se_qp_drive(qp);
	pthread_rwlock_unlock(&se_qps_lock);
}

/*
 * At exit of the process: drains open QPs, removes their files, and prints
 * their statistics.
 */
void se_qps_exit(void)
{
	struct se_qp *qp;

	pthread_rwlock_rdlock(&se_qps_lock);
	for (qp = se_qps; qp; qp = qp->next) {
		se_srd_drain(qp);
		qp->wire->leave(qp);
	}
	/* after all drains, because the drain of one QP also drives others */
	for (qp = se_qps; qp; qp = qp->next)
		se_stats_print(qp);
	pthread_rwlock_unlock(&se_qps_lock);
}
