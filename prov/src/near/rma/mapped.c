/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The copies of mapped operations: see mapped.h. */

#include <errno.h>
#include <string.h>

#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

enum near_device_path near_rma_device_path(const struct near_peer *peer)
{
	return peer->rma ? peer->rma->device_path : NEAR_DEVICE_NONE;
}

/*
 * Starts one copy for each local buffer, from or to the address `at` in the
 * mapping, and counts the bytes in op->sent. Returns 0 or the first error;
 * -ENOENT: the device to which the mapping's queue belongs can no longer access
 * a local buffer, for example because the application has unpinned the buffer's
 * host memory.
 */
static int near_mapped_start(const struct near_port *port,
			     struct near_rma_op *op, uint8_t *at)
{
	const struct near_device *device = port->rma->sink->device;
	const struct near_rma_bufs *bufs = &op->args.local;
	bool read = op->args.verb == NEAR_READ;
	size_t left, n;
	uint8_t *local;
	void *handle;
	uint32_t i;
	int ret;

	for (i = 0; i < bufs->count; i++) {
		left = op->args.len - op->sent;
		local = bufs->iov[i].iov_base;
		n = bufs->iov[i].iov_len;
		n = n < left ? n : left;
		if (!n)
			continue;
		handle = near_mapped_handle(port, bufs, i);
		if (!handle || device->queue(handle) != op->mapping->queue)
			return -ENOENT;
		ret = device->start(handle, read ? local : at,
				    read ? at : local, n, &op->pending[i]);
		if (ret)
			return ret;
		at += n;
		op->sent += n;
	}
	return 0;
}

/*
 * Counts an operation as begun. near_mapped_step() will end the operation.
 * Returns 0.
 */
static int near_mapped_begin(struct near_mapped *mapped, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;

	near_stage_begin(op);
	/* no request was sent, so the end of op must not raise tx->consumed */
	op->mark = 0;
	op->sent = op->args.len;
	at->due++;
	mapped->op[mapped->begun++ % NEAR_MAPPED_OPS] = op;
	return 0;
}

/*
 * Makes a mapped operation a staged one, and returns -EAGAIN. If no stage can
 * be opened, returns 0, and near_mapped_step() will end the operation with an
 * error.
 */
static int near_mapped_to_stage(struct near_port *port, struct near_rma_op *op)
{
	int ret = near_stage_open(port, op->to);

	port->rma->device_ops[near_mapping_path(op->mapping)]--;
	port->rma->device_ops[NEAR_DEVICE_FAILED]++;
	op->to->device_path = NEAR_DEVICE_FAILED;
	op->mapping->ops--;
	op->mapping = NULL;
	if (!ret)
		return -EAGAIN;
	op->err = -ret;
	return near_mapped_begin(&op->to->staging->mapped, op);
}

int near_mapped_issue(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	struct near_mapped *mapped = &at->staging->mapped;
	struct near_mapping *mapping = op->mapping;
	uint32_t pending = near_mapped_pending(mapped);
	struct near_region_entry entry;
	uint8_t *memory = NULL;
	uint64_t address;
	int ret;

	/* only copies in the same device queue are executed in order */
	if (at->unanswered != pending || pending == NEAR_MAPPED_OPS ||
	    (pending && mapped->queue != mapping->queue))
		return -EAGAIN;
	memset(op->pending, 0, sizeof(op->pending));
	/*
	 * looks up the region again, because the peer might have removed the
	 * region since near_rma() has looked it up
	 */
	ret = near_rma_look_up(at, &op->args, &entry, &address);
	if (ret == -EAGAIN)
		return ret;
	mapped->queue = mapping->queue;
	op->err = -ret;
	if (ret)
		return near_mapped_begin(mapped, op);
	if (entry.export_id == mapping->id && !mapping->failed)
		memory = near_mapping_at(mapping, address, op->args.len);
	if (!memory)
		return near_mapped_to_stage(port, op);
	ret = near_mapped_start(port, op, memory);
	if (ret && !op->sent) {
		/*
		 * No copy was started, so op can be staged. If `failed` is set,
		 * later operations on the mapping are staged, too. The flag
		 * stays false if the local memory may be the cause: if all
		 * local buffers are host memory, or if the device can no longer
		 * access one of them (-ENOENT).
		 */
		mapping->failed = op->args.local.device && ret != -ENOENT;
		return near_mapped_to_stage(port, op);
	}
	op->err = -ret;
	return near_mapped_begin(mapped, op);
}

void near_mapped_step(struct near_port *port, struct near_rma_peer *at)
{
	struct near_mapped *mapped = &at->staging->mapped;
	struct near_slot *slot;
	struct near_rma_op *op;

	while (mapped->ended != mapped->begun) {
		op = mapped->op[mapped->ended % NEAR_MAPPED_OPS];
		if (!near_copies_ended(port->rma->sink->device, op->pending,
				       &op->err))
			return;
		if (!op->err && op->args.flags & NEAR_RMA_MESSAGE &&
		    near_peer_closed(port, at->peer))
			op->err = ECONNRESET;
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
