/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* The structs of one-sided operations (RMA and atomics), per port and peer. */
#ifndef NEAR_RMA_STATE_H
#define NEAR_RMA_STATE_H

#include "base/proc.h"
#include "near/msg/large.h"
#include "near/rma/table.h"

/* limit of a port's pending operations; also limit of its queued replies */
#define NEAR_RMA_OPS (1u << 16)
/* flags that only near sets; the others are in near_rma.h */
#define NEAR_RMA_LENT 0x08u	/* the chunk has a loan: stage.h */
#define NEAR_RMA_STAGED 0x40u	/* the data goes through a chunk: stage.h */
#define NEAR_RMA_INLINE 0x80u	/* the operands are in the slot */
#define NEAR_RMA_KEPT 256	/* size of near_rma_op.kept, bytes */
/* limit of an atomic's operand, and of a read that is not in parts, bytes */
#define NEAR_RMA_PART 256
#define NEAR_RMA_EXPECT 512	/* limit of replies expected from a peer */
#define NEAR_RMA_REPLIES_MAX 1024	/* limit of queued replies to a peer */

struct near_rma {
	const struct near_rma_sink *sink;
	struct near_table *table;
	uint32_t events;	/* NEAR_MAY_*: argument of near_rma_events() */
	struct near_pool ops;
	struct near_pool replies;
	struct near_rma_peer *poll_peer;	/* peer of the poll word */
	uint64_t small;		/* number of issued fast-path operations */
	uint64_t served;	/* number of requests served by the fast path */
	uint64_t device_ops[NEAR_DEVICE_PATHS];	/* see near_rma_device_ops() */
};

/* The operations between a port and a peer, in both directions. */
struct near_rma_peer {
	struct near_peer *peer;
	struct near_link link;		/* in port->onesided_work */
	bool working;			/* link is in port->onesided_work */
	bool view_tried;	/* near_rma_view_open() must not retry */
	bool reading;	/* a read that near_rma_post() has posted is pending */
	uint32_t unanswered;	/* number of operations begun, but not ended */
	/* number of expected replies, except for staged and lent operations */
	uint32_t expect;
	uint32_t replies_queued;	/* number of elements of replies */
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
	uint64_t counted;		/* last loaded value of near_ctl.done */
	/* start of the wait before a revocation, ns; 0: not set */
	uint64_t delegated_ns;
	uint32_t skip;	/* number of next operations not to delegate */
	/* value of skip after the next revocation; 0: NEAR_DELEG_SKIP */
	uint32_t next_skip;
	/* The fields up to device_pending are for device memory. */
	struct near_staging *staging;	/* NULL: no operation so far */
	enum near_device_path device_path;	/* path of the last operation */
	uint32_t loan_skip;	/* number of next operations not to lend */
	uint32_t device_pending;	/* number of pending operations */
	uint32_t gates;	/* number of operations that close NEAR_GATE_QUEUE */
	/* number of chunks and mapped operations that polls must continue */
	uint32_t due;
	/*
	 * operations that have not requested or copied all bytes, in order.
	 * Lent operations and reads with NEAR_RMA_HOLD stay until they end.
	 */
	struct near_link queue;
	struct near_link replies;	/* queued replies, in order */
};

/* An operation of this port on memory of a peer. */
struct near_rma_op {
	struct near_pooled pooled;
	struct near_link link;	/* in near_rma_peer.queue or .delegated */
	struct near_rma_peer *to;
	struct near_slot *slot;		/* slot of a delegated operation */
	union {
		uint64_t seq;	/* delegated operation: sequence number */
		uint64_t mark;	/* other: near_rma_mark() after last request */
	};
	size_t sent;			/* bytes requested or copied */
	size_t answered;		/* bytes whose replies were received */
	uint32_t expect;	/* expected replies, counted in to->expect */
	bool begun;		/* counted in near_rma_peer.unanswered */
	bool queued;			/* in near_rma_peer.queue */
	bool gates;		/* counted in near_rma_peer.gates */
	bool delegated;
	bool small;	/* issued by the fast path of rma/inline.h */
	bool on_device;	/* uses device memory: stage.h, mapped.h */
	int err;			/* if on_device: error, > 0; 0: none */
	uint8_t *copy;	/* copy of long operands, from malloc(); or NULL */
	struct near_rma_args args;
	struct iovec local[NEAR_IOV_MAX];
	struct iovec result[NEAR_IOV_MAX];
	struct iovec compare[NEAR_IOV_MAX];
	void *device[NEAR_IOV_MAX];	/* handles of `local`; NULL: host */
	struct near_mapping *mapping;	/* NULL: not a mapped operation */
	/* mapped operation: handle of each buffer's pending copy; or NULL */
	void *pending[NEAR_IOV_MAX];
	uint8_t kept[NEAR_RMA_KEPT];	/* copy of short operands */
};

/* A reply to a peer's request. The reply to a read in parts has many slots. */
struct near_rma_reply {
	struct near_pooled pooled;
	struct near_link link;		/* in near_rma_peer.replies */
	struct near_rma_slot req;	/* the request */
	uint64_t addr;	/* RMA address or message id in the request */
	uint32_t err;	/* errno value, > 0; 0: none */
	/* offset of bytes[] in the result; read in parts: bytes sent so far */
	uint64_t offset;
	uint64_t len;	/* number of bytes in bytes[]; read in parts: 0 */
	/* The next five fields are for staged and lent operations. */
	bool staged;
	void *copy;	/* handle of the pending device copy; or NULL */
	/* start of the region's bytes that `copy` uses; NULL: lent operation */
	uint8_t *memory;
	struct near_loan *loan;		/* taken loan, if mapping is not NULL */
	struct near_mapping *mapping;	/* mapping of lent memory; or NULL */
	uint8_t bytes[NEAR_RMA_PART];
};

/* state.c */
/* Creates peer->rma, and returns it; NULL: no memory. */
struct near_rma_peer *near_rma_peer_new(struct near_peer *peer);
/* Slow path of near_rma_view(): opens the table at the first call. */
struct near_table_view *near_rma_view_open(struct near_rma_peer *at);
/* True if all operations wait for a reply, for the poll word or for a tick. */
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
 * Makes the peer's near_ctl.done the port's poll word (rma.md, *Polling*). The
 * peer's first delegated operation must be a write.
 */
static inline void near_rma_set_poll_word(struct near_port *port,
					  struct near_rma_peer *at)
{
	near_port_set_poll_word(port, &at->peer->tx.ctl->done, at->counted);
	port->rma->poll_peer = at;
}

/* Removes a peer from port->onesided_work if polls need not continue it. */
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

/* Returns the access rights that an operation requires of this region. */
static inline uint32_t near_rma_access_to(const struct near_region_entry *entry,
					  unsigned int verb, unsigned int op,
					  uint32_t flags)
{
	uint32_t access = near_rma_access(verb, op);

	return flags & NEAR_RMA_MESSAGE ? NEAR_MAY_MESSAGE :
	       entry->device ? access << NEAR_MAY_DEVICE : access;
}

/* True for the only atomic of the fast path: an addition of 64 bits. */
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
