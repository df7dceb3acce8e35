/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Ports, their peers and rx rings. For near only: embedders include near.h. */
#ifndef NEAR_LINK_PORT_H
#define NEAR_LINK_PORT_H

#include "near/link/list.h"
#include "near/link/resize.h"
#include "near/link/pool.h"
#include "near/link/segment.h"
#include "near/link/ring.h"
#include "near/link/ring_budget.h"

/* a poll is a call of near_poll(); a tick is a call of near_port_tick() */
#define NEAR_TICK_POLLS 16	/* limit of polls from a tick to the next */
#define NEAR_SWEEP_POLLS 1024	/* polls from a near_port_sweep() to the next */
/* number of active rings that near_port_sweep() never makes idle */
#define NEAR_ACTIVE_MIN 8
#define NEAR_CHECK_MS 100	/* ms between two checks for failed peers */
#define NEAR_BURST 64	/* limit of slots that a poll reads from one ring */

enum near_peer_state {
	NEAR_PEER_NEW,		/* no ring yet to send to the peer */
	NEAR_PEER_OPEN,		/* this port has a ring to send to the peer */
	NEAR_PEER_CLOSED_OFF,	/* alive peer to which this port cannot send */
	/* failed or closed peer, no longer draining; the last state */
	NEAR_PEER_GONE,
};

/* Descriptors in a datagram of the fd exchange; indices of near_peer.fd. */
enum near_fd_open {
	NEAR_FD_SEGMENT,
	NEAR_FD_WAKE,
	NEAR_FD_PIDFD,		/* exception: stored in near_peer.pidfd */
	NEAR_FD_TABLE,		/* region table; absent if the port has none */
	NEAR_FD_KINDS
};

/*
 * A remote port. The embedder, the peer's rx ring, each operation and
 * near_peer_expect() hold references. Without them, near keeps only a connected
 * peer, until it fails.
 */
struct near_peer {
	struct near_tx tx;
	void *user;		/* embedder's pointer */
	enum near_peer_state state;
	bool draining;	/* the peer has failed; its ring may have messages */
	bool wanted;		/* near_peer_monitor() was called */
	bool reads;		/* single copy is possible */
	bool coop;	/* cooperative copy is possible: it has never failed */
	uint32_t index;		/* index of tx's ring in the peer's segment */
	size_t ring_size;	/* bytes mapped for tx's ring */
	struct near_resize resize;
	bool logged;		/* a connection error was logged; log no more */
	struct near_segment *segment;	/* NULL: not connected */
	int pidfd;		/* pidfd of the peer's process; -1: none */
	bool exited;	/* the process is exiting, or its port has closed */
	bool by_start;	/* the peer is monitored by start time, not by pidfd */
	bool far;	/* the peer is in another pid or time namespace */
	bool needs_fdx;		/* only the fd exchange yields descriptors */
	bool rejected;	/* an fd request was rejected, or this port closes */
	bool expected;		/* near_peer_expect() holds a reference */
	int fd[NEAR_FD_KINDS];	/* descriptors from the fd exchange; -1: none */
	uint64_t requested_ms; /* time of last fd request, ms; 0: none */
	uint64_t waits_ms; /* start of near_connect()'s wait, ms; 0: none */
	int wake_fd;	/* write end of the peer's wake pipe; -1: none */
	bool wake_due;	/* no descriptor was free to wake the peer */
	uint32_t refs;
	struct near_addr addr;
	struct near_link link;	/* in port->peers */
	struct near_peer *same_hash;
	struct near_rx_ring *ring;	/* ring from the peer; NULL: none yet */
	/* 1 + index of a claim without memory for its rx ring; 0: none */
	uint32_t ring_due;
	struct near_rx_op *coop_op;	/* pending cooperative copy, or NULL */
	struct near_link waiting;	/* receives that wait for coop_op */
	uint32_t round;		/* number of the last cooperative copy */
	uint32_t large;		/* number of pending sends of large messages */
	struct near_rma_peer *rma;	/* RMA state; NULL: none yet */
};

/* An rx ring: the receiver's private state of a ring in its segment. */
struct near_rx_ring {
	struct near_peer *peer;		/* the sender */
	struct near_rx rx;
	uint32_t index;			/* index in the segment */
	uint32_t active_at;	/* index in port->active; or NEAR_NOT_ACTIVE */
	uint64_t mark;		/* rx.head at the last near_port_sweep() */
	uint32_t idle;	/* consecutive sweeps that have found no new slot */
	bool broken;		/* had an invalid value; polls skip the ring */
	uint8_t tier;		/* size class */
	uint32_t resizes;	/* number of resizes so far */
	uint64_t delegs;	/* last value stored in near_ctl.done */
	bool rejected;		/* near_ctl.rejected is set */
};

/* Functions of msg/control.c that this layer (link/) calls. */
struct near_messages {
	/* Ends all sends and receives with a failed peer. */
	void (*fail)(struct near_port *port, struct near_peer *peer);
	/* For near_close(): waits until no peer writes to local buffers. */
	void (*stop)(struct near_port *port);
	/* Frees the memory of all operations. */
	void (*close)(struct near_port *port);
};

/* Functions of the RMA layer (rma/) that lower layers call. */
struct near_onesided {
	/* Handles a NEAR_KIND_RMA slot. Nonzero: it must stay in the ring. */
	int (*request)(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot, uint64_t word);
	/* Does the same for a NEAR_KIND_ANSWER slot. */
	int (*answered)(struct near_port *port, struct near_rx_ring *ring,
			const struct near_slot *slot);
	/*
	 * Continues all pending operations. Returns 0 if there was no progress.
	 * Sets *waits to false if the next poll must call work() again;
	 * otherwise polls call advanced(): see NEAR_WORK_WAITS.
	 */
	int (*work)(struct near_port *port, bool *waits);
	/*
	 * Completes operations if *poll_word has changed. Returns their count.
	 */
	int (*advanced)(struct near_port *port);
	/*
	 * Completes operations that a peer executed before it failed. Waits for
	 * this port's device copies from and to the peer's stage, which the
	 * peer may reuse after near_disconnect(). Frees the state of these
	 * copies, so the port must not poll between drained() and fail().
	 */
	void (*drained)(struct near_port *port, struct near_peer *peer);
	/* Ends all RMA and atomics with a failed peer. */
	void (*fail)(struct near_port *port, struct near_peer *peer);
	/* Frees the RMA state of a peer, near_peer.rma. */
	void (*forget)(struct near_peer *peer);
	/*
	 * Returns a file descriptor with which a peer can map the device memory
	 * of the region that has this key, or -errno. id: near_export.id. The
	 * caller must close the descriptor.
	 */
	int (*share)(struct near_port *port, uint64_t key, uint64_t id);
	/* Handles a reply to near_fdx_gpu_request(); owns fd; -1: none. */
	void (*shared)(struct near_port *port, struct near_peer *peer,
		       uint64_t id, int fd);
	void (*close)(struct near_port *port);
};

#define NEAR_NOT_ACTIVE UINT32_MAX
#define NEAR_HASH 1024

struct near_port {
	struct near_segment *segment;
	struct near_rx_ring **active;	/* active rings: each poll reads them */
	uint32_t active_count;
	uint32_t polls;		/* number of polls so far */
	uint32_t tick_at; /* value of polls at the next near_port_tick() */
	/* receiver of the last send; NULL: a slot has arrived after the send */
	const struct near_peer *run;
	/* NEAR_WORK_*: work in the lists sending, receiving, onesided_work */
	uint8_t work;
	bool armed;		/* near_arm() succeeded: a thread may sleep */
	/*
	 * word in a peer's memory; if it differs from poll_value, the next poll
	 * continues RMA operations. &poll_value: none.
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
	uint32_t draining;	/* number of peers with near_peer.draining */
	uint32_t tick_polls;	/* polls between two near_port_tick() */
	uint32_t swept;	/* port->polls at the last near_port_sweep() */
	uint64_t ticked_ms;	/* time of the last near_port_tick(), ms */
	uint64_t checked_ms;	/* time of the last complete check, ms */
	bool rings_due;	/* near_port_tick() must call near_rings_check() */
	uint64_t fdx_ms;	/* time of a tick's last near_fdx_read(), ms */
	uint32_t timeout_ms;	/* near_attr.timeout_ms */
	struct near_pool tx_ops;
	struct near_pool rx_ops;
	/* last send that near_tx_record() has recorded */
	const void *fanout;
	const struct near_peer *fanout_to;
	uint32_t fanout_poll;	/* value of `polls` */
	uint32_t large;		/* sum of near_peer.large */
	/* bytes that single copy may still copy in the poll `read_poll` */
	size_t read_left;
	uint32_t read_poll;
	const struct near_messages *messages;
	const struct near_onesided *onesided;	/* NULL until near_rma_open() */
	struct near_rma *rma;
	struct near_rx_ring **ring;	/* rx rings by index; NULL: none */
	uint32_t ring_count;	/* 1 + highest index of an rx ring so far */
	struct near_link peers;
	struct near_peer *hash[NEAR_HASH];
	struct near_addr addr;
	struct near_budget budget;
	int fd;			/* file descriptor of the segment */
	int table_fd;	/* file descriptor of the region table; -1: none */
	int epoll_fd;	/* monitors the pidfds, the socket, the wake pipe */
	int wake[2];		/* wake pipe: a byte wakes sleeping threads */
	uint32_t sleeps; /* number of the last sleep; set by near_arm() */
	int fdx;		/* socket of the fd exchange; -1: none */
	int dir;	/* directory of the socket's file; -1: abstract name */
	bool denied_fdx;	/* a rejected datagram was logged */
	void (*log)(int level, const char *text);
};

/* Bits of near_port.work. */
#define NEAR_WORK_DUE 1u	/* the next poll must continue operations */
/*
 * all RMA operations wait for peers: polls call near_onesided.advanced() only
 */
#define NEAR_WORK_WAITS 2u

/* Makes *word the poll word. now: value that the caller loaded from *word. */
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

/* True if the next poll must continue operations. */
static near_inline bool near_port_has_work(const struct near_port *port)
{
	return port->work & NEAR_WORK_DUE ||
	       __atomic_load_n(port->poll_word, __ATOMIC_RELAXED) !=
	       port->poll_value;
}

/* alive.c: wakes the threads that sleep on the port. */
void near_port_wake(struct near_port *port);

/*
 * Sets NEAR_WORK_* bits in port->work and wakes sleeping threads. Must be
 * called after an operation was added or a peer has failed (work: 0).
 */
static near_inline void near_port_added(struct near_port *port, uint8_t work)
{
	port->work |= work;
	if (near_unlikely(port->armed))
		near_port_wake(port);
}

/* Appends an operation to a list: port->sending or port->receiving. */
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
/* Frees a peer that was already removed from port->peers. */
void near_peer_free(struct near_port *port, struct near_peer *peer);
/* Sets this port's bits in the peer's doorbell and wakes the peer's threads. */
void near_doorbell_ring(struct near_peer *peer);
/*
 * Repeats wakeups for lack of a descriptor. False: some must be repeated again.
 */
bool near_wakes_repeat(struct near_port *port);
/*
 * Takes (expected: true) or drops a reference, at most one per peer. It keeps
 * the peer until it has an rx ring: after its fd request, or while it must
 * reply to the fd request that its claim has caused.
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
/* Requests a descriptor of device memory. Returns 0, -EAGAIN or -errno. */
int near_fdx_gpu_request(struct near_port *port, struct near_peer *peer,
			 uint64_t key, uint64_t id);
/* Handles datagrams of the socket port->fdx, NEAR_FDX_BURST at most. */
void near_fdx_read(struct near_port *port);
/* Closes peer->fd[which]. */
void near_fd_drop(struct near_peer *peer, enum near_fd_open which);
void near_fd_drop_all(struct near_peer *peer);
/* True if peer->fd has a segment, and its near_segment.closed is set. */
bool near_fd_closed(const struct near_peer *peer);
/*
 * Opens peer->fd[which] again if it is set, otherwise the peer's descriptor
 * `theirs` through /proc. Returns a new file descriptor or -errno.
 */
int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags);
/*
 * True if fd, which near_peer_open() has returned for a file that each open
 * port keeps open, shows that the peer has failed. The caller must then call
 * near_peer_fail().
 */
bool near_peer_shut(struct near_peer *peer, int fd);

/* fdx_socket.c: closes the socket and removes the socket's name. */
void near_fdx_close(struct near_port *port);

/* rx_ring.c: clears the doorbell and handles each ring whose bit was set. */
void near_port_doorbells(struct near_port *port);
/* Makes rings idle in which two consecutive sweeps have found no new slot. */
void near_port_sweep(struct near_port *port);
/*
 * Marks an open claim as rejected: its sender treats this port as failed, and
 * owns the ring until it closes the claim. False: the claim is not open.
 */
bool near_ring_reject(struct near_port *port, uint32_t index);
/* Frees the rx ring, and frees the ring in the segment for another sender. */
void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring);
/* Frees the rx ring and its mapping, but not the ring in the segment. */
void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring);
/* Makes a ring active: each poll reads it, and its sender rings no doorbell. */
void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring);
/* Handles claims of senders that were killed before they rang the doorbell. */
void near_rings_check(struct near_port *port);
/* Logs an invalid value, stops polling the ring, and calls near_peer_fail(). */
void near_rx_ring_broken(struct near_port *port, struct near_rx_ring *ring,
			 const char *what, uint64_t value);

/*
 * alive.c: adds fd to port->epoll_fd. ptr: the peer for a pidfd, the port for
 * the socket of the fd exchange, NULL for the wake pipe. Returns 0 or -errno.
 */
int near_epoll_add(struct near_port *port, int fd, void *ptr);
/* True if this port monitors the peer's process. */
static inline bool near_monitored(const struct near_peer *peer)
{
	return peer->pidfd >= 0 || peer->by_start;
}
/*
 * Monitors the peer's process, unless it is monitored. Returns 0, or
 * - -EAGAIN: a pidfd was requested from the peer; retry
 * - -ESRCH: the process has exited
 * - -EACCES: the peer has rejected the request; or /proc hides the peer, and
 *   one of the two ports has no socket
 * - another -errno
 */
int near_monitor(struct near_port *port, struct near_peer *peer);
void near_unmonitor(struct near_port *port, struct near_peer *peer);
/*
 * Marks a peer as failed (near_peer.draining). When the messages in its ring
 * are delivered, near_port_tick() or near_woken() sets NEAR_PEER_GONE.
 */
void near_peer_fail(struct near_port *port, struct near_peer *peer);
/*
 * True if this port may access the peer's memory by pid. The process existed at
 * a check at most NEAR_CHECK_MS ago, and Linux does not reuse a pid so soon.
 */
bool near_peer_alive(struct near_port *port, const struct near_peer *peer);
/*
 * rx_ring.c: calls near_peer_fail() and returns true if the peer's port has
 * closed. Data copied from the peer's memory before must then be discarded.
 */
bool near_peer_closed(struct near_port *port, struct near_peer *peer);
/* True if the peer's process has exited. Costs one or two system calls. */
bool near_peer_check_exited(const struct near_peer *peer);
/* True if a connected peer's process exists and its port is open. */
bool near_peer_check_open(const struct near_peer *peer);
/* Sweeps, checks for failed peers, and reads the socket. */
void near_port_tick(struct near_port *port);

/*
 * port.c: executes a full barrier in this thread and in all threads of
 * processes registered for membarrier. All other senders use fences (enum
 * near_fence). False: membarrier has failed, so that no barrier is certain.
 */
bool near_port_barrier(struct near_port *port);
void near_log(const struct near_port *port, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Opens a port for near_open(), which initializes the message layer. */
int near_port_open(struct near_port **port, const struct near_attr *attr,
		   const struct near_messages *messages);

#endif /* NEAR_LINK_PORT_H */
