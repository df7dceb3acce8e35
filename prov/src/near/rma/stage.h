/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Staged and lent operations: docs/near/rma.md. A stage is shared memory of an
 * initiator for one target. It is in the file of the initiator's region table,
 * and is divided into chunks. The initiator fills chunks and posts their
 * requests in the order of the operations. The target replies in this order.
 *
 * Staged operation: each end copies between its memory and the chunks. Lent
 * operation: the initiator writes a loan into one chunk, by which the target
 * maps the initiator's device memory, and then the target's device copies.
 */
#ifndef NEAR_RMA_STAGE_H
#define NEAR_RMA_STAGE_H

#include "near/rma/mapped.h"

#define NEAR_STAGE_CHUNKS (NEAR_STAGE / NEAR_STAGE_CHUNK)

enum near_chunk_state {
	/* until the initiator's copies to it end and its request is posted */
	NEAR_CHUNK_FILLS,
	NEAR_CHUNK_POSTED,	/* until the reply to its request arrives */
	/* a read: until the copies from the chunk to the local buffers end */
	NEAR_CHUNK_DRAINS,
	NEAR_CHUNK_ENDED,	/* until all earlier chunks have ended, too */
};

/* A chunk in use: for a part of a staged operation, or for a lent operation. */
struct near_chunk {
	enum near_chunk_state state;
	struct near_rma_op *op;
	size_t offset;	/* offset of this chunk's bytes in the operation */
	size_t len;
	/* handles of the local buffers' pending device copies; NULL: none */
	void *copy[NEAR_IOV_MAX];
};

/*
 * minimum length of a lent operation while no other operation to the peer is
 * pending, bytes. Otherwise the minimum is NEAR_STAGE_CHUNK
 */
#define NEAR_LOAN_MIN (64u << 10)
#define NEAR_LOAN_SKIP 4 /* near_rma_peer.loan_skip after a rejected loan */
#define NEAR_LOAN_REJECTED EXDEV /* error in the reply to a rejected loan */

enum near_loan_state {
	NEAR_LOAN_OPEN,		/* the target may take the loan */
	NEAR_LOAN_TAKEN,	/* the target is copying */
	NEAR_LOAN_ENDED,	/* the target's copy has ended */
	/* the initiator has revoked the loan: the target must not copy */
	NEAR_LOAN_REVOKED,
};

/*
 * The content of a lent operation's chunk. A faulty peer might change the
 * content at any time.
 */
struct near_loan {
	uint32_t state;		/* enum near_loan_state */
	uint64_t key;		/* the lent region's key at the initiator */
	uint64_t addr;		/* RMA address of the lent bytes */
};

/* A stage that this process has mapped: its own, or a peer's. */
struct near_stage {
	uint8_t *memory;
	void *pin;	/* result of near_device.pin(); or NULL */
	bool pinned;	/* near_device.pin() was called */
	int index;	/* index of the stage in the region table's file */
};

/* A port's operations on device memory with a peer, in both directions. */
struct near_staging {
	const struct near_device *device;
	struct near_mapped mapped;
	struct near_stage ours;		/* for operations of this port */
	struct near_stage theirs;	/* for operations of the peer */
	/* a failure to open the peer's region table was logged */
	bool no_view;
	/* numbers of chunks of `ours` that were taken and freed so far */
	uint32_t filled, freed;
	struct near_chunk chunk[NEAR_STAGE_CHUNKS];	/* chunks of `ours` */
};

/* stage.c: the initiator */
/* Returns at->staging, after creating it if necessary; NULL: no memory. */
struct near_staging *near_staging(struct near_port *port,
				  struct near_rma_peer *at);
/*
 * Maps the stage with this index in the file of a region table. Returns 0 or
 * -errno, but never -EAGAIN, for which callers would retry.
 */
int near_stage_map(struct near_stage *stage, int fd, int index);
/*
 * Copies between a stage and local memory. If the local memory is host memory
 * (device is NULL), copies during the call. If it is device memory, starts a
 * copy, and stores the copy's handle in *copy. Returns 0 or -errno.
 */
int near_stage_copy(struct near_staging *staging, struct near_stage *stage,
		    void *device, void *to, const void *from, size_t len,
		    void **copy);
/*
 * Implements near_rma() for device memory at one end or at both: queues a
 * mapped, lent or staged operation. entry, memory: results of
 * near_rma_look_up(). With NEAR_RMA_BY_ID there is no region: entry->device and
 * memory are then 0.
 */
int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry, uint64_t memory);
/*
 * True if none of the NEAR_IOV_MAX copies is pending. If a copy has failed,
 * stores a positive errno value in *err.
 */
bool near_copies_ended(const struct near_device *device, void **copy, int *err);
/*
 * Counts an operation as begun. If the operation is a fetch (NEAR_RMA_MESSAGE),
 * lets later messages overtake it.
 */
void near_stage_begin(struct near_rma_op *op);
/*
 * Creates this port's stage for the peer, if there is none. Returns 0 or
 * -errno, but never -EAGAIN. -ENOSPC: no stage of the table is free.
 */
int near_stage_open(struct near_port *port, struct near_rma_peer *at);
/*
 * Continues op, the first operation in the queue, which uses device memory.
 * Returns -EAGAIN: op stays in the queue; 0: op has left the queue. In the
 * second case op might be freed already, so the caller must not use it.
 */
int near_stage_continue(struct near_port *port, struct near_rma_op *op);
/*
 * Posts the requests of filled chunks. Ends an operation when all its chunks
 * have ended.
 */
void near_stage_step(struct near_port *port, struct near_rma_peer *at);
/*
 * Handles a reply to a staged or lent operation. False: the reply is invalid,
 * because it is not for the oldest posted chunk.
 */
bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err);
/*
 * Waits for this port's copies, revokes its loans, unmaps both stages, drops
 * the mappings of the peer's memory, and frees at->staging. peer_lives: the
 * peer might still copy from or to this port's stage.
 */
void near_stage_close(struct near_rma_peer *at, bool peer_lives);

/* stage_serve.c: the target */
/*
 * Handles the request of a staged or lent operation: starts its copy, and
 * queues the reply. Returns 0; -EAGAIN: the slot must stay in the ring until a
 * retry; or -EPROTO.
 */
int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot);
/*
 * Looks up the region of a request. addr: RMA address of the operation. Stores
 * in *memory the address of this request's bytes, and in *device the region's
 * handle (NULL: host memory). Returns 0 or an errno value, > 0.
 */
int near_stage_where(const struct near_port *port,
		     const struct near_rma_slot *req, uint64_t addr,
		     uint8_t **memory, void **device);
/*
 * Returns the message that a request with NEAR_RMA_BY_ID names by its id. NULL:
 * there is no such message to this peer in host memory, or it is shorter than
 * the request.
 */
const struct near_tx_op *near_stage_message(const struct near_port *port,
					    const struct near_peer *peer,
					    const struct near_rma_reply *reply);
/* True if the reply's copy has ended. If it has failed, sets reply->err. */
bool near_stage_copied(const struct near_port *port,
		       struct near_rma_reply *reply);
/* Sends the reply to a request whose copy has ended. False: not sent yet. */
bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply);

/* loan.c: lent operations */
/*
 * Initiator: true if the operation should be lent. If only at->loan_skip
 * forbids lending, decrements at->loan_skip.
 */
bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry);
/*
 * Initiator: lends the local buffer of op, the first operation in the queue, if
 * op may begin now. Always returns -EAGAIN, because op stays in the queue until
 * its reply arrives.
 */
int near_loan_issue(struct near_port *port, struct near_rma_op *op);
/*
 * Initiator: handles the reply to a lent operation. err: error in the reply, as
 * a positive errno value; 0: none. If the target has rejected the loan, makes
 * the operation a staged one and returns 0. Otherwise returns err.
 */
int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err);

/*
 * Target: takes the loan and starts the copy. Returns 0 or an errno value, > 0;
 * NEAR_LOAN_REJECTED: the initiator must stage the operation.
 */
int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan);
/*
 * Target: ends the loan that this port has taken for the request, if there is
 * one. Must be called after the end of the copy.
 */
void near_loan_end(struct near_rma_reply *reply);

/*
 * Initiator: revokes its loans to a peer. If the peer has taken a loan, waits
 * until the peer's copy has ended, but at most NEAR_STOP_MS.
 */
void near_loans_revoke(const struct near_rma_peer *at);

#endif /* NEAR_RMA_STAGE_H */
