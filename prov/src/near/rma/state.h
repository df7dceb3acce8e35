/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The structs of one-sided operations (RMA and atomics), per port and peer. */
#ifndef NEAR_RMA_STATE_H
#define NEAR_RMA_STATE_H

#include "base/proc.h"
#include "near/msg/large.h"
#include "near/rma/atomic.h"
#include "near/rma/table.h"

#define NEAR_RMA_OPS (1u << 16)	/* limit of a port's pending operations, and
				 * of its queued replies */
/* near_rma_slot.flags: the operands are in the slot */
#define NEAR_RMA_INLINE 0x80u
/* near_rma_slot.flags: the data is, or will be, in a chunk (stage.h) */
#define NEAR_RMA_STAGED 0x40u
/* near_rma_slot.flags: this staged read fetches a message: NEAR_RMA_MESSAGE */
#define NEAR_RMA_FETCHES 0x20u
/*
 * near_rma_slot.flags: the fetch has NEAR_RMA_BY_ID; near_slot.tag is the id of
 * the message
 */
#define NEAR_RMA_FETCHES_ID 0x10u
/* near_rma_slot.flags: the chunk has a loan (loan.h) */
#define NEAR_RMA_LENT 0x08u
/* near_rma_args.flags: near lends this operation (loan.h); set only by near */
#define NEAR_RMA_LENDS 256u
/* size of near_rma_op.kept, which has short operands, bytes */
#define NEAR_RMA_KEPT 256
#define NEAR_RMA_PART 256	/* limit of an atomic's bytes per request */
/* limit of replies that are expected from a peer */
#define NEAR_RMA_EXPECT 512
/* limit of queued replies to a peer; a peer that requests more is faulty */
#define NEAR_RMA_REPLIES_MAX 1024

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	uint32_t events;	/* NEAR_MAY_*, set by near_rma_events() */
	struct near_pool ops;
	struct near_pool replies;
	/*
	 * peer whose near_ctl.done is the poll word (near_port.poll_word); or
	 * NULL
	 */
	struct near_rma_peer *poll_peer;
	/* numbers of fast path operations issued, and executed for peers */
	uint64_t small, served;
	/* numbers of operations on device memory, by their path */
	uint64_t device_ops[NEAR_DEVICE_PATHS];
};

/* The operations between a port and a peer, in both directions. */
struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* in port->onesided_work */
	bool working;			/* link is in port->onesided_work */
	bool view_tried;		/* near_rma_view_open() was called */
	bool reading;	/* the peer is answering a read in several parts */
	uint32_t unanswered;		/* operations begun, but not ended */
	uint32_t expect;		/* replies that the peer will send */
	uint32_t replies_queued;	/* length of the list replies */
	/*
	 * id of the peer's last operation, if this port has rejected a part of
	 * this operation: the port does not execute the further parts. 0: not
	 * rejected
	 */
	uint64_t rejected;
	/*
	 * id of the peer's last staged or lent operation, if this port has sent
	 * a reply with an error for it; 0: not sent
	 */
	uint64_t failed;
	/* the peer's region table; NULL: not opened, or not readable */
	struct near_table_view *view;
	/* The fields up to next_skip are for delegated operations. */
	struct near_link delegated;	/* delegated operations, in order */
	uint32_t delegs;		/* number of delegated operations */
	/* near_rma_op.seq of the last delegated operation */
	uint64_t delegated_last;
	uint64_t counted;		/* last loaded value of near_ctl.done */
	/*
	 * time since when the first delegated operation has waited, ns; 0: not
	 * set
	 */
	uint64_t delegated_ns;
	/* number of coming operations that near must not delegate: backoff */
	uint32_t skip;
	/* value of skip after the next revocation; 0: NEAR_DELEG_SKIP */
	uint32_t next_skip;
	/* The fields up to device_pending are for device memory. */
	struct near_staging *staging;	/* NULL: no stage so far */
	struct near_mapped *mapped;	/* NULL: no mapping so far */
	/* path of this port's last operation on device memory */
	enum near_device_path device_path;
	/* number of coming operations not to lend: near_loan_can() */
	uint32_t loan_skip;
	/* operations on device memory begun, but not ended */
	uint32_t device_pending;
	/* number of operations for which NEAR_GATE_QUEUE is closed */
	uint32_t gates;
	/* number of chunks and mapped operations that polls must continue */
	uint32_t due;
	struct near_link queue;	/* operations not yet issued, in order */
	struct near_link replies;	/* queued replies, in order */
};

/* An operation of this port on memory of a peer. */
struct near_rma_op {
	struct near_pooled pooled;
	/* in near_rma_peer.queue or near_rma_peer.delegated */
	struct near_link link;
	struct near_rma_peer *to;
	struct near_slot *slot;		/* slot of a delegated operation */
	union {
		/* delegated: number of the operation, see delegate.c */
		uint64_t seq;
		/* not delegated: near_rma_mark() after the last request */
		uint64_t mark;
	};
	size_t sent;			/* bytes requested or copied */
	size_t answered;		/* bytes whose replies were received */
	uint32_t expect;		/* replies that the target will send */
	bool begun;		/* counted in near_rma_peer.unanswered */
	bool queued;			/* in near_rma_peer.queue */
	bool gates;		/* counted in near_rma_peer.gates */
	bool delegated;
	bool small;	/* issued by the fast path of rma/inline.h */
	bool on_device;	/* uses device memory: stage.h, mapped.h */
	int err;			/* on_device: the first error, > 0 */
	uint8_t *copy;	/* operands in memory from malloc(); or NULL */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	/*
	 * handles of the buffers in `local` for near_device; NULL: host memory
	 */
	void *device[NEAR_IOV_MAX];
	/* mapping of the target's memory; NULL: not a mapped operation */
	struct near_mapping *mapping;
	/* a mapped operation: pending copy of each local buffer; or NULL */
	void *pending[NEAR_IOV_MAX];
	uint8_t kept[NEAR_RMA_KEPT];	/* copy of short operands */
};

/*
 * A reply of this port to a request of a peer. A read of more than
 * NEAR_RMA_PART bytes is a *read in parts*: several slots carry the result, and
 * near reads each part from the region when it sends the part's slot.
 */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;
	uint8_t verb;
	uint32_t err;
	uint64_t id;
	/*
	 * offset in the result at which bytes[] belongs; for a read in parts:
	 * number of bytes sent so far
	 */
	uint64_t offset;
	/*
	 * number of bytes in bytes[]; for a read in parts: length of the whole
	 * read
	 */
	uint64_t len;
	/* for a read in parts: key and address (addr) of the memory to read */
	uint64_t key;
	uint64_t addr;
	/* The next five fields are for staged operations. */
	bool staged;
	void *copy;	/* pending copy of the device; or NULL */
	struct near_rma_slot req;			/* the request */
	/* a loan that this port has taken, and its mapping; or NULL */
	struct near_loan *loan;
	struct near_mapping *mapping;
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
/* Creates the state of a peer; NULL: no memory. */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
/* Opens the peer's region table at the first call; NULL: not readable. */
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/*
 * True if polls need not continue the operations with this peer: all of them
 * wait for the arrival of a slot, for a change of the poll word, or for the
 * next tick.
 */
static inline bool near_rma_waits(const struct near_rma_peer *at)
{
	return near_list_empty(&at->queue) && near_list_empty(&at->replies) &&
	       !at->due;
}

/* Returns a peer's state, created if necessary; NULL: no memory. */
static inline struct near_rma_peer *near_rma_peer(struct near_peer *peer)
{
	return near_likely(peer->rma != NULL) ? peer->rma :
						near_rma_peer_new(peer);
}

/* Adds a peer to port->onesided_work, so that polls continue its operations. */
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
 * Makes the peer's near_ctl.done the port's poll word (near_port.poll_word),
 * which each poll loads. The first delegated operation must be a write: writes
 * end when near_ctl.done changes, reads when their reply arrives.
 */
static inline void near_rma_set_poll_word(struct near_port *port,
					  struct near_rma_peer *at)
{
	near_port_set_poll_word(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->poll_peer = at;
}

/* Removes a peer without pending operations from port->onesided_work. */
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

/* True for the only atomic of the fast path: an addition of 64 bits. */
static near_inline bool near_rma_adds(unsigned int type, unsigned int op)
{
	return (type == NEAR_UINT64 || type == NEAR_INT64) && op == NEAR_SUM;
}

/* Returns a request's number of operands: 0 for reads, 2 for NEAR_COMPARE. */
static inline unsigned int near_rma_operands(unsigned int verb,
					     unsigned int op)
{
	if (verb == NEAR_READ || verb == NEAR_EVENT ||
	    (verb == NEAR_FETCH && op == NEAR_ATOMIC_READ))
		return 0;
	return verb == NEAR_COMPARE ? 2 : 1;
}

#endif /* NEAR_RMA_STATE_H */
