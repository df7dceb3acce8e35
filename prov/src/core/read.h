/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads of the core's CQ. An entry completes a receive if its context points to
 * a receive entry (struct duo_rx). All other entries go to the application as
 * they are. Lock: the group's. Cost: in the common case the core writes its
 * entries into the application's array, and ofi_duo changes them there.
 */
#ifndef DUO_READ_H
#define DUO_READ_H

#include <rdma/fi_errno.h>

#include "obj/cq.h"

/*
 * Reads and handles up to DUO_CORE_BATCH entries of the core's CQ, or one
 * error. Returns the number of entries, or 1 for an error; 0: nothing was read.
 */
int duo_cq_poll_core(struct duo_cq *cq);

/*
 * Handles `count` entries that the core has written to the application's array,
 * and changes them there if possible. Returns count.
 */
int duo_cq_core_in_place(struct duo_cq *cq, size_t count);
/*
 * Same as duo_cq_poll_core(), if the application's array is full or has another
 * format, or if the application is not reading the CQ.
 */
int duo_cq_core_apart(struct duo_cq *cq);
/* Handles the next error of the core's CQ. Returns 1; 0: no error. */
int duo_cq_core_err(struct duo_cq *cq);

static inline fi_addr_t *duo_cq_core_src(struct duo_cq *cq)
{
	return cq->sink.src ? cq->sink.src : cq->core_src;
}

/*
 * Inline version of duo_cq_poll_core(). Usually the core's CQ is empty; then
 * this function calls no other function than the core's fi_cq_readfrom().
 */
DUO_INLINE int duo_cq_read_core(struct duo_cq *cq)
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
