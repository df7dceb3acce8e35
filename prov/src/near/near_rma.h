/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Memory regions, RMA and atomics of near. Include near.h, not this file. The
 * initiator is the port that calls near_rma(), the target is the port with the
 * region. An operation with device memory is executed in one of three ways
 * (docs/near/rma.md, *Device memory*):
 * - mapped: the initiator's device also accesses the target's memory
 * - lent: the target's device also accesses the initiator's memory
 * - staged: each end copies between its memory and a stage, which is shared
 *   host memory
 */
#ifndef NEAR_NEAR_RMA_H
#define NEAR_NEAR_RMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct near_port;
struct near_peer;

/* bits of near_region_entry.access: the rights of peers to the region */
#define NEAR_MAY_READ 1u
#define NEAR_MAY_WRITE 2u
/*
 * shift count: the two bits above, shifted left by this number, are the same
 * rights to device memory
 */
#define NEAR_MAY_DEVICE 2
/* receivers may fetch messages from this device memory (NEAR_RMA_MESSAGE) */
#define NEAR_MAY_MESSAGE 16u
/* the owner may lend this device memory to a target, which then maps it */
#define NEAR_MAY_LEND 32u

#define NEAR_EXPORT_HANDLE 64	/* size of near_export.handle, bytes */
/* The description by which peers can map an allocation of device memory. */
struct near_export {
	uint8_t handle[NEAR_EXPORT_HANDLE];	/* data for near_device.map() */
	uint64_t id;	/* id of the allocation, never reused; 0: none */
	uint64_t base;	/* address of the allocation in the owner's process */
	uint64_t needs_fd;	/* 1: map() requires a file descriptor */
};

struct near_region_entry {
	uint64_t key;
	uint64_t start;		/* RMA address of the first byte: fi_mr(3) */
	uint64_t memory;	/* owner's virtual address of the first byte */
	uint64_t len;
	uint32_t access;
	uint32_t used;		/* 1: entry in use; set by near_table_add() */
	/* argument `device` of the functions in near_device; 0: host memory */
	uint64_t device;
	uint64_t export_id;	/* near_export.id; 0: region is not exported */
	uint32_t export_index;	/* index of the export in the table's file */
} __attribute__((aligned(64)));

/*
 * A table of memory regions by their keys (rma/table.h). Several ports may use
 * one table. The embedder must serialize all calls for a table and for the
 * ports that use it. It must close these ports before it closes the table.
 */
struct near_table;

/* Opens a table. staged: its file has space for stages (rma/stage.h). */
int near_table_open(struct near_table **table, bool staged);
void near_table_close(struct near_table *table);
/* Adds a region. Returns 0 or -errno; -ENOKEY: key in use; -ENOSPC: full. */
int near_table_add(struct near_table *table,
		   const struct near_region_entry *entry);
/* Removes the region with this key, if there is one. */
void near_table_remove(struct near_table *table, uint64_t key);
/* Lets peers map the allocation that contains a region. Returns 0 or -errno. */
int near_table_export(struct near_table *table, uint64_t key,
		      const struct near_export *export);
/*
 * Frees a mapping that near no longer uses. Returns its near_map.mapping, which
 * the embedder must release; NULL: there is no such mapping.
 */
void *near_table_unmapped(struct near_table *table);

/*
 * One-sided operations (RMA and atomics): docs/near/rma.md. near_type and
 * near_op have the values of enum fi_datatype and enum fi_op. Types of more
 * than 8 bytes are not supported, because their atomics would need a lock.
 */
enum near_type {
	NEAR_INT8, NEAR_UINT8, NEAR_INT16, NEAR_UINT16,
	NEAR_INT32, NEAR_UINT32, NEAR_INT64, NEAR_UINT64,
	NEAR_FLOAT, NEAR_DOUBLE, NEAR_FLOAT_COMPLEX,
	NEAR_TYPES,
};

enum near_op {
	NEAR_MIN, NEAR_MAX, NEAR_SUM, NEAR_PROD,
	NEAR_LOR, NEAR_LAND, NEAR_BOR, NEAR_BAND, NEAR_LXOR, NEAR_BXOR,
	NEAR_ATOMIC_READ, NEAR_ATOMIC_WRITE,
	NEAR_CSWAP, NEAR_CSWAP_NE, NEAR_CSWAP_LE, NEAR_CSWAP_LT,
	NEAR_CSWAP_GE, NEAR_CSWAP_GT, NEAR_MSWAP,
	NEAR_OP_COUNT,
};

enum near_verb {
	NEAR_WRITE,
	NEAR_READ,
	NEAR_ATOMIC,		/* atomic without a result */
	NEAR_FETCH,		/* atomic that returns the old values */
	NEAR_COMPARE,		/* the same, with a compare operand */
	NEAR_VERBS,
	/*
	 * only in slots: notifies the target of an operation that the initiator
	 * has executed
	 */
	NEAR_EVENT = NEAR_VERBS,
};

/* bits of near_rma_args.flags; bits below 0x100 are used in slots, too */
#define NEAR_RMA_DATA 1u	/* near_rma_args.data is valid */
/* this read is a fetch, by which a receiver gets a rendezvous message */
#define NEAR_RMA_MESSAGE 0x20u
/* fetch of a message in host memory: addr is near_rndv.id, key is not used */
#define NEAR_RMA_BY_ID 0x10u
/*
 * start only after all earlier operations on the peer's memory, and all earlier
 * large messages to the peer, have ended
 */
#define NEAR_RMA_FENCE 0x100u
#define NEAR_RMA_COPY 0x200u	/* copy the source buffers during the call */
/* take effect after the peer has consumed all earlier messages */
#define NEAR_RMA_BEHIND 0x400u
/* later messages to the peer must wait until this read has ended */
#define NEAR_RMA_HOLD 0x800u
/*
 * if the peer's region table cannot be read, send a request; without this flag,
 * near_rma() returns -ENOENT
 */
#define NEAR_RMA_TRY 0x1000u

#define NEAR_RMA_DONE 1	/* returned by near_rma(): the operation has ended */

/*
 * Buffers of the initiator: the destination of a read or of an atomic's result;
 * otherwise the source of the data.
 */
struct near_rma_bufs {
	const struct iovec *iov;
	size_t count;		/* limit: NEAR_IOV_MAX */
	/*
	 * the argument `device` of near_device for each buffer; NULL: host
	 * memory. If the pointer to this array is NULL, all buffers are host
	 * memory.
	 */
	void *const *device;
};

struct near_rma_args {
	enum near_verb verb;
	uint32_t flags;
	uint64_t addr;	/* RMA address of the first byte in the target */
	uint64_t key;
	struct near_rma_bufs local;
	struct near_rma_bufs result;	/* NEAR_FETCH and NEAR_COMPARE only */
	struct near_rma_bufs compare;	/* NEAR_COMPARE only */
	size_t len;			/* bytes of the operation */
	uint8_t op;			/* atomics only: enum near_op */
	uint8_t type;			/* atomics only: enum near_type */
	uint64_t data;
	/*
	 * arguments of near_rma_sink.done(). If about is 0, near does not call
	 * done()
	 */
	uint32_t about;
	void *cookie;
};

/* An operation of a peer on memory of this process, after its execution. */
struct near_rma_event {
	struct near_peer *peer;
	bool write;		/* write, or atomic without a result */
	bool has_data;
	uint64_t data;
	uint64_t len;
};

/* A mapping of a peer's device memory in this process. */
struct near_map {
	void *mapping;		/* handle that near_table_unmapped() returns */
	uint8_t *at;		/* address of the allocation in this process */
	size_t len;		/* number of mapped bytes at `at` */
};

/*
 * The embedder's functions for device memory. The argument `device` is a handle
 * of the memory: the embedder has stored it in near_region_entry or
 * near_rma_bufs, or has returned it from host(). queue, host and lend may be
 * NULL. share may be NULL if no export has needs_fd.
 */
struct near_device {
	/* Starts a copy and stores its handle in *copy. Returns 0 or -errno. */
	int (*start)(void *device, void *to, const void *from, size_t len,
		     void **copy);
	/*
	 * Tests a copy. Returns -EAGAIN: it is pending; 0: it has ended; -EIO:
	 * it has failed. After 0 and -EIO, the handle is invalid.
	 */
	int (*done)(void *copy);
	/* Pins host memory for faster copies. Returns a handle or NULL. */
	void *(*pin)(void *device, void *memory, size_t len);
	void (*unpin)(void *pin);
	/*
	 * Returns the id of the device queue that start() uses for this memory.
	 * The device executes all copies of one queue in order. NULL: the
	 * device might execute copies in any order, and cannot map memory of
	 * peers.
	 */
	const void *(*queue)(void *device);
	/*
	 * Returns a handle by which start() can copy between this host memory
	 * and a mapping of a peer's memory; NULL: no device can make such a
	 * copy. The handle must stay valid until the function of near that has
	 * called host() returns.
	 */
	void *(*host)(void *ctx, const void *memory, size_t len);
	/*
	 * Maps a peer's allocation, for copies between the allocation and the
	 * memory with the handle `device`. fd: file descriptor from the peer's
	 * share(), which near closes; -1: the export has no needs_fd. Returns 0
	 * or -errno. After -ENOMEM, near calls map() for this allocation again
	 * only after near_table_unmapped() has returned a mapping.
	 */
	int (*map)(void *device, const struct near_export *export, int fd,
		   struct near_map *map);
	/*
	 * Returns a file descriptor by which a peer can map the allocation that
	 * contains this memory, or -errno. near closes the file descriptor.
	 */
	int (*share)(void *device);
	/*
	 * Stores the region key and the RMA address of the len bytes at
	 * `memory`, by which a target can find them. False: their region does
	 * not grant NEAR_MAY_LEND, or is not exported.
	 */
	bool (*lend)(void *device, const void *memory, size_t len,
		     uint64_t *key, uint64_t *addr);
};

struct near_rma_sink {
	/* never NULL; all members are NULL if there is no device memory */
	const struct near_device *device;
	/*
	 * Reports the end of an operation for which near_rma() returns 0. near
	 * might call this function before near_rma() returns.
	 */
	void (*done)(void *ctx, struct near_peer *peer, void *cookie,
		     uint32_t about, int err);
	/*
	 * Reports an executed operation of a peer on this port's memory. near
	 * reports each operation with NEAR_RMA_DATA, and those reads or writes
	 * that the embedder has requested by near_rma_events().
	 */
	void (*event)(void *ctx, const struct near_rma_event *event);
};

/*
 * Enables one-sided operations of a port. Must be called at most once, before
 * near_address(). messages_only: peers may fetch messages from this port
 * (NEAR_RMA_MESSAGE), but their near_rma() returns -EOPNOTSUPP for all other
 * operations on this port's memory. Returns 0 or -ENOMEM.
 */
int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table, bool messages_only);
/*
 * Requests calls of near_rma_sink.event() for all operations of peers that read
 * or that write memory, even for operations without NEAR_RMA_DATA.
 */
void near_rma_events(struct near_port *port, bool reads, bool writes);

/*
 * Starts a one-sided operation. Operations to one peer, except fetches, take
 * effect in the order of the calls, and before later messages to this peer
 * arrive. The caller can request further order by flags. With NEAR_RMA_COPY,
 * the local buffers must be in host memory. Returns
 * - 0: near_rma_sink.done() reports the end, perhaps before near_rma() returns
 * - NEAR_RMA_DONE: the operation is complete; near does not call done()
 * - -EAGAIN: poll and retry
 * - -EFAULT: a part of the target's memory or of the local buffers is not
 *   mapped in its process; other parts of the destination might be changed
 * - -ECONNRESET: the peer has failed
 * - -EHOSTUNREACH: this port cannot send to the peer
 *
 * After each of the following errors, no memory is changed:
 * - -EKEYREJECTED: the peer has no region with this key
 * - -EACCES: the region does not grant this access, or does not have this range
 * - -EINVAL: the target address of an atomic is not aligned
 * - -EOPNOTSUPP: the peer's address has no NEAR_ADDR_RMA; or the operation is
 *   an atomic on device memory
 * - -ENOENT: the peer's region table cannot be read; see NEAR_RMA_TRY
 * - -ENOSPC: the operation uses device memory and requires a stage, but all
 *   stages are in use
 * - -ENOMEM: the operation uses device memory, and requires memory for a stage
 */
int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args);

/* True if near supports this atomic. */
bool near_rma_has_atomic(unsigned int verb, unsigned int op,
			 unsigned int type);
/* Returns the size of a type in bytes; 0: no such type. */
size_t near_type_size(unsigned int type);

/*
 * Device path of an operation with device memory. NEAR_DEVICE_MAPPED to
 * NEAR_DEVICE_LENT: one device copies directly between the initiator's and the
 * target's memory. NEAR_DEVICE_HOST to NEAR_DEVICE_BEHIND: the operation is
 * staged, and the value is the reason why no device copies directly.
 */
enum near_device_path {
	NEAR_DEVICE_NONE,	/* no operation so far */
	/* mapped: copied by the initiator's device */
	NEAR_DEVICE_MAPPED,	/* mapped without a file descriptor */
	NEAR_DEVICE_SHARED,	/* mapped by a file descriptor of the peer */
	NEAR_DEVICE_LENT,	/* lent: copied by the target's device */
	/*
	 * the target's memory is host memory; or a local buffer is host memory
	 * that is not pinned
	 */
	NEAR_DEVICE_HOST,
	NEAR_DEVICE_OFF,	/* near_device.queue is NULL, or returns NULL */
	NEAR_DEVICE_QUEUES,	/* local buffers have different queue() ids */
	NEAR_DEVICE_NO_EXPORT,	/* the peer has not exported the region */
	NEAR_DEVICE_FAILED,	/* the mapping or a copy has failed */
	NEAR_DEVICE_WAITS,	/* the file descriptor has not arrived yet */
	NEAR_DEVICE_MEMORY,	/* near_device.map() has returned -ENOMEM */
	/* too many mappings, no host memory, or the region was removed */
	NEAR_DEVICE_LIMIT,
	/* NEAR_RMA_BEHIND, and the target has not consumed all messages */
	NEAR_DEVICE_BEHIND,
	/* not even staged: no stage is free, near_rma() has returned -ENOSPC */
	NEAR_DEVICE_PEERS,
	NEAR_DEVICE_PATHS,
};
/* Returns the number of operations and fetches that had this device path. */
uint64_t near_rma_device_ops(const struct near_port *port,
			     enum near_device_path path);
/* Returns the device path of the last operation with the peer. */
enum near_device_path near_rma_device_path(const struct near_peer *peer);

/* True if a pending operation has a local buffer with this device handle. */
bool near_rma_uses(const struct near_port *port, const void *device);
/*
 * Waits until this process, as the target, has ended all its copies for lent
 * operations of peers. The embedder must call this function after it removes a
 * region of host memory from the table, and before the memory may be freed.
 */
void near_rma_settle(struct near_port *port);
/* True if operations of this port on the peer's memory are pending. */
bool near_rma_busy(const struct near_peer *peer);
/* True if a new operation with NEAR_RMA_FENCE would wait for earlier ones. */
bool near_rma_fenced(const struct near_peer *peer);
/*
 * Returns 0 if the peer has consumed all messages of this port, and all
 * operations of this port on the peer's memory have ended. Otherwise returns
 * -EAGAIN: the caller must poll and call again.
 */
int near_rma_quiet(struct near_port *port, struct near_peer *peer);

#endif /* NEAR_NEAR_RMA_H */
