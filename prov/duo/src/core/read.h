/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads of the core's CQ: what has our receives as contexts ends them, the
 * rest is the application's. Under the domain's lock.
 *
 * Cost: an entry is read to where the application wants it and changed there;
 * one whose receive is a rare one is copied (read.c).
 */
#ifndef DUO_READ_H
#define DUO_READ_H

#include <rdma/fi_errno.h>

#include "obj/cq.h"

/* Reads one batch; 0: there was none. */
int duo_cq_poll_core(struct duo_cq *cq);

/* read.c, for the inlines below */
void duo_cq_core_in_place(struct duo_cq *cq, struct fi_cq_tagged_entry *entry,
			  fi_addr_t *src, size_t count);
ssize_t duo_cq_core_apart(struct duo_cq *cq);
int duo_cq_core_err(struct duo_cq *cq);

DUO_HOT ssize_t duo_cq_core_direct(struct duo_cq *cq)
{
	fi_addr_t *src = cq->sink.src ? cq->sink.src : cq->core_src;
	struct fi_cq_tagged_entry *entry = cq->sink.buf;
	size_t room = cq->sink.room;
	ssize_t count;

	if (room > DUO_CORE_BATCH)
		room = DUO_CORE_BATCH;
	count = fi_cq_readfrom(cq->path_cq[FI_DUO_CORE], entry, room, src);
	if (count > 0)
		duo_cq_core_in_place(cq, entry, src, count);
	return count;
}

DUO_HOT int duo_cq_core_batch(struct duo_cq *cq)
{
	ssize_t count;

	cq->core_polls++;
	count = cq->sink.room && cq->format == FI_CQ_FORMAT_TAGGED ?
		duo_cq_core_direct(cq) : duo_cq_core_apart(cq);
	if (count == -FI_EAVAIL)
		return duo_cq_core_err(cq);
	return count > 0 ? count : 0;
}

#endif /* DUO_READ_H */
