/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Staged reads and writes, at the target: see stage.h. */

#include <errno.h>

#include "near/rma/ops.h"
#include "near/rma/stage.h"

/* Maps the peer's stage, for operations on memory of this process. */
static int near_stage_open_theirs(struct near_port *port,
				  struct near_rma_peer *at, int index)
{
	struct near_staging *staging = at->staging;
	struct near_stage *stage = &staging->theirs;
	const struct near_table_view *view;

	if (stage->memory)
		return stage->index == index ? 0 : -EPROTO;
	/* if an attempt has failed, a file descriptor may be free now */
	at->view_tried = at->view;
	view = near_rma_view(at);
	if (!view) {
		near_log(port, staging->no_view, "peer %d: cannot open its "
			 "region table; its transfers of device memory fail "
			 "until a file descriptor is free: raise RLIMIT_NOFILE",
			 at->peer->addr.pid);
		staging->no_view = true;
		return -EMFILE;
	}
	return near_table_view_has(view, index) ?
	       near_stage_map(stage, view->fd, index) : -EPROTO;
}

/* Looks up a request's target address. Returns 0 or a positive errno value. */
static int near_stage_where(struct near_port *port,
			    const struct near_rma_slot *ask, uint64_t addr,
			    uint8_t **memory, void **device)
{
	uint32_t access = near_rma_access(ask->verb, ask->op);
	const struct near_region_entry *entry =
		near_table_find(port->rma->table, ask->key);
	uint64_t at;

	if (!entry)
		return EKEYREJECTED;
	access = near_stage_access(entry, ask->flags & NEAR_RMA_FETCHES,
				   access);
	if (near_region_check(entry, addr, ask->total, access, &at))
		return EACCES;
	*memory = (uint8_t *)(uintptr_t)at + ask->offset;
	*device = (void *)(uintptr_t)entry->device;
	return 0;
}

/*
 * Starts the copy that a request requires. Returns 0 or a positive errno value.
 */
static int near_stage_serve(struct near_port *port, struct near_rma_peer *at,
			    struct near_rma_reply *reply)
{
	const struct near_rma_slot *ask = &reply->ask;
	struct near_staging *staging = near_staging(port, at);
	uint8_t *memory, *chunk;
	void *device;
	int ret;

	if (ask->offset &&
	    (at->rejected == ask->id || at->failed == ask->id))
		/* an earlier part of the operation has failed */
		return EIO;
	ret = staging ? -near_stage_open_theirs(port, at, ask->type) : ENOMEM;
	if (!ret)
		ret = near_stage_where(port, ask, reply->addr, &memory,
				       &device);
	if (ret)
		return ret;
	chunk = staging->theirs.memory + ask->op * NEAR_STAGE_CHUNK;
	return -near_stage_copy(staging, &staging->theirs, device,
				ask->verb == NEAR_READ ? chunk : memory,
				ask->verb == NEAR_READ ? memory : chunk,
				ask->len, &reply->copy);
}

/* False for a request that only a faulty peer sends. */
static bool near_stage_valid(const struct near_rma_slot *ask)
{
	return (ask->verb == NEAR_READ ||
		(ask->verb == NEAR_WRITE &&
		 !(ask->flags & NEAR_RMA_FETCHES))) &&
	       ask->op < NEAR_STAGE_CHUNKS && ask->len &&
	       ask->len <= NEAR_STAGE_CHUNK && ask->offset <= ask->total &&
	       ask->len <= ask->total - ask->offset;
}

int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot)
{
	struct near_rma_slot ask = slot->rma;
	struct near_rma_reply *reply;
	struct near_rma_peer *at;

	if (!near_stage_valid(&ask)) {
		near_rx_ring_broken(port, ring, "request length", ask.len);
		return -EPROTO;
	}
	/* the reply requires a ring, the chunk requires the peer's table */
	if (!ring->peer->tx.slots && near_connect(port, ring->peer) == -EAGAIN)
		return -EAGAIN;
	at = near_rma_peer(ring->peer);
	if (at && at->replies_queued >= NEAR_RMA_REPLIES_MAX) {
		near_rx_ring_broken(port, ring, "request beyond the limit,",
				    ask.id);
		return -EPROTO;
	}
	reply = at ? near_pool_get(&port->rma->replies) : NULL;
	if (!reply)
		return -EAGAIN;
	reply->verb = ask.verb;
	reply->staged = true;
	reply->copy = NULL;
	reply->ask = ask;
	reply->id = ask.id;
	reply->addr = slot->tag;
	reply->offset = ask.offset;
	reply->len = 0;
	reply->err = (uint32_t)near_stage_serve(port, at, reply);
	at->rejected = reply->err ? ask.id : 0;
	near_rma_queue_reply(port, at, reply);
	return 0;
}

bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply)
{
	const struct near_rma_slot *ask = &reply->ask;
	int ret = 0;

	if (reply->copy)
		ret = at->staging->device->done(reply->copy);
	if (ret == -EAGAIN)
		return false;
	reply->copy = NULL;
	if (ret)
		reply->err = (uint32_t)-ret;
	if (!near_rma_answer(port, at, reply, NULL, 0))
		return false;
	if (reply->err)
		at->failed = ask->id;
	else if (!ask->offset)
		at->failed = 0;
	if (at->failed != ask->id && ask->offset + ask->len == ask->total &&
	    !(ask->flags & NEAR_RMA_FETCHES))
		near_rma_over(port, at->peer, ask);
	return true;
}
