/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Mapped operations: the initiator maps the target's device memory, and the
 * initiator's device copies (docs/near/rma.md, *Mapped operations*). A mapping
 * belongs to an allocation of a peer. near drops a mapping by moving it to
 * near_table.unmapped, from which the embedder gets and releases it. The target
 * of a lent operation (loan.c) maps the initiator's memory in the same way.
 */
#ifndef NEAR_RMA_MAPPED_H
#define NEAR_RMA_MAPPED_H

#include "near/rma/state.h"

#define NEAR_MAPPINGS 64	/* limit of mappings per peer */
/* limit of near_table.unmapped_count; near_mapped_close() may exceed it */
#define NEAR_UNMAPPED 64
#define NEAR_DROPPED 8		/* length of near_mapped.dropped */
/*
 * time for which near keeps the mapping of a removed region, if near had mapped
 * and dropped the same allocation before (near_mapping.repeated), ms
 */
#define NEAR_MAPPING_KEEP_MS 1000
#define NEAR_MAPPING_REQUEST_MS 100	/* interval of requests for a fd, ms */
#define NEAR_MAPPED_OPS 16	/* limit of pending operations per peer */

/* The mapping of a peer's allocation. */
struct near_mapping {
	/* in near_mapped.mappings; after the drop, in near_table.unmapped */
	struct near_link link;
	uint64_t id;		/* near_export.id */
	uint64_t base;		/* near_export.base */
	uint64_t key;		/* region key of the most recent operation */
	const void *queue;	/* queue of the copies: near_device.queue() */
	struct near_map map;	/* if map.mapping is NULL, not mapped yet */
	int fd;		/* file descriptor for near_device.map(); -1: none */
	uint64_t requested_ms;	/* time of last request for fd, ms; 0: none */
	/*
	 * the value of near_table.released + 1 at the time when map() last
	 * returned -ENOMEM; 0: never. near does not call map() again before
	 * near_table.released has changed
	 */
	uint64_t enomem_at;
	/* map() or a copy has failed: all operations on it are staged */
	bool failed;
	bool repeated;	/* the allocation was mapped and dropped before */
	/* time when near found that the region was removed, ms; 0: not found */
	uint64_t gone_ms;
	uint32_t ops;		/* number of operations that use the mapping */
};

/* The mappings of a peer's allocations, and pending operations on them. */
struct near_mapped {
	struct near_link link;	/* in near_table.mapped; NULL: no mapping yet */
	struct near_rma_peer *at;
	struct near_table *table;
	struct near_link mappings;
	uint32_t count;			/* number of elements of mappings */
	/*
	 * generation of the peer's table at the last near_mapped_search() after
	 * which no mapping of a removed region remained
	 */
	uint64_t searched;
	/* near_mapping.id of the mappings that near has dropped last */
	uint64_t dropped[NEAR_DROPPED];
	uint32_t drops;		/* number of mappings dropped so far */
	const void *queue;	/* device queue that has all pending copies */
	/* numbers of mapped operations that have begun and ended so far */
	uint32_t begun, ended;
	/* pending mapped operations: operation i is at i % NEAR_MAPPED_OPS */
	struct near_rma_op *op[NEAR_MAPPED_OPS];
};

/* Returns the number of pending mapped operations. */
static inline uint32_t near_mapped_pending(const struct near_mapped *mapped)
{
	return mapped->begun - mapped->ended;
}

static inline enum near_device_path
near_mapping_path(const struct near_mapping *mapping)
{
	return mapping->requested_ms ? NEAR_DEVICE_SHARED : NEAR_DEVICE_MAPPED;
}

/*
 * Returns the handle of buffer i for near_device.start(): the handle of device
 * memory, or the result of near_device.host() for host memory; NULL: no device
 * can copy between this host memory and a mapping.
 */
static inline void *near_mapped_handle(const struct near_port *port,
				       const struct near_rma_bufs *bufs,
				       size_t i)
{
	const struct near_device *device = port->rma->sink->device;

	if (bufs->device && bufs->device[i])
		return bufs->device[i];
	return device->host ? device->host(port->ctx, bufs->iov[i].iov_base,
					   bufs->iov[i].iov_len) : NULL;
}

/* mapping.c: the cache of mappings */
/*
 * Finds or creates the mapping for an operation, and stores it in *mapping.
 * Returns the operation's device path: NEAR_DEVICE_MAPPED, or
 * NEAR_DEVICE_SHARED. If no mapping can be used now, leaves *mapping unchanged,
 * and returns one of the device paths that give the reason. memory: address of
 * the target memory in the peer's process.
 */
enum near_device_path near_mapping_get(struct near_port *port,
				       struct near_rma_peer *at,
				       const struct near_rma_args *args,
				       const struct near_region_entry *entry,
				       uint64_t memory,
				       struct near_mapping **mapping);
/*
 * Returns the address in this process of the len bytes at the peer's address
 * `memory`; NULL: the mapping does not contain these bytes.
 */
uint8_t *near_mapping_at(const struct near_mapping *mapping, uint64_t memory,
			 size_t len);
/* Waits for the pending copies. Drops all mappings of the peer's memory. */
void near_mapped_close(struct near_mapped *mapped,
		       const struct near_device *device);
/* Implements near_onesided.share(). */
int near_mapped_share(struct near_port *port, uint64_t key, uint64_t id);
/* Implements near_onesided.shared(). */
void near_mapped_shared(struct near_port *port, struct near_peer *peer,
			uint64_t id, int fd);

/* mapped.c: operations */
/*
 * Starts the copies of op, the first operation in the queue. Returns 0:
 * near_mapped_step() will end op; -EAGAIN: op stays in the queue, and may have
 * become a staged operation.
 */
int near_mapped_issue(struct near_port *port, struct near_rma_op *op);
/*
 * Ends mapped operations in order. Stops at the first one that has a pending
 * copy, or that must notify the target while no slot is free.
 */
void near_mapped_step(struct near_port *port, struct near_rma_peer *at);

#endif /* NEAR_RMA_MAPPED_H */
