/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Functions that the files of one-sided operations share. */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "near/rma/delegate.h"

/* issue.c: the initiator */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * Posts a request for the next len bytes; for a read, for all bytes. flags: of
 * the slot's word. -EAGAIN: no space in the ring.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* Allocates an operation with the necessary copies of args; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
/* Accounts for an operation of a single request, which has one reply. */
static inline void near_rma_begun(struct near_rma_peer *at,
				  struct near_rma_op *op)
{
	op->begun = true;
	op->expect = 1;
	at->expect++;
	at->unanswered++;
	near_peer_hold(at->peer);
}

int near_rma_answered(struct near_port *port, struct near_rx_ring *ring,
		      const struct near_slot *slot);

/*
 * direct.c: true if the target gets an event for a single copy: the operation
 * carries remote CQ data, or the target requires it.
 */
bool near_rma_told(const struct near_rma_op *op);

/* ordered.c: order beyond that of operations */
/* Returns the current ring position, for near_rma_op.number of requests. */
#define NEAR_RMA_MARK_BITS 48	/* of the tail; above: number of resizes */
static inline uint64_t near_rma_mark(const struct near_rma_peer *at)
{
	return at->peer->tx.tail |
	       (uint64_t)at->peer->resize.count << NEAR_RMA_MARK_BITS;
}

/* Handles a reply to the request at mark: the peer consumed all before. */
static inline void near_rma_answered_at(struct near_rma_peer *at, uint64_t mark)
{
	uint64_t ring = near_rma_mark(at) - at->peer->tx.tail;

	if (mark >> NEAR_RMA_MARK_BITS == ring >> NEAR_RMA_MARK_BITS &&
	    mark - ring > at->peer->tx.taken)
		at->peer->tx.taken = mark - ring;
}

/* True if NEAR_RMA_BEHIND applies: sent messages may not be consumed yet. */
bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args);
bool near_rma_must_wait(const struct near_rma_op *op);

/* issue.c: queues an operation and starts it if possible */
int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool staged);

/* direct.c: single copies */
/*
 * Looks the target address up in the peer's table. Returns as near_rma() for
 * key and range; -EOPNOTSUPP: no table; -ENOENT: the table cannot be read.
 */
int near_rma_look(struct near_rma_peer *at, const struct near_rma_args *args,
		  uint64_t *memory);
/* Executes a step. 0: complete or a step further (op->sent); or -errno. */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
/* The same with the address that near_rma_look() has just returned. */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory);
bool near_rma_direct_can(const struct near_port *port,
			 struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* serve.c: the target */
int near_rma_request(struct near_port *port, struct near_rx_ring *ring,
		     const struct near_slot *slot, uint64_t word);
void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at);
/* Queues a reply, and sends it if possible. */
void near_rma_owe(struct near_port *port, struct near_rma_peer *at,
		  struct near_rma_reply *reply);
/* Sends len bytes of data, at the reply's offset; false: no space. */
bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len);
/* Reports an operation that was executed here or revoked, if required. */
void near_rma_over(struct near_port *port, struct near_peer *peer,
		   const struct near_rma_slot *ask);

#endif /* NEAR_RMA_OPS_H */
