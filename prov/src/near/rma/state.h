/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * The structs of one-sided operations (RMA and atomics), per port and peer. The
 * initiator is the port that calls near_rma(), the target is the port with the
 * memory. Further headers describe the kinds of operations: delegate.h for
 * delegated, stage.h for staged and lent, mapped.h for mapped operations.
 */
#ifndef NEAR_RMA_STATE_H
#define NEAR_RMA_STATE_H

#include "near/msg/large.h"
#include "near/rma/table.h"

/* limit of a port's pending operations; also limit of its queued replies */
#define NEAR_RMA_OPS (1u << 16)
/* flags that only near sets; near_rma.h has the flags of the embedder */
#define NEAR_RMA_LENT 0x08u	/* the chunk contains a loan: stage.h */
#define NEAR_RMA_STAGED 0x40u	/* the data goes through a chunk: stage.h */
#define NEAR_RMA_INLINE 0x80u	/* the operands are in the slot */
#define NEAR_RMA_KEPT 256	/* size of near_rma_op.kept, bytes */
/*
 * limit of an atomic's operand in one request, and of a read that has only one
 * reply slot, bytes
 */
#define NEAR_RMA_PART 256
#define NEAR_RMA_EXPECT 512	/* limit of replies expected from a peer */
#define NEAR_RMA_REPLIES_MAX 1024	/* limit of queued replies to a peer */

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	/* kinds of operations that near_rma_events() has named: NEAR_MAY_* */
	uint32_t events;
	struct near_pool ops;
	struct near_pool replies;
	/* the poll word is this peer's near_ctl.done; NULL: no poll word */
	struct near_rma_peer *poll_peer;
	uint64_t small;		/* number of operations by the fast path */
	uint64_t served;	/* number of requests served by the fast path */
	uint64_t device_ops[NEAR_DEVICE_PATHS];	/* see near_rma_device_ops() */
};

/* The operations between a port and a peer, in both directions. */
struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* in port->onesided_work */
	bool working;			/* link is in port->onesided_work */
	/*
	 * near_rma_view_open() must not try again: it has opened the view, or
	 * has failed for a reason other than a lack of memory
	 */
	bool view_tried;
	bool reading;	/* a read that near_rma_post() has posted is pending */
	/* number of this port's operations that have begun, but not ended */
	uint32_t unanswered;
	/*
	 * number of replies that this port expects, without the replies to
	 * staged and lent operations
	 */
	uint32_t expect;
	uint32_t replies_queued;	/* length of the list `replies` */
	/* id of the peer's last operation if this port has rejected it; or 0 */
	uint64_t rejected;
	/* id of the peer's last staged or lent operation if it failed; or 0 */
	uint64_t failed;
	/* the peer's region table; NULL: not opened, or not readable */
	struct near_table_view *view;
	/* The fields up to next_skip are for delegated operations. */
	struct near_link delegated;	/* delegated operations, in order */
	uint32_t delegs;		/* number of delegated operations */
	uint64_t delegated_last;	/* last assigned near_rma_op.seq */
	/* value of the peer's near_ctl.done that this port has loaded last */
	uint64_t counted;
	/*
	 * start of the wait before a revocation, ns; 0: no tick has found the
	 * first delegated operation pending yet
	 */
	uint64_t delegated_ns;
	/* number of next operations that near must not delegate */
	uint32_t skip;
	/* value for `skip` after the next revocation; 0: NEAR_DELEG_SKIP */
	uint32_t next_skip;
	/* The fields up to device_pending are for device memory. */
	struct near_staging *staging;	/* NULL: no operation so far */
	enum near_device_path device_path;	/* path of the last operation */
	/* number of next operations that near must not lend */
	uint32_t loan_skip;
	/* number of operations with device memory that have begun, not ended */
	uint32_t device_pending;
	/* number of operations that keep the gate NEAR_GATE_QUEUE closed */
	uint32_t gates;
	/* number of chunks and mapped operations that polls must continue */
	uint32_t due;
	/*
	 * this port's operations that have not requested or copied all their
	 * bytes yet, in order. Lent operations and reads with NEAR_RMA_HOLD
	 * stay in the queue until they end.
	 */
	struct near_link queue;
	/* this port's replies to the peer that are not sent yet, in order */
	struct near_link replies;
};

/* An operation of this port on memory of a peer. */
struct near_rma_op {
	struct near_pooled pooled;
	struct near_link link;	/* in near_rma_peer.queue or .delegated */
	struct near_rma_peer *to;
	struct near_slot *slot;		/* slot of a delegated operation */
	union {
		/* of a delegated operation: its number, for near_ctl.done */
		uint64_t seq;
		/* of another operation: near_rma_mark() after last request */
		uint64_t mark;
	};
	size_t sent;		/* number of bytes requested or copied so far */
	size_t answered;	/* number of bytes that the replies cover */
	uint32_t expect;	/* expected replies, counted in to->expect */
	bool begun;		/* counted in near_rma_peer.unanswered */
	bool queued;			/* in near_rma_peer.queue */
	bool gates;		/* counted in near_rma_peer.gates */
	bool delegated;
	bool small;	/* issued by the fast path of rma/inline.h */
	bool on_device;	/* uses device memory: stage.h, mapped.h */
	int err;	/* if on_device: errno value, > 0; 0: no error */
	uint8_t *copy;	/* copy of long operands, from malloc(); or NULL */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	void *device[NEAR_IOV_MAX];	/* handles of `local`; NULL: host */
	struct near_mapping *mapping;	/* NULL: not a mapped operation */
	/* mapped operation: handles of the buffers' pending copies, or NULL */
	void *pending[NEAR_IOV_MAX];
	uint8_t kept[NEAR_RMA_KEPT];	/* copy of short operands */
};

/*
 * A reply to a peer's request. The reply to a read in parts, that is, of more
 * than NEAR_RMA_PART bytes, has many slots.
 */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;		/* in near_rma_peer.replies */
	struct near_rma_slot req;	/* the request */
	uint64_t addr;	/* RMA address or message id in the request */
	uint32_t err;	/* errno value, > 0; 0: none */
	/*
	 * read in parts: number of sent bytes; other replies: offset of the
	 * reply's bytes in the operation
	 */
	uint64_t offset;
	uint64_t len;	/* number of bytes in bytes[]; read in parts: 0 */
	/* The next five fields are for staged and lent operations. */
	bool staged;	/* the request is of a staged or lent operation */
	void *copy;	/* handle of the pending device copy; or NULL */
	/*
	 * start of the region's bytes that `copy` uses; NULL: lent operation,
	 * or request with NEAR_RMA_BY_ID
	 */
	uint8_t *memory;
	/* the loan that this port has taken; valid if mapping is not NULL */
	struct near_loan *loan;
	/* mapping of the lent memory; NULL: no taken loan */
	struct near_mapping *mapping;
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
/* Creates peer->rma, and returns it; NULL: no memory. */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
/* Slow path of near_rma_view(): opens the table unless view_tried is set. */
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/*
 * True if the next poll need not continue the operations and replies of a peer.
 * Each pending operation then waits for a reply, for a change of the poll word,
 * or for a tick (near_port_tick()), in which near may revoke the operation.
 */
static inline bool near_rma_waits(const struct near_rma_peer *at)
{
	return near_list_empty(&at->queue) && near_list_empty(&at->replies) &&
	       !at->due;
}

/* Returns peer->rma, created if necessary; NULL: no memory. */
static inline struct near_rma_peer *near_rma_peer(struct near_peer *peer)
{
	return near_likely(peer->rma != NULL) ? peer->rma :
						near_rma_peer_new(peer);
}

/*
 * Adds a peer to port->onesided_work, so that polls continue the port's
 * operations on the peer's memory and the replies to the peer.
 */
static inline void near_rma_add_work(struct near_port *port,
				 struct near_rma_peer *at)
{
	near_port_added(port, NEAR_WORK_DUE);
	if (at->working)
		return;
	near_list_append(&port->onesided_work, &at->link);
	at->working = true;
}

/*
 * Makes the peer's near_ctl.done the port's poll word (rma.md, *Polling*). The
 * peer's first delegated operation must be a write.
 */
static inline void near_rma_set_poll_word(struct near_port *port,
					  struct near_rma_peer *at)
{
	near_port_set_poll_word(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->poll_peer = at;
}

/*
 * Removes a peer from port->onesided_work if polls need not continue any
 * operation or reply of this peer.
 */
static inline void near_rma_drop_work(struct near_port *port,
				 struct near_rma_peer *at)
{
	if (!at->working || at->delegs || !near_rma_waits(at))
		return;
	near_list_remove(&at->link);
	at->working = false;
	if (port->rma->poll_peer == at) {
		near_port_clear_poll_word(port);
		port->rma->poll_peer = NULL;
	}
	if (near_list_empty(&port->onesided_work))
		port->work &= (uint8_t)~NEAR_WORK_WAITS;
}

/* Returns the peer's region table; NULL: not readable. */
static inline struct near_table_view *near_rma_view(struct near_rma_peer *at)
{
	return near_likely(at->view != NULL) ? at->view :
					       near_rma_view_open(at);
}

/* Returns the access rights that an operation requires: NEAR_MAY_*. */
static inline uint32_t near_rma_access(unsigned int verb, unsigned int op)
{
	if (verb == NEAR_READ || (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return NEAR_MAY_READ;
	if (verb == NEAR_FETCH || verb == NEAR_COMPARE)
		return NEAR_MAY_READ | NEAR_MAY_WRITE;
	return NEAR_MAY_WRITE;
}

/*
 * Returns the access rights that an operation requires of this region: those of
 * near_rma_access(), or the right for a fetch or for device memory.
 */
static inline uint32_t near_rma_access_to(const struct near_region_entry *entry,
					  unsigned int verb, unsigned int op,
					  uint32_t flags)
{
	uint32_t access = near_rma_access(verb, op);

	return flags & NEAR_RMA_MESSAGE ? NEAR_MAY_MESSAGE :
	       entry->device ? access << NEAR_MAY_DEVICE : access;
}

/* True for an addition of 64-bit integers, the only atomic of the fast path. */
static near_inline bool near_rma_adds(unsigned int type, unsigned int op)
{
	return (type == NEAR_UINT64 || type == NEAR_INT64) && op == NEAR_SUM;
}

/* Returns the number of operands in a request: 0, 1, or 2 (NEAR_COMPARE). */
static inline unsigned int near_rma_operands(unsigned int verb,
					     unsigned int op)
{
	if (verb == NEAR_READ || verb == NEAR_EVENT ||
	    (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return 0;
	return verb == NEAR_COMPARE ? 2 : 1;
}

#endif /* NEAR_RMA_STATE_H */
