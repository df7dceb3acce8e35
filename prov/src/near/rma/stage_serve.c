/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Staged operations at the target: docs/near/rma.md. */

#include <errno.h>

#include "near/rma/ops.h"
#include "near/rma/stage.h"

/* Maps the peer's stage. Returns 0 or -errno; -EPROTO: invalid index. */
static int near_stage_open_theirs(struct near_port *port,
				  struct near_rma_peer *at, int index)
{
	struct near_staging *staging = at->staging;
	struct near_stage *stage = &staging->theirs;
	const struct near_table_view *view;

	if (stage->memory)
		return stage->index == index ? 0 : -EPROTO;
	/* after a failure, tries again: a file descriptor may be free now */
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

int near_stage_where(const struct near_port *port,
		     const struct near_rma_slot *req, uint64_t addr,
		     uint8_t **memory, void **device)
{
	const struct near_region_entry *entry =
		near_table_find(port->rma->table, req->key);
	uint64_t at;

	if (!entry)
		return EKEYREJECTED;
	if (near_region_check(entry, addr, req->total,
			      near_rma_access_to(entry, req->verb, req->op,
						 req->flags), &at))
		return EACCES;
	*memory = (uint8_t *)(uintptr_t)at + req->offset;
	*device = (void *)(uintptr_t)entry->device;
	return 0;
}

const struct near_tx_op *near_stage_message(const struct near_port *port,
					    const struct near_peer *peer,
					    const struct near_rma_reply *reply)
{
	const struct near_tx_op *op = near_pool_find(&port->tx_ops,
						     reply->addr);

	return op && op->peer == peer && !op->device &&
	       reply->req.total <= op->len ? op : NULL;
}

bool near_stage_copied(const struct near_port *port,
		       struct near_rma_reply *reply)
{
	int ret = 0;

	if (reply->copy)
		ret = port->rma->sink->device->done(reply->copy);
	if (ret == -EAGAIN)
		return false;
	reply->copy = NULL;
	if (ret)
		reply->err = (uint32_t)-ret;
	return true;
}

/*
 * True if the request must wait, because an earlier copy of the same bytes is
 * pending and one of the two copies writes the bytes. If the device has a queue
 * that executes copies in order, requests need not wait.
 */
static bool near_stage_overlaps(const struct near_port *port,
				const struct near_rma_peer *at, void *device,
				const struct near_rma_reply *reply)
{
	const struct near_device *calls = port->rma->sink->device;
	struct near_rma_reply *other;

	if (!device || (calls->queue && calls->queue(device)))
		return false;
	near_list_each(other, &at->replies, link)
		if (other->copy &&
		    other->memory < reply->memory + reply->req.len &&
		    reply->memory < other->memory + other->req.len &&
		    (other->req.verb == NEAR_WRITE ||
		     reply->req.verb == NEAR_WRITE) &&
		    !near_stage_copied(port, other))
			return true;
	return false;
}

/*
 * Starts a request's copy. Returns 0, or an error for the reply as a positive
 * errno value. EAGAIN: no reply; retry later.
 */
static int near_stage_serve(struct near_port *port, struct near_rma_peer *at,
			    struct near_rma_reply *reply)
{
	const struct near_rma_slot *req = &reply->req;
	struct near_staging *staging = near_staging(port, at);
	const struct near_tx_op *message;
	uint8_t *memory, *chunk;
	void *device;
	int ret;

	if (req->offset &&
	    (at->rejected == req->id || at->failed == req->id))
		/* an earlier part of the operation has failed */
		return EIO;
	ret = staging ? -near_stage_open_theirs(port, at, req->type) : ENOMEM;
	if (ret)
		return ret;
	chunk = staging->theirs.memory + req->op * NEAR_STAGE_CHUNK;
	if (req->flags & NEAR_RMA_LENT)
		return near_loan_serve(port, at, reply, (void *)chunk);
	if (req->flags & NEAR_RMA_BY_ID) {
		message = near_stage_message(port, at->peer, reply);
		if (!message)
			return EKEYREJECTED;
		if (!near_read_take(port, req->len))
			return EAGAIN;
		near_iov_out(chunk, message->iov, req->offset, req->len);
		return 0;
	}
	ret = near_stage_where(port, req, reply->addr, &memory, &device);
	if (ret)
		return ret;
	reply->memory = memory;
	if (near_stage_overlaps(port, at, device, reply) ||
	    (!device && !near_read_take(port, req->len)))
		return EAGAIN;
	return -near_stage_copy(staging, &staging->theirs, device,
				req->verb == NEAR_READ ? chunk : memory,
				req->verb == NEAR_READ ? memory : chunk,
				req->len, &reply->copy);
}

/* False for a request that only a faulty peer sends. */
static bool near_stage_valid(const struct near_rma_slot *req)
{
	if ((req->verb != NEAR_READ &&
	     (req->verb != NEAR_WRITE ||
	      req->flags & (NEAR_RMA_MESSAGE | NEAR_RMA_BY_ID))) ||
	    req->op >= NEAR_STAGE_CHUNKS)
		return false;
	/* a lent operation has no parts, and its chunk has no data */
	if (req->flags & NEAR_RMA_LENT)
		return req->total && !req->offset && !req->len;
	return req->len && req->len <= NEAR_STAGE_CHUNK &&
	       req->offset <= req->total &&
	       req->len <= req->total - req->offset;
}

int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot)
{
	struct near_rma_slot req = slot->rma;
	struct near_rma_reply *reply;
	struct near_rma_peer *at;

	if (!near_stage_valid(&req)) {
		near_rx_ring_broken(port, ring, "request length", req.len);
		return -EPROTO;
	}
	/* the reply needs a ring, and the copy needs the peer's region table */
	if (!ring->peer->tx.slots && near_connect(port, ring->peer) == -EAGAIN)
		return -EAGAIN;
	at = near_rma_peer(ring->peer);
	if (at && at->replies_queued >= NEAR_RMA_REPLIES_MAX) {
		near_rx_ring_broken(port, ring, "number of pending requests",
				    at->replies_queued + 1);
		return -EPROTO;
	}
	reply = at ? near_pool_get(&port->rma->replies) : NULL;
	if (!reply)
		return -EAGAIN;
	reply->req = req;
	reply->addr = slot->tag;
	reply->staged = true;
	reply->copy = NULL;
	reply->memory = NULL;
	reply->mapping = NULL;
	reply->offset = req.offset;
	reply->len = 0;
	reply->err = (uint32_t)near_stage_serve(port, at, reply);
	if (reply->err == EAGAIN) {
		near_pool_put(&port->rma->replies, reply);
		return -EAGAIN;
	}
	at->rejected = reply->err ? req.id : 0;
	near_rma_queue_reply(port, at, reply);
	return 0;
}

bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply)
{
	const struct near_rma_slot *req = &reply->req;

	if (!near_stage_copied(port, reply))
		return false;
	near_loan_end(reply);
	if (!near_rma_answer(port, at, reply, NULL, 0))
		return false;
	if (reply->err == NEAR_LOAN_REJECTED)
		/* no failure, because the initiator stages the operation now */
		return true;
	if (reply->err)
		at->failed = req->id;
	else if (!req->offset)
		at->failed = 0;
	if (at->failed != req->id && !(req->flags & NEAR_RMA_MESSAGE) &&
	    (req->flags & NEAR_RMA_LENT ||
	     req->offset + req->len == req->total))
		near_rma_report(port, at->peer, req);
	return true;
}
