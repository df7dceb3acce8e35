/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near: messages, RMA and atomics between processes of one host and one user,
 * over shared memory, without libfabric. The embedder's callbacks (struct
 * near_sink) match and queue messages. Protocols: docs/near/design.md.
 *
 * The embedder must serialize all calls for a port. near calls the sink within
 * near_poll() only. Errors are negative errno values. The data path is inline:
 * embedders include this file and rma/inline.h.
 */
#ifndef NEAR_H
#define NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NEAR_IOV_MAX 4
#define NEAR_INLINE 48	/* limit of messages that travel in a slot, bytes */
#define NEAR_MEMORY (1008u << 10)	/* default of near_attr.memory */

/* near_msg.flags, which near passes to the receiver */
#define NEAR_TAGGED 1u		/* a tagged message: near_msg.tag is valid */
#define NEAR_DATA 2u		/* near_msg.data is valid */
#define NEAR_FLAGS 3u

/* Returned by near_send() for a message that requires near_send_large(). */
#define NEAR_LARGE 1

#define NEAR_MAGIC 0x7261656eu	/* "near": the first bytes of each address */

/* Address of a port: opaque bytes for embedders, compared by memcmp(). */
struct near_addr {
	uint32_t magic;
	uint32_t layout;
	int32_t pid;
	/* descriptor number of the port's segment */
	int32_t fd;
	uint64_t nonce;		/* random number: no other port has it */
	uint64_t host;	/* identifies the machine and its present boot */
	uint64_t pid_ns;	/* inode of the pid namespace that pid is of */
	uint64_t start;	/* start time of the process, ticks after boot */
	uint64_t flags;		/* NEAR_ADDR_* */
};

#define NEAR_ADDR_RMA 1u	/* the port has a region table for near_rma() */

struct near_port;
struct near_peer;

/* A rendezvous message, in the sender's memory until it is copied. */
struct near_rndv {
	uint64_t id;		/* id of the sender's operation */
	uint64_t addr;	/* address in the sender; 0: request fragments */
};

struct near_msg {
	const void *payload;	/* received messages: NULL for a rendezvous */
	size_t len;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;
	struct near_rndv rndv;	/* received messages with payload NULL */
};

struct near_sink {
	/* True if the sink has space for an event; else near tries again. */
	bool (*has_space)(void *ctx);
	/*
	 * Delivers a message. The payload is valid until arrived() returns.
	 * -EAGAIN: near keeps this and all later messages of the sender, and
	 * delivers them again later.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/* Ends a near_recv(). err is 0 or a positive errno value. */
	void (*received)(void *ctx, void *cookie, int err);
	/* Ends a near_send_large() with a cookie. err: 0 or errno. */
	void (*sent)(void *ctx, void *cookie, int err);
	/* A peer was created, by near_peer_get() or for a new sender. */
	void (*peer_up)(void *ctx, struct near_peer *peer);
	/* The peer failed or closed; its messages and operations have ended. */
	void (*peer_down)(void *ctx, struct near_peer *peer);
	/* The last reference was dropped; near frees the peer now. */
	void (*peer_release)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	/* must also be the sink of near_poll() */
	const struct near_sink *sink;
	void *ctx;
	/* Logs a line of text. level: 0: warning; 1: information. */
	void (*log)(int level, const char *text);
	size_t memory;	/* ring budget, bytes; each ring has a page at least */
	bool no_cma;		/* never use single copy */
	/* Keep Yama's ptrace restriction, which may deny peers single copy. */
	bool no_ptracer;
	/* timeout of a reply in the fd exchange, ms; 0: none */
	uint32_t timeout_ms;
};

/* Opens a port. */
int near_open(struct near_port **port, const struct near_attr *attr);
/*
 * Opens the port's socket for the fd exchange, for peers that cannot open this
 * process's descriptors in /proc. dir: directory shared with the peers; -1: an
 * abstract name, within this network namespace.
 */
int near_listen(struct near_port *port, int dir);
/* Removes the sockets of closed ports from a directory. */
void near_sweep(int dir);
/*
 * Closes a port. Messages that near_send() accepted are delivered; pending
 * operations end without a callback.
 */
void near_close(struct near_port *port);
/* Stores the address of a port. */
void near_address(const struct near_port *port, struct near_addr *addr);
/*
 * Checks an address. Returns 0; -EINVAL; -EHOSTUNREACH: of another host, or of
 * another pid namespace while this port has no socket.
 */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * Stores the peer with this address, created if necessary, and takes a
 * reference for near_peer_put(). The first send connects it. A connected peer
 * remains until it has failed or closed, even without references.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* Returns the peer with this address, without a reference; NULL: none. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/* Monitors the peer from now on. Otherwise the first message starts that. */
void near_peer_monitor(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/* Starts the fd exchange early if the peer requires one. */
void near_peer_ahead(struct near_port *port, struct near_peer *peer);
/* True if the peer can be sent to and no failure was detected. */
bool near_peer_usable(const struct near_peer *peer);
/* True if the peer is monitored and has not failed. */
bool near_peer_lives(const struct near_peer *peer);
/* True if the peer has failed because its process or port is gone. */
bool near_peer_exited(const struct near_peer *peer);
/* True if this port has a ring to the peer, or waits for the peer's reply. */
bool near_peer_rings(const struct near_peer *peer);
/* Sets the embedder's pointer, near_peer.user, which is NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/*
 * Buffers of a message for near_send_large(). near reads them during the call
 * if copy is set, else until the operation ends. cookie NULL: sent() is not
 * called. owned: NULL, or memory from malloc() that is the only buffer, which
 * near then frees.
 */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;
	void *owned;
	void *cookie;
};

/*
 * Sends a message of any length. Returns 0: sent() reports the end; -EAGAIN:
 * poll and retry; or another error of near_send(), after which the caller still
 * owns all buffers.
 */
int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large);

/*
 * Receives a rendezvous message of len bytes into iov, which may be shorter;
 * count 0: discards it. received() reports the end. -EAGAIN: poll and retry.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * Copies a rendezvous message into one buffer during the call. True: complete;
 * received() is not called. False: the caller must call near_recv() with *rndv.
 * near_recv_now() may have set rndv->addr to 0, so that near_recv() requests
 * fragments.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * True if the CPUs of this thread are oversubscribed by processes that
 * communicate with each other. If not, a yield would give the CPU to an
 * unrelated process for milliseconds.
 *
 * Compares the number of CPUs in a set with the number of processes that may
 * run on no others. The set is first this thread's affinity mask, then its
 * union with all peers' masks that overlap with it. pid: of the peers, 0 if
 * unknown; the call sorts it. others: number of further processes, which count
 * in both cases. Cost: up to two system calls per process, none if there are
 * enough CPUs for all.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);

/* Returns the number of endpoints beyond the known ones. */
static inline size_t near_oversub_others(size_t endpoints, size_t known)
{
	return endpoints > known ? endpoints - known : 0;
}

/*
 * near_oversub() for this process and the port's peers. endpoints: number of
 * endpoints on this host, 0: unknown; each that is no peer counts as one
 * process.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Sleeping: near_wait_fd() returns a descriptor or -errno. After near_arm() has
 * returned 0, it becomes readable when a slot arrives, a peer fails, or another
 * thread adds work. -EAGAIN: there is work now, so poll instead.
 */
int near_wait_fd(struct near_port *port);
int near_arm(struct near_port *port);
/*
 * Ends a sleep. Each thread must call it before its next near_arm(). True: the
 * descriptor is not armed any more, and the caller must wake the other threads
 * that sleep on it. False: the descriptor is still armed.
 */
bool near_woken(struct near_port *port);

/*
 * Memory regions. A region is found by its key: see rma/table.h. The embedder
 * owns the table. It serializes calls for the table with calls for the ports of
 * the table, closes these ports, and then closes the table.
 */
/* near_region_entry.access */
#define NEAR_MAY_READ 1u
#define NEAR_MAY_WRITE 2u
#define NEAR_MAY_DEVICE 2	/* left shift of both flags for device memory */

#define NEAR_EXPORT_HANDLE 64	/* size of near_export.handle, bytes */
/* How peers can map an allocation of device memory: near_device.map(). */
struct near_export {
	uint8_t handle[NEAR_EXPORT_HANDLE];
	/* of the allocation; the process never uses an id again; 0: none */
	uint64_t id;
	/* address of the allocation's first byte in the owner's process */
	uint64_t base;
};

struct near_region_entry {
	uint64_t key;
	uint64_t start;	/* address of the first byte in requests: fi_mr(3) */
	/* address of the first byte in the owner's process */
	uint64_t memory;
	uint64_t len;
	uint32_t access;
	uint32_t used;		/* 1: entry in use; set by near_table_add() */
	uint64_t device;	/* handle for near_device; 0: host memory */
	/* near_export.id, and index in the file; 0: peers cannot map it */
	uint64_t export_id;
	uint32_t export_index;
} __attribute__((aligned(64)));

struct near_table;

/* Opens a table. staged: with address space for chunks (device memory). */
int near_table_open(struct near_table **table, bool staged);
void near_table_close(struct near_table *table);
/* Adds a region. Returns 0; -ENOKEY: key in use; -ENOSPC: full; -ENOMEM. */
int near_table_add(struct near_table *table,
		   const struct near_region_entry *entry);
/* Removes the region with this key, if there is one. */
void near_table_remove(struct near_table *table, uint64_t key);
/*
 * Lets peers map the allocation of a region until the region is removed.
 * Returns 0; -ENOENT: no such region; -ENOSPC: too many exports; -ENOMEM.
 */
int near_table_export(struct near_table *table, uint64_t key,
		      const struct near_export *export);
/*
 * Returns a mapping from near_device.map() that near will not use again, for
 * the embedder to release. NULL: none.
 */
void *near_table_unmapped(struct near_table *table);

/*
 * One-sided operations (RMA and atomics) in both directions, enabled by
 * near_rma_open(). Protocol: docs/near/rma.md.
 */
/* The same values as in enum fi_datatype and enum fi_op. */
enum near_type {
	NEAR_INT8,
	NEAR_UINT8,
	NEAR_INT16,
	NEAR_UINT16,
	NEAR_INT32,
	NEAR_UINT32,
	NEAR_INT64,
	NEAR_UINT64,
	NEAR_FLOAT,
	NEAR_DOUBLE,
	NEAR_FLOAT_COMPLEX,
	NEAR_TYPES,	/* number of types; a wider type would need a lock */
};

enum near_op {
	NEAR_MIN,
	NEAR_MAX,
	NEAR_SUM,
	NEAR_PROD,
	NEAR_LOR,
	NEAR_LAND,
	NEAR_BOR,
	NEAR_BAND,
	NEAR_LXOR,
	NEAR_BXOR,
	NEAR_ATOMIC_READ,
	NEAR_ATOMIC_WRITE,
	NEAR_CSWAP,
	NEAR_CSWAP_NE,
	NEAR_CSWAP_LE,
	NEAR_CSWAP_LT,
	NEAR_CSWAP_GE,
	NEAR_CSWAP_GT,
	NEAR_MSWAP,
	NEAR_OP_COUNT,
};

enum near_verb {
	NEAR_WRITE,
	NEAR_READ,
	NEAR_ATOMIC,		/* atomic without a result */
	NEAR_FETCH,
	NEAR_COMPARE,
	NEAR_VERBS,
	/* in slots only: notifies the target of a copy */
	NEAR_EVENT = NEAR_VERBS,
};

#define NEAR_RMA_DATA 1u	/* near_rma_args.data is valid */
#define NEAR_RMA_FENCE 2u	/* start after earlier operations end */
#define NEAR_RMA_COPY 4u	/* copy the source buffers during the call */
#define NEAR_RMA_BEHIND 8u	/* start after earlier messages are consumed */
#define NEAR_RMA_HOLD 16u	/* later messages wait for this read */
/* If the peer's table cannot be read, let the peer check the key. */
#define NEAR_RMA_ASK 32u

#define NEAR_RMA_DONE 1	/* returned by near_rma(): the operation has ended */

/* Local buffers: the destination of reads and results, else the source. */
struct near_rma_bufs {
	const struct iovec *iov;
	size_t count;		/* limit: NEAR_IOV_MAX */
	/* handle of each buffer for near_device; or NULL: host memory */
	void *const *device;
};

struct near_rma_args {
	enum near_verb verb;
	uint32_t flags;
	/* target address, counted from near_region_entry.start */
	uint64_t addr;
	uint64_t key;
	struct near_rma_bufs local;
	struct near_rma_bufs result;	/* NEAR_FETCH and NEAR_COMPARE only */
	struct near_rma_bufs compare;	/* NEAR_COMPARE only */
	size_t len;			/* bytes of the operation */
	uint8_t op;	/* atomics: enum near_op and enum near_type */
	uint8_t type;
	uint64_t data;
	/* Passed to done(). about 0: done() is not called. */
	uint32_t about;
	void *cookie;
};

/* An operation that a peer has executed on memory of this process. */
struct near_rma_event {
	struct near_peer *peer;
	bool write;		/* a write, or an atomic without a result */
	bool has_data;
	uint64_t data;
	uint64_t len;
};

/* A mapping of a peer's device memory in this process. */
struct near_map {
	void *mapping;		/* for near_table_unmapped() */
	uint8_t *at;		/* address of the allocation */
	size_t len;		/* number of mapped bytes from there on */
};

/*
 * The embedder's functions for copies of device memory. device: handle from
 * near_rma_bufs or near_region_entry.
 */
struct near_device {
	/* Starts a copy and stores its handle in *copy. Returns 0 or -errno. */
	int (*start)(void *device, void *to, const void *from, size_t len,
		     void **copy);
	/* Tests a copy. -EAGAIN: pending; 0 or -EIO: ended, and freed. */
	int (*done)(void *copy);
	/* Registers host memory to make copies faster; NULL: failed. */
	void *(*pin)(void *device, void *memory, size_t len);
	void (*unpin)(void *pin);
	/*
	 * Returns an id of the device's queue that makes the copies of this
	 * memory in order. NULL: this device cannot map peers' memory. The
	 * function pointer itself may be NULL; then no device can.
	 */
	const void *(*queue)(void *device);
	/*
	 * Maps a peer's allocation, for copies between it and this device
	 * memory. Returns 0 or -errno. Only near_rma() calls map(). The
	 * embedder gets the mapping back by near_table_unmapped().
	 */
	int (*map)(void *device, const struct near_export *export,
		   struct near_map *map);
};

struct near_rma_sink {
	/* NULL: the embedder has no device memory. */
	const struct near_device *device;
	/* Ends an operation for which near_rma() has returned 0. */
	void (*done)(void *ctx, struct near_peer *peer, void *cookie,
		     uint32_t about, int err);
	/* Reports a peer's operation with data, or by near_rma_events(). */
	void (*event)(void *ctx, const struct near_rma_event *event);
};

/*
 * Enables one-sided operations of a port. Must be called once, before
 * near_address(), which then sets NEAR_ADDR_RMA. Returns 0 or -ENOMEM.
 */
int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table);
/* Requests event() for each read or write of a peer, also without data. */
void near_rma_events(struct near_port *port, bool reads, bool writes);

/*
 * Starts a one-sided operation. Operations to one peer take effect in the order
 * of the calls, and before messages that are sent later. Flags request further
 * order: NEAR_RMA_BEHIND, NEAR_RMA_HOLD, NEAR_RMA_FENCE. With device memory,
 * the caller must not set NEAR_RMA_COPY.
 *
 * Returns 0: done() reports the end; NEAR_RMA_DONE: complete, done() is not
 * called; -EAGAIN: poll and retry; -EFAULT: memory of one of the processes is
 * not mapped, and some may be changed; or an error of near_send(). After the
 * following errors no memory is changed:
 *
 * - -EKEYREJECTED: the peer has no region with this key.
 * - -EACCES: the region does not grant this access or range.
 * - -EINVAL: the target address of an atomic is not aligned.
 * - -EOPNOTSUPP: the peer has no region table; atomic on device memory.
 * - -ENOENT: the peer's region table cannot be read; see NEAR_RMA_ASK.
 * - -ENOSPC: too many peers for operations on device memory.
 */
int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args);

/* True if near supports this atomic. */
bool near_rma_has_atomic(unsigned int verb, unsigned int op,
			 unsigned int type);
/* Returns the size of a type in bytes; 0: no such type. */
size_t near_type_size(unsigned int type);

/* Return numbers of operations on device memory: begun, copied directly. */
uint64_t near_rma_staged(const struct near_port *port);
uint64_t near_rma_mapped(const struct near_port *port);
/* How device memory is copied; all but the first two: staged, and the reason */
enum near_device_path {
	NEAR_DEVICE_NONE,	/* no operation so far */
	NEAR_DEVICE_MAPPED,
	NEAR_DEVICE_HOST,	/* host memory at one end */
	NEAR_DEVICE_OFF,	/* near_device.queue() returns NULL */
	NEAR_DEVICE_QUEUES,	/* buffers of different queues */
	NEAR_DEVICE_NO_EXPORT,	/* the peer has not exported the region */
	NEAR_DEVICE_REFUSED,	/* near_device.map() or a copy has failed */
	NEAR_DEVICE_LIMIT,	/* too many mappings, or no memory */
	NEAR_DEVICE_BEHIND,	/* after messages, for NEAR_RMA_BEHIND */
	NEAR_DEVICE_PATHS,
};
/* Returns the path of this port's last operation with device memory. */
enum near_device_path near_rma_device_path(const struct near_peer *peer);

/* True if operations of this port on the peer's memory are pending. */
bool near_rma_busy(const struct near_peer *peer);
/* True if an operation with NEAR_RMA_FENCE would wait. */
bool near_rma_fenced(const struct near_peer *peer);
/*
 * Returns 0 if the peer has consumed all messages and executed all operations
 * of this port. -EAGAIN: not yet; poll and retry.
 */
int near_rma_quiet(struct near_port *port, struct near_peer *peer);

#endif /* NEAR_H */
