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
#define NEAR_INLINE 48	/* longest message in a slot, bytes */
#define NEAR_MEMORY (1008u << 10)	/* default of near_attr.memory, bytes */

/* bits of near_msg.flags; near passes them to the receiver */
#define NEAR_TAGGED 1u		/* a tagged message: near_msg.tag is valid */
#define NEAR_DATA 2u		/* near_msg.data is valid */
#define NEAR_DEVICE 4u	/* large message in the sender's device memory */
#define NEAR_FLAGS 7u

/* returned by near_send(): the message requires near_send_large() */
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
	/* address of the bytes in the sender's process; 0: not readable */
	uint64_t addr;
	/* NEAR_DEVICE: region key of the bytes; addr is their RMA address */
	uint64_t key;
};

struct near_msg {
	/* the bytes, or their first buffer; NULL in arrived(): rendezvous */
	const void *payload;
	size_t len;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;
	struct near_rndv rndv;	/* of rendezvous and NEAR_DEVICE messages */
};

/*
 * The embedder's callbacks. near calls arrived() and unload() only within
 * near_poll() and near_rx_ring_poll(), the others within any call for the port.
 * err: 0 or a positive errno value.
 */
struct near_sink {
	/*
	 * Delivers a message. Its payload is valid only during the call.
	 * Returns 0; or -EAGAIN: no memory, a later poll delivers it again.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/* Reports that the receive with this cookie has ended. */
	void (*received)(void *ctx, void *cookie, int err);
	/* Reports that the near_send_large() with this cookie has ended. */
	void (*sent)(void *ctx, void *cookie, int err);
	/*
	 * Copies len bytes from device to host memory, because the receiver of
	 * a NEAR_DEVICE message has requested fragments. cookie: that of
	 * near_send_large(). Returns 0 or a positive errno value.
	 */
	int (*unload)(void *ctx, void *cookie, const void *from, void *host,
		      size_t len);
	/* Reports a new peer, from near_peer_get() or because it attached. */
	void (*peer_up)(void *ctx, struct near_peer *peer);
	/* Reports that a peer failed or closed. Its operations have ended. */
	void (*peer_down)(void *ctx, struct near_peer *peer);
	/* Reports that near will free the peer after this call. */
	void (*peer_release)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	/* callbacks; callers of near_poll() must pass the same table */
	const struct near_sink *sink;
	void *ctx;
	/* Logs a line of text. level: 0: warning; 1: information. */
	void (*log)(int level, const char *text);
	/* ring budget, bytes; beyond it, each ring still has one page */
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
/* Removes from dir the files of near's sockets that no process has open. */
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
 * - -EHOSTUNREACH: of another host; or of another pid namespace, although this
 *   port has no socket (near_listen())
 */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * Finds or creates the peer with this address and takes a reference, which
 * near_peer_put() drops. Returns 0 or -ENOMEM. The first send connects the
 * peer.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* Returns the peer with this address; NULL: none. Takes no reference. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/* Starts peer failure detection now, instead of when the ports connect. */
void near_peer_monitor(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/* If the first send to the peer would start an fd exchange, starts it now. */
void near_peer_prepare(struct near_port *port, struct near_peer *peer);
/* True if this port can send to the peer and no failure was detected. */
bool near_peer_usable(const struct near_peer *peer);
/* True if this port monitors the peer, and the peer has not failed. */
bool near_peer_exists(const struct near_peer *peer);
/*
 * True if the peer's process has exited or is exiting, or if the peer's port
 * had closed before this port could connect to it.
 */
bool near_peer_exited(const struct near_peer *peer);
/* True if this port has a ring to send to the peer, or waits to get one. */
bool near_peer_rings(const struct near_peer *peer);
/* Sets near_peer.user, the embedder's pointer; NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/* Buffers for near_send_large(). near reads them until the operation ends. */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;	/* true: near reads the buffers only during the call */
	/*
	 * the only buffer, from malloc(), if near must free it when the
	 * operation ends; otherwise, and always if copy is set, NULL
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
 * A NEAR_DEVICE message has one buffer. The buffer is in a region that grants
 * NEAR_MAY_MESSAGE, in this port's region table. The message requires a cookie,
 * and NEAR_ADDR_DEVICE in the peer's address.
 */
int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large);

/*
 * Receives a rendezvous message of len bytes into iov; discards excess bytes.
 * Returns 0: near_sink.received() will report the end; -EAGAIN: poll and retry.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * Begins to receive a rendezvous message from or to device memory. The embedder
 * then reads the message by near_rma() with NEAR_RMA_MESSAGE, and calls
 * near_recv_end(), or near_recv_frags() if the read fails. near_sink.received()
 * reports the end. Returns the operation; NULL: no memory, poll and retry.
 */
struct near_rx_op *near_recv_begin(struct near_port *port,
				   struct near_peer *peer,
				   const struct near_rndv *rndv, void *cookie);
/* Ends op: calls near_sink.received() with err and acknowledges the message. */
void near_recv_end(struct near_port *port, struct near_rx_op *op, int err);
/* Requests fragments with the message's first len bytes; polls fill buf. */
void near_recv_frags(struct near_port *port, struct near_rx_op *op, void *buf,
		     size_t len);

/*
 * Copies a rendezvous message into one buffer during the call. True: complete;
 * near does not call received(). False: the caller must call near_recv() with
 * *rndv, which this call may have changed. Earlier messages may still be
 * incomplete: the caller must keep the order of receives that share a buffer.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * True if this thread should yield while it waits: its CPUs are oversubscribed
 * (docs/near/design.md, *Yielding*) or unknown. pid: the peers' pids, which
 * this call sorts; 0: unknown. others: number of further processes. Cost: one
 * system call; with more processes than CPUs, one more per peer.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);
/*
 * Calls near_oversub() for the port's peers. endpoints: number of endpoints on
 * this host, 0: unknown; those that are not peers count as further processes.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Returns a file descriptor on which a thread can sleep by poll(2), or -errno.
 * The caller must not close it.
 */
int near_wait_fd(struct near_port *port);
/*
 * Prepares a sleep. Returns
 * - 0: the descriptor of near_wait_fd() becomes readable when a slot arrives, a
 *   peer fails, or another thread adds work
 * - -EAGAIN: there is work, or membarrier failed; the caller must poll
 */
int near_arm(struct near_port *port);
/*
 * Ends a sleep; must be called before the thread's next near_arm(). True: no
 * event can wake other threads that sleep on the port. The caller must wake
 * them.
 */
bool near_woken(struct near_port *port);

#include "near/near_rma.h"

#endif /* NEAR_H */
