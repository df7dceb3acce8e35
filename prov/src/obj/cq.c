/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include "obj/cq.h"
#include "obj/ep.h"

void duo_cq_push_slow(struct duo_cq *cq, const struct fi_cq_tagged_entry *entry,
		      fi_addr_t src)
{
	duo_cq_wake_sleeper(cq);
	if (cq->hidden)
		return;
	cq->attention |= DUO_CQ_ENTRIES;
	if (duo_ring_push(&cq->ring, entry, src))
		duo_err_overrun(&cq->errs);
}

void duo_cq_push_sent_slow(struct duo_cq *cq, void *context, uint64_t flags)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context, .flags = flags,
	};

	duo_cq_push(cq, &entry, FI_ADDR_NOTAVAIL);
}

void duo_cq_push_err(struct duo_cq *cq, const struct fi_cq_err_entry *entry,
		     int path)
{
	if (cq->hidden)
		return;
	duo_cq_wake_sleeper(cq);
	cq->attention |= DUO_CQ_ENTRIES;
	/*
	 * The running read must return no later entry before this error. With
	 * space 0, later entries go to the ring, not to the read's array.
	 */
	cq->sink.space = 0;
	duo_err_push(&cq->errs, &cq->ring, entry, path);
}

void duo_cq_push_own_err(struct duo_cq *cq, void *context, uint64_t flags,
			 uint64_t tag, fi_addr_t src, int err)
{
	const struct fi_cq_err_entry entry = {
		.op_context = context, .flags = flags, .tag = tag, .err = err,
		.prov_errno = err,
		DUO_CQ_ERR_SRC(src == FI_ADDR_UNSPEC ? FI_ADDR_NOTAVAIL : src)
	};

	duo_cq_push_err(cq, &entry, -1);
}

void duo_cq_push_rx_err(struct duo_cq *cq, const struct duo_rx *rx, int err)
{
	rx->ep->rx.failed++;
	duo_cq_push_own_err(cq, rx->context, duo_rx_cq_flags(rx), rx->tag,
			    rx->addr, err);
}

void duo_cq_wake(struct duo_cq *cq)
{
	duo_cq_set_asleep(cq, false);
	duo_waiter_wake(&cq->waiter);
}
