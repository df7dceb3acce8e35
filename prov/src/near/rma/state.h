/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * What one-sided operations are remembered by, on both sides: a port's state
 * and its peers', operations of ours, and what we owe for those of peers.
 */
#ifndef NEAR_RMA_STATE_H
#define NEAR_RMA_STATE_H

#include "base/proc.h"
#include "near/msg/large.h"
#include "near/rma/atomic.h"
#include "near/rma/table.h"

#define NEAR_RMA_OPS (1u << 16)
#define NEAR_RMA_INLINE 0x80u	/* near_rma_slot.flags: of the slot itself */
#define NEAR_RMA_STAGED 0x40u	/* in a chunk: stage.h */
#define NEAR_RMA_KEPT 256	/* bytes that need no allocation */
#define NEAR_RMA_PART 256	/* bytes of an atomic's part */
#define NEAR_RMA_EXPECT 512	/* answers that we wait for, of one peer */
#define NEAR_RMA_OWE 1024	/* that we owe one; more is no peer of ours */

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	uint32_t tell;		/* what peers were told, see near_rma_tell() */
	struct near_pool ops;
	struct near_pool replies;
	struct near_rma_peer *watched;	/* by near_port.watch */
	/* small ones that took nothing but a slot: ours, and our peers' */
	uint64_t small, served;
};

struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* of port->onesided_work */
	bool working;			/* it is there */
	bool view_tried;
	bool reading;			/* a read is answered bit by bit */
	uint32_t unanswered;		/* operations that it has, and not
					 * answered */
	uint32_t expect;		/* answers to come */
	uint32_t owe;			/* replies */
	uint64_t rejected;		/* id of what was refused last, if nothing
					 * was done since */
	struct near_table_view *view;	/* NULL: cannot be looked into */
	/* offer.c */
	struct near_link delegated;	/* the target may take them, or we */
	uint32_t delegs;
	uint64_t delegated_last;		/* the number of the last */
	uint64_t counted;		/* near_ctl.done, as last seen */
	uint64_t delegated_ns;		/* since when the first waits; 0: unknown */
	uint32_t skip;			/* so many are not offered */
	uint32_t next_skip;
	/* stage.c */
	struct near_staging *staging;	/* NULL: no device memory so far */
	uint32_t staged;		/* operations, begun */
	uint32_t due;			/* chunks that polls take on */
	struct near_link queue;		/* ours, not wholly issued, in order */
	struct near_link replies;
};

/* One of ours. */
struct near_rma_op {
	struct near_pooled pooled;
	struct near_link link;		/* of queue, until it is all sent; of
					 * offered */
	struct near_rma_peer *to;
	struct near_slot *slot;		/* of an offer */
	uint64_t number;		/* of the offer; others: near_rma_mark() */
	size_t sent;			/* or copied, by ourselves */
	size_t answered;
	uint32_t expect;
	bool begun;
	bool queued;
	bool delegated;
	bool small;			/* inline.h: it is no more than a slot */
	bool staged;			/* stage.h */
	int err;			/* of one that is staged */
	uint8_t *copy;			/* allocated */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	void *device[NEAR_IOV_MAX];	/* of local */
	uint8_t kept[NEAR_RMA_KEPT];
};

/* What we owe a peer for one of its. */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;
	uint8_t verb;
	uint32_t err;
	uint64_t id;
	uint64_t offset;		/* of bytes; reads: done so far */
	uint64_t len;			/* of these; reads: of all */
	uint64_t key;			/* reads */
	uint64_t addr;
	bool staged;			/* stage.h: */
	void *copy;			/* that has not ended; or NULL */
	struct near_rma_slot ask;
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/* Its next steps wait for the peer: near_port.watch, a slot, or the clock. */
static inline bool near_rma_waits(const struct near_rma_peer *at)
{
	return near_list_empty(&at->queue) && near_list_empty(&at->replies) &&
	       !at->due;
}

/* The state of a peer, made at need; NULL: no memory. */
static inline struct near_rma_peer *near_rma_peer(struct near_peer *peer)
{
	return near_likely(peer->rma != NULL) ? peer->rma :
						near_rma_peer_new(peer);
}

/* Polls take steps with it. */
static inline void near_rma_wake(struct near_port *port,
				 struct near_rma_peer *at)
{
	near_port_added(port, NEAR_WORK_DUE);
	if (at->working)
		return;
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
}

/* Its first offer is a write, which ends when the count moves. */
static inline void near_rma_watch(struct near_port *port,
				  struct near_rma_peer *at)
{
	near_port_watch(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->watched = at;
}

/* Nothing is left to do; or near_rma_work() finds that. */
static inline void near_rma_rest(struct near_port *port,
				 struct near_rma_peer *at)
{
	if (!at->working || at->delegs || !near_rma_waits(at))
		return;
	near_list_remove(&at->link);
	at->working = false;
	if (port->rma->watched == at) {
		near_port_watch_none(port);
		port->rma->watched = NULL;
	}
	if (near_list_empty(&port->onesided_work))
		port->work &= (uint8_t)~NEAR_WORK_WAITS;
}

/* Its table, opened if that was not tried before. */
static inline struct near_table_view *near_rma_view(struct near_rma_peer *at)
{
	return near_likely(at->view != NULL) ? at->view :
					       near_rma_view_open(at);
}

/* What a verb does to the memory of the peer. */
static inline uint32_t near_rma_access(unsigned int verb, unsigned int op)
{
	if (verb == NEAR_READ || (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return NEAR_MAY_READ;
	if (verb == NEAR_FETCH || verb == NEAR_COMPARE)
		return NEAR_MAY_READ | NEAR_MAY_WRITE;
	return NEAR_MAY_WRITE;
}

/* One word, added to: the atomic that is done where it arrives. */
static near_inline bool near_rma_adds(unsigned int type, unsigned int op)
{
	return (type == NEAR_UINT64 || type == NEAR_INT64) && op == NEAR_SUM;
}

/* Bytes in the request for each of the operation. */
static inline unsigned int near_rma_operands(unsigned int verb,
					     unsigned int op)
{
	if (verb == NEAR_READ || verb == NEAR_EVENT || op == NEAR_ATOMIC_READ)
		return 0;
	return verb == NEAR_COMPARE ? 2 : 1;
}

#endif /* NEAR_RMA_STATE_H */
