/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Staged operations at the initiator: docs/near/rma.md. */

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "near/rma/inline.h"
#include "near/rma/ops.h"
#include "near/rma/stage.h"

struct near_staging *near_staging(struct near_port *port,
				  struct near_rma_peer *at)
{
	struct near_staging *staging = at->staging;

	if (staging)
		return staging;
	staging = calloc(1, sizeof(*staging));
	if (!staging)
		return NULL;
	staging->device = port->rma->sink->device;
	staging->mapped.at = at;
	staging->mapped.table = port->rma->table;
	near_list_init(&staging->mapped.mappings);
	at->staging = staging;
	return staging;
}

int near_stage_map(struct near_stage *stage, int fd, int index)
{
	void *map = mmap(NULL, NEAR_STAGE, PROT_READ | PROT_WRITE, MAP_SHARED,
			 fd, near_table_stage(index));

	if (map == MAP_FAILED)
		/* EAGAIN means too much locked memory: a retry is useless */
		return errno == EAGAIN ? -ENOMEM : -errno;
	madvise(map, NEAR_STAGE, MADV_DONTDUMP);
	stage->memory = map;
	stage->index = index;
	return 0;
}

static void near_stage_unmap(const struct near_staging *staging,
			     struct near_stage *stage)
{
	if (!stage->memory)
		return;
	if (stage->pin)
		staging->device->unpin(stage->pin);
	munmap(stage->memory, NEAR_STAGE);
	*stage = (struct near_stage) { .memory = NULL };
}

int near_stage_open(struct near_port *port, struct near_rma_peer *at)
{
	struct near_staging *staging = near_staging(port, at);
	int index, ret;

	if (!staging)
		return -ENOMEM;
	if (staging->ours.memory)
		return 0;
	index = near_table_stage_get(port->rma->table);
	if (index < 0)
		return index;
	ret = near_stage_map(&staging->ours, port->rma->table->fd, index);
	if (ret)
		near_table_stage_put(port->rma->table, index);
	return ret;
}

#ifdef __SSE2__
/*
 * Copies by stores that bypass the caches. Ordinary stores would first load the
 * old bytes of the destination into the cache.
 */
static void near_stage_stream(uint8_t *to, const uint8_t *from, size_t len)
{
	size_t at = -(uintptr_t)to % sizeof(__m128i);
	__m128i part;

	memcpy(to, from, at);
	for (; at + sizeof(part) <= len; at += sizeof(part)) {
		memcpy(&part, from + at, sizeof(part));
		_mm_stream_si128((void *)(to + at), part);
	}
	memcpy(to + at, from + at, len - at);
	_mm_sfence();
}
#endif

/*
 * Copies between a chunk and host memory. If a whole chunk is copied to host
 * memory, uses near_stage_stream().
 */
static void near_stage_copy_host(const struct near_stage *stage, void *to,
				 const void *from, size_t len)
{
#ifdef __SSE2__
	size_t offset = (uintptr_t)from - (uintptr_t)stage->memory;

	if (len == NEAR_STAGE_CHUNK && offset < NEAR_STAGE) {
		near_stage_stream(to, from, len);
		return;
	}
#endif
	memcpy(to, from, len);
}

int near_stage_copy(struct near_staging *staging, struct near_stage *stage,
		    void *device, void *to, const void *from, size_t len,
		    void **copy)
{
	if (!device) {
		near_stage_copy_host(stage, to, from, len);
		return 0;
	}
	if (!stage->pinned)
		stage->pin = staging->device->pin(device, stage->memory,
						  NEAR_STAGE);
	stage->pinned = true;
	return staging->device->start(device, to, from, len, copy);
}

/*
 * Copies between a chunk and the local buffers of its operation: to the chunk
 * if `out` is true, otherwise from the chunk. Returns 0 or -errno.
 */
static int near_chunk_copy(struct near_staging *staging,
			   struct near_chunk *chunk, bool out)
{
	uint32_t index = (uint32_t)(chunk - staging->chunk), i;
	uint8_t *at = staging->ours.memory + index * NEAR_STAGE_CHUNK, *local;
	const struct near_rma_bufs *bufs = &chunk->op->args.local;
	size_t skip = chunk->offset, left = chunk->len, n;
	void *device;
	int ret = 0;

	for (i = 0; !ret && left && i < bufs->count; i++) {
		n = bufs->iov[i].iov_len;
		if (skip >= n) {
			skip -= n;
			continue;
		}
		n = n - skip < left ? n - skip : left;
		local = (uint8_t *)bufs->iov[i].iov_base + skip;
		device = bufs->device ? bufs->device[i] : NULL;
		ret = near_stage_copy(staging, &staging->ours, device,
				      out ? at : local, out ? local : at, n,
				      &chunk->copy[i]);
		skip = 0;
		at += n;
		left -= n;
	}
	return ret;
}

bool near_copies_ended(const struct near_device *device, void **copy, int *err)
{
	uint32_t i;
	int ret;

	for (i = 0; i < NEAR_IOV_MAX; i++) {
		if (!copy[i])
			continue;
		ret = device->done(copy[i]);
		if (ret == -EAGAIN)
			return false;
		copy[i] = NULL;
		if (ret)
			*err = -ret;
	}
	return true;
}

int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry, uint64_t memory)
{
	struct near_mapping *mapping = NULL;
	struct near_rma_args with = *args;
	enum near_device_path path;
	int ret;

	at->device_path = near_mapping_get(port, at, args, entry, memory,
					   &mapping);
	ret = mapping ? 0 : near_stage_open(port, at);
	if (!ret && !mapping && near_loan_can(port, at, args, entry)) {
		with.flags |= NEAR_RMA_LENT;
		at->device_path = NEAR_DEVICE_LENT;
	}
	if (ret == -ENOSPC)
		at->device_path = NEAR_DEVICE_PEERS;
	/* kept here, because near_rma_queue() may change at->device_path */
	path = at->device_path;
	if (!ret)
		ret = near_rma_queue(port, at, &with, true, mapping);
	if (!ret || ret == -ENOSPC)
		port->rma->device_ops[path]++;
	return ret;
}

uint64_t near_rma_device_ops(const struct near_port *port,
			     enum near_device_path path)
{
	return port->rma->device_ops[path];
}

void near_stage_begin(struct near_rma_op *op)
{
	op->begun = true;
	op->to->unanswered++;
	op->to->device_pending++;
	if (op->args.flags & NEAR_RMA_MESSAGE)
		near_rma_ungate(op);
}

/*
 * Takes chunks for the parts of op. If op is a write, starts to fill them.
 * Returns 0 when all parts of op have chunks; -EAGAIN: op stays in the queue.
 */
static int near_stage_issue(struct near_port *port, struct near_rma_op *op)
{
	bool by_cpu = op->args.verb == NEAR_WRITE && !op->args.local.device;
	struct near_rma_peer *at = op->to;
	struct near_staging *staging = at->staging;
	struct near_chunk *chunk;
	int ret;

	if (!op->begun && (at->unanswered != at->device_pending ||
			   near_mapped_pending(&staging->mapped)))
		return -EAGAIN;
	if (!op->begun)
		near_stage_begin(op);
	while (op->sent < op->args.len) {
		if (staging->filled - staging->freed == NEAR_STAGE_CHUNKS ||
		    (by_cpu && !near_read_take(port, NEAR_STAGE_CHUNK)))
			return -EAGAIN;
		chunk = &staging->chunk[staging->filled++ % NEAR_STAGE_CHUNKS];
		chunk->op = op;
		chunk->state = NEAR_CHUNK_FILLS;
		chunk->offset = op->sent;
		chunk->len = op->args.len - op->sent;
		if (chunk->len > NEAR_STAGE_CHUNK)
			chunk->len = NEAR_STAGE_CHUNK;
		ret = op->args.verb == NEAR_READ ? 0 :
		      near_chunk_copy(staging, chunk, true);
		/* after an error, this chunk stands for all remaining parts */
		if (ret) {
			op->err = -ret;
			chunk->len = op->args.len - op->sent;
		}
		op->sent += chunk->len;
		at->due++;
	}
	return 0;
}

int near_stage_continue(struct near_port *port, struct near_rma_op *op)
{
	struct near_rma_peer *at = op->to;
	int ret = op->mapping ? near_mapped_issue(port, op) :
		  op->args.flags & NEAR_RMA_LENT ? near_loan_issue(port, op) :
						    near_stage_issue(port, op);

	if (!ret)
		near_rma_unqueue(op);
	near_stage_step(port, at);
	return ret;
}

/*
 * If a chunk's copies have ended, posts its request, or ends the chunk after an
 * error. False: the caller must retry in a later poll. Until then, it must not
 * post the requests of later chunks.
 */
static bool near_chunk_post(struct near_port *port, struct near_rma_peer *at,
			    struct near_chunk *chunk)
{
	struct near_staging *staging = at->staging;
	const struct near_rma_args *args = &chunk->op->args;
	struct near_slot *slot;

	if (!near_copies_ended(staging->device, chunk->copy, &chunk->op->err))
		return false;
	if (chunk->op->err) {
		chunk->state = NEAR_CHUNK_ENDED;
		at->due--;
		return true;
	}
	slot = near_control_slot(port, at->peer);
	if (!slot)
		return false;
	slot->tag = args->addr;
	slot->rma = (struct near_rma_slot) {
		.key = args->key,
		.id = near_pool_id(chunk->op),
		.total = args->len,
		.offset = chunk->offset,
		.data = args->data,
		.verb = args->verb,
		.op = (uint8_t)(chunk - staging->chunk),
		.type = (uint8_t)staging->ours.index,
		.flags = (uint8_t)(args->flags | NEAR_RMA_STAGED),
		/* bytes in the chunk; 0: lent operation */
		.len = args->flags & NEAR_RMA_LENT ? 0 : (uint32_t)chunk->len,
	};
	near_control_send(port, at->peer, slot, NEAR_KIND_RMA, 0);
	chunk->op->mark = near_rma_mark(at);
	chunk->state = NEAR_CHUNK_POSTED;
	at->due--;
	return true;
}

void near_stage_step(struct near_port *port, struct near_rma_peer *at)
{
	struct near_staging *staging = at->staging;
	struct near_chunk *chunk;
	struct near_rma_op *op;
	bool posts = true;
	uint32_t i;

	for (i = staging->freed; i != staging->filled; i++) {
		chunk = &staging->chunk[i % NEAR_STAGE_CHUNKS];
		if (chunk->state == NEAR_CHUNK_FILLS)
			posts = posts && near_chunk_post(port, at, chunk);
		if (chunk->state == NEAR_CHUNK_DRAINS &&
		    near_copies_ended(staging->device, chunk->copy,
				      &chunk->op->err)) {
			chunk->state = NEAR_CHUNK_ENDED;
			at->due--;
		}
	}
	while (staging->freed != staging->filled) {
		chunk = &staging->chunk[staging->freed % NEAR_STAGE_CHUNKS];
		if (chunk->state != NEAR_CHUNK_ENDED)
			break;
		staging->freed++;
		op = chunk->op;
		op->answered += chunk->len;
		if (op->answered == op->args.len)
			near_rma_end(port, op, op->err);
	}
}

bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err)
{
	struct near_rma_peer *at = op->to;
	struct near_staging *staging = at->staging;
	struct near_chunk *chunk = NULL;
	uint32_t i;

	/* without at->staging, op has sent no request: the reply is invalid */
	if (!staging)
		return false;
	for (i = staging->freed; i != staging->filled; i++) {
		chunk = &staging->chunk[i % NEAR_STAGE_CHUNKS];
		if (chunk->state == NEAR_CHUNK_POSTED)
			break;
	}
	if (i == staging->filled || chunk->op != op || chunk->offset != offset)
		return false;
	if (op->args.flags & NEAR_RMA_LENT)
		err = near_loan_answered(port, chunk, err);
	else if (!err && op->args.verb == NEAR_READ)
		err = -near_chunk_copy(staging, chunk, false);
	if (err && !op->err)
		op->err = err;
	/* near_stage_step() ends the chunk when its copies have ended */
	chunk->state = NEAR_CHUNK_DRAINS;
	at->due++;
	near_stage_step(port, at);
	if (!near_rma_waits(at))
		near_rma_add_work(port, at);
	return true;
}

/* If there is a copy, waits until it has ended. Sets *copy to NULL. */
static void near_copy_wait(const struct near_staging *staging, void **copy)
{
	while (*copy && staging->device->done(*copy) == -EAGAIN)
		;
	*copy = NULL;
}

/*
 * Does not return the stage to the table if the peer lives and has not replied
 * to all requests: the peer might still copy from or to the stage, so no other
 * peer may get the stage.
 */
void near_stage_close(struct near_rma_peer *at, bool peer_lives)
{
	struct near_staging *staging = at->staging;
	struct near_rma_reply *reply;
	uint32_t i, j;

	if (!staging)
		return;
	near_list_each(reply, &at->replies, link) {
		if (!reply->staged)
			continue;
		near_copy_wait(staging, &reply->copy);
		near_loan_end(reply);
	}
	near_loans_revoke(at);
	near_mapped_close(&staging->mapped, staging->device);
	for (i = 0; i < NEAR_STAGE_CHUNKS; i++)
		for (j = 0; j < NEAR_IOV_MAX; j++)
			near_copy_wait(staging, &staging->chunk[i].copy[j]);
	if (staging->ours.memory && !(peer_lives && at->device_pending))
		near_table_stage_put(staging->mapped.table,
				     staging->ours.index);
	near_stage_unmap(staging, &staging->ours);
	near_stage_unmap(staging, &staging->theirs);
	at->staging = NULL;
	at->due = 0;
	free(staging);
}
