/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Functions that the files of one-sided operations share. A fetch is a read
 * with NEAR_RMA_MESSAGE, by which a receiver gets a rendezvous message.
 */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "near/rma/delegate.h"

/* issue.c: the initiator */
/* Removes op from near_rma_peer.queue if it is in this queue. */
void near_rma_unqueue(struct near_rma_op *op);
/*
 * Lets later messages to the peer overtake op: opens NEAR_GATE_QUEUE, unless
 * other operations keep this gate closed.
 */
void near_rma_ungate(struct near_rma_op *op);
/*
 * Issues the operations in at->queue in order, until one must wait, or until
 * operations of NEAR_STEP bytes in all have left the queue.
 */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * Posts a request for the next len bytes of op. The request of a read must be
 * for all bytes. flags: argument of near_word(). Returns 0; -EAGAIN: the ring
 * has no space; or -ECONNRESET.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* Returns a new operation with copies of its arguments; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
/*
 * Queues an operation, and issues it at once if possible. on_device, mapping:
 * values for the fields of near_rma_op. Returns 0; -EAGAIN: no memory.
 */
int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool on_device,
		   struct near_mapping *mapping);
/* Counts op as begun. op must have exactly one request and one reply. */
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
 * Returns this port's position in its ring to the peer. The low
 * NEAR_RMA_MARK_BITS bits have the tail. The high bits have the number of
 * resizes of the ring, because each resize resets the tail.
 */
static inline uint64_t near_rma_mark(const struct near_rma_peer *at)
{
	return at->peer->tx.tail |
	       (uint64_t)at->peer->resize.count << NEAR_RMA_MARK_BITS;
}

/*
 * Raises tx->consumed after a reply, which shows that the peer has consumed the
 * request and all earlier slots. Does nothing if the ring was resized since the
 * request was posted. mark: result of near_rma_mark() just after that post.
 */
static inline void near_rma_answered_at(struct near_rma_peer *at, uint64_t mark)
{
	uint64_t ring = near_rma_mark(at) - at->peer->tx.tail;

	if (mark >> NEAR_RMA_MARK_BITS == ring >> NEAR_RMA_MARK_BITS &&
	    mark - ring > at->peer->tx.consumed)
		at->peer->tx.consumed = mark - ring;
}

/*
 * True if args has NEAR_RMA_BEHIND, and the peer perhaps has not consumed all
 * earlier messages.
 */
bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args);
/*
 * Queues op and closes NEAR_GATE_QUEUE. If op is a fetch (NEAR_RMA_MESSAGE),
 * puts op before all operations that have not begun, but behind earlier fetches
 * (rma.md, *Messages in device memory*).
 */
void near_rma_append(struct near_rma_peer *at, struct near_rma_op *op);
/* True if op must not start before an earlier operation has ended. */
bool near_rma_must_wait(const struct near_rma_op *op);


/* direct.c: single copies */
/*
 * True if near must notify the target when op has ended, because op has remote
 * CQ data, or because the target has requested events for such operations.
 */
bool near_rma_notifies(const struct near_rma_op *op);
/* Notifies the target that op has ended. slot: from near_control_slot(). */
void near_rma_notify(struct near_port *port, const struct near_rma_op *op,
		     struct near_slot *slot);
/*
 * Looks up the region in the peer's table, and checks the access. Stores in
 * *memory the address of the target memory in the peer's process. If args->len
 * is 0 or the key is not found, sets entry->device to 0, and the rest of *entry
 * is invalid. Returns 0; -EAGAIN: the table cannot be read now, retry; or an
 * error of near_rma().
 */
int near_rma_look_up(struct near_rma_peer *at, const struct near_rma_args *args,
		     struct near_region_entry *entry, uint64_t *memory);
/*
 * Looks up the address, and copies the next bytes by single copy, at most
 * NEAR_STEP bytes. Returns
 * - 0: the first op->sent bytes are copied
 * - -EPERM: the system forbids single copy, so the target must execute the
 *   whole operation; op->sent is 0
 * - -EAGAIN: retry
 * - another error: the operation has failed; the caller must end it
 */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
/*
 * Copies as near_rma_direct(), but does not look up the address. memory: the
 * address from near_rma_look_up().
 */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory);
/*
 * True if the operation can be executed by single copy. Does not check whether
 * it may start now.
 */
bool near_rma_direct_can(struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* atomic.c */
/* True if the operation is defined for this type. */
bool near_atomic_valid(unsigned int op, unsigned int type);
/*
 * Applies a valid operation to `count` elements at `target`, which must be
 * aligned. Stores the old values in result, unless result is NULL. Ignores the
 * argument `operand` or `compare` if op has no such operand.
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
 * Sends a reply slot with the len bytes of the result at reply->offset. data:
 * these bytes. False: not sent, because the ring has no space.
 */
bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len);
/*
 * Calls near_rma_sink.event() if the request has remote CQ data, or if the
 * embedder has requested events for such operations (near_rma_events()).
 */
void near_rma_report(struct near_port *port, struct near_peer *peer,
		     const struct near_rma_slot *req);

#endif /* NEAR_RMA_OPS_H */
