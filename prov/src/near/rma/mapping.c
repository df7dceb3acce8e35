/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The mappings of peers' device memory, kept for later operations: mapped.h. */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/proc.h"
#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

/*
 * Drops a mapping, which must have no pending copies: moves it to
 * near_table.unmapped, or frees it if near has not mapped the memory yet.
 */
static void near_mapping_drop(struct near_mapped *mapped,
			      struct near_mapping *mapping)
{
	mapped->dropped[mapped->drops++ % NEAR_DROPPED] = mapping->id;
	if (mapping->fd >= 0)
		close(mapping->fd);
	near_list_remove(&mapping->link);
	mapped->count--;
	if (!mapping->map.mapping) {
		free(mapping);
		return;
	}
	near_list_append(&mapped->table->unmapped, &mapping->link);
	mapped->table->unmapped_count++;
}

/*
 * True if the peer's table has the region that was used last through this
 * mapping, or if the table cannot be read now.
 */
static bool near_mapping_valid(const struct near_mapped *mapped,
			       const struct near_mapping *mapping)
{
	struct near_region_entry entry;
	int ret = near_table_view_find(mapped->at->view, mapping->key, &entry);

	return ret == -EAGAIN || (!ret && entry.export_id == mapping->id);
}

/*
 * True if near must drop the mapping of a removed region now. If near had
 * mapped and dropped the allocation before, near keeps the mapping for
 * NEAR_MAPPING_KEEP_MS: rma.md, *Release*.
 */
static bool near_mapping_expired(struct near_mapping *mapping)
{
	uint64_t now;

	if (!mapping->repeated)
		return true;
	now = duo_now_ms();
	if (!mapping->gone_ms)
		mapping->gone_ms = now;
	return now - mapping->gone_ms >= NEAR_MAPPING_KEEP_MS;
}

/*
 * Drops the mappings of regions that the peer has removed. Keeps a mapping that
 * an operation uses, or that has not expired (near_mapping_expired()). Drops no
 * more mappings when near_table.unmapped has NEAR_UNMAPPED elements.
 */
static void near_mapped_search(struct near_mapped *mapped)
{
	struct near_mapping *mapping, *next;
	bool left = false;
	uint64_t now;

	now = __atomic_load_n(&mapped->at->view->head->generation,
			      __ATOMIC_ACQUIRE);
	if (now == mapped->searched)
		return;
	near_list_each_safe(mapping, next, &mapped->mappings, link) {
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

/*
 * Drops the mappings, of all peers, that no operation uses. Drops no more
 * mappings when near_table.unmapped has NEAR_UNMAPPED elements.
 */
static void near_mappings_evict(struct near_table *table)
{
	struct near_mapping *mapping, *next;
	struct near_mapped *mapped;

	near_list_each(mapped, &table->mapped, link)
		near_list_each_safe(mapping, next, &mapped->mappings, link)
			if (mapping->map.mapping && !mapping->ops &&
			    table->unmapped_count < NEAR_UNMAPPED)
				near_mapping_drop(mapped, mapping);
}

void *near_table_unmapped(struct near_table *table)
{
	struct near_mapping *mapping;
	struct near_mapped *mapped;
	void *opaque;

	near_list_each(mapped, &table->mapped, link)
		near_mapped_search(mapped);
	if (near_list_empty(&table->unmapped))
		return NULL;
	mapping = near_container(table->unmapped.next, struct near_mapping,
				 link);
	opaque = mapping->map.mapping;
	near_list_remove(&mapping->link);
	table->unmapped_count--;
	table->released++;
	free(mapping);
	return opaque;
}

/*
 * Stores the device queue that all local buffers have, and the handle of one
 * buffer. Returns NEAR_DEVICE_MAPPED. If the buffers have no common queue,
 * returns the device path that is the reason.
 */
static enum near_device_path
near_mapped_queue(const struct near_port *port,
		  const struct near_rma_bufs *local, const void **queue,
		  void **handle)
{
	const struct near_device *device = port->rma->sink->device;
	const void *first = NULL, *other;
	size_t i;
	void *at;

	for (i = 0; i < local->count; i++) {
		if (!local->iov[i].iov_len)
			continue;
		at = near_mapped_handle(port, local, i);
		if (!at)
			return NEAR_DEVICE_HOST;
		other = device->queue ? device->queue(at) : NULL;
		if (!other)
			return NEAR_DEVICE_OFF;
		if (first && other != first)
			return NEAR_DEVICE_QUEUES;
		first = other;
		*handle = at;
	}
	*queue = first;
	return first ? NEAR_DEVICE_MAPPED : NEAR_DEVICE_HOST;
}

/*
 * Adds a struct near_mapping, without mapping the memory. NULL: no memory for
 * the struct, or too many mappings.
 */
static struct near_mapping *
near_mapping_open(struct near_mapped *mapped, uint64_t id, const void *queue)
{
	struct near_mapping *mapping;
	uint32_t i;

	if (mapped->count == NEAR_MAPPINGS)
		near_mapped_search(mapped);
	if (mapped->count == NEAR_MAPPINGS)
		return NULL;
	mapping = calloc(1, sizeof(*mapping));
	if (!mapping)
		return NULL;
	mapping->id = id;
	mapping->fd = -1;
	for (i = 0; i < NEAR_DROPPED; i++)
		mapping->repeated |= mapped->dropped[i] == id;
	mapping->queue = queue;
	near_list_append(&mapped->mappings, &mapping->link);
	mapped->count++;
	if (!mapped->link.next)
		near_list_append(&mapped->table->mapped, &mapped->link);
	return mapping;
}

/* Logs `why`, and sets mapping->failed. Returns NEAR_DEVICE_FAILED. */
static enum near_device_path near_mapping_give_up(struct near_port *port,
						  struct near_mapping *mapping,
						  const struct near_peer *peer,
						  const char *why)
{
	mapping->failed = true;
	near_log(port, 1, "peer %d: device memory of region 0x%llx: copied "
		 "through the stage, because %s", peer->addr.pid,
		 (unsigned long long)mapping->key, why);
	return NEAR_DEVICE_FAILED;
}

/*
 * Requests a file descriptor for the mapping from the peer, at most once in
 * NEAR_MAPPING_REQUEST_MS. Returns NEAR_DEVICE_WAITS or NEAR_DEVICE_FAILED.
 */
static enum near_device_path near_mapping_request(struct near_port *port,
						  struct near_mapping *mapping,
						  struct near_peer *peer)
{
	uint64_t now = duo_now_ms();
	int ret;

	if (mapping->requested_ms &&
	    now - mapping->requested_ms < NEAR_MAPPING_REQUEST_MS)
		return NEAR_DEVICE_WAITS;
	mapping->requested_ms = now;
	ret = near_fdx_gpu_request(port, peer, mapping->key, mapping->id);
	return !ret || ret == -EAGAIN ? NEAR_DEVICE_WAITS :
	       near_mapping_give_up(port, mapping, peer,
				    "the peer's socket is not reachable");
}

/*
 * Maps an allocation, or requests the file descriptor for that. Returns
 * NEAR_DEVICE_MAPPED, or the device path that is the reason why the allocation
 * is not mapped. If near_device.map() returns -ENOMEM, drops the mappings that
 * no operation uses. When the embedder has then got a dropped mapping by
 * near_table_unmapped() (near_table.released has changed), the next call of
 * this function calls map() again.
 */
static enum near_device_path
near_mapping_map(struct near_port *port, struct near_mapped *mapped,
		 struct near_mapping *mapping,
		 const struct near_region_entry *entry, void *device)
{
	struct near_peer *peer = mapped->at->peer;
	struct near_export export;
	int ret;

	if (mapping->enomem_at == mapped->table->released + 1)
		return NEAR_DEVICE_MEMORY;
	if (mapping->requested_ms && mapping->fd < 0)
		return near_mapping_request(port, mapping, peer);
	if (near_table_view_export(mapped->at->view, entry, &export))
		return NEAR_DEVICE_LIMIT;
	if (export.needs_fd && mapping->fd < 0)
		return near_mapping_request(port, mapping, peer);
	ret = port->rma->sink->device->map(device, &export, mapping->fd,
					   &mapping->map);
	if (ret == -ENOMEM) {
		mapping->map = (struct near_map) { NULL };
		mapping->enomem_at = mapped->table->released + 1;
		near_mappings_evict(mapped->table);
		return NEAR_DEVICE_MEMORY;
	}
	if (mapping->fd >= 0)
		close(mapping->fd);
	mapping->fd = -1;
	mapping->base = export.base;
	if (!ret)
		return NEAR_DEVICE_MAPPED;
	mapping->map = (struct near_map) { NULL };
	return near_mapping_give_up(port, mapping, peer, "mapping has failed");
}

int near_mapped_share(struct near_port *port, uint64_t key, uint64_t id)
{
	const struct near_device *device = port->rma->sink->device;
	const struct near_region_entry *entry =
		near_table_find(port->rma->table, key);

	if (!device->share || !entry || !id || entry->export_id != id)
		return -ENOENT;
	return device->share((void *)(uintptr_t)entry->device);
}

/* True while near waits for the peer's file descriptor for the mapping. */
static bool near_mapping_waits(const struct near_mapping *mapping)
{
	return mapping->requested_ms && mapping->fd < 0 && !mapping->failed &&
	       !mapping->map.mapping;
}

void near_mapped_shared(struct near_port *port, struct near_peer *peer,
			uint64_t id, int fd)
{
	struct near_mapping *mapping;

	if (peer->rma && peer->rma->staging) {
		near_list_each(mapping, &peer->rma->staging->mapped.mappings,
			       link) {
			if (mapping->id != id || !near_mapping_waits(mapping))
				continue;
			mapping->fd = fd;
			if (fd < 0)
				near_mapping_give_up(port, mapping, peer,
						     "the peer has sent no "
						     "descriptor");
			return;
		}
	}
	if (fd >= 0)
		close(fd);
}

static struct near_mapping *near_mapping_find(const struct near_mapped *mapped,
					      uint64_t id, const void *queue)
{
	struct near_mapping *mapping;

	near_list_each(mapping, &mapped->mappings, link)
		if (mapping->id == id && mapping->queue == queue)
			return mapping;
	return NULL;
}

uint8_t *near_mapping_at(const struct near_mapping *mapping, uint64_t memory,
			 size_t len)
{
	uint64_t offset = memory - mapping->base;

	return offset <= mapping->map.len && len <= mapping->map.len - offset ?
	       mapping->map.at + offset : NULL;
}

enum near_device_path near_mapping_get(struct near_port *port,
				       struct near_rma_peer *at,
				       const struct near_rma_args *args,
				       const struct near_region_entry *entry,
				       uint64_t memory,
				       struct near_mapping **mapping)
{
	struct near_staging *staging;
	enum near_device_path path;
	struct near_mapping *found;
	struct near_mapped *mapped;
	const void *queue = NULL;
	void *handle = NULL;

	/* with NEAR_RMA_COPY the source is near's copy, which is not pinned */
	if (!entry->device || args->flags & NEAR_RMA_COPY)
		return NEAR_DEVICE_HOST;
	path = near_mapped_queue(port, &args->local, &queue, &handle);
	if (path != NEAR_DEVICE_MAPPED)
		return path;
	if (!entry->export_id)
		return NEAR_DEVICE_NO_EXPORT;
	/*
	 * The operation must not overtake messages that the target has not
	 * consumed yet. A mapped copy would. A staged operation does not,
	 * because its request follows the messages in the ring.
	 */
	if (near_rma_behind(at, args))
		return NEAR_DEVICE_BEHIND;
	staging = near_staging(port, at);
	if (!staging)
		return NEAR_DEVICE_LIMIT;
	mapped = &staging->mapped;
	found = near_mapping_find(mapped, entry->export_id, queue);
	if (near_unlikely(!found))
		found = near_mapping_open(mapped, entry->export_id, queue);
	if (!found)
		return NEAR_DEVICE_LIMIT;
	found->key = entry->key;
	found->gone_ms = 0;
	if (found->failed)
		return NEAR_DEVICE_FAILED;
	if (near_unlikely(!found->map.mapping))
		path = near_mapping_map(port, mapped, found, entry, handle);
	if (path != NEAR_DEVICE_MAPPED)
		return path;
	if (!near_mapping_at(found, memory, args->len))
		return NEAR_DEVICE_FAILED;
	*mapping = found;
	return near_mapping_path(found);
}

void near_mapped_close(struct near_mapped *mapped,
		       const struct near_device *device)
{
	struct near_mapping *mapping, *next;
	struct near_rma_op *op;

	while (mapped->ended != mapped->begun) {
		op = mapped->op[mapped->ended++ % NEAR_MAPPED_OPS];
		while (!near_copies_ended(device, op->pending, &op->err))
			;
	}
	near_list_each_safe(mapping, next, &mapped->mappings, link)
		near_mapping_drop(mapped, mapping);
	if (mapped->link.next)
		near_list_remove(&mapped->link);
}
