/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near: a transport for messages between processes of one host and user, over
 * shared memory. It is independent of libfabric, matches no messages and queues
 * none: the callbacks of struct near_sink place each message. docs/near/
 * describes the memory layout and the protocols.
 *
 * A port is not thread safe: the embedder serializes all calls for it. near
 * calls the sink within near_poll() only. Errors are negative errno values.
 * Calls of the data path, such as near_send() and near_poll(), are inline:
 * embedders include rma/inline.h and this file.
 */
#ifndef NEAR_H
#define NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NEAR_IOV_MAX 4
#define NEAR_INLINE 48	/* bytes of an inline message, in its slot */
#define NEAR_MEMORY (1008u << 10)	/* default of near_attr.memory */

/* Flags of a message, transferred to the receiver. */
#define NEAR_TAGGED 1u		/* tagged message: near_msg.tag is valid */
#define NEAR_DATA 2u		/* near_msg.data is valid */
#define NEAR_FLAGS 3u

/* Returned by near_send(): the message requires near_send_large(). */
#define NEAR_LARGE 1

#define NEAR_MAGIC 0x7261656eu	/* "near", at the start of each address */

/* Address of a port: opaque bytes, compared with memcmp(). */
struct near_addr {
	uint32_t magic;
	uint32_t layout;
	int32_t pid;
	int32_t fd;
	uint64_t nonce;		/* unique for all time */
	uint64_t host;		/* machine and boot */
	uint64_t pid_ns;	/* pid namespace of pid (inode) */
	uint64_t start;		/* start of the process, ticks after boot */
	uint64_t flags;		/* NEAR_ADDR_* */
};

#define NEAR_ADDR_RMA 1u	/* the port has a region table: near_rma() */

struct near_port;
struct near_peer;

/* A message in the sender's memory, valid until received or the sender ends. */
struct near_rndv {
	uint64_t id;		/* chosen by the sender */
	uint64_t addr;		/* 0: sent in fragments, no single copy */
};

struct near_msg {
	const void *payload;	/* arrivals: NULL for a rendezvous */
	size_t len;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;
	struct near_rndv rndv;	/* arrivals without payload */
};

struct near_sink {
	/* True if there is space for an event; else near delivers nothing. */
	bool (*room)(void *ctx);
	/*
	 * Delivers a message. The payload is valid until the return. -EAGAIN:
	 * near keeps this message and all later ones of this sender, and
	 * delivers them again.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/* Completes near_recv(): err is 0 or an errno value. */
	void (*received)(void *ctx, void *cookie, int err);
	/* Completes near_send_large(); not called if cookie is NULL. */
	void (*sent)(void *ctx, void *cookie, int err);
	/* A peer was created. */
	void (*peer_up)(void *ctx, struct near_peer *peer);
	/* The peer failed or closed; all its events were delivered. */
	void (*peer_down)(void *ctx, struct near_peer *peer);
	/* The last reference to the peer was dropped. */
	void (*peer_release)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	const struct near_sink *sink;	/* the one passed to near_poll() */
	void *ctx;
	/* Logs a line of text; level 0: warning, 1: information. */
	void (*log)(int level, const char *text);
	size_t memory;		/* ring budget, bytes; at least a page a ring */
	bool no_cma;		/* never use single copy */
	/* Do not grant peers the access that Yama denies. */
	bool no_ptracer;
	/*
	 * Timeout of the fd exchange with a peer, ms after the first message.
	 * Afterwards sends to the peer fail. 0: no timeout.
	 */
	uint32_t timeout_ms;
};

int near_open(struct near_port **port, const struct near_attr *attr);
/*
 * Opens the socket of the fd exchange. Peers that cannot use /proc, such as
 * those in another pid namespace, cannot connect without the socket. dir: its
 * directory, which they also have; -1: abstract name, per network namespace.
 */
int near_listen(struct near_port *port, int dir);
/* Removes sockets of closed ports from the directory. */
void near_sweep(int dir);
/*
 * Closes a port. Sent messages are delivered; pending operations are dropped.
 */
void near_close(struct near_port *port);
void near_address(const struct near_port *port, struct near_addr *addr);
/* Returns 0, -EINVAL, or -EHOSTUNREACH if addr is of another host. */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * Returns the peer of an address with a reference, and creates it if necessary.
 * Opens nothing before the first message. near_peer_put() drops the reference;
 * a peer that was sent to remains until it fails or closes.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* Returns NULL if there is no such peer. Takes no reference. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/* Monitors the peer: its failure is reported even if nothing was sent to it. */
void near_peer_watch(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/* Starts the fd exchange now if this peer requires one. */
void near_peer_ahead(struct near_port *port, struct near_peer *peer);
/* True if no failure was detected, and the peer can be sent to. */
bool near_peer_usable(const struct near_peer *peer);
/* True if the peer is monitored and has not failed. */
bool near_peer_lives(const struct near_peer *peer);
/* True if this port has a ring to the peer, or waits for one. */
bool near_peer_rings(const struct near_peer *peer);
/* Sets the embedder's pointer; initially NULL. */
void near_peer_set_user(struct near_peer *peer, void *user);

/*
 * Buffers of a message of any size. near reads them until sent(), which it does
 * not call if cookie is NULL; with copy, only during the call. owned: NULL, or
 * the malloc'ed memory of the only buffer, which near frees at the end, but not
 * if the call returns an error. -EAGAIN: poll and retry.
 */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;
	void *owned;
	void *cookie;
};

int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large);

/*
 * Receives a rendezvous message, up to the size of iov; count 0 discards it.
 * received() reports the end. -EAGAIN: retry later.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * Copies a message into one buffer that has space for all of it. True: copied;
 * received() is not called. False: not copied; call near_recv() with rndv,
 * whose addr may now be 0 (fragments).
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * True if the CPUs of this thread are oversubscribed by processes that
 * communicate. Only then sched_yield() helps: otherwise it hands the CPU to
 * unrelated processes for milliseconds. pid: processes of the peers; may have
 * duplicates, this process, and 0 (no pid here); the call sorts the array.
 * others: number of further processes, which count as confined to these CPUs.
 * Compares the number of CPUs in a set with the processes confined to them. The
 * set is this thread's affinity mask, then the union of all that overlap it.
 * Cost: two system calls for each process, fewer if the CPUs suffice for all.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);

/* Returns the number of endpoints that are not peers, at least 0. */
static inline size_t near_oversub_others(size_t endpoints, size_t known)
{
	return endpoints > known ? endpoints - known : 0;
}

/*
 * near_oversub() of this process and the port's peers. endpoints: number on
 * this host, 0 if not counted; each that is not a peer counts as a process.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Prepares to sleep. After near_arm() has returned 0, the descriptor of
 * near_wait_fd() becomes readable when something arrives, or when a call of
 * another thread adds work for polls. -EAGAIN: do not sleep, poll.
 */
int near_wait_fd(struct near_port *port);
int near_arm(struct near_port *port);
/*
 * Ends a sleep; each thread calls it before near_arm(). True: the descriptor is
 * disarmed and not readable, so the caller must wake the threads that sleep on
 * it. False: it remains armed for them.
 */
bool near_woken(struct near_port *port);

/*
 * Memory regions, found by their keys: rma/table.h. The embedder owns the
 * table, which may serve several ports. It serializes calls for the table with
 * those for these ports, and closes the table after them.
 */
/* near_region_entry.access */
#define NEAR_MAY_READ 1u
#define NEAR_MAY_WRITE 2u
#define NEAR_MAY_DEVICE 2	/* left shift of both for device memory */

struct near_region_entry {
	uint64_t key;
	uint64_t start;		/* address in requests: fi_mr(3) */
	uint64_t memory;	/* address in the owner's process */
	uint64_t len;
	uint32_t access;
	uint32_t used;		/* set by near_table_add() */
	uint64_t device;	/* handle for near_device; 0: host memory */
} __attribute__((aligned(64)));

struct near_table;

/* Opens a table. staged: reserve chunks for device memory. */
int near_table_open(struct near_table **table, bool staged);
void near_table_close(struct near_table *table);
/* Returns -ENOKEY if the key is in use, -ENOSPC if the table is full. */
int near_table_add(struct near_table *table,
		   const struct near_region_entry *entry);
void near_table_remove(struct near_table *table, uint64_t key);

/*
 * One-sided operations: RMA and atomics between this process and peers, in both
 * directions. near_rma_open() enables them for a port. Protocol:
 * docs/near/rma.md.
 */
/* Same values as enum fi_datatype and enum fi_op. */
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
	NEAR_TYPES,	/* wider types need a lock */
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
	NEAR_ATOMIC,		/* no result */
	NEAR_FETCH,
	NEAR_COMPARE,
	NEAR_VERBS,
	NEAR_EVENT = NEAR_VERBS, /* notification of a single copy by the peer */
};

#define NEAR_RMA_DATA 1u	/* near_rma_args.data is valid */
#define NEAR_RMA_FENCE 2u	/* start after all earlier operations */
#define NEAR_RMA_COPY 4u	/* copy the local buffers in the call */
#define NEAR_RMA_BEHIND 8u	/* start after earlier messages are consumed */
#define NEAR_RMA_HOLD 16u	/* later messages wait for this operation */
#define NEAR_RMA_ASK 32u	/* the target checks the key if its table cannot
				 * be read */

#define NEAR_RMA_DONE 1		/* returned by near_rma(): complete */

/* Local buffers: the destination of reads and results, else the source. */
struct near_rma_bufs {
	const struct iovec *iov;
	size_t count;		/* NEAR_IOV_MAX at most */
	/*
	 * handle of each for near_device; NULL, or an element NULL: host memory
	 */
	void *const *device;
};

struct near_rma_args {
	enum near_verb verb;
	uint32_t flags;
	uint64_t addr;		/* as in near_region_entry.start */
	uint64_t key;
	struct near_rma_bufs local;
	struct near_rma_bufs result;	/* of NEAR_FETCH and NEAR_COMPARE */
	struct near_rma_bufs compare;	/* of NEAR_COMPARE */
	size_t len;			/* bytes of local, or else of result */
	uint8_t op;			/* atomics: enum near_op, near_type */
	uint8_t type;
	uint64_t data;
	/* passed to done(), which is not called if about is 0 */
	uint32_t about;
	void *cookie;
};

/* An operation of a peer on this process's memory. */
struct near_rma_event {
	struct near_peer *peer;
	bool write;		/* or an atomic without a result */
	bool has_data;
	uint64_t data;
	uint64_t len;
};

/*
 * Copies between host and device memory. @device: the embedder's handle from
 * near_rma_bufs or near_region_entry.
 */
struct near_device {
	/* Starts a copy. Returns 0 or -errno; done() tests for its end. */
	int (*start)(void *device, void *to, const void *from, size_t len,
		     void **copy);
	/* -EAGAIN: pending. 0 or -EIO: the copy has ended, and was freed. */
	int (*done)(void *copy);
	/* Makes copies from and to this host memory fast. NULL: failed. */
	void *(*pin)(void *device, void *memory, size_t len);
	void (*unpin)(void *pin);
};

struct near_rma_sink {
	/* NULL: no device memory. */
	const struct near_device *device;
	/* Completes an operation for which near_rma() returned 0. */
	void (*done)(void *ctx, struct near_peer *peer, void *cookie,
		     uint32_t about, int err);
	/* Reports operations with data, and those of near_rma_tell(). */
	void (*event)(void *ctx, const struct near_rma_event *event);
};

/*
 * Enables one-sided operations until near_close(). Call it once per port,
 * before near_address(), which sets NEAR_ADDR_RMA.
 */
int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table);
/* Requires peers to notify this port of each read or write. */
void near_rma_tell(struct near_port *port, bool reads, bool writes);

/*
 * Starts a one-sided operation. 0: done() reports its end; NEAR_RMA_DONE:
 * complete, done() is not called; -EAGAIN: poll and retry. Nothing was touched:
 * -EKEYREJECTED: the peer has no such region; -EACCES: it does not grant this
 * range or access; -EINVAL: unaligned atomic; -EOPNOTSUPP: the peer has no
 * regions; -ENOENT: the peer's table is unreadable (see NEAR_RMA_ASK). -EFAULT:
 * memory of either process is not mapped. Or an error of near_send().
 * Operations to one peer take effect in order, and before messages that are
 * sent later; NEAR_RMA_BEHIND, NEAR_RMA_HOLD and NEAR_RMA_FENCE request further
 * order. Device memory: reads and writes without NEAR_RMA_COPY; -EOPNOTSUPP:
 * others; -ENOSPC: too many peers.
 */
int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args);

/* True if this atomic is supported. */
bool near_rma_has_atomic(unsigned int verb, unsigned int op,
			 unsigned int type);
/* Returns the size of a type in bytes; 0: not supported. */
size_t near_type_size(unsigned int type);

/* Returns the number of operations begun here on either end's device memory. */
uint64_t near_rma_staged(const struct near_port *port);

/* True if operations to the peer are pending. */
bool near_rma_busy(const struct near_peer *peer);
/* True if operations or messages are pending, so that fenced ones wait. */
bool near_rma_fenced(const struct near_peer *peer);
/*
 * Returns 0 if the peer has consumed and executed all that was sent to it.
 * -EAGAIN: poll and retry.
 */
int near_rma_quiet(struct near_port *port, struct near_peer *peer);

#endif /* NEAR_H */
