/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions that the files of one-sided operations share. */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "near/rma/delegate.h"

/* issue.c: the initiator */
/* Removes op from near_rma_peer.queue if it is in this queue. */
void near_rma_unqueue(struct near_rma_op *op);
/* Lets messages overtake op: op no longer keeps NEAR_GATE_QUEUE closed. */
void near_rma_ungate(struct near_rma_op *op);
/* Issues the operations in at->queue in order, until one must wait. */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * Posts a request for the next len bytes of op. A read has only one request, so
 * len must be the length of the whole read. flags: bits to set in
 * near_slot.word. Returns 0, -EAGAIN (no space) or -ECONNRESET.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* Allocates an operation with copies of its arguments; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
/* Counts op as begun. op must have a single request and a single reply. */
static inline void near_rma_begun(struct near_rma_peer *at,
				  struct near_rma_op *op)
{
	op->begun = true;
	op->expect = 1;
	at->expect++;
	at->unanswered++;
	near_peer_hold(at->peer);
}

/*
 * Implements near_onesided.answered(): handles a reply. Returns 0; -EPROTO: the
 * reply is invalid.
 */
int near_rma_answered(struct near_port *port, struct near_rx_ring *ring,
		      const struct near_slot *slot);

/*
 * direct.c: true if near must notify the target when op ends: the target
 * requires an event, or op has CQ data.
 */
bool near_rma_notifies(const struct near_rma_op *op);
/* Notifies the target that op has ended. slot: from near_control_slot(). */
void near_rma_notify(struct near_port *port, const struct near_rma_op *op,
		     struct near_slot *slot);

/* ordered.c: the order of operations and messages */
/*
 * Returns this port's position in its ring to the peer. Low bits: the tail.
 * High bits: the number of resizes, because each resize sets the tail to 0.
 */
#define NEAR_RMA_MARK_BITS 48	/* number of the low bits */
static inline uint64_t near_rma_mark(const struct near_rma_peer *at)
{
	return at->peer->tx.tail |
	       (uint64_t)at->peer->resize.count << NEAR_RMA_MARK_BITS;
}

/*
 * Raises tx->consumed after the reply to a request: the peer has consumed all
 * slots up to the request. mark: value that near_rma_mark() returned just after
 * the request was posted. Does nothing if the ring was resized since then.
 */
static inline void near_rma_answered_at(struct near_rma_peer *at, uint64_t mark)
{
	uint64_t ring = near_rma_mark(at) - at->peer->tx.tail;

	if (mark >> NEAR_RMA_MARK_BITS == ring >> NEAR_RMA_MARK_BITS &&
	    mark - ring > at->peer->tx.consumed)
		at->peer->tx.consumed = mark - ring;
}

/* True if args has NEAR_RMA_BEHIND, and earlier messages may be unconsumed. */
bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args);
/*
 * Queues op and closes NEAR_GATE_QUEUE. A fetch (NEAR_RMA_MESSAGE) is queued
 * before operations that have not begun, but behind other fetches. Reason: an
 * operation with NEAR_RMA_FENCE waits until the peer has fetched this port's
 * large messages. If both ports queued their fetches behind such an operation,
 * each would wait for the other's fetches.
 */
void near_rma_append(struct near_rma_peer *at, struct near_rma_op *op);
/* True if the operation must not start yet, because of an earlier operation. */
bool near_rma_must_wait(const struct near_rma_op *op);

/*
 * issue.c: queues an operation, and issues it if possible. Returns 0; -EAGAIN:
 * no memory. on_device: value of near_rma_op.on_device. mapping: mapping of the
 * target's memory; or NULL.
 */
int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool on_device,
		   struct near_mapping *mapping);

/* direct.c: single copies */
/*
 * Looks up the target's region in the peer's region table, and checks the
 * access. Stores in *memory the target address in the peer's process. After
 * success without a region, because args->len is 0, entry->device and *memory
 * are 0. Returns 0; -EAGAIN: retry; -ENOENT, -EKEYREJECTED, -EACCES, -EINVAL:
 * see near_rma().
 */
int near_rma_look_up(struct near_rma_peer *at, const struct near_rma_args *args,
		     struct near_region_entry *entry, uint64_t *memory);
/*
 * Copies the next bytes of an operation, at most NEAR_STEP. Returns
 * - 0: the first op->sent bytes are copied
 * - -EPERM: single copy is not permitted, and the target must execute the whole
 *   operation; op->sent is 0
 * - -EAGAIN: retry
 * - another error: the operation has failed, and the caller must end it
 */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
/*
 * Same as near_rma_direct(), but does not look up the address. memory: from
 * near_rma_look_up().
 */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory);
/*
 * True if single copy is possible for this operation. Does not check whether
 * the operation may start yet.
 */
bool near_rma_direct_can(const struct near_port *port,
			 struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* serve.c: the target */
/*
 * Implements near_onesided.request(): executes a request. Returns 0; -EAGAIN:
 * not executed, the slot must stay in the ring; -EPROTO: invalid request.
 */
int near_rma_request(struct near_port *port, struct near_rx_ring *ring,
		     const struct near_slot *slot, uint64_t word);
/* Sends the queued replies to a peer in order, while the ring has space. */
void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at);
/* Queues a reply, and sends it if the ring has space. */
void near_rma_queue_reply(struct near_port *port, struct near_rma_peer *at,
			  struct near_rma_reply *reply);
/*
 * Sends a reply. data: the len bytes of the result from reply->offset on.
 * False: not sent, because the ring has no space.
 */
bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len);
/*
 * Calls near_rma_sink.event() if req has CQ data, or if the embedder has
 * requested events for operations of this kind by near_rma_events().
 */
void near_rma_report(struct near_port *port, struct near_peer *peer,
		     const struct near_rma_slot *req);

#endif /* NEAR_RMA_OPS_H */
