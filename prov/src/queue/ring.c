/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

#include <stdlib.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "base/caller.h"
#include "queue/ring.h"

#define DUO_RING_MIN 64
#define DUO_RING_MAX (1U << 30)

static uint32_t duo_ring_roundup(size_t size)
{
	uint32_t rounded = DUO_RING_MIN;

	while (rounded < size && rounded < DUO_RING_MAX)
		rounded <<= 1;
	return rounded;
}

int duo_ring_init(struct duo_ring *ring, size_t size)
{
	ring->size = duo_ring_roundup(size);
	ring->limit = ring->size;
	ring->head = 0;
	ring->tail = 0;
	ring->slot = aligned_alloc(DUO_LINE, ring->size * sizeof(*ring->slot));
	return ring->slot ? 0 : -FI_ENOMEM;
}

void duo_ring_fini(struct duo_ring *ring)
{
	free(ring->slot);
	ring->slot = NULL;
}

static int duo_ring_grow(struct duo_ring *ring)
{
	struct duo_ring_slot *slot;
	uint32_t i, count = ring->tail - ring->head;

	if (ring->size >= DUO_RING_MAX)
		return -FI_ENOMEM;
	slot = aligned_alloc(DUO_LINE, 2 * (size_t) ring->size * sizeof(*slot));
	if (!slot)
		return -FI_ENOMEM;
	for (i = 0; i < count; i++)
		slot[(ring->head + i) & (2 * ring->size - 1)] =
			ring->slot[(ring->head + i) & (ring->size - 1)];
	free(ring->slot);
	ring->slot = slot;
	ring->size *= 2;
	ring->limit *= 2;
	return 0;
}

int duo_ring_push(struct duo_ring *ring, const struct fi_cq_tagged_entry *entry,
		  fi_addr_t src)
{
	bool full = ring->tail - ring->head == ring->size;

	if (full && duo_ring_grow(ring))
		return -FI_ENOMEM;
	duo_ring_put(ring, entry, src);
	return 0;
}

size_t duo_ring_read(struct duo_ring *ring, enum fi_cq_format format,
		     void *buf, size_t count, fi_addr_t *src)
{
	size_t i;

	count = duo_min(count, (size_t) (ring->tail - ring->head));
	for (i = 0; i < count; i++)
		buf = duo_ring_read_one(ring, format, buf,
					src ? &src[i] : NULL);
	return count;
}

void duo_err_init(struct duo_err_list *errs)
{
	STAILQ_INIT(&errs->list);
	errs->some = false;
	errs->overrun = false;
}

void duo_err_fini(struct duo_err_list *errs)
{
	struct duo_err *err;

	while ((err = STAILQ_FIRST(&errs->list))) {
		STAILQ_REMOVE_HEAD(&errs->list, link);
		free(err);
	}
}

void duo_err_push(struct duo_err_list *errs, const struct duo_ring *ring,
		  const struct fi_cq_err_entry *entry, int path)
{
	struct duo_err *err = malloc(sizeof(*err));
	size_t size = entry->err_data ? entry->err_data_size : 0;

	if (!err) {
		duo_err_overrun(errs);
		return;
	}
	if (size > sizeof(err->data))
		size = sizeof(err->data);
	if (size)
		memcpy(err->data, entry->err_data, size);
	err->entry = *entry;
	err->entry.err_data_size = size;
	err->path = path;
	err->place = ring->tail;
	STAILQ_INSERT_TAIL(&errs->list, err, link);
	errs->some = true;
}

int duo_err_pop(struct duo_err_list *errs, struct fi_cq_err_entry *entry,
		void *data)
{
	struct duo_err *err = STAILQ_FIRST(&errs->list);
	void *to = entry->err_data;
	size_t space = entry->err_data_size;
	int path;

	if (!err) {
		/* keeps errs->overrun: an overrun CQ stays overrun, fi_cq(3) */
		*entry = (struct fi_cq_err_entry) {
			.err = FI_EOVERRUN,
			.prov_errno = FI_EOVERRUN,
			DUO_CQ_ERR_SRC(FI_ADDR_NOTAVAIL)
		};
		return -1;
	}
	STAILQ_REMOVE_HEAD(&errs->list, link);
	errs->some = !STAILQ_EMPTY(&errs->list) || errs->overrun;
	*entry = err->entry;
	if (!space || !to) {
		to = data;
		space = DUO_ERR_DATA_MAX;
	}
	if (entry->err_data_size > space)
		entry->err_data_size = space;
	memcpy(to, err->data, entry->err_data_size);
	entry->err_data = entry->err_data_size || to != data ? to : NULL;
	path = err->path;
	free(err);
	return path;
}
