/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Ports, their peers and rx rings, for near only. Embedders include near.h. */
#ifndef NEAR_LINK_PORT_H
#define NEAR_LINK_PORT_H

#include "near/link/list.h"
#include "near/link/resize.h"
#include "near/link/pool.h"
#include "near/link/segment.h"
#include "near/link/ring.h"
#include "near/link/ring_budget.h"

#define NEAR_TICK_POLLS 16	/* limit of polls per tick */
#define NEAR_TICK_QUICK 16	/* ticks after which polls per tick double */
#define NEAR_SWEEP_POLLS 1024	/* polls per sweep */
#define NEAR_ACTIVE_MIN 8	/* rings that stay active even if idle */
#define NEAR_CHECK_MS 100	/* ms between two checks for failed peers */
#define NEAR_BURST 64		/* limit of slots per ring and poll */

enum near_peer_state {
	NEAR_PEER_NEW,		/* no ring to the peer yet */
	NEAR_PEER_OPEN,
	NEAR_PEER_CLOSED_OFF,	/* alive, but this port cannot send to it */
	NEAR_PEER_GONE,		/* failed or closed; the last state */
};

/* Descriptors that a peer passes in the fd exchange, in this order. */
enum near_fd_open {
	NEAR_FD_SEGMENT,
	NEAR_FD_WAKE,
	NEAR_FD_PIDFD,	/* pidfd of the peer; moved to near_peer.pidfd */
	NEAR_FD_TABLE,		/* region table; absent if the port has none */
	NEAR_FD_KINDS
};

/*
 * A remote port. The embedder, each rx ring from the peer, each operation with
 * the peer, and `expected` have a reference to the peer. A peer without
 * references is freed, unless this port has a ring to the peer and the peer has
 * not failed.
 */
struct near_peer {
	struct near_tx tx;
	/* embedder's pointer; beside tx, as messages load both */
	void *user;
	enum near_peer_state state;
	bool draining;	/* failed, with messages that are not delivered yet */
	bool wanted;		/* near_peer_monitor() was called */
	bool reads;		/* this port may access the peer's memory */
	bool coop;	/* the peer may access this process's memory, too */
	uint32_t index;		/* index of this port's ring at the peer */
	size_t ring_size;	/* bytes mapped for this port's ring */
	struct near_resize resize;
	bool logged;		/* a connection error was logged; log no more */
	struct near_segment *segment;
	int pidfd;		/* -1: none */
	/* the process has exited or is exiting, or its port cannot be opened */
	bool exited;
	bool by_start;	/* no pidfd: monitored by the process's start time */
	bool far;		/* in another pid namespace */
	bool needs_fdx;		/* the peer's descriptors must be requested */
	bool rejected;		/* the peer has rejected a request */
	bool expected;		/* near_peer_expect(): has a reference */
	/* descriptors of the peer's files, passed or opened; -1: none */
	int fd[NEAR_FD_KINDS];
	uint64_t requested_ms;	/* last request to the peer, ms; 0: none */
	/* start of near_connect()'s wait for a reply, ms; 0: no wait */
	uint64_t waits_ms;
	int wake_fd;	/* write end of the peer's wake pipe; -1: none */
	uint32_t refs;
	struct near_addr addr;
	struct near_link link;	/* in port->peers */
	struct near_peer *same_hash;
	struct near_rx_ring *ring;	/* ring from the peer; NULL: none yet */
	/* receive with a cooperative copy, one at a time; NULL: none */
	struct near_rx_op *coop_op;
	/* receives that wait until coop_op is NULL */
	struct near_link waiting;
	uint32_t round;		/* number of the last cooperative copy */
	uint32_t large;		/* large messages sent, not yet acknowledged */
	struct near_rma_peer *rma;	/* NULL: no RMA or atomics yet */
};

/* The receiver's private state of a ring, "rx ring". */
struct near_rx_ring {
	struct near_peer *peer;
	struct near_rx rx;
	uint32_t index;
	/* index in port->active; NEAR_NOT_ACTIVE: idle */
	uint32_t active_at;
	uint64_t mark;		/* rx.head at the last sweep */
	uint32_t idle;		/* consecutive sweeps without a message */
	bool broken;		/* has had an invalid value; not polled */
	uint8_t tier;		/* size class */
	uint32_t resizes;
	uint64_t delegs;	/* last value stored in near_ctl.done */
	bool rejected;		/* near_ctl.rejected is set */
};

/* The message layer's functions for link/: see msg/control.c. */
struct near_messages {
	/* Ends all operations with a gone peer, with err. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	/* Before a close: waits until no peer writes to local buffers. */
	void (*stop)(struct near_port *port);
	/* Frees the memory of all operations. */
	void (*close)(struct near_port *port);
};

/*
 * Functions of the RMA layer that lower layers call. request() handles a slot
 * NEAR_KIND_RMA, answered() a slot NEAR_KIND_ANSWER; if they return nonzero,
 * the slot is not consumed.
 */
struct near_onesided {
	int (*request)(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot, uint64_t word);
	int (*answered)(struct near_port *port, struct near_rx_ring *ring,
			const struct near_slot *slot);
	/*
	 * Continues all pending operations. Returns 0 if there was no progress.
	 * Polls call work() while port->onesided_work is not empty; see
	 * advanced() for the exception. Sets *waits to false if the next poll
	 * must call work() again. Otherwise all operations wait for a slot, for
	 * a change of the poll word, or for a tick.
	 */
	int (*work)(struct near_port *port, bool *waits);
	/*
	 * Polls call advanced() in place of work() while port->work is
	 * NEAR_WORK_WAITS, except polls with a tick. Completes operations if
	 * the poll word has changed. Returns their number.
	 */
	int (*advanced)(struct near_port *port);
	/* Completes a draining peer's executed operations. */
	void (*drained)(struct near_port *port, struct near_peer *peer);
	/* Ends all operations with the peer, with err. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	/* Frees the state of a peer. */
	void (*forget)(struct near_peer *peer);
	/*
	 * Returns a descriptor of the region's allocation for a peer, or
	 * -errno. The caller must close the descriptor.
	 */
	int (*share)(struct near_port *port, uint64_t key, uint64_t id);
	/* Handles the reply to near_fdx_gpu_request(). fd: -1 after errors. */
	void (*shared)(struct near_port *port, struct near_peer *peer,
		       uint64_t id, int fd);
	void (*close)(struct near_port *port);
};

#define NEAR_NOT_ACTIVE UINT32_MAX
#define NEAR_HASH 1024

struct near_port {
	struct near_segment *segment;
	struct near_rx_ring **active;
	uint32_t active_count;
	uint32_t polls;
	uint32_t tick_at;	/* value of polls at the next tick */
	/* receiver of the last send; NULL after an arrival */
	const struct near_peer *run;
	uint8_t work;		/* NEAR_WORK_*, for the three lists below */
	bool armed;		/* near_arm() succeeded: a thread may sleep */
	/*
	 * the poll word, in a peer's memory: there is work if its value is not
	 * poll_value. Points to poll_value if no poll word is needed
	 */
	const uint64_t *poll_word;
	uint64_t poll_value;
	struct near_link sending;
	struct near_link receiving;
	struct near_link onesided_work;
	void *ctx;
	const struct near_sink *sink;
	bool fence;	/* use fences, because this process has no membarrier */
	bool barrier_failed;	/* a failure of membarrier was logged */
	bool reads;	/* single copy is permitted: !near_attr.no_cma */
	uint32_t draining;		/* number of draining peers */
	uint32_t tick_polls;	/* polls per tick */
	uint32_t tick_quick;	/* ticks since tick_polls was set */
	uint32_t swept;		/* value of polls at the last sweep */
	uint64_t ticked_ms;
	uint64_t checked_ms;
	uint64_t syscall_check_ms;	/* last check with system calls, ms */
	bool rings_due;		/* the next tick must check rings */
	uint64_t fdx_ms;	/* last read of the socket, ms */
	uint64_t requested_ms;	/* last request to any peer, ms */
	uint32_t timeout_ms;	/* near_attr.timeout_ms */
	struct near_pool tx_ops;
	struct near_pool rx_ops;
	/* last large or fan-out send: buffer, receiver, value of polls */
	const void *fanout;
	const struct near_peer *fanout_to;
	uint32_t fanout_poll;
	uint32_t large;	/* large messages sent, not yet acknowledged */
	/* value of polls for which read_left is valid */
	uint32_t read_poll;
	size_t read_left;	/* bytes that this poll may still read */
	const struct near_messages *messages;
	/* NULL: near_rma_open() was not called */
	const struct near_onesided *onesided;
	struct near_rma *rma;
	struct near_rx_ring **ring;	/* rx rings by index; NULL: none */
	uint32_t ring_count;
	struct near_link peers;
	struct near_peer *hash[NEAR_HASH];
	struct near_addr addr;
	struct near_budget budget;
	int fd;
	int table_fd;		/* region table; -1: none */
	int epoll_fd;		/* has pidfds, the socket and the wake pipe */
	int wake[2];
	uint32_t sleeps;	/* number of the last sleep; skips 0 */
	int fdx;		/* socket of the fd exchange; -1: none */
	int dir;		/* directory of the socket; -1: abstract name */
	/* a rejected datagram was logged; log no more */
	bool denied_fdx;
	void (*log)(int level, const char *text);
};

/* near_port.work */
#define NEAR_WORK_DUE 1u	/* each poll must continue some work */
#define NEAR_WORK_WAITS 2u	/* all operations wait: near_onesided.work() */

/* Sets the poll word. now: value of the word when the caller loaded it last. */
static inline void near_port_set_poll_word(struct near_port *port,
					   const uint64_t *word, uint64_t now)
{
	port->poll_value = now;
	port->poll_word = word;
}

static inline void near_port_clear_poll_word(struct near_port *port)
{
	port->poll_word = &port->poll_value;
}

/* True if the next poll must continue pending work. */
static near_inline bool near_port_has_work(const struct near_port *port)
{
	return port->work & NEAR_WORK_DUE ||
	       __atomic_load_n(port->poll_word, __ATOMIC_RELAXED) !=
	       port->poll_value;
}

/* alive.c: wakes the threads that sleep on the port. */
void near_port_wake(struct near_port *port);

/*
 * Sets bits in port->work, and wakes sleeping threads. Must be called after the
 * work was added. work: NEAR_WORK_* bits; 0: only ticks continue this work.
 */
static near_inline void near_port_added(struct near_port *port, uint8_t work)
{
	port->work |= work;
	if (near_unlikely(port->armed))
		near_port_wake(port);
}

/* Appends an operation to one of the port's lists of work. */
static inline void near_port_work(struct near_port *port,
				  struct near_link *list,
				  struct near_link *link)
{
	near_list_append(list, link);
	near_port_added(port, NEAR_WORK_DUE);
}

/* Takes a reference to the peer; near_peer_put() drops the reference. */
static near_inline void near_peer_hold(struct near_peer *peer)
{
	peer->refs++;
}

/* Drops a reference; inline for the common case that references remain. */
static near_inline void near_peer_unhold(struct near_port *port,
					 struct near_peer *peer)
{
	if (near_likely(peer->refs > 1))
		peer->refs--;
	else
		near_peer_put(port, peer);
}

/*
 * peer.c: attaches to a ring of the peer. Returns 0, or
 * - -EAGAIN: poll and retry
 * - -ECONNRESET: the peer has failed
 * - -EHOSTUNREACH: this port cannot send to the peer
 */
int near_connect(struct near_port *port, struct near_peer *peer);
/* Closes this port's claim at the peer and unmaps the peer's segment. */
void near_disconnect(struct near_port *port, struct near_peer *peer);
/* Frees a peer that is in no list of the port any more. */
void near_peer_free(struct near_port *port, struct near_peer *peer);
/* Sets this port's bits in the peer's doorbell; wakes its sleeping threads. */
void near_doorbell_ring(struct near_peer *peer);
/*
 * Takes (expected: true) or drops (false) a reference, at most one per peer.
 * The reference keeps a peer without an rx ring in two cases:
 * - The peer has sent a request, and will attach to a ring.
 * - The peer has attached, but has not replied to this port's request yet.
 *
 * The reference is dropped when the peer's claim is rejected or the peer is
 * gone.
 */
void near_peer_expect(struct near_port *port, struct near_peer *peer,
		      bool expected);

/*
 * fdx.c: requests the peer's descriptors, at most every 100 ms. Returns
 * - -EAGAIN: wait for the reply
 * - -ESRCH: the peer has no open socket
 * - -EACCES: the peer has rejected a request
 * - -EHOSTUNREACH: this port has no socket
 * - another -errno: the request cannot be sent
 */
int near_fdx_request(struct near_port *port, struct near_peer *peer);
/*
 * Requests the descriptor of a peer's allocation of device memory. Returns 0 if
 * near_onesided.shared() will get the reply, -EAGAIN (retry), or another error.
 */
int near_fdx_gpu_request(struct near_port *port, struct near_peer *peer,
			 uint64_t key, uint64_t id);
/* Handles datagrams of the socket, NEAR_FDX_BURST at most. */
void near_fdx_read(struct near_port *port);
/* Close peer->fd[which], or all of peer->fd[]. */
void near_fd_drop(struct near_peer *peer, enum near_fd_open which);
void near_fd_drop_all(struct near_peer *peer);
/* True if peer->fd[] has the segment, and near_segment.closed is set in it. */
bool near_fd_closed(const struct near_peer *peer);
/*
 * Opens a file of the peer: reopens peer->fd[which]; if that is -1, opens the
 * peer's descriptor `theirs` through /proc. Returns a descriptor or -errno.
 */
int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags);
/*
 * True if fd, the result of near_peer_open(), shows that the peer's port is
 * closed or its process is exiting. The caller must then call near_peer_fail().
 * The opened descriptor must be one that an open port keeps, such as
 * NEAR_FD_SEGMENT.
 */
bool near_peer_shut(struct near_peer *peer, int fd);

/* fdx_socket.c: closes the socket and removes the socket's name. */
void near_fdx_close(struct near_port *port);

/* rx_ring.c: handles and clears all bits of the port's doorbell. */
void near_port_doorbells(struct near_port *port);
/* Makes rings idle that had no message in two consecutive sweeps. */
void near_port_sweep(struct near_port *port);
/*
 * Marks an open claim as rejected, because this port cannot reply to the
 * claim's sender. The sender's calls then fail, but the sender still owns the
 * ring. False: the claim is not open.
 */
bool near_ring_reject(struct near_port *port, uint32_t index);
/* Frees the rx ring, and makes the ring free for another sender. */
void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring);
/* Frees the rx ring and its mapping, but not the ring in the segment. */
void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring);
/* Makes a ring active: all polls read it, and its sender rings no doorbell. */
void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring);
/* Handles claims of senders that were killed before they rang the doorbell. */
void near_rings_check(struct near_port *port);
/*
 * Handles an invalid value in a ring: logs `what` and the value, stops polling
 * the ring, and makes its sender draining.
 */
void near_rx_ring_broken(struct near_port *port, struct near_rx_ring *ring,
			 const char *what, uint64_t value);

/*
 * alive.c: adds fd to port->epoll_fd. ptr: the peer of a pidfd; the port for
 * its socket; NULL for the wake pipe. Returns 0 or -errno.
 */
int near_epoll_add(struct near_port *port, int fd, void *ptr);
/* True if this port detects the exit of the peer's process. */
static inline bool near_monitored(const struct near_peer *peer)
{
	return peer->pidfd >= 0 || peer->by_start;
}
/*
 * Monitors the peer's process. Returns 0, or
 * - -EAGAIN: a pidfd was requested; retry
 * - -ESRCH: the process has exited
 * - -EACCES: the peer has rejected the request; or /proc hides the peer, and one
 *   of the two ports has no socket
 * - another -errno
 */
int near_monitor(struct near_port *port, struct near_peer *peer);
void near_unmonitor(struct near_port *port, struct near_peer *peer);
/*
 * Makes a peer draining. When its messages are delivered, a later tick or
 * near_woken() makes the peer gone.
 */
void near_peer_fail(struct near_port *port, struct near_peer *peer);
/*
 * True if this port may copy from or to the peer's process by its pid: a check
 * in the last NEAR_CHECK_MS has found the process, and Linux does not reuse a
 * pid so soon.
 */
bool near_peer_alive(struct near_port *port, const struct near_peer *peer);
/*
 * rx_ring.c: must be called after a copy from the peer's memory, before the
 * copy is used. True if the peer's port has closed, so that the memory may have
 * had other contents. Makes such a peer draining.
 */
bool near_peer_closed(struct near_port *port, struct near_peer *peer);
/* Checks whether the peer's process has exited, by one or two system calls. */
bool near_peer_check_exited(const struct near_peer *peer);
/* Checks that a connected peer's process exists and its port is open. */
bool near_peer_check_open(const struct near_peer *peer);
/* Does the periodic work of polls: sweeps, checks, reads of the socket. */
void near_port_tick(struct near_port *port);

/*
 * port.c: executes a full barrier in this thread and, by membarrier, in all
 * running threads of registered processes. Other processes execute fences: enum
 * near_fence. Without membarrier (port->fence) all senders execute fences, so
 * this thread's barrier suffices. False: membarrier failed, and threads may
 * lack the barrier.
 */
bool near_port_barrier(struct near_port *port);
void near_log(const struct near_port *port, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Opens a port for near_open(), which initializes the message layer. */
int near_port_open(struct near_port **port, const struct near_attr *attr,
		   const struct near_messages *messages);

#endif /* NEAR_LINK_PORT_H */
