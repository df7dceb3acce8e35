/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near: messages, RMA and atomics over shared memory, between processes of one
 * host and one user, without libfabric. The embedder is the code that uses this
 * interface. Its callbacks (struct near_sink) match and queue messages. A port
 * is an endpoint of near, a peer is a remote port. Protocols:
 * docs/near/design.md; terms: docs/glossary.md.
 *
 * The embedder must serialize all calls for a port. near calls arrived() and
 * unload() of the sink only within near_poll() and near_rx_ring_poll(). The
 * sink's other functions are called within other functions of near, too, such
 * as near_peer_get() and near_woken(). near's functions return errors as
 * negative errno values. near_send() and near_poll() are inline functions in
 * msg/inline.h. Embedders get them by including rma/inline.h, too.
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
#define NEAR_MEMORY (1008u << 10)	/* default of near_attr.memory */

/* near_msg.flags, which near passes to the receiver */
#define NEAR_TAGGED 1u		/* a tagged message: near_msg.tag is valid */
#define NEAR_DATA 2u		/* near_msg.data is valid */
/* a large message in device memory of the sender: see near_recv_begin() */
#define NEAR_DEVICE 4u
#define NEAR_FLAGS 7u

/* Returned by near_send() for a message that requires near_send_large(). */
#define NEAR_LARGE 1

#define NEAR_MAGIC 0x7261656eu	/* "near": the first bytes of each address */

/* Address of a port: opaque bytes for embedders, compared by memcmp(). */
struct near_addr {
	uint32_t magic;
	uint32_t layout;
	int32_t pid;
	/* descriptor number, in process pid, of the port's shared memory */
	int32_t fd;
	uint64_t nonce;		/* random number: no other port has it */
	uint64_t host;	/* identifies the machine and its present boot */
	/* id of the pid and time namespaces of pid and start: duo_proc_ns() */
	uint64_t pid_ns;
	uint64_t start;	/* start time of the process, ticks after boot */
	uint64_t flags;		/* NEAR_ADDR_* */
};

#define NEAR_ADDR_RMA 1u	/* the port has a region table for near_rma() */
/* the port can receive NEAR_DEVICE messages */
#define NEAR_ADDR_DEVICE 2u

struct near_port;
struct near_peer;
struct near_rx_op;

/* Identifies a rendezvous message, which is still in the sender's memory. */
struct near_rndv {
	uint64_t id;		/* id of the sender's operation */
	/*
	 * address of the message in the sender's process; 0: the receiver
	 * cannot read it there, and must request fragments
	 */
	uint64_t addr;
	/*
	 * NEAR_DEVICE: key of the region with the message. addr is then an
	 * address in this region, as in near_rma_args.
	 */
	uint64_t key;
};

struct near_msg {
	/* received message: NULL if the message is a rendezvous */
	const void *payload;
	size_t len;
	uint64_t tag;
	uint64_t data;
	unsigned int flags;
	/*
	 * received message: valid if payload is NULL; message to send: valid if
	 * flags has NEAR_DEVICE
	 */
	struct near_rndv rndv;
};

struct near_sink {
	/*
	 * Delivers a message. The payload is valid only during the call.
	 * Returns 0, or -EAGAIN: the message and all later ones of its sender
	 * then stay in the ring, and later polls deliver them.
	 */
	int (*arrived)(void *ctx, struct near_peer *source,
		       struct near_msg *msg);
	/*
	 * Reports the end of a receive. cookie: as in near_recv() or
	 * near_recv_begin(); a receive with cookie NULL is not reported. err: 0
	 * or a positive errno value.
	 */
	void (*received)(void *ctx, void *cookie, int err);
	/*
	 * Reports the end of a near_send_large() that had a cookie. err: 0 or a
	 * positive errno value.
	 */
	void (*sent)(void *ctx, void *cookie, int err);
	/*
	 * Copies the first len bytes of a NEAR_DEVICE message from device
	 * memory (from) to host memory (host). near calls it at the sender,
	 * after the receiver has requested fragments. cookie: as in
	 * near_send_large(). Returns 0 or a positive errno value.
	 */
	int (*unload)(void *ctx, void *cookie, const void *from, void *host,
		      size_t len);
	/* A peer was created, by near_peer_get() or for a new sender. */
	void (*peer_up)(void *ctx, struct near_peer *peer);
	/* The peer failed or closed; its messages and operations have ended. */
	void (*peer_down)(void *ctx, struct near_peer *peer);
	/* The last reference was dropped; near frees the peer after this. */
	void (*peer_release)(void *ctx, struct near_peer *peer);
};

struct near_attr {
	/* callbacks; calls of near_poll() must pass the same table */
	const struct near_sink *sink;
	void *ctx;
	/* Logs a line of text. level: 0: warning; 1: information. */
	void (*log)(int level, const char *text);
	/*
	 * memory of all rings of the port together, bytes; each ring gets a
	 * page at least, even beyond this limit
	 */
	size_t memory;
	/* never copy by process_vm_readv() and process_vm_writev() */
	bool no_cma;
	/*
	 * do not call prctl(PR_SET_PTRACER); where the security module Yama
	 * restricts ptrace, peers then cannot use process_vm_readv()
	 */
	bool no_ptracer;
	/* time to wait for a reply over near_listen(), ms; 0: no limit */
	uint32_t timeout_ms;
};

/* Opens a port. */
int near_open(struct near_port **port, const struct near_attr *attr);
/*
 * Opens the port's UNIX socket for the fd exchange (link/fdx.h): peers that
 * cannot open this process's descriptors through /proc request them over the
 * socket. dir: descriptor of the directory for the socket's file, shared with
 * the peers; -1: the socket has an abstract name, valid in this network
 * namespace. Returns 0 or -errno.
 */
int near_listen(struct near_port *port, int dir);
/*
 * Removes the files of near's sockets that no process has open any more. dir:
 * as in near_listen().
 */
void near_sweep(int dir);
/*
 * Closes a port. Peers still receive all messages that near_send() has
 * accepted. Pending large messages and one-sided operations end without a
 * callback.
 */
void near_close(struct near_port *port);
/* Stores the address of a port. */
void near_address(const struct near_port *port, struct near_addr *addr);
/*
 * Checks an address. Returns 0, or
 * - -EINVAL: not an address of this version of near
 * - -EHOSTUNREACH: the address is of another host; or of another pid namespace,
 *   and this port has no socket (near_listen())
 */
int near_addr_check(const struct near_port *port, const struct near_addr *addr);

/*
 * Finds or creates the peer with this address, stores it in *peer, and takes a
 * reference, which near_peer_put() drops. Returns 0 or -ENOMEM. The first send
 * connects the peer. A connected peer remains until it has failed or closed,
 * even without references.
 */
int near_peer_get(struct near_port *port, const struct near_addr *addr,
		  struct near_peer **peer);
/* Returns the peer with this address, but takes no reference; NULL: none. */
struct near_peer *near_peer_find(struct near_port *port,
				 const struct near_addr *addr);
/*
 * Starts peer failure detection now. Without this call it starts when one of
 * the two ports connects to the other.
 */
void near_peer_monitor(struct near_port *port, struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
/*
 * If this port must request the peer's descriptors over near_listen()'s socket,
 * sends the request now. Otherwise the first send to the peer would do that.
 */
void near_peer_prepare(struct near_port *port, struct near_peer *peer);
/* True if this port can send to the peer and no failure was detected. */
bool near_peer_usable(const struct near_peer *peer);
/* True if the peer is known to exist: it is monitored and has not failed. */
bool near_peer_exists(const struct near_peer *peer);
/*
 * True if near has detected that the peer has failed, and has found that
 * - the peer's process has exited or is exiting, or
 * - the peer's port cannot be opened.
 *
 * False if a connected peer has only closed its port.
 */
bool near_peer_exited(const struct near_peer *peer);
/*
 * True if this port has a ring in which it sends to the peer, or waits for the
 * peer's reply in the fd exchange, which it needs to get such a ring.
 */
bool near_peer_rings(const struct near_peer *peer);
/* Sets the embedder's pointer, near_peer.user, which is NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/*
 * Buffers of a message for near_send_large(). near reads the buffers until the
 * operation ends, or only during the call if copy is set. If cookie is NULL,
 * near does not call sent(). owned: normally NULL. If there is only one buffer,
 * and malloc() has allocated it, owned may be its address: near then frees it.
 * If owned is set, copy must not be set.
 */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;
	void *owned;
	void *cookie;
};

/*
 * Sends a message of any length. Returns 0 if the message is accepted;
 * near_sink.sent() then reports the end. Otherwise returns
 * - -EAGAIN: poll and retry
 * - -ECONNRESET: the peer has failed
 * - -EHOSTUNREACH: this port cannot send to the peer
 *
 * After an error the caller still owns all buffers.
 *
 * A NEAR_DEVICE message has one buffer, in device memory. The buffer must be in
 * a region of this port's table (near_rma_open()) that grants NEAR_MAY_MESSAGE.
 * A cookie is then required, and the peer's address must have NEAR_ADDR_DEVICE.
 */
int near_send_large(struct near_port *port, struct near_peer *peer,
		    const struct near_msg *msg, const struct near_large *large);

/*
 * Receives a rendezvous message of len bytes into iov. If iov is shorter, the
 * end of the message is discarded; count 0 discards the whole message. Returns
 * 0: near_sink.received() will report the end; or -EAGAIN: poll and retry.
 */
int near_recv(struct near_port *port, struct near_peer *peer,
	      const struct near_rndv *rndv, const struct iovec *iov,
	      size_t count, size_t len, void *cookie);

/*
 * Begins to receive a rendezvous message. Must be used in place of near_recv()
 * if the message or the receive buffer is in device memory. The embedder then
 * reads the message by near_rma() with NEAR_RMA_MESSAGE, and calls
 * near_recv_end(). If the read fails, the embedder calls near_recv_frags()
 * instead: the sender then copies a NEAR_DEVICE message to host memory and
 * sends fragments. In both cases near_sink.received() reports the end. Returns
 * NULL if there is no memory: poll and retry.
 */
struct near_rx_op *near_recv_begin(struct near_port *port,
				   struct near_peer *peer,
				   const struct near_rndv *rndv, void *cookie);
/*
 * Ends a receive that near_recv_begin() has begun, and acknowledges the message
 * to the sender. err: passed to near_sink.received().
 */
void near_recv_end(struct near_port *port, struct near_rx_op *op, int err);
/*
 * Requests that the sender sends the first len bytes of the message in
 * fragments, through the ring. near copies them to buf.
 */
void near_recv_frags(struct near_port *port, struct near_rx_op *op, void *buf,
		     size_t len);

/*
 * Copies a rendezvous message into one buffer during the call. True: the
 * receive is complete, and near does not call received(). False: the caller
 * must call near_recv() with *rndv. If the copy has failed, this function has
 * set rndv->addr to 0, so that near_recv() requests fragments.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   struct near_rndv *rndv, void *buf, size_t len);

/*
 * True if the CPUs of this thread are oversubscribed: the number of processes
 * (this process, its peers, others) that may run only on these CPUs exceeds the
 * number of these CPUs. Also true if the CPUs cannot be read. A waiting thread
 * should yield only if this function returns true. Otherwise a yield would give
 * the CPU to an unrelated process for milliseconds.
 *
 * pid: the pids of the peers, `count` in number; 0 is an unknown pid, and
 * counts as a process. This call sorts the pids. others: number of further
 * processes, all of which count.
 *
 * Cost: one system call if there is a CPU for each process; otherwise also one
 * for each peer's process.
 */
bool near_oversub(pid_t *pid, size_t count, size_t others);

/* Returns the number of `endpoints` that are not among the `known` ones. */
static inline size_t near_oversub_others(size_t endpoints, size_t known)
{
	return endpoints > known ? endpoints - known : 0;
}

/*
 * Calls near_oversub() for this process and the port's peers. endpoints: number
 * of endpoints on this host; 0: unknown. Each endpoint other than this port and
 * its peers counts as one process.
 */
bool near_oversubscribed(const struct near_port *port, size_t endpoints);

/*
 * Sleeping. near_wait_fd() returns a descriptor or -errno. After near_arm() has
 * returned 0, the descriptor becomes readable when a slot arrives, a peer
 * fails, or another thread adds work. If near_arm() returns -EAGAIN, the caller
 * must poll instead of sleeping, because there is work now, or membarrier has
 * failed.
 */
int near_wait_fd(struct near_port *port);
int near_arm(struct near_port *port);
/*
 * Ends a sleep. A thread that has slept must call this function before its next
 * near_arm(). True: the descriptor is not armed any more, and the caller must
 * wake the other threads that sleep on it. False: the descriptor is still
 * armed.
 */
bool near_woken(struct near_port *port);

#include "near/near_rma.h"

#endif /* NEAR_H */
