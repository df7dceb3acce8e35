/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions that the files of one-sided operations share. */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "near/rma/delegate.h"

/* issue.c: the initiator */
/* Removes op from near_rma_peer.queue if it is in this queue. */
void near_rma_unqueue(struct near_rma_op *op);
/* Lets messages overtake op: opens NEAR_GATE_QUEUE if only op closes it. */
void near_rma_ungate(struct near_rma_op *op);
/* Issues the operations in at->queue in order, until one must wait. */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * Posts a request for the next len bytes of op; for a read, len must be its
 * length. flags: flags for near_word(). Returns 0, -EAGAIN: no space in the
 * ring, or -ECONNRESET.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* Returns a new operation with copies of its arguments; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
/*
 * Queues an operation, and issues it if possible. on_device, mapping: fields of
 * near_rma_op. Returns 0; -EAGAIN: no memory.
 */
int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool on_device,
		   struct near_mapping *mapping);
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

/* Implements near_onesided.answered(): handles a peer's reply. */
int near_rma_answered(struct near_port *port, struct near_rx_ring *ring,
		      const struct near_slot *slot);

/* ordered.c: the order of operations and messages */
#define NEAR_RMA_MARK_BITS 48
/*
 * Returns this port's position in its ring to the peer. Low NEAR_RMA_MARK_BITS
 * bits: the tail. High bits: number of resizes, each of which resets the tail.
 */
static inline uint64_t near_rma_mark(const struct near_rma_peer *at)
{
	return at->peer->tx.tail |
	       (uint64_t)at->peer->resize.count << NEAR_RMA_MARK_BITS;
}

/*
 * Raises tx->consumed after a reply, unless the ring was resized since the
 * request. mark: near_rma_mark() just after the request was posted.
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
 * Queues op and closes NEAR_GATE_QUEUE. Puts a fetch before all operations that
 * have not begun, except other fetches (rma.md, *Messages in device memory*).
 */
void near_rma_append(struct near_rma_peer *at, struct near_rma_op *op);
/* True if op must not start before an earlier operation has ended. */
bool near_rma_must_wait(const struct near_rma_op *op);


/* direct.c: single copies */
/* True if near must notify the target of op's end: event or CQ data. */
bool near_rma_notifies(const struct near_rma_op *op);
/* Notifies the target that op has ended. slot: from near_control_slot(). */
void near_rma_notify(struct near_port *port, const struct near_rma_op *op,
		     struct near_slot *slot);
/*
 * Looks up the region in the peer's table, and checks the access. Stores in
 * *memory the target address in the peer's process. If len is 0 or the key is
 * not found, entry->device is 0. Returns 0, -EAGAIN, or an error of near_rma().
 */
int near_rma_look_up(struct near_rma_peer *at, const struct near_rma_args *args,
		     struct near_region_entry *entry, uint64_t *memory);
/*
 * Looks up the address and copies the next bytes, at most NEAR_STEP. Returns
 * - 0: the first op->sent bytes are copied
 * - -EPERM: the target must execute the whole operation; op->sent is 0
 * - -EAGAIN: retry
 * - another error: the operation has failed; the caller must end it
 */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
/* Same as near_rma_direct(), but with `memory` from near_rma_look_up(). */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory);
/* True if single copy is possible, once the operation may start. */
bool near_rma_direct_can(struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* atomic.c */
/* True if the operation is defined for this type. */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * Applies a valid operation to `count` elements at `target`, which must be
 * aligned. Stores the old values in result, unless result is NULL. Ignores
 * operand or compare if op has no such operand.
 */
void near_atomic_apply(unsigned int op, unsigned int type, void *target,
		       const void *operand, const void *compare, void *result,
		       size_t count);

/* serve.c: the target */
/* Implements near_onesided.request(): executes a peer's request. */
int near_rma_request(struct near_port *port, struct near_rx_ring *ring,
		     const struct near_slot *slot, uint64_t word);
/* Sends the queued replies to a peer in order, while the ring has space. */
void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at);
/* Queues a reply, and sends it if the ring has space. */
void near_rma_queue_reply(struct near_port *port, struct near_rma_peer *at,
			  struct near_rma_reply *reply);
/*
 * Sends a reply, with len bytes of the result from reply->offset on. False: not
 * sent, because the ring has no space.
 */
bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len);
/* Calls near_rma_sink.event() if the request has to be reported. */
void near_rma_report(struct near_port *port, struct near_peer *peer,
		     const struct near_rma_slot *req);

#endif /* NEAR_RMA_OPS_H */
