/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * State of one-sided operations: of a port, of its peers, of operations of this
 * port, and of replies that it owes to peers.
 */
#ifndef NEAR_RMA_STATE_H
#define NEAR_RMA_STATE_H

#include "base/proc.h"
#include "near/msg/large.h"
#include "near/rma/atomic.h"
#include "near/rma/table.h"

#define NEAR_RMA_OPS (1u << 16)
#define NEAR_RMA_INLINE 0x80u	/* near_rma_slot.flags: data in the slot */
#define NEAR_RMA_STAGED 0x40u	/* data in a chunk: stage.h */
#define NEAR_RMA_KEPT 256	/* bytes stored in near_rma_op */
#define NEAR_RMA_PART 256	/* bytes of an atomic in one request */
#define NEAR_RMA_EXPECT 512	/* limit of replies expected from a peer */
#define NEAR_RMA_OWE 1024	/* replies owed to a peer; more: disconnect */

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	uint32_t tell;		/* set by near_rma_tell() */
	struct near_pool ops;
	struct near_pool replies;
	struct near_rma_peer *watched;	/* its count is at near_port.watch */
	/* operations on the fast paths: issued, executed for peers */
	uint64_t small, served;
	uint64_t staged;	/* operations begun by this port: stage.h */
};

struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* of port->onesided_work */
	bool working;			/* in port->onesided_work */
	bool view_tried;
	bool reading;			/* a read is answered in parts */
	uint32_t unanswered;		/* operations sent, not yet answered */
	uint32_t expect;		/* replies still to come */
	uint32_t owe;			/* replies owed to the peer */
	uint64_t rejected;		/* id of the operation rejected last; 0:
					 * none since */
	uint64_t failed;		/* the same of staged operations, set
					 * with their replies */
	struct near_table_view *view;	/* peer's table; NULL: unreadable */
	/* delegate.c */
	struct near_link delegated;	/* delegated operations, in order */
	uint32_t delegs;
	uint64_t delegated_last;	/* number of the last operation */
	uint64_t counted;		/* last value of near_ctl.done */
	uint64_t delegated_ns;		/* start of the first's wait; 0: none */
	uint32_t skip;			/* next operations not to delegate */
	uint32_t next_skip;
	/* stage.c */
	struct near_staging *staging;	/* NULL: no device memory used */
	uint32_t staged;		/* operations that have begun */
	uint32_t due;			/* chunks with work for polls */
	struct near_link queue;		/* operations to issue, in order */
	struct near_link replies;
};

/* An operation of this port. */
struct near_rma_op {
	struct near_pooled pooled;
	struct near_link link;		/* in queue, or in delegated */
	struct near_rma_peer *to;
	struct near_slot *slot;		/* if delegated */
	uint64_t number;		/* if delegated; else near_rma_mark() */
	size_t sent;			/* bytes sent or copied */
	size_t answered;
	uint32_t expect;
	bool begun;
	bool queued;
	bool delegated;
	bool small;			/* issued by inline.h */
	bool staged;			/* stage.h */
	int err;			/* if staged */
	uint8_t *copy;			/* from malloc(), or NULL */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	void *device[NEAR_IOV_MAX];	/* handles of local */
	uint8_t kept[NEAR_RMA_KEPT];
};

/* A reply owed to a peer. */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;
	uint8_t verb;
	uint32_t err;
	uint64_t id;
	uint64_t offset;		/* of bytes[]; reads: bytes sent */
	uint64_t len;			/* of bytes[]; reads: bytes in total */
	uint64_t key;			/* of a read's region */
	uint64_t addr;
	bool staged;			/* see stage.h, with the next two */
	void *copy;			/* pending copy; or NULL */
	struct near_rma_slot ask;
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/* True if only the peer is awaited: near_port.watch, a slot, the clock. */
static inline bool near_rma_waits(const struct near_rma_peer *at)
{
	return near_list_empty(&at->queue) && near_list_empty(&at->replies) &&
	       !at->due;
}

/* Returns the peer's state, and creates it if necessary; NULL: no memory. */
static inline struct near_rma_peer *near_rma_peer(struct near_peer *peer)
{
	return near_likely(peer->rma != NULL) ? peer->rma :
						near_rma_peer_new(peer);
}

/* Adds the peer to the work of polls. */
static inline void near_rma_wake(struct near_port *port,
				 struct near_rma_peer *at)
{
	near_port_added(port, NEAR_WORK_DUE);
	if (at->working)
		return;
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
}

/* Polls near_ctl.done. The peer's first delegated operation must be a write. */
static inline void near_rma_watch(struct near_port *port,
				  struct near_rma_peer *at)
{
	near_port_watch(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->watched = at;
}

/* Removes the peer from the work list if nothing is left to do. */
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

/* Returns the peer's table, opened by the first call; NULL: unreadable. */
static inline struct near_table_view *near_rma_view(struct near_rma_peer *at)
{
	return near_likely(at->view != NULL) ? at->view :
					       near_rma_view_open(at);
}

/* Returns the access rights that an operation requires. */
static inline uint32_t near_rma_access(unsigned int verb, unsigned int op)
{
	if (verb == NEAR_READ || (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return NEAR_MAY_READ;
	if (verb == NEAR_FETCH || verb == NEAR_COMPARE)
		return NEAR_MAY_READ | NEAR_MAY_WRITE;
	return NEAR_MAY_WRITE;
}

/* True if the operation is the addition that the fast path executes. */
static near_inline bool near_rma_adds(unsigned int type, unsigned int op)
{
	return (type == NEAR_UINT64 || type == NEAR_INT64) && op == NEAR_SUM;
}

/* Returns the number of operand bytes in the request per byte of data. */
static inline unsigned int near_rma_operands(unsigned int verb,
					     unsigned int op)
{
	if (verb == NEAR_READ || verb == NEAR_EVENT || op == NEAR_ATOMIC_READ)
		return 0;
	return verb == NEAR_COMPARE ? 2 : 1;
}

#endif /* NEAR_RMA_STATE_H */
