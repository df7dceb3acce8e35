/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Writing completions: inline, as the data path does it. */
#ifndef NEAR_API_CQ_H
#define NEAR_API_CQ_H

#include <string.h>

#include "api/near_fi.h"

static inline bool near_cq_room(const struct near_cq *cq)
{
	return cq->out_left || cq->tail - cq->head <= cq->mask;
}

/* cq.c: into the ring, or in another format than the largest. */
void near_cq_put_other(struct near_cq *cq,
		       const struct fi_cq_tagged_entry *entry, fi_addr_t src);

/* The same while nobody reads, which is when sends complete. */
static near_inline void near_cq_put_later(struct near_cq *cq, void *context,
					  uint64_t flags)
{
	struct near_comp *comp = &cq->ring[cq->tail & cq->mask];

	comp->entry.op_context = context;
	comp->entry.flags = flags;
	comp->entry.len = 0;
	comp->entry.buf = NULL;
	comp->entry.data = 0;
	comp->entry.tag = 0;
	comp->src = FI_ADDR_NOTAVAIL;
	cq->tail++;
	if (near_unlikely(cq->waiter.asleep))
		near_waiter_wake(&cq->waiter);
}

/*
 * There is room for one: near_cq_room(). Word by word: an entry that is stored
 * so and then copied by vectors at once waits for the store buffer.
 */
static near_inline void near_cq_put(struct near_cq *cq,
				    const struct fi_cq_tagged_entry *entry,
				    fi_addr_t src)
{
	struct fi_cq_tagged_entry *out, copy;

	if (near_unlikely(!cq->out_left ||
			  cq->entry_size != sizeof(*entry))) {
		copy = *entry;	/* the original stays in registers */
		near_cq_put_other(cq, &copy, src);
		return;
	}
	cq->out_left--;
	if (cq->out_src)
		*cq->out_src++ = src;
	out = (struct fi_cq_tagged_entry *)cq->out;
	out->op_context = entry->op_context;
	out->flags = entry->flags;
	out->len = entry->len;
	out->buf = entry->buf;
	out->data = entry->data;
	out->tag = entry->tag;
	cq->out += sizeof(*out);
}

#endif /* NEAR_API_CQ_H */
