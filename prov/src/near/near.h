/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near's interface: docs/near/design.md. A port is near's endpoint, a peer is a
 * remote port, and the embedder is the code that calls these functions. The
 * embedder must serialize all calls for a port. Errors are negative errno
 * values. near_send() and near_poll() are in msg/inline.h.
 */
#ifndef NEAR_H
#define NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#define NEAR_IOV_MAX 4
#define NEAR_INLINE 48	/* longest message that fits in a slot, bytes */
#define NEAR_MEMORY (1008u << 10)	/* default of near_attr.memory, bytes */

/* bits of near_msg.flags; near passes them to the receiver */
#define NEAR_TAGGED 1u		/* a tagged message: near_msg.tag is valid */
#define NEAR_DATA 2u		/* near_msg.data is valid */
#define NEAR_DEVICE 4u	/* large message in the sender's device memory */
#define NEAR_FLAGS 7u

/* result of near_send(): not sent; the caller must call near_send_large() */
#define NEAR_LARGE 1

#define NEAR_MAGIC 0x7261656eu	/* "near": the first bytes of each address */

/* Address of a port: opaque bytes for embedders, compared by memcmp(). */
struct near_addr {
	uint32_t magic;
	uint32_t layout;
	int32_t pid;
	int32_t fd;	/* the segment's file descriptor in process pid */
	uint64_t nonce;		/* random number: no other port has it */
	uint64_t host;	/* id of the machine and of its current boot */
	uint64_t pid_ns;	/* id of pid and time namespace together */
	uint64_t start;	/* start time of the process, ticks after boot */
	uint64_t flags;		/* NEAR_ADDR_* */
};

#define NEAR_ADDR_RMA 1u	/* near_rma() may access the port's regions */
#define NEAR_ADDR_DEVICE 2u	/* the port can receive NEAR_DEVICE messages */

struct near_port;
struct near_peer;
struct near_rx_op;

/* A rendezvous message, whose bytes are still in the sender's memory. */
struct near_rndv {
	uint64_t id;		/* id of the sender's operation */
	/* address of the bytes in the sender's process; 0: no single copy */
	uint64_t addr;
	/*
	 * with NEAR_DEVICE: key of the region that has the bytes; addr is then
	 * the RMA address of the bytes. Otherwise: 1 if this message is a trial
	 * (docs/near/protocol.md, *Medium messages*), else 0
	 */
	uint64_t key;
};

struct near_msg {
	/*
	 * In near_send() and arrived(): the bytes of the message. If it is NULL
	 * in arrived(), the message uses rendezvous, see `rndv`. In
	 * near_send_large(): the message's first buffer.
	 */
	const void *payload;
	size_t len;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;
	struct near_rndv rndv;	/* of rendezvous and NEAR_DEVICE messages */
};

/*
 * The embedder's callbacks. near calls arrived() and unload() only within
 * near_poll() and near_rx_ring_poll(). near may call the other callbacks within
 * any function that the embedder calls for the port. The argument err is 0 or a
 * positive errno value.
 */
struct near_sink {
	/*
	 * Delivers a message. Its payload is valid only during the call.
	 * Returns 0; -EAGAIN: the embedder has no memory for the message. A
	 * later poll then delivers the message again, and all later slots of
	 * this sender wait.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/*
	 * Reports the end of a receive; must not send. cookie: argument of
	 * near_recv*().
	 */
	void (*received)(void *ctx, void *cookie, int err);
	/* Reports the end of a near_send_large(). cookie: near_large.cookie. */
	void (*sent)(void *ctx, void *cookie, int err);
	/*
	 * Copies len bytes from device memory (`from`) to host memory (`host`).
	 * near calls this at the sender of a NEAR_DEVICE message, if the
	 * receiver has requested fragments. cookie: near_large.cookie. Returns
	 * 0 or a positive errno value; ENOMEM: no memory, and a later poll
	 * calls this again.
	 */
	int (*unload)(void *ctx, void *cookie, const void *from, void *host,
		      size_t len);
	/*
	 * Reports a new peer: near_peer_get() has created it, or the peer has
	 * attached to a ring of this port.
	 */
	void (*peer_up)(void *ctx, struct near_peer *peer);
	/*
	 * Reports that a peer has failed, or has closed its port. All messages
	 * of the peer are delivered, and all operations with it have ended.
	 */
	void (*peer_down)(void *ctx, struct near_peer *peer);
	/* Reports that near will free `peer` when this callback returns. */
	void (*peer_release)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	/* callbacks; callers of near_poll() must pass the same table */
	const struct near_sink *sink;
	void *ctx;
	/* Logs a line of text. level: 0: warning; 1: information. */
	void (*log)(int level, const char *text);
	/*
	 * ring budget, bytes: memory of all rings of the port together. When
	 * the budget is used up, a new ring gets one page nevertheless.
	 */
	size_t memory;
	/* true: do not call process_vm_readv() or process_vm_writev() */
	bool no_cma;
	/* true: do not set PR_SET_PTRACER; Yama may then deny single copy */
	bool no_ptracer;
	uint32_t timeout_ms; /* timeout of the fd exchange, ms; 0: no limit */
};

int near_open(struct near_port **port, const struct near_attr *attr);
/*
 * Opens the port's socket of the fd exchange (link/fdx.h). dir: file descriptor
 * of a directory that all peers share, for the socket's file; -1: the socket
 * has an abstract name, for this network namespace only. Returns 0 or -errno.
 */
int near_listen(struct near_port *port, int dir);
/*
 * Removes the files of near's sockets from dir, if no process has the socket of
 * the file open.
 */
void near_sweep(int dir);
/*
 * Closes a port. Peers still receive all messages that near_send() has
 * accepted. Pending large messages, RMA and atomics end without a callback.
 */
void near_close(struct near_port *port);
void near_address(const struct near_port *port, struct near_addr *addr);
/*
 * Checks an address. Returns 0, or
 * - -EINVAL: not an address of this version of near
 * - -EHOSTUNREACH: the address is of a port on another host; or of a port in
 *   another pid namespace, and this port has no socket (near_listen()) for the
 *   fd exchange
 */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * Finds or creates the peer with this address and takes a reference, which
 * near_peer_put() drops. Returns 0 or -ENOMEM. The first send to the peer
 * attaches this port to a ring of the peer.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* Returns the peer with this address; NULL: none. Takes no reference. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/*
 * Starts to monitor the peer for failure now. Without this call, near starts
 * when one port attaches to a ring of the other.
 */
void near_peer_monitor(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/* Starts the fd exchange now if the first send to the peer requires one. */
void near_peer_prepare(struct near_port *port, struct near_peer *peer);
/* True if this port can send to the peer and has not detected its failure. */
bool near_peer_usable(const struct near_peer *peer);
/* True if this port monitors the peer and has not detected its failure. */
bool near_peer_exists(const struct near_peer *peer);
/*
 * True if near has found that the peer's process has exited or is exiting, or
 * that the peer's port had closed before this port could connect to the peer.
 */
bool near_peer_exited(const struct near_peer *peer);
/* True if this port has a ring for sends to the peer, or waits for a ring. */
bool near_peer_rings(const struct near_peer *peer);
/* Sets near_peer.user, the embedder's pointer; NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/* Buffers of near_send_large(). near reads them until the operation ends. */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;	/* true: near reads the buffers only during the call */
	/*
	 * the message's only buffer, from malloc(), if near must free it when
	 * the operation ends; otherwise NULL. Must be NULL if copy is set
	 */
	void *owned;
	void *cookie;	/* for near_sink.sent(); NULL: no call of sent() */
};

/*
 * Sends a message of any length. Returns 0: near_sink.sent() will report the
 * end. Otherwise returns an error, and the caller still owns all buffers:
 * - -EAGAIN: poll and retry
 * - -ECONNRESET: the peer has failed
 * - -EHOSTUNREACH: this port cannot send to the peer
 *
 * A NEAR_DEVICE message must have one buffer and a cookie. The buffer must be
 * in a region of this port's region table that grants NEAR_MAY_MESSAGE. The
 * peer's address must have NEAR_ADDR_DEVICE.
 */
int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large);

/*
 * Receives a rendezvous message of len bytes into the buffers in iov. Discards
 * the bytes for which the buffers have no space. Returns 0:
 * near_sink.received() will report the end; -EAGAIN: poll and retry.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * Begins to receive a rendezvous message from or to device memory. The embedder
 * then reads the message by near_rma() with NEAR_RMA_MESSAGE. After the end of
 * the read, the embedder must call near_recv_end(). If the read has failed, the
 * embedder may call near_recv_frags() instead. near_sink.received() reports the
 * end of the receive. Returns the operation; NULL: no memory, poll and retry.
 */
struct near_rx_op *near_recv_begin(struct near_port *port,
				   struct near_peer *peer,
				   const struct near_rndv *rndv, void *cookie);
/*
 * Ends op: calls near_sink.received() with err, then acknowledges the message.
 * If the ring to the sender has no free slot, a later poll does both.
 */
void near_recv_end(struct near_port *port, struct near_rx_op *op, int err);
/*
 * Requests the first len bytes of the message from the sender, in fragments.
 * Polls copy the fragments to buf.
 */
void near_recv_frags(struct near_port *port, struct near_rx_op *op, void *buf,
		     size_t len);

/*
 * Tries to copy a rendezvous message into one buffer during the call. True: the
 * message is complete, and near does not call near_sink.received() for it.
 * False: the caller must call near_recv() with *rndv, which this function might
 * have changed. An earlier message, such as one that arrives in fragments, may
 * end later than this one. So if receives share a buffer, the caller must
 * report their ends in the order of the messages.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * True if this thread should yield while it waits, because its CPUs are
 * oversubscribed (docs/near/design.md, *Yielding*) or unknown. pid: the pids of
 * `count` peers; 0: unknown pid. The function sorts this array. others: number
 * of further processes. Cost: one system call. If there are more processes than
 * CPUs, one more system call per peer.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);
/*
 * Calls near_oversub() for the port's peers. endpoints: number of endpoints on
 * this host; 0: unknown. Each endpoint that is not a peer counts as a further
 * process.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Returns a file descriptor on which a thread can sleep by poll(2), or -errno.
 * The caller must not close it.
 */
int near_wait_fd(struct near_port *port);
/*
 * Prepares the port for a sleep of the calling thread. Returns
 * - 0: the descriptor of near_wait_fd() becomes readable when a slot arrives, a
 *   peer fails, or another thread adds work
 * - -EAGAIN: there is work, or membarrier failed; the caller must poll
 */
int near_arm(struct near_port *port);
/*
 * Must be called after a sleep, before the thread's next near_arm(). True:
 * until the next near_arm(), a new slot or added work does not make the
 * descriptor of near_wait_fd() readable. So the caller must wake all other
 * threads that sleep on the port.
 */
bool near_woken(struct near_port *port);

#include "near/near_rma.h"

#endif /* NEAR_H */
