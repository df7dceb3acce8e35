/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads of the core's CQ. An entry completes a receive if its context points to
 * a receive entry (struct duo_rx). The application gets all other entries
 * unchanged. Lock: the group's. Cost: in the common case none, because the core
 * writes its entries into the application's array.
 */
#ifndef DUO_READ_H
#define DUO_READ_H

#include <rdma/fi_errno.h>

#include "obj/cq.h"

/*
 * Handles `count` entries that the core wrote to the application's array,
 * cq->sink.buf. Returns `count`.
 */
int duo_cq_core_in_place(struct duo_cq *cq, size_t count);
/*
 * Does the same as duo_cq_poll_core(), but reads the entries into an array of
 * its own. It is for polls that cannot read into the application's array:
 * - the array is full
 * - its format is not FI_CQ_FORMAT_TAGGED, that of the core's CQ
 * - there is no array, because no read of the CQ is running
 */
int duo_cq_core_apart(struct duo_cq *cq);
/* Handles the next error of the core's CQ. Returns 1; 0: no error. */
int duo_cq_core_err(struct duo_cq *cq);

static inline fi_addr_t *duo_cq_core_src(struct duo_cq *cq)
{
	return cq->sink.src ? cq->sink.src : cq->core_src;
}

/*
 * Reads the core's CQ, and handles up to DUO_CORE_BATCH entries or one error.
 * Returns the number of entries and errors. It is inline for the common case:
 * the core's CQ is empty.
 */
DUO_INLINE int duo_cq_poll_core(struct duo_cq *cq)
{
	size_t space = cq->sink.space;
	ssize_t count;

	cq->core_polls++;
	if (!space || cq->format != FI_CQ_FORMAT_TAGGED)
		return duo_cq_core_apart(cq);
	if (space > DUO_CORE_BATCH)
		space = DUO_CORE_BATCH;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], cq->sink.buf, space,
			       duo_cq_core_src(cq));
	if (count > 0)
		return duo_cq_core_in_place(cq, count);
	return count == -FI_EAVAIL ? duo_cq_core_err(cq) : 0;
}

#endif /* DUO_READ_H */
