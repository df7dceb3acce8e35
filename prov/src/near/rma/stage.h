/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads and writes of device memory. Only its owner can access such memory, by
 * copies of the device's driver (struct near_device). So the bytes go through
 * chunks of shared memory behind the initiator's region table: for a write, the
 * initiator copies a part into a chunk and posts a request; the target copies
 * the chunk into its region and replies. A read takes the reverse path. All
 * copies of a device are asynchronous, and polls test for their end, so that
 * several chunks are in flight.
 *
 * Chunks are used, posted and answered in the order of the operations. Messages
 * and operations of other kinds wait for all replies. See docs/near/rma.md.
 */
#ifndef NEAR_RMA_STAGE_H
#define NEAR_RMA_STAGE_H

#include "near/rma/state.h"

#define NEAR_STAGE_CHUNKS (NEAR_STAGE / NEAR_STAGE_CHUNK)

enum near_chunk_state {
	NEAR_CHUNK_FILLS,	/* its local bytes are being copied into it, or
				 * it waits for a slot */
	NEAR_CHUNK_POSTED,	/* the target has it */
	NEAR_CHUNK_DRAINS,	/* it is being copied to local memory */
	NEAR_CHUNK_ENDED,
};

struct near_chunk {
	enum near_chunk_state state;
	struct near_rma_op *op;
	size_t offset;			/* in the operation */
	size_t len;
	void *copy[NEAR_IOV_MAX];	/* pending copies, or NULL */
};

/* A stage that this process has mapped, of its own table or of a peer's. */
struct near_stage {
	uint8_t *memory;
	void *pin;			/* result of near_device.pin() */
	bool pinned;			/* near_device.pin() was called */
	int index;			/* of the stage, in the table's file */
};

struct near_staging {
	const struct near_device *device;	/* NULL: none */
	struct near_table *table;
	struct near_stage ours, theirs;
	uint32_t filled, freed;			/* chunks so far */
	struct near_chunk chunk[NEAR_STAGE_CHUNKS];
};

/*
 * Begins an operation on device memory at either end. Returns what near_rma()
 * returns.
 */
int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args);
/*
 * Copies the next parts of the first operation in the queue into chunks. 0: all
 * parts have a chunk; -EAGAIN: some have none yet.
 */
int near_stage_issue(struct near_port *port, struct near_rma_op *op);
/* Posts chunks that are filled, and ends operations whose chunks have ended. */
void near_stage_step(struct near_port *port, struct near_rma_peer *at);
/* Handles a reply. False: it is invalid. */
bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err);
/* Serves a request, at the target. Nonzero: the slot stays, or is invalid. */
int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot);
/* Replies to a request if its copy has ended. False: pending. */
bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply);
/* Waits for all copies from and to the chunks, and unmaps them. */
void near_stage_close(struct near_rma_peer *at, bool peer_lives);

#endif /* NEAR_RMA_STAGE_H */
