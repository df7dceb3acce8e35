/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the files of one-sided operations give each other. */
#ifndef NEAR_RMA_OPS_H
#define NEAR_RMA_OPS_H

#include "near/rma/delegate.h"

/* issue.c: our side */
void near_rma_issue(struct near_port *port, struct near_rma_peer *at);
/*
 * A part of the request; a read's is all of it. -EAGAIN: no room. flags: of
 * the slot's word.
 */
int near_rma_part(struct near_port *port, struct near_rma_op *op, size_t len,
		  unsigned int flags);
/* One that has not begun, with what it needs of args; NULL: no memory. */
struct near_rma_op *near_rma_op(struct near_port *port,
				struct near_rma_peer *at,
				const struct near_rma_args *args);
/* Its only part is on its way, and is answered once. */
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

/* direct.c: does the peer want to hear of an operation that it has no part in? */
bool near_rma_told(const struct near_rma_op *op);

/* ordered.c: after which messages, and after what else */
/* Where the ring is now: near_rma_op.number of what the target does. */
#define NEAR_RMA_MARK_BITS 48	/* of the tail; above: which ring */
static inline uint64_t near_rma_mark(const struct near_rma_peer *at)
{
	return at->peer->tx.tail |
	       (uint64_t)at->peer->resize.count << NEAR_RMA_MARK_BITS;
}

/* What was at that mark is answered: all before it is taken. */
static inline void near_rma_answered_at(struct near_rma_peer *at, uint64_t mark)
{
	uint64_t ring = near_rma_mark(at) - at->peer->tx.tail;

	if (mark >> NEAR_RMA_MARK_BITS == ring >> NEAR_RMA_MARK_BITS &&
	    mark - ring > at->peer->tx.taken)
		at->peer->tx.taken = mark - ring;
}

/* Are there messages that such an operation is to be behind? */
bool near_rma_behind(struct near_rma_peer *at,
		     const struct near_rma_args *args);
bool near_rma_must_wait(const struct near_rma_op *op);

/* issue.c: behind all others, and as much of it as can be now */
int near_rma_queue(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args, bool staged);

/* direct.c: reads and writes that the peer has nothing to do with */
/*
 * Where the operation goes to, as the peer's table has it now. What
 * near_rma() says of key and range; -EOPNOTSUPP: the peer has no table;
 * -ENOENT: we cannot look into it.
 */
int near_rma_look(struct near_rma_peer *at, const struct near_rma_args *args,
		  uint64_t *memory);
/* 0: it has ended or wants another step; else a negative errno. */
int near_rma_direct(struct near_port *port, struct near_rma_op *op);
/* The same where near_rma_look() has just said memory. */
int near_rma_direct_at(struct near_port *port, struct near_rma_op *op,
		       uint64_t memory);
bool near_rma_direct_can(const struct near_port *port,
			 struct near_rma_peer *at,
			 const struct near_rma_args *args);

/* serve.c: theirs */
int near_rma_request(struct near_port *port, struct near_rx_ring *ring,
		     const struct near_slot *slot, uint64_t word);
void near_rma_reply_all(struct near_port *port, struct near_rma_peer *at);
/* A reply joins those that are owed, and is sent if it can be. */
void near_rma_owe(struct near_port *port, struct near_rma_peer *at,
		  struct near_rma_reply *reply);
/* len bytes of data, from the reply's offset on; false: there is no room. */
bool near_rma_answer(struct near_port *port, struct near_rma_peer *at,
		     const struct near_rma_reply *reply, const void *data,
		     size_t len);
/* At the end of an operation that we did, or whose offer was withdrawn. */
void near_rma_over(struct near_port *port, struct near_peer *peer,
		   const struct near_rma_slot *ask);

#endif /* NEAR_RMA_OPS_H */
