/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Staged and lent operations: docs/near/rma.md. A stage is shared memory in the
 * file of the initiator's region table, divided into chunks. Chunks are filled,
 * posted and answered in the order of the operations.
 */
#ifndef NEAR_RMA_STAGE_H
#define NEAR_RMA_STAGE_H

#include "near/rma/mapped.h"

#define NEAR_STAGE_CHUNKS (NEAR_STAGE / NEAR_STAGE_CHUNK)

enum near_chunk_state {
	NEAR_CHUNK_FILLS,	/* until its copies end, and a slot is free */
	NEAR_CHUNK_POSTED,	/* until the reply arrives */
	NEAR_CHUNK_DRAINS,	/* until the copies of a read end */
	NEAR_CHUNK_ENDED,	/* until all earlier chunks have ended */
};

/* A chunk in use: a part of a staged operation. */
struct near_chunk {
	enum near_chunk_state state;
	struct near_rma_op *op;
	size_t offset;	/* offset of this chunk's bytes in the operation */
	size_t len;
	/* handle of each local buffer's pending device copy; NULL: none */
	void *copy[NEAR_IOV_MAX];
};

/* minimum length of a lent operation if no other one is pending, bytes */
#define NEAR_LOAN_MIN (64u << 10)
#define NEAR_LOAN_SKIP 4 /* near_rma_peer.loan_skip after a rejected loan */
#define NEAR_LOAN_REJECTED EXDEV /* error in the reply to a rejected loan */

enum near_loan_state {
	NEAR_LOAN_OPEN,
	NEAR_LOAN_TAKEN,	/* the target is copying */
	NEAR_LOAN_ENDED,	/* the target's copy has ended */
	NEAR_LOAN_REVOKED,	/* by the initiator: the target must not copy */
};

/* Content of a lent operation's chunk. A faulty peer may change it any time. */
struct near_loan {
	uint32_t state;		/* enum near_loan_state */
	uint64_t key;		/* key of a region of the initiator */
	uint64_t addr;		/* RMA address in that region */
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
	bool no_view;	/* a failure to open the peer's table was logged */
	uint32_t filled, freed;	/* numbers of chunks taken and freed so far */
	struct near_chunk chunk[NEAR_STAGE_CHUNKS];
};

/* stage.c: the initiator */
/* Returns a peer's staging state, created if necessary; NULL: no memory. */
struct near_staging *near_staging(struct near_port *port,
				  struct near_rma_peer *at);
/* Maps a stage of the table's file fd. Returns 0 or -errno, never -EAGAIN. */
int near_stage_map(struct near_stage *stage, int fd, int index);
/*
 * Copies between a stage and local memory. Host memory (device is NULL): copies
 * during the call. Device memory: starts a copy, and stores its handle in
 * *copy. Returns 0 or -errno.
 */
int near_stage_copy(struct near_staging *staging, struct near_stage *stage,
		    void *device, void *to, const void *from, size_t len,
		    void **copy);
/*
 * Implements near_rma() for device memory at one end or at both. entry, memory:
 * from near_rma_look_up(); 0 with NEAR_RMA_BY_ID.
 */
int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry, uint64_t memory);
/* True if none of the copies is pending. Stores an error, > 0, in *err. */
bool near_copies_ended(const struct near_device *device, void **copy, int *err);
/* Counts an operation as begun. If it is a fetch, lets messages overtake it. */
void near_stage_begin(struct near_rma_op *op);
/*
 * Creates this port's stage for the peer, if there is none. Returns 0 or
 * -errno, never -EAGAIN; -ENOSPC: no stage is free.
 */
int near_stage_open(struct near_port *port, struct near_rma_peer *at);
/*
 * Continues op, the first one in the queue, which uses device memory. Returns
 * 0: op has left the queue, and may be freed; -EAGAIN: op stays queued.
 */
int near_stage_continue(struct near_port *port, struct near_rma_op *op);
/* Posts requests of filled chunks. Ends operations whose chunks have ended. */
void near_stage_step(struct near_port *port, struct near_rma_peer *at);
/* Handles a reply. False: the reply is invalid. */
bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err);
/*
 * Waits for this port's copies, revokes its loans, unmaps all memory of the
 * peer, and frees at->staging. peer_lives: the peer may still copy.
 */
void near_stage_close(struct near_rma_peer *at, bool peer_lives);

/* stage_serve.c: the target */
/* Starts the copy for a request. Returns 0; -EAGAIN: retry; or -EPROTO. */
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
 * Returns the message that a request with NEAR_RMA_BY_ID names. NULL: it does
 * not go to this peer, is not in host memory, or is too short.
 */
const struct near_tx_op *near_stage_message(const struct near_port *port,
					    const struct near_peer *peer,
					    const struct near_rma_reply *reply);
/* True if the reply's copy has ended. Stores an error in the reply. */
bool near_stage_copied(const struct near_port *port,
		       struct near_rma_reply *reply);
/* Sends the reply to a request whose copy has ended. False: not sent yet. */
bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply);

/* loan.c: lent operations */
/*
 * Initiator: true if the operation should be lent. Decrements at->loan_skip if
 * only loan_skip forbids lending.
 */
bool near_loan_can(const struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args,
		   const struct near_region_entry *entry);
/*
 * Initiator: lends the local buffer of op, the first one in the queue, if op
 * may begin now. Returns -EAGAIN: op stays in the queue until the reply.
 */
int near_loan_issue(struct near_port *port, struct near_rma_op *op);
/* Initiator: stages a rejected operation. Returns 0, or the reply's error. */
int near_loan_answered(struct near_port *port, struct near_chunk *chunk,
		       int err);

/* Target: takes the loan and starts the copy. Returns 0 or an error > 0. */
int near_loan_serve(struct near_port *port, struct near_rma_peer *at,
		    struct near_rma_reply *reply, struct near_loan *loan);
/* Target: ends the loan of a request, if any, after the end of the copy. */
void near_loan_end(struct near_rma_reply *reply);

/* Initiator: revokes its loans, and waits for the copies of taken ones. */
void near_loans_revoke(const struct near_rma_peer *at);

#endif /* NEAR_RMA_STAGE_H */
