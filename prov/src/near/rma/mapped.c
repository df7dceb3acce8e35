/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Reads and writes of mapped device memory: see mapped.h. */

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "near/rma/inline.h"
#include "near/rma/mapped.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

uint64_t near_rma_mapped(const struct near_port *port)
{
	return port->rma->mapped;
}

enum near_device_path near_rma_device_path(const struct near_peer *peer)
{
	return peer->rma ? peer->rma->device_path : NEAR_DEVICE_NONE;
}

/* Returns the peer's state, created if necessary; NULL: no memory. */
static struct near_mapped *near_mapped(struct near_port *port,
				       struct near_rma_peer *at)
{
	struct near_mapped *mapped = at->mapped;

	if (mapped)
		return mapped;
	mapped = calloc(1, sizeof(*mapped));
	if (!mapped)
		return NULL;
	mapped->at = at;
	mapped->table = port->rma->table;
	mapped->device = port->rma->sink->device;
	near_list_init(&mapped->mappings);
	near_list_append(&mapped->table->mapped, &mapped->link);
	at->mapped = mapped;
	return mapped;
}

/* Removes a mapping that no operation uses. */
static void near_mapping_drop(struct near_mapped *mapped,
			      struct near_mapping *mapping)
{
	mapped->dropped[mapped->drops++ % NEAR_DROPPED] = mapping->id;
	near_list_remove(&mapping->link);
	mapped->count--;
	if (!mapping->map.mapping) {
		free(mapping);
		return;
	}
	near_list_append(&mapped->table->unmapped, &mapping->link);
	mapped->table->unmapped_count++;
}

static bool near_mapping_dropped(const struct near_mapped *mapped, uint64_t id)
{
	uint32_t i;

	for (i = 0; i < NEAR_DROPPED; i++)
		if (mapped->dropped[i] == id)
			return true;
	return false;
}

/* True if the peer's table has a region with the mapping's key and id. */
static bool near_mapping_valid(const struct near_mapped *mapped,
			       const struct near_mapping *mapping)
{
	struct near_region_entry entry;
	int ret = near_table_view_find(mapped->at->view, mapping->key, &entry);

	return ret == -EAGAIN || (!ret && entry.export_id == mapping->id);
}

/*
 * True if the mapping of a removed region must be dropped now. If an allocation
 * was mapped before, its mapping stays for NEAR_MAPPING_KEEP_MS, because the
 * peer may register regions of it for each transfer.
 */
static bool near_mapping_expired(struct near_mapping *mapping)
{
	uint64_t now;

	if (!mapping->again)
		return true;
	now = duo_now_ms();
	if (!mapping->gone_ms)
		mapping->gone_ms = now;
	return now - mapping->gone_ms >= NEAR_MAPPING_KEEP_MS;
}

/* Drops the mappings of regions that the peer has removed. */
static void near_mapped_search(struct near_mapped *mapped)
{
	const struct near_table_view *view = mapped->at->view;
	struct near_mapping *mapping;
	struct near_link *link, *next;
	bool left = false;
	uint64_t now = __atomic_load_n(&view->head->generation,
				       __ATOMIC_ACQUIRE);

	if (now == mapped->searched)
		return;
	for (link = mapped->mappings.next; link != &mapped->mappings;
	     link = next) {
		next = link->next;
		mapping = near_container(link, struct near_mapping, link);
		if (near_mapping_valid(mapped, mapping))
			mapping->gone_ms = 0;
		else if (!mapping->ops && near_mapping_expired(mapping) &&
			 mapped->table->unmapped_count < NEAR_UNMAPPED)
			near_mapping_drop(mapped, mapping);
		else
			left = true;
	}
	if (!left)
		mapped->searched = now;
}

void *near_table_unmapped(struct near_table *table)
{
	struct near_mapping *mapping;
	struct near_link *link;
	void *opaque;

	for (link = table->mapped.next; link != &table->mapped;
	     link = link->next)
		near_mapped_search(near_container(link, struct near_mapped,
						  link));
	link = table->unmapped.next;
	if (link == &table->unmapped)
		return NULL;
	mapping = near_container(link, struct near_mapping, link);
	opaque = mapping->map.mapping;
	near_list_remove(link);
	table->unmapped_count--;
	free(mapping);
	return opaque;
}

/*
 * Stores the device's queue for copies of all local buffers, and the handle of
 * one buffer. Returns NEAR_DEVICE_MAPPED, or the reason for which no queue can
 * be used.
 */
static enum near_device_path
near_mapped_queue(const struct near_device *device,
		  const struct near_rma_bufs *local, const void **queue,
		  void **handle)
{
	const void *first = NULL, *other;
	size_t i;

	for (i = 0; i < local->count; i++) {
		if (!local->iov[i].iov_len)
			continue;
		if (!local->device || !local->device[i])
			return NEAR_DEVICE_HOST;
		other = device->queue ? device->queue(local->device[i]) : NULL;
		if (!other)
			return NEAR_DEVICE_OFF;
		if (first && other != first)
			return NEAR_DEVICE_QUEUES;
		first = other;
		*handle = local->device[i];
	}
	*queue = first;
	return first ? NEAR_DEVICE_MAPPED : NEAR_DEVICE_HOST;
}

/* Maps an allocation, and records a failure. NULL: no memory. */
static struct near_mapping *
near_mapping_open(struct near_port *port, struct near_mapped *mapped,
		  const struct near_region_entry *entry, void *device)
{
	struct near_mapping *mapping;
	struct near_export export;
	int ret;

	if (mapped->count == NEAR_MAPPINGS)
		near_mapped_search(mapped);
	if (mapped->count == NEAR_MAPPINGS ||
	    near_table_view_export(mapped->at->view, entry, &export))
		return NULL;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return NULL;
	mapping->id = export.id;
	mapping->base = export.base;
	mapping->again = near_mapping_dropped(mapped, export.id);
	mapping->queue = mapped->device->queue(device);
	ret = mapped->device->map(device, &export, &mapping->map);
	mapping->refused = ret;
	if (ret)
		mapping->map = (struct near_map) { NULL };
	near_log(port, 1, "peer %d: device memory of region 0x%llx: %s",
		 mapped->at->peer->addr.pid, (unsigned long long)entry->key,
		 ret ? "copied through the stage, because mapping has failed" :
		 "mapped");
	near_list_append(&mapped->mappings, &mapping->link);
	mapped->count++;
	return mapping;
}

static struct near_mapping *near_mapping_find(const struct near_mapped *mapped,
					      uint64_t id, const void *queue)
{
	struct near_mapping *mapping;
	struct near_link *link;

	for (link = mapped->mappings.next; link != &mapped->mappings;
	     link = link->next) {
		mapping = near_container(link, struct near_mapping, link);
		if (mapping->id == id && mapping->queue == queue)
			return mapping;
	}
	return NULL;
}

/*
 * Returns the address in the mapping; NULL: out of range. Compares with the
 * length that the device has reported, because the peer may be faulty.
 */
static uint8_t *near_mapping_at(const struct near_mapping *mapping,
				uint64_t memory, size_t len)
{
	uint64_t offset = memory - mapping->base;

	return offset <= mapping->map.len && len <= mapping->map.len - offset ?
	       mapping->map.at + offset : NULL;
}

/* Returns the path of near_mapping_get(); sets *mapping if it is MAPPED. */
static enum near_device_path
near_mapping_choose(struct near_port *port, struct near_rma_peer *at,
		    const struct near_rma_args *args,
		    const struct near_region_entry *entry, uint64_t memory,
		    struct near_mapping **mapping)
{
	struct near_mapping *found = NULL;
	enum near_device_path path;
	struct near_mapped *mapped;
	const void *queue;
	void *handle;

	if (!entry->device)
		return NEAR_DEVICE_HOST;
	path = near_mapped_queue(port->rma->sink->device, &args->local, &queue,
				 &handle);
	if (path != NEAR_DEVICE_MAPPED)
		return path;
	if (!entry->export_id)
		return NEAR_DEVICE_NO_EXPORT;
	/*
	 * messages are still in the ring: a staged operation keeps the order, a
	 * mapped one does not
	 */
	if (near_rma_behind(at, args))
		return NEAR_DEVICE_BEHIND;
	mapped = near_mapped(port, at);
	if (mapped)
		found = near_mapping_find(mapped, entry->export_id, queue);
	if (near_unlikely(mapped && !found))
		found = near_mapping_open(port, mapped, entry, handle);
	if (!found)
		return NEAR_DEVICE_LIMIT;
	found->key = entry->key;
	found->gone_ms = 0;
	if (found->refused || !near_mapping_at(found, memory, args->len))
		return NEAR_DEVICE_REFUSED;
	*mapping = found;
	return NEAR_DEVICE_MAPPED;
}

struct near_mapping *near_mapping_get(struct near_port *port,
				      struct near_rma_peer *at,
				      const struct near_rma_args *args,
				      const struct near_region_entry *entry,
				      uint64_t memory)
{
	struct near_mapping *mapping = NULL;

	at->device_path = near_mapping_choose(port, at, args, entry, memory,
					      &mapping);
	return mapping;
}

/*
 * Starts a copy for each local buffer. Returns 0 or the first error of the
 * device; starts no further copy after an error.
 */
static int near_mapped_start(const struct near_device *device,
			     struct near_rma_op *op, uint8_t *at)
{
	const struct near_rma_bufs *bufs = &op->args.local;
	bool read = op->args.verb == NEAR_READ;
	size_t left = op->args.len, n;
	uint8_t *local;
	uint32_t i;
	int ret = 0;

	for (i = 0; !ret && left && i < bufs->count; i++) {
		local = bufs->iov[i].iov_base;
		n = bufs->iov[i].iov_len;
		n = n < left ? n : left;
		if (!n)
			continue;
		ret = device->start(bufs->device[i], read ? local : at,
				    read ? at : local, n, &op->pending[i]);
		at += n;
		left -= n;
	}
	return ret;
}

static bool near_mapped_started(const struct near_rma_op *op)
{
	uint32_t i;

	for (i = 0; i < NEAR_IOV_MAX; i++)
		if (op->pending[i])
			return true;
	return false;
}

/* Counts an operation as begun; near_mapped_step() ends it. */
static int near_mapped_begin(struct near_mapped *mapped, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;

	near_stage_begin(op);
	op->mark = 0;	/* the end of op shows no progress of the consumer */
	op->sent = op->args.len;
	at->due++;
	mapped->op[mapped->begun++ % NEAR_MAPPED_OPS] = op;
	return 0;
}

/* Makes a mapped operation a staged one, before it has begun. */
static int near_mapped_to_stage(struct near_port *port, struct near_rma_op *op)
{
	int ret = near_stage_open(port, op->to);

	op->to->device_path = NEAR_DEVICE_REFUSED;
	op->mapping->ops--;
	op->mapping = NULL;
	if (!ret)
		return -EAGAIN;
	op->err = -ret;
	return near_mapped_begin(op->to->mapped, op);
}

int near_mapped_issue(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	struct near_mapped *mapped = at->mapped;
	struct near_mapping *mapping = op->mapping;
	uint32_t pending = near_mapped_pending(at);
	struct near_region_entry entry;
	uint8_t *memory = NULL;
	uint64_t address;
	int ret;

	/* only copies in one queue keep the order of the calls */
	if (at->unanswered != pending || pending == NEAR_MAPPED_OPS ||
	    (pending && mapped->queue != mapping->queue))
		return -EAGAIN;
	memset(op->pending, 0, sizeof(op->pending));
	/* the region may have been removed since the call */
	ret = near_stage_look(at, &op->args, &entry, &address);
	if (ret == -EAGAIN)
		return ret;
	if (!ret && entry.export_id == mapping->id && !mapping->refused)
		memory = near_mapping_at(mapping, address, op->args.len);
	if (!ret && !memory)
		return near_mapped_to_stage(port, op);
	mapped->queue = mapping->queue;
	if (!ret)
		ret = near_mapped_start(mapped->device, op, memory);
	if (ret && memory && !near_mapped_started(op)) {
		mapping->refused = true;
		return near_mapped_to_stage(port, op);
	}
	op->err = -ret;
	if (!ret)
		port->rma->mapped++;
	return near_mapped_begin(mapped, op);
}

void near_mapped_step(struct near_port *port, struct near_rma_peer *at)
{
	struct near_mapped *mapped = at->mapped;
	struct near_slot *slot;
	struct near_rma_op *op;

	while (mapped->ended != mapped->begun) {
		op = mapped->op[mapped->ended % NEAR_MAPPED_OPS];
		if (!near_copies_ended(mapped->device, op->pending, &op->err))
			return;
		if (!op->err && !(op->args.flags & NEAR_RMA_MESSAGE) &&
		    near_rma_notifies(op)) {
			slot = near_control_slot(port, at->peer);
			if (!slot)
				return;
			near_rma_notify(port, op, slot);
		}
		mapped->ended++;
		at->due--;
		near_rma_end(port, op, op->err);
	}
}

void near_mapped_close(struct near_rma_peer *at)
{
	struct near_mapped *mapped = at->mapped;
	struct near_rma_op *op;

	if (!mapped)
		return;
	while (mapped->ended != mapped->begun) {
		op = mapped->op[mapped->ended++ % NEAR_MAPPED_OPS];
		while (!near_copies_ended(mapped->device, op->pending, &op->err))
			;
		at->due--;
	}
	while (!near_list_empty(&mapped->mappings))
		near_mapping_drop(mapped,
				  near_container(mapped->mappings.next,
						 struct near_mapping, link));
	near_list_remove(&mapped->link);
	at->mapped = NULL;
	free(mapped);
}
