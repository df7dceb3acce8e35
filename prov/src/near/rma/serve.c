/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The target executes requests. Before that, it checks each request with its
 * private region table. An operation with many bytes has several requests, its
 * parts. If the target rejects one part, it replies with the error, and skips
 * all later parts of this operation.
 */

#include <errno.h>

#include "near/rma/ops.h"
#include "near/rma/stage.h"

/* True for a request that only a faulty peer sends. */
static bool near_rma_is_invalid(const struct near_rma_slot *req)
{
	size_t size;

	if (req->verb > NEAR_EVENT || req->offset > req->total ||
	    (req->verb != NEAR_READ && req->len > req->total - req->offset))
		return true;
	if (req->verb != NEAR_ATOMIC && req->verb != NEAR_FETCH &&
	    req->verb != NEAR_COMPARE)
		return false;
	if (!near_rma_has_atomic(req->verb, req->op, req->type))
		return true;
	size = near_type_size(req->type);
	return !req->len || req->len > NEAR_RMA_PART || req->len % size ||
	       req->offset % size;
}

static void near_rma_event(struct near_port *port, struct near_peer *peer,
			   const struct near_rma_slot *req, unsigned int verb)
{
	const struct near_rma_event event = {
		.peer = peer,
		.write = verb == NEAR_WRITE || verb == NEAR_ATOMIC,
		.has_data = req->flags & NEAR_RMA_DATA,
		.data = req->data,
		.len = req->total,
	};

	port->rma->sink->event(port->ctx, &event);
}

void near_rma_report(struct near_port *port, struct near_peer *peer,
		     const struct near_rma_slot *req)
{
	if (req->flags & NEAR_RMA_DATA ||
	    (req->total &&
	     port->rma->events & near_rma_access(req->verb, req->op)))
		near_rma_event(port, peer, req, req->verb);
}

/*
 * Checks the region, range and access of a request, and stores the address of
 * the operation's memory in *memory. Returns 0 or an errno value, > 0.
 */
static int near_rma_find_memory(const struct near_port *port,
				const struct near_rma_slot *req, uint64_t addr,
				uint8_t **memory)
{
	const struct near_region_entry *entry;
	uint64_t at;

	*memory = NULL;
	if (!req->total)
		return 0;
	entry = near_table_find(port->rma->table, req->key);
	if (!entry)
		return EKEYREJECTED;
	if (near_region_check(entry, addr, req->total,
			      near_rma_access(req->verb, req->op), &at))
		return EACCES;
	if (req->verb > NEAR_READ && at % near_type_size(req->type))
		return EINVAL;
	*memory = (uint8_t *)(uintptr_t)at;
	return 0;
}

/* Executes a part of an operation. True: *reply must be sent. */
static bool near_rma_execute(const struct near_rma_slot *req, uint8_t *memory,
			     const uint8_t *data, struct near_rma_reply *reply)
{
	bool last = req->len == req->total - req->offset;

	switch (req->verb) {
	case NEAR_WRITE:
		if (req->len)
			memcpy(memory + req->offset, data, req->len);
		return last;
	case NEAR_ATOMIC:
		near_atomic_apply(req->op, req->type, memory + req->offset,
				  data, NULL, NULL,
				  req->len / near_type_size(req->type));
		return last;
	default:
		near_atomic_apply(req->op, req->type, memory + req->offset,
				  data, data + req->len, reply->bytes,
				  req->len / near_type_size(req->type));
		reply->offset = req->offset;
		reply->len = req->len;
		return true;
	}
}

void near_rma_queue_reply(struct near_port *port, struct near_rma_peer *at,
			  struct near_rma_reply *reply)
{
	near_list_append(&at->replies, &reply->link);
	at->replies_queued++;
	near_rma_reply_all(port, at);
	if (!near_list_empty(&at->replies))
		near_rma_add_work(port, at);
}

/* True if the reply is the data of a long read, sent in several slots. */
static bool near_rma_in_parts(const struct near_rma_reply *reply)
{
	return reply->req.verb == NEAR_READ &&
	       reply->req.total > NEAR_RMA_PART && !reply->err;
}

/* Executes a request. True: *reply must be sent. */
static bool near_rma_serve(struct near_port *port, struct near_rma_peer *at,
			   const struct near_rma_slot *req, uint64_t addr,
			   const uint8_t *data, struct near_rma_reply *reply)
{
	uint8_t *memory;

	reply->req = *req;
	reply->addr = addr;
	reply->staged = false;
	reply->copy = NULL;
	reply->offset = reply->len = 0;
	reply->err = near_rma_find_memory(port, req, addr, &memory);
	/*
	 * By this id, near_rma_serve_slot() recognizes the later parts of a
	 * rejected operation, and skips them. After success the id is reset to
	 * 0, because a later operation might have the id of an operation that
	 * was rejected before.
	 */
	at->rejected = reply->err ? req->id : 0;
	if (near_unlikely(reply->err))
		return true;
	if (near_rma_in_parts(reply))
		return true;
	if (req->verb == NEAR_READ) {
		/* copies now, because later operations may change the memory */
		reply->len = req->total;
		if (req->total)
			memcpy(reply->bytes, memory, req->total);
	} else if (!near_rma_execute(req, memory, data, reply)) {
		return false;
	}
	if (req->verb == NEAR_READ || req->offset + req->len == req->total)
		near_rma_report(port, at->peer, req);
	return true;
}

/*
 * Returns a request's operands; NULL: invalid length. Operands in the slot
 * (NEAR_RMA_INLINE) share a union with the fields total, offset and data. In
 * this case copies the operands to `bytes`, and then sets these fields.
 */
static const uint8_t *near_rma_operands_in(struct near_rx_ring *ring,
					   struct near_rma_slot *req,
					   uint8_t *bytes)
{
	size_t len = (size_t)req->len * near_rma_operands(req->verb, req->op);

	if (!(req->flags & NEAR_RMA_INLINE))
		return near_rx_data(&ring->rx, len);
	if (len > NEAR_RMA_BYTES)
		return NULL;
	memcpy(bytes, req->bytes, NEAR_RMA_BYTES);
	req->total = req->len;
	req->offset = req->data = 0;
	req->flags = 0;
	return bytes;
}

/* A small request, loaded once, because a faulty peer might change the slot. */
struct near_small_req {
	enum near_verb verb;
	unsigned int op, type;
	uint64_t len;
	uint8_t *memory;
};

/* Loads a request. False: the slow path must handle the request. */
static near_inline bool near_small_req(struct near_port *port,
				       const struct near_slot *slot,
				       struct near_small_req *req)
{
	uint64_t key = __atomic_load_n(&slot->rma.key, __ATOMIC_RELAXED);
	uint64_t addr = __atomic_load_n(&slot->tag, __ATOMIC_RELAXED), memory;
	uint8_t flags = __atomic_load_n(&slot->rma.flags, __ATOMIC_RELAXED);
	const struct near_region_entry *entry;
	uint32_t access;

	req->verb = __atomic_load_n(&slot->rma.verb, __ATOMIC_RELAXED);
	req->op = __atomic_load_n(&slot->rma.op, __ATOMIC_RELAXED);
	req->type = __atomic_load_n(&slot->rma.type, __ATOMIC_RELAXED);
	if (req->verb == NEAR_READ) {
		req->len = __atomic_load_n(&slot->rma.total, __ATOMIC_RELAXED);
		if (flags)
			return false;
	} else {
		req->len = __atomic_load_n(&slot->rma.len, __ATOMIC_RELAXED);
		if (flags != NEAR_RMA_INLINE)
			return false;
	}
	access = near_rma_access(req->verb, req->op);
	entry = near_table_find(port->rma->table, key);
	if (near_unlikely(req->len - 1 >= NEAR_RMA_BYTES || !entry ||
			  port->rma->events & access ||
			  near_region_check(entry, addr, req->len, access,
					    &memory)))
		return false;
	req->memory = (uint8_t *)(uintptr_t)memory;
	return true;
}

/* Starts a delegated operation. True: the caller must execute it now. */
static near_inline bool near_small_start(struct near_rx_ring *ring,
					 const struct near_slot *slot,
					 uint64_t word)
{
	return near_likely(near_deleg_state(word) == NEAR_DELEG_OPEN &&
			   !ring->rejected) &&
	       !near_deleg_execute(ring, slot, word);
}

/* Returns a slot for a reply; NULL: no slot is free, or other replies wait. */
static near_inline struct near_slot *near_small_slot(struct near_peer *peer)
{
	if (near_unlikely(!peer->rma ||
			  !near_list_empty(&peer->rma->replies)))
		return NULL;
	return near_tx_slot(&peer->tx);
}

static near_inline void near_small_answer(struct near_port *port,
					  struct near_peer *peer,
					  struct near_slot *answer,
					  uint64_t id, uint64_t len)
{
	answer->rma_answer.id = id;
	answer->rma_answer.offset = 0;
	answer->rma_answer.len = (uint32_t)len;
	answer->rma_answer.err = 0;
	near_control_send(port, peer, answer, NEAR_KIND_ANSWER, 0);
}

/* Executes a request on the fast path. False: not executed. */
static bool near_serve_small(struct near_port *port, struct near_rx_ring *ring,
			     const struct near_slot *slot, uint64_t word)
{
	struct near_slot *answer = NULL;
	struct near_small_req req;
	uint64_t id, len, value;

	if (near_unlikely(!near_small_req(port, slot, &req)))
		return false;
	len = req.len;
	/* near_small_req() has checked this, but gcc cannot derive that */
	if (near_unlikely(len > NEAR_RMA_BYTES))
		return false;
	if (req.verb == NEAR_WRITE) {
		if (!near_small_start(ring, slot, word))
			return false;
		near_copy_small(req.memory, slot->rma.bytes, len);
		near_deleg_done(ring, word);
		port->rma->served++;
		return true;
	}
	id = __atomic_load_n(&slot->rma.id, __ATOMIC_RELAXED);
	answer = near_small_slot(ring->peer);
	if (near_unlikely(!answer))
		return false;
	if (req.verb == NEAR_READ) {
		if (!near_small_start(ring, slot, word))
			return false;
		near_copy_small(answer->rma_answer.bytes, req.memory, len);
		near_small_answer(port, ring->peer, answer, id, len);
		near_deleg_done(ring, word);
	} else {
		if (near_deleg_state(word) != NEAR_DELEG_NONE ||
		    req.verb != NEAR_FETCH || len != sizeof(value) ||
		    !near_rma_adds(req.type, req.op) ||
		    (uintptr_t)req.memory % sizeof(value))
			return false;
		memcpy(&value, slot->rma.bytes, sizeof(value));
		value = __atomic_fetch_add((uint64_t *)(void *)req.memory,
					   value, __ATOMIC_SEQ_CST);
		memcpy(answer->rma_answer.bytes, &value, sizeof(value));
		near_small_answer(port, ring->peer, answer, id, len);
	}
	port->rma->served++;
	return true;
}

/* Executes a request on the slow path. Returns near_rma_request()'s result. */
static int near_rma_serve_slot(struct near_port *port,
			       struct near_rx_ring *ring,
			       const struct near_slot *slot, uint64_t word)
{
	uint8_t bytes[NEAR_RMA_BYTES];
	struct near_rma_slot req = slot->rma;
	const uint8_t *data = near_rma_operands_in(ring, &req, bytes);
	struct near_rma_reply *reply;
	struct near_rma_peer *at;
	int ret;

	if (!data || near_rma_is_invalid(&req)) {
		near_rx_ring_broken(port, ring, "request length", req.len);
		return -EPROTO;
	}
	if (req.verb == NEAR_EVENT) {
		near_rma_event(port, ring->peer, &req, req.op);
		return 0;
	}
	at = near_rma_peer(ring->peer);
	if (near_unlikely(!at))
		return -EAGAIN;
	if (near_unlikely(req.offset && at->rejected == req.id))
		return 0;
	if (near_unlikely(at->replies_queued >= NEAR_RMA_REPLIES_MAX)) {
		near_rx_ring_broken(port, ring, "number of pending requests",
				    at->replies_queued + 1);
		return -EPROTO;
	}
	reply = near_pool_get(&port->rma->replies);
	if (near_unlikely(!reply))
		return -EAGAIN;
	ret = near_deleg_execute(ring, slot, word);
	if (near_unlikely(ret)) {
		near_pool_put(&port->rma->replies, reply);
		if (ret == NEAR_DELEG_ANSWERED)
			near_rma_report(port, ring->peer, &req);
		return ret < 0 ? ret : 0;
	}
	if (near_rma_serve(port, at, &req, slot->tag, data, reply) &&
	    !near_deleg_no_reply(ring, word, reply))
		near_rma_queue_reply(port, at, reply);
	else
		near_pool_put(&port->rma->replies, reply);
	near_deleg_done(ring, word);
	return 0;
}

int near_rma_request(struct near_port *port, struct near_rx_ring *ring,
		     const struct near_slot *slot, uint64_t word)
{
	if (near_likely(near_serve_small(port, ring, slot, word)))
		return 0;
	return slot->rma.flags & NEAR_RMA_STAGED
		       ? near_stage_request(port, ring, slot)
		       : near_rma_serve_slot(port, ring, slot, word);
}

bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len)
{
	struct near_tx *tx = &at->peer->tx;
	struct near_slot *slot = near_control_slot(port, at->peer);
	uint8_t *space;
	uint64_t end;

	if (!slot)
		return false;
	if (len > NEAR_RMA_BYTES) {
		space = near_tx_data(tx, len, &end);
		if (!space) {
			near_full(port, at->peer);
			return false;
		}
		memcpy(space, data, len);
		tx->dtail = end;
	}
	slot->rma_answer = (struct near_answer_slot) {
		.id = reply->req.id,
		.offset = reply->offset,
		.len = (uint32_t)len,
		.err = reply->err,
	};
	if (len && len <= NEAR_RMA_BYTES)
		memcpy(slot->rma_answer.bytes, data, len);
	near_control_send(port, at->peer, slot, NEAR_KIND_ANSWER, 0);
	return true;
}

/* Sends about NEAR_STEP bytes of a read in parts. True: the reply has ended. */
static bool near_rma_read_next(struct near_port *port, struct near_rma_peer *at,
			       struct near_rma_reply *reply)
{
	const struct near_rma_slot *req = &reply->req;
	size_t stop = reply->offset + NEAR_STEP, most, len;
	uint8_t *memory;

	reply->err = near_rma_find_memory(port, req, reply->addr, &memory);
	if (reply->err)
		return near_rma_answer(port, at, reply, NULL, 0);
	while (reply->offset < req->total && reply->offset < stop) {
		len = req->total - reply->offset;
		/* if `most` is 0, near_rma_answer() attaches to a ring first */
		most = near_frag_max(&at->peer->tx);
		if (len > most)
			len = most;
		if (!near_rma_answer(port, at, reply, memory + reply->offset,
				     len))
			return false;
		reply->offset += len;
	}
	if (reply->offset < req->total)
		return false;
	near_rma_report(port, at->peer, req);
	return true;
}

void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at)
{
	struct near_rma_reply *reply;
	bool over;

	while (!near_list_empty(&at->replies)) {
		reply = near_container(at->replies.next, struct near_rma_reply,
				       link);
		if (near_unlikely(reply->staged))
			over = near_stage_reply(port, at, reply);
		else if (near_rma_in_parts(reply))
			over = near_rma_read_next(port, at, reply);
		else
			over = near_rma_answer(port, at, reply, reply->bytes,
					       reply->len);
		if (!over)
			return;
		near_list_remove(&reply->link);
		near_pool_put(&port->rma->replies, reply);
		at->replies_queued--;
	}
}
