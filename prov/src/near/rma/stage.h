/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Reads and writes of device memory that this process cannot map (mapped.h).
 * Only the owner can access it, by copies of the device's driver (struct
 * near_device). So the bytes go through chunks of shared memory, the stage,
 * behind the initiator's region table.
 *
 * - Write: the initiator copies a part into a chunk and posts a request; the
 *   target copies the chunk into its region and replies.
 * - Read: the initiator posts a request for an empty chunk; the target copies a
 *   part of its region into the chunk and replies; the initiator copies the
 *   chunk into its buffers.
 *
 * Copies of a device are asynchronous, and polls test whether a copy has ended.
 * So several chunks can be in use at once. Chunks are filled, posted and
 * answered in the order of the operations. Messages and operations of other
 * kinds wait until all staged operations have their replies. See
 * docs/near/rma.md, *Device memory*.
 */
#ifndef NEAR_RMA_STAGE_H
#define NEAR_RMA_STAGE_H

#include "near/rma/state.h"

#define NEAR_STAGE_CHUNKS (NEAR_STAGE / NEAR_STAGE_CHUNK)

enum near_chunk_state {
	/* being filled (writes only), or the request waits for a slot */
	NEAR_CHUNK_FILLS,
	NEAR_CHUNK_POSTED,	/* the request is posted; waits for the reply */
	NEAR_CHUNK_DRAINS,	/* a read: being copied to the local buffers */
	NEAR_CHUNK_ENDED,
};

struct near_chunk {
	enum near_chunk_state state;
	struct near_rma_op *op;
	size_t offset;	/* offset of the part in the operation */
	size_t len;
	/* pending copies of local buffers; or NULL */
	void *copy[NEAR_IOV_MAX];
};

/* A stage that this process has mapped: of its own table, or of a peer's. */
struct near_stage {
	uint8_t *memory;
	void *pin;	/* result of near_device.pin(); or NULL */
	bool pinned;	/* near_device.pin() was called, and may have failed */
	int index;	/* index of the stage in the region table */
};

struct near_staging {
	/* NULL: this process has no device memory */
	const struct near_device *device;
	struct near_table *table;
	/*
	 * Stages for operations of this port, and for operations of the peer.
	 */
	struct near_stage ours, theirs;
	bool no_view;	/* it was logged that the region table is not open */
	/*
	 * Number of chunks that were ever taken; number of those that were
	 * freed.
	 */
	uint32_t filled, freed;
	struct near_chunk chunk[NEAR_STAGE_CHUNKS];
};

/* stage.c: the initiator */
/*
 * Returns the state of staged operations of a peer, which is created if
 * necessary; NULL: no memory.
 */
struct near_staging *near_staging(struct near_port *port,
				  struct near_rma_peer *at);
/* Maps the stage with this index in a table's file. Returns 0 or -errno. */
int near_stage_map(struct near_stage *stage, int fd, int index);
/*
 * Copies host memory (device is NULL) to or from a stage; or starts a copy of
 * device memory and stores the handle for near_device.done() in *copy.
 */
int near_stage_copy(struct near_staging *staging, struct near_stage *stage,
		    void *device, void *to, const void *from, size_t len,
		    void **copy);
/*
 * Begins an operation on device memory, at either end. Returns 0 or an error,
 * as near_rma().
 */
int near_rma_stage(struct near_port *port, struct near_rma_peer *at,
		   const struct near_rma_args *args);
/*
 * Looks up a region of host or device memory, and checks the access. Stores the
 * target address in the peer's process. Returns 0 or an error, as near_rma().
 */
int near_stage_look(struct near_rma_peer *at, const struct near_rma_args *args,
		    struct near_region_entry *entry, uint64_t *memory);
/* Returns the access right that an operation requires of a region. */
static inline uint32_t near_stage_access(const struct near_region_entry *entry,
					 bool message, uint32_t access)
{
	return message ? NEAR_MAY_MESSAGE :
	       entry->device ? access << NEAR_MAY_DEVICE : access;
}
/*
 * True if none of NEAR_IOV_MAX copies is pending. If a copy has failed, stores
 * its positive errno value in *err.
 */
bool near_copies_ended(const struct near_device *device, void **copy, int *err);
/* Counts an operation as begun. */
void near_stage_begin(struct near_rma_op *op);
/* Opens the stage for this port's operations on the peer's memory. */
int near_stage_open(struct near_port *port, struct near_rma_peer *at);
/*
 * Continues the first operation in the queue, on device memory. 0: it has left
 * the queue, and may have been freed; -EAGAIN: not yet.
 */
int near_stage_go(struct near_port *port, struct near_rma_op *op);
/*
 * Posts requests for chunks that are filled, and ends operations whose chunks
 * have all ended.
 */
void near_stage_step(struct near_port *port, struct near_rma_peer *at);
/* Handles a reply. False: the reply is invalid. */
bool near_stage_answered(struct near_port *port, struct near_rma_op *op,
			 size_t offset, int err);
/*
 * Waits until all copies from and to chunks have ended, and unmaps the chunks.
 * peer_lives: the peer may still use the stage.
 */
void near_stage_close(struct near_rma_peer *at, bool peer_lives);

/* stage_serve.c: the target */
/*
 * Begins to execute a request. Nonzero: the slot is not consumed, because its
 * contents are invalid or cannot be handled now.
 */
int near_stage_request(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot);
/* Sends the reply to a request whose copy has ended. False: not sent yet. */
bool near_stage_reply(struct near_port *port, struct near_rma_peer *at,
		      struct near_rma_reply *reply);

#endif /* NEAR_RMA_STAGE_H */
