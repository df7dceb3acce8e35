/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near, the transport: messages between processes of one host and user over
 * shared memory. It knows no libfabric; it matches nothing and queues nothing.
 * Whoever embeds it gives it a struct near_sink and decides there where each
 * message goes. docs/near/ has the memory layout and the protocols.
 *
 * A port is not thread safe: its owner serialises all calls for it, and the
 * sink is called from within near_poll() only. Errors are negative errno
 * values. Calls of the data path are inline, near_send() and near_poll() among
 * them: rma/inline.h, which is all that embedders include beside this.
 */
#ifndef NEAR_H
#define NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NEAR_IOV_MAX 4
#define NEAR_INLINE 48	/* bytes of a message in a slot: near_send_short() */
#define NEAR_MEMORY (1008u << 10)	/* near_attr.memory, usually */

/* Of a message; they arrive as they were sent. */
#define NEAR_TAGGED 1u		/* which of the two kinds, see near_msg.tag */
#define NEAR_DATA 2u		/* near_msg.data means something */
#define NEAR_FLAGS 3u

/* near_send(): no room for this one in the ring; near_send_large() has. */
#define NEAR_LARGE 1

#define NEAR_MAGIC 0x7261656eu	/* "near": an address begins with it */

/* Where a port is found. Bytes to be passed on; comparable with memcmp(). */
struct near_addr {
	uint32_t magic;
	uint32_t layout;
	int32_t pid;
	int32_t fd;
	uint64_t nonce;		/* no other port ever has it */
	uint64_t host;		/* machine and boot */
	uint64_t pid_ns;	/* where the process has that pid */
	uint64_t start;		/* of the process, in ticks after boot */
	uint64_t flags;		/* NEAR_ADDR_* */
};

#define NEAR_ADDR_RMA 1u	/* it has a table of regions: near_rma() */

struct near_port;
struct near_peer;

/* A message that its sender still has. Valid until received or its peer ends. */
struct near_rndv {
	uint64_t id;		/* the sender's name for it */
	uint64_t addr;		/* 0: in pieces, not to be read in place */
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
	/*
	 * Whether there is room for one more event. Nothing is delivered
	 * without.
	 */
	bool (*room)(void *ctx);
	/*
	 * A message. The payload may be read until the return. -EAGAIN leaves
	 * it, and what its sender sent after it, where it is until later.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/* near_recv() has ended: err is 0 or an errno value. */
	void (*received)(void *ctx, void *cookie, int err);
	/* near_send_large() has ended. Not called without cookie. */
	void (*sent)(void *ctx, void *cookie, int err);
	/* A peer becomes known. */
	void (*met)(void *ctx, struct near_peer *peer);
	/* It died or closed, all of its events have been delivered. */
	void (*gone)(void *ctx, struct near_peer *peer);
	/* Nothing refers to it any more. */
	void (*forgotten)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	const struct near_sink *sink;	/* must be what near_poll() is given */
	void *ctx;
	/* One line of text for a person; level 0: warning, 1: information. */
	void (*log)(int level, const char *text);
	size_t memory;		/* bytes for rings, a page each at least */
	bool no_cma;		/* never access the memory of a peer directly */
	/* Yama may forbid peers to access our memory: leave it at that. */
	bool no_ptracer;
	/*
	 * So long a peer whose descriptors have to be asked for is waited for,
	 * from the first message on: then it cannot be sent to. 0: for ever.
	 */
	uint32_t timeout_ms;
};

int near_open(struct near_port **port, const struct near_attr *attr);
/*
 * Peers that cannot open our descriptors under our pid, since they are in
 * another pid namespace, for example, may ask for them: at a socket in this
 * directory, which they have as well, or with -1 at one that is found by whoever
 * shares the network namespace, and leaves no name behind. Without this such
 * peers are not met.
 */
int near_listen(struct near_port *port, int dir);
/* Removes sockets in the directory that nobody listens at any more. */
void near_sweep(int dir);
/* Messages that were sent are delivered; operations under way end nowhere. */
void near_close(struct near_port *port);
void near_address(const struct near_port *port, struct near_addr *addr);
/* Could this be the address of a port here? -EINVAL, -EHOSTUNREACH or 0. */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * The peer of that address, known or new. Nothing is opened before the first
 * message. near_peer_put() gives the reference back; a peer that was sent to
 * stays known until it ends.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* NULL: not known, no reference is taken. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/* From now on its death is reported, though nothing was sent yet. */
void near_peer_watch(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/* Where its descriptors have to be asked for, that is done now. */
void near_peer_ahead(struct near_port *port, struct near_peer *peer);
/* It has not ended, as far as is known, and can be sent to. */
bool near_peer_usable(const struct near_peer *peer);
/* It has not ended, and its end will be told: it is watched. */
bool near_peer_lives(const struct near_peer *peer);
/* We have a ring to it, or wait for one: it may be sent to, now or later. */
bool near_peer_rings(const struct near_peer *peer);
/* The owner's own pointer, NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/*
 * A message of any size; sent() tells its end and the buffer is the caller's
 * until then. With copy it may be used again at once. owned: NULL, or memory
 * with the one buffer in it, which near frees after that, unless there is an
 * error. -EAGAIN: poll and try again. Without cookie nobody is told.
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
 * Receives at most as much of a rendezvous of peer as iov holds; none with
 * count 0. received() tells the end. -EAGAIN: try again later.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * The same for one buffer that takes it all, if it can be done at once: true, the
 * message is in buf, and received() tells nothing. false: nothing is begun, and
 * near_recv() is to be called with rndv, which may say by then that the message
 * cannot be read.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * Is it worth to give one's processor away while one waits for others? Only if
 * one of them may need just this one. Where each can have one of its own, a
 * processor that is given away goes to strangers, for milliseconds. pid: the
 * processes that we exchange messages with, in any order, some more than
 * once perhaps, and ourselves or not; 0: one without a pid here. Of so many
 * others nothing is known but that they are there. Are those of all these that
 * can run nowhere but on the processors of this thread, and we, more than these
 * processors? Or those that can run nowhere but on these and on those of whom
 * else runs on one of them? pid[] is sorted afterwards. Cost: two system calls
 * for each process, less where there are processors enough for all.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);

/* Of so many endpoints so many are known, which there may be more of. */
static inline size_t near_oversub_others(size_t endpoints, size_t known)
{
	return endpoints > known ? endpoints - known : 0;
}

/*
 * Do the processes of the peers that the port knows, and ours, have more need
 * of our processors than there are? endpoints: that there are
 * on this host; those that the port does not know count as processes of which
 * nothing is known. 0: nobody has counted.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Sleeping: near_wait_fd() is a descriptor that becomes readable when
 * something arrives after near_arm() has returned 0, or when another thread's
 * call adds what needs polls. -EAGAIN: do not sleep, there is something to poll
 * for.
 */
int near_wait_fd(struct near_port *port);
int near_arm(struct near_port *port);
/*
 * Before near_arm(), by each thread that is about to sleep. true: the descriptor
 * is not readable any more, and not armed: the caller must wake the threads that
 * sleep on it. false: it is still armed for them.
 */
bool near_woken(struct near_port *port);

/*
 * Regions of memory that peers may read and write, by their keys: rma/table.h.
 * The table is the embedder's; it may serve several ports, with whose calls its
 * own are serialised, and lives longer than they do.
 */
/* near_region_entry.access */
#define NEAR_MAY_READ 1u
#define NEAR_MAY_WRITE 2u
#define NEAR_MAY_DEVICE 2	/* shifted left by this: of device memory */

struct near_region_entry {
	uint64_t key;
	uint64_t start;		/* what peers call its first byte */
	uint64_t memory;	/* where that lies with the owner */
	uint64_t len;
	uint32_t access;
	uint32_t used;		/* set by near_table_add() */
	uint64_t device;	/* for near_device; 0: host memory */
} __attribute__((aligned(64)));

struct near_table;

/* staged: it has memory for near_device as well. */
int near_table_open(struct near_table **table, bool staged);
void near_table_close(struct near_table *table);
/* -ENOKEY: the key is in use; -ENOSPC: too many. */
int near_table_add(struct near_table *table,
		   const struct near_region_entry *entry);
void near_table_remove(struct near_table *table, uint64_t key);

/*
 * One-sided operations: reads, writes and atomics on the memory of peers, and
 * those of peers on ours. near_rma_open() adds them to a port. The protocol is
 * in docs/near/rma.md.
 */
/* Numbers are those of enum fi_datatype and enum fi_op. */
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
	NEAR_TYPES,	/* wider ones need a lock */
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
	NEAR_ATOMIC,		/* without a result */
	NEAR_FETCH,
	NEAR_COMPARE,
	NEAR_VERBS,
	NEAR_EVENT = NEAR_VERBS, /* it was done by the peer itself */
};

#define NEAR_RMA_DATA 1u	/* near_rma_args.data is for the peer */
#define NEAR_RMA_FENCE 2u	/* after all before it have ended */
#define NEAR_RMA_COPY 4u	/* local buffers may be used again at once */
#define NEAR_RMA_BEHIND 8u	/* after the messages before it were taken */
#define NEAR_RMA_HOLD 16u	/* messages after it wait until it has ended */
#define NEAR_RMA_ASK 32u	/* the peer decides where its table cannot be
				 * looked into */

#define NEAR_RMA_DONE 1		/* near_rma(): it has ended well */

/* Buffers on this side: where from for all but reads, where to for those. */
struct near_rma_bufs {
	const struct iovec *iov;
	size_t count;		/* NEAR_IOV_MAX at most */
	/* for near_device, of each; an element is NULL, or all: host memory */
	void *const *device;
};

struct near_rma_args {
	enum near_verb verb;
	uint32_t flags;
	uint64_t addr;		/* the peer's name for the first byte */
	uint64_t key;
	struct near_rma_bufs local;
	struct near_rma_bufs result;	/* of NEAR_FETCH and NEAR_COMPARE */
	struct near_rma_bufs compare;	/* of NEAR_COMPARE */
	size_t len;			/* bytes; of local, unless it has none */
	uint8_t op;			/* atomics: enum near_op, near_type */
	uint8_t type;
	uint64_t data;
	/* the owner's, for done(); about is 0 where that is not called */
	uint32_t about;
	void *cookie;
};

/* What a peer has done to our memory. */
struct near_rma_event {
	struct near_peer *peer;
	bool write;		/* or an atomic that fetches nothing */
	bool has_data;
	uint64_t data;
	uint64_t len;
};

/*
 * Copies between host memory and device memory. What device points to is the
 * embedder's: one of near_rma_bufs, or of near_region_entry.
 */
struct near_device {
	/* Starts a copy. 0: done() tests for its end; or -errno. */
	int (*start)(void *device, void *to, const void *from, size_t len,
		     void **copy);
	/* -EAGAIN: not yet. 0 or -EIO: it has ended, and copy is freed. */
	int (*done)(void *copy);
	/* Makes copies from and to this host memory fast. NULL: cannot. */
	void *(*pin)(void *device, void *memory, size_t len);
	void (*unpin)(void *pin);
};

struct near_rma_sink {
	/* NULL: there is no device memory. */
	const struct near_device *device;
	/* An operation of ours that near_rma() left under way has ended. */
	void (*done)(void *ctx, struct near_peer *peer, void *cookie,
		     uint32_t about, int err);
	/* Told of what has data, and of all with near_rma_tell(). */
	void (*event)(void *ctx, const struct near_rma_event *event);
};

/*
 * Once per port, before its address is asked for, which says that it is.
 * near_close() ends it.
 */
int near_rma_open(struct near_port *port, const struct near_rma_sink *sink,
		  struct near_table *table);
/* Peers tell of every read, or write, or both, from now on. */
void near_rma_tell(struct near_port *port, bool reads, bool writes);

/*
 * 0: done() will tell; NEAR_RMA_DONE: it has ended, done() is not called;
 * -EAGAIN: poll and try again. Nothing was touched: -EKEYREJECTED: the peer has
 * no such region; -EACCES: not this part of it, or not in this way; -EINVAL:
 * an atomic is not aligned; -EOPNOTSUPP: the peer has no regions; -ENOENT: its
 * table cannot be looked into (but see NEAR_RMA_ASK). -EFAULT: memory of ours
 * or the peer's is not there. Or what near_send() returns. Operations to one
 * peer take effect in order, and messages that are sent after it arrive after
 * it; what else is to keep to the order of calls says so (NEAR_RMA_BEHIND,
 * NEAR_RMA_HOLD, NEAR_RMA_FENCE). Device memory: reads and writes, without
 * NEAR_RMA_COPY; -EOPNOTSUPP: others; -ENOSPC: too many peers.
 */
int near_rma(struct near_port *port, struct near_peer *peer,
	     const struct near_rma_args *args);

/* Is there such an atomic? */
bool near_rma_has_atomic(unsigned int verb, unsigned int op,
			 unsigned int type);
/* Bytes of one; 0: there is no such type. */
size_t near_type_size(unsigned int type);

/* Has it operations of ours that have not ended? */
bool near_rma_busy(const struct near_peer *peer);
/* Or messages. Then what is to be fenced waits. */
bool near_rma_fenced(const struct near_peer *peer);
/*
 * 0: the peer has taken and done all that was sent to it; -EAGAIN: poll, and
 * try again.
 */
int near_rma_quiet(struct near_port *port, struct near_peer *peer);

#endif /* NEAR_H */
