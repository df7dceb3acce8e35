/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Staged operations: reads and writes with device memory at one end or at both
 * that are neither mapped (mapped.h) nor lent (loan.h). Each end copies between
 * its own memory and a stage: shared memory in the file of the initiator's
 * region table, divided into chunks.
 *
 * - Write: the initiator copies a part into a chunk and posts a request; the
 *   target copies the chunk into its region and replies.
 * - Read: the initiator posts a request for an empty chunk; the target copies a
 *   part of its region into the chunk and replies; the initiator copies the
 *   chunk into its buffers.
 *
 * Device copies are asynchronous; polls test whether they have ended, so
 * several chunks can be in use at once. Chunks are filled, posted and answered
 * in the order of the operations. Messages and operations of other kinds wait
 * until all staged operations have their replies. There is one exception: a
 * message does not wait for a fetch that has begun. (A *fetch* is a read by
 * which a receiver gets a large message: NEAR_RMA_MESSAGE.) See
 * docs/near/rma.md, *Device memory*.
 */
#ifndef NEAR_RMA_STAGE_H
#define NEAR_RMA_STAGE_H

#include "near/rma/state.h"

#define NEAR_STAGE_CHUNKS (NEAR_STAGE / NEAR_STAGE_CHUNK)

enum near_chunk_state {
	/* the request waits for a slot, or for a write's copy to the chunk */
	NEAR_CHUNK_FILLS,
	NEAR_CHUNK_POSTED,	/* the request is posted; waits for the reply */
	/* the reply has arrived; a read may still copy the chunk's bytes */
	NEAR_CHUNK_DRAINS,
	NEAR_CHUNK_ENDED,	/* has ended; freed after all earlier chunks */
};

/* A chunk in use: a part of a staged operation. */
struct near_chunk {
	enum near_chunk_state state;
	struct near_rma_op *op;
	size_t offset;	/* offset of the part in the operation */
	size_t len;
	/* pending copies of local buffers; or NULL */
	void *copy[NEAR_IOV_MAX];
};

/* A stage that this process has mapped: its own, or a peer's. */
struct near_stage {
	uint8_t *memory;
	void *pin;	/* result of near_device.pin(); or NULL */
	bool pinned;	/* near_device.pin() was called, and may have failed */
	int index;	/* index of the stage in the region table */
};

/* The staged operations between a port and a peer, in both directions. */
struct near_staging {
	const struct near_device *device;
	struct near_table *table;
	/* stages for this port's operations, and for the peer's operations */
	struct near_stage ours, theirs;
	bool no_view;	/* a failure to open the peer's table was logged */
	/* numbers of chunks taken, and of chunks freed, since the start */
	uint32_t filled, freed;
	struct near_chunk chunk[NEAR_STAGE_CHUNKS];
};

/* stage.c: the initiator */
/* Returns a peer's staging state, created if necessary; NULL: no memory. */
struct near_staging *near_staging(struct near_port *port,
				  struct near_rma_peer *at);
/* Maps the stage with this index in a table's file. Returns 0 or -errno. */
int near_stage_map(struct near_stage *stage, int fd, int index);
/*
 * Copies between a stage and local memory. If device is NULL, local memory is
 * host memory, and the copy ends before the return. Otherwise starts the copy,
 * and stores its handle for near_device.done() in *copy.
 */
int near_stage_copy(struct near_staging *staging, struct near_stage *stage,
		    void *device, void *to, const void *from, size_t len,
		    void **copy);
/*
 * Begins an operation on device memory at the initiator, the target, or both.
 * Returns 0: done() will report the end; or an error of near_rma().
 */
int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args);
/*
 * Looks up a region of host or device memory and checks the access. Stores the
 * target address, which is valid in the peer's process. Returns 0, -ENOENT,
 * -EKEYREJECTED, -EACCES or -EAGAIN: see near_rma().
 */
int near_stage_look(struct near_rma_peer *at, const struct near_rma_args *args,
		    struct near_region_entry *entry, uint64_t *memory);
/*
 * Returns the access right that an operation requires of a region. message: the
 * operation reads a NEAR_DEVICE message. access: the right that it would
 * require of a region in host memory.
 */
static inline uint32_t near_stage_access(const struct near_region_entry *entry,
					 bool message, uint32_t access)
{
	return message ? NEAR_MAY_MESSAGE :
	       entry->device ? access << NEAR_MAY_DEVICE : access;
}
/*
 * True if none of the NEAR_IOV_MAX copies is pending. If a copy has failed,
 * stores a positive errno value in *err.
 */
bool near_copies_ended(const struct near_device *device, void **copy, int *err);
/* Waits until the copy, if there is one, has ended. Sets *copy to NULL. */
void near_copy_wait(const struct near_staging *staging, void **copy);
/* Counts an operation as begun. If it is a fetch, lets messages overtake it. */
void near_stage_begin(struct near_rma_op *op);
/*
 * Opens the stage for this port's operations on the peer's memory. Returns 0 or
 * -errno; -EAGAIN: retry; -ENOSPC: too many peers have a stage.
 */
int near_stage_open(struct near_port *port, struct near_rma_peer *at);
/*
 * Continues the first operation of the queue, which must be on device memory.
 * Returns 0 if the operation has left the queue; it may be freed then. Else
 * returns -EAGAIN.
 */
int near_stage_continue(struct near_port *port, struct near_rma_op *op);
/* Posts requests of filled chunks. Ends operations after their last chunk. */
void near_stage_step(struct near_port *port, struct near_rma_peer *at);
/* Handles a reply. False: the reply is invalid. */
bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err);
/*
 * Waits until all copies of chunks have ended, and unmaps both stages.
 * peer_lives: the peer may still use the stages.
 */
void near_stage_close(struct near_rma_peer *at, bool peer_lives);

/* stage_serve.c: the target */
/*
 * Begins to execute a request. Nonzero: the slot must stay in the ring, for a
 * retry (-EAGAIN) or because it is invalid (-EPROTO).
 */
int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot);
/*
 * Looks up the region that a request names in this port's table. addr: address
 * of the whole operation, as in near_rma_args. Stores in *memory this process's
 * address of the part that the request is for, and in *device the region's
 * handle for near_device (NULL: host memory). Returns 0 or a positive errno
 * value.
 */
int near_stage_where(const struct near_port *port,
		     const struct near_rma_slot *req, uint64_t addr,
		     uint8_t **memory, void **device);
/*
 * True if the peer may fetch the message of the send op: the message is to this
 * peer, in host memory, and long enough for the request. op may be NULL.
 */
bool near_stage_has_message(const struct near_tx_op *op,
			    const struct near_peer *peer,
			    const struct near_rma_slot *req);
/* Sends the reply to a request whose copy has ended. False: not sent yet. */
bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply);

#endif /* NEAR_RMA_STAGE_H */
