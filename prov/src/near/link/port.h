/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Ports, their peers and rx rings. For near only: embedders include near.h.
 *
 * Each poll reads the active rings. The other rings are idle, and their senders
 * ring the doorbell. A sweep of a port makes unused rings idle. In the fd
 * exchange, two ports pass each other file descriptors over sockets. A stage is
 * shared memory through which two ports copy device memory for RMA.
 */
#ifndef NEAR_LINK_PORT_H
#define NEAR_LINK_PORT_H

#include "near/link/list.h"
#include "near/link/pool.h"
#include "near/link/resize.h"
#include "near/link/ring.h"
#include "near/link/segment.h"

#define NEAR_TICK_POLLS 16	/* limit of polls from one tick to the next */
#define NEAR_SWEEP_POLLS 1024	/* polls between two sweeps of the port */
#define NEAR_ACTIVE_MIN 8	/* least number of rings that stay active */
#define NEAR_CHECK_MS 100	/* ms between two checks for failed peers */
#define NEAR_BURST 64	/* limit of slots that a poll reads from one ring */

enum near_peer_state {
	NEAR_PEER_NEW,		/* this port has not attached to the peer yet */
	NEAR_PEER_OPEN,		/* this port sends in a ring of the peer */
	NEAR_PEER_CLOSED_OFF,	/* alive, but this port cannot attach to it */
	NEAR_PEER_GONE,		/* failed; all its messages are delivered */
};

/* File descriptors of the fd exchange; indices of near_peer.fd. */
enum near_fd_open {
	NEAR_FD_SEGMENT,
	NEAR_FD_WAKE,
	NEAR_FD_PIDFD,		/* stored in near_peer.pidfd instead */
	NEAR_FD_TABLE,		/* region table; absent if the port has none */
	NEAR_FD_KINDS
};

/*
 * A remote port. The embedder, the peer's rx ring, each operation and
 * near_peer_expect() hold references. near_peer_put() frees a peer that has
 * none, unless the peer is connected and has not failed.
 */
struct near_peer {
	struct near_tx tx;
	void *user;		/* embedder's pointer */
	enum near_peer_state state;
	bool draining;	/* the peer has failed; its ring may have messages */
	bool wanted;		/* near_peer_monitor() was called */
	bool reads;		/* single copy with the peer is possible */
	/* the port's sends if the peer is the port itself, else NULL */
	const struct near_pool *own;
	/* cooperative copy is possible: both ends copy parts of a message */
	bool coop;
	uint8_t trial;	/* result of the last trial (enum near_trial) */
	uint8_t medium;	/* number of medium messages, modulo NEAR_TRIAL */
	/*
	 * time in which this port copied a medium message of the peer from the
	 * ring, ns for NEAR_MEDIUM_MAX bytes; 0: not measured yet
	 */
	uint32_t ring_ns;
	uint32_t index;		/* index of tx's ring in the peer's segment */
	size_t ring_size;	/* bytes mapped for tx's ring */
	struct near_resize resize;
	bool logged;		/* a connection error was logged; log no more */
	struct near_segment *segment;	/* NULL: not connected */
	int pidfd;		/* pidfd of the peer's process; -1: none */
	bool exited;		/* the peer's process has exited */
	bool shut;		/* result of near_peer_shut() */
	bool by_start;	/* the peer is monitored by start time, not by pidfd */
	bool far;	/* the peer is in another pid or time namespace */
	bool needs_fdx;	/* /proc gives no access to the peer's descriptors */
	bool rejected;	/* peer rejects fd requests, or this port is closing */
	bool expected;		/* near_peer_expect() holds a reference */
	int fd[NEAR_FD_KINDS];	/* descriptors from the fd exchange; -1: none */
	uint64_t requested_ms;	/* time of last fd request, ms; 0: none */
	uint64_t waits_ms; /* start of near_connect()'s wait, ms; 0: none */
	int wake_fd;	/* write end of the peer's wake pipe; -1: none */
	bool wake_due;	/* the last wakeup has failed; it must be repeated */
	uint32_t refs;
	struct near_addr addr;
	struct near_link link;	/* in port->peers */
	struct near_peer *same_hash;
	struct near_rx_ring *ring;	/* ring from the peer; NULL: none yet */
	/* 1 + index of the claim whose rx ring could not be created; 0: none */
	uint32_t ring_due;
	struct near_rx_op *coop_op;	/* cooperative receive, or NULL */
	struct near_link waiting;	/* receives that wait for coop_op */
	uint32_t round;		/* serial number of the last cooperative copy */
	uint32_t large;		/* number of pending sends of large messages */
	struct near_rma_peer *rma;	/* RMA state; NULL: none yet */
};

/* An rx ring: the receiver's private state of a ring in its segment. */
struct near_rx_ring {
	struct near_peer *peer;		/* the sender */
	struct near_rx rx;
	uint32_t index;			/* index in the segment */
	uint32_t active_at;	/* index in port->active, or NEAR_NOT_ACTIVE */
	uint64_t mark;		/* rx.head at the last sweep */
	uint32_t idle;		/* consecutive sweeps without a new slot */
	bool broken;	/* had an invalid value, so polls never read it again */
	uint8_t tier;		/* size class */
	uint32_t resizes;	/* number of resizes so far */
	/* number of ended delegated operations: last stored near_ctl.done */
	uint64_t delegs;
	bool rejected;		/* near_ctl.rejected is set */
};

/* Functions of msg/control.c that this layer (link/) calls. */
struct near_messages {
	/* Ends all sends and receives with a failed peer. */
	void (*fail)(struct near_port *port, struct near_peer *peer);
	/* Waits until no peer writes to local buffers; for near_close(). */
	void (*stop)(struct near_port *port);
	/* Frees the memory of all operations. */
	void (*close)(struct near_port *port);
};

/* Functions of the RMA layer (rma/) that lower layers call. */
struct near_onesided {
	/* Handles a NEAR_KIND_RMA slot. Nonzero: the slot stays in the ring. */
	int (*request)(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot, uint64_t word);
	/* Handles a NEAR_KIND_ANSWER slot. Nonzero: it stays in the ring. */
	int (*answered)(struct near_port *port, struct near_rx_ring *ring,
			const struct near_slot *slot);
	/*
	 * Continues all pending operations. Returns 0 if there was no progress.
	 * Sets *waits to false if the next poll must call work() again. If
	 * *waits stays true, the next poll may call advanced() instead.
	 */
	int (*work)(struct near_port *port, bool *waits);
	/* Completes operations if *poll_word changed. Returns their number. */
	int (*advanced)(struct near_port *port);
	/*
	 * Completes operations that a peer executed before it failed. Waits
	 * until this port's copies of device memory for operations with the
	 * peer have ended, then unmaps the stages and frees the state of the
	 * copies. Pending operations then lack this state. So the port must
	 * not poll between drained() and fail(), which ends these operations.
	 */
	void (*drained)(struct near_port *port, struct near_peer *peer);
	/* Ends all RMA and atomics with a failed peer. */
	void (*fail)(struct near_port *port, struct near_peer *peer);
	/* Waits for copies as drained() does, then frees near_peer.rma. */
	void (*forget)(struct near_peer *peer);
	/*
	 * Returns a file descriptor by which a peer can map a region of device
	 * memory, or -errno. key: region key. id: near_export.id. The caller
	 * must close the file descriptor.
	 */
	int (*share)(struct near_port *port, uint64_t key, uint64_t id);
	/* Handles a reply to near_fdx_gpu_request(). Owns fd; -1: none. */
	void (*shared)(struct near_port *port, struct near_peer *peer,
		       uint64_t id, int fd);
	void (*close)(struct near_port *port);
};

#define NEAR_NOT_ACTIVE UINT32_MAX
#define NEAR_HASH 1024

struct near_port {
	struct near_segment *segment;
	struct near_rx_ring **active;	/* rings that each poll reads */
	uint32_t active_count;
	uint32_t polls;		/* number of polls so far */
	uint32_t tick_at;	/* value of polls at the next tick */
	/*
	 * receiver of the last send, to detect a run of sends to one peer;
	 * NULL: this port has handled a slot since
	 */
	const struct near_peer *run;
	uint8_t work;		/* NEAR_WORK_* bits */
	bool asleep;		/* near_arm() succeeded: a thread may sleep */
	/*
	 * word in a peer's memory; if the word differs from poll_value, the
	 * next poll continues RMA operations. &poll_value: none.
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
	uint32_t tick_polls;	/* polls between the last and the next tick */
	uint32_t swept;		/* value of polls at the last sweep */
	uint64_t ticked_ms;	/* time of the last tick, ms */
	uint64_t checked_ms;	/* time of the last complete check, ms */
	bool rings_due;		/* the next tick must call near_rings_check() */
	uint64_t fdx_ms;	/* time of the last socket read in a tick, ms */
	uint32_t timeout_ms;	/* near_attr.timeout_ms */
	struct near_pool tx_ops;
	struct near_pool rx_ops;
	uint32_t large;		/* sum of near_peer.large */
	/* bytes that single copy may still copy during poll read_poll */
	size_t read_left;
	uint32_t read_poll;	/* value of polls when read_left was set */
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
	uint32_t sleeps; /* serial number of the last sleep, for near_arm() */
	int fdx;		/* socket of the fd exchange; -1: none */
	int dir;	/* directory of the socket's file; -1: abstract name */
	bool denied_fdx;	/* a rejected datagram was logged */
	void (*log)(int level, const char *text);
};

/* Bits of near_port.work. */
#define NEAR_WORK_DUE 1u	/* the next poll must continue operations */
/*
 * Only RMA operations are pending, and all of them wait for peers. So a poll
 * only calls near_onesided.advanced(), in place of work().
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
 * Sets NEAR_WORK_* bits in port->work, and wakes sleeping threads. Must be
 * called when an operation was added, or a peer has failed (work: 0).
 */
static near_inline void near_port_added(struct near_port *port, uint8_t work)
{
	port->work |= work;
	if (near_unlikely(port->asleep))
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

/* True if a failure was detected: the peer is draining or gone. */
static inline bool near_peer_failed(const struct near_peer *peer)
{
	return peer->draining || peer->state == NEAR_PEER_GONE;
}

/* Takes a reference, which near_peer_put() drops. */
static near_inline void near_peer_hold(struct near_peer *peer)
{
	peer->refs++;
}

/* Drops a reference, inline unless it is the last one. */
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
/* Sets this port's bits in the peer's doorbell; wakes the peer's threads. */
void near_doorbell_ring(struct near_peer *peer);
/* Repeats failed wakeups (near_peer.wake_due). False: one has failed again. */
bool near_wakes_repeat(struct near_port *port);
/*
 * Takes (expected: true) or drops (false) a reference, at most one per peer.
 * The reference keeps a peer that has no rx ring yet, but has sent this port an
 * fd request, or must still reply to an fd request of this port.
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
 * Requests a file descriptor of the peer's device memory. The reply calls
 * near_onesided.shared(). Returns 0: sent; -EAGAIN: retry; or another -errno.
 */
int near_fdx_gpu_request(struct near_port *port, struct near_peer *peer,
			 uint64_t key, uint64_t id);
/* Handles at most NEAR_FDX_BURST datagrams of the socket port->fdx. */
void near_fdx_read(struct near_port *port);
/* Closes peer->fd[which]. */
void near_fd_drop(struct near_peer *peer, enum near_fd_open which);
void near_fd_drop_all(struct near_peer *peer);
/* True if the segment peer->fd[NEAR_FD_SEGMENT] shows that its port closed. */
bool near_fd_closed(const struct near_peer *peer);
/*
 * Opens the file of peer->fd[which] again. If that is -1, opens the peer's file
 * descriptor `theirs` through /proc. Returns a new file descriptor or -errno.
 * -ENOENT: no such descriptor, or that of a file of another kind.
 */
int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags);
/*
 * True if err, a result of near_peer_open(), shows that the peer has failed.
 * The caller must then call near_peer_fail(). The file must be one that the
 * peer's port keeps open until the port closes. The absence of another file
 * would not show a failure. err is also -ENOENT if the caller has found that
 * the file is another one.
 */
bool near_peer_shut(struct near_peer *peer, int err);

/* fdx_socket.c: closes the socket and removes the socket's name. */
void near_fdx_close(struct near_port *port);

/* rx_ring.c: clears the doorbell, and handles each ring with a set bit. */
void near_port_doorbells(struct near_port *port);
/* Makes a ring idle if two sweeps in a row have found no new slot in it. */
void near_port_sweep(struct near_port *port);
/*
 * Marks an open claim as rejected, so that its sender treats this port as
 * failed. The ring stays the sender's until the sender closes the claim. False:
 * the claim is not open.
 */
bool near_claim_reject(struct near_port *port, uint32_t index);
/*
 * Frees the rx ring. Also frees the ring in the segment for another sender,
 * unless its present sender may still write to it.
 */
void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring);
/* Frees the rx ring and its mapping, but not the ring in the segment. */
void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring);
/* Makes a ring active: each poll reads it, and its sender rings no doorbell. */
void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring);
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
 * Begins to monitor the peer's process, if necessary. Returns 0, or
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
 * True if this port may access the peer's memory by pid: the process existed
 * within the last NEAR_CHECK_MS, and Linux does not reuse a pid so soon.
 */
bool near_peer_alive(struct near_port *port, const struct near_peer *peer);
/*
 * rx_ring.c: if the peer's port has closed, calls near_peer_fail() and returns
 * true. The caller must then discard data that it has just copied.
 */
bool near_peer_closed(struct near_port *port, struct near_peer *peer);
/* True if the peer's process has exited. Costs one or two system calls. */
bool near_peer_check_exited(const struct near_peer *peer);
/*
 * Returns 0 if the peer's process exists, and its port is open; -ESRCH if not;
 * or another -errno if it is not known. This port must be connected to the
 * peer.
 */
int near_peer_check_open(const struct near_peer *peer);
/* Executes a tick: sweeps, checks for failed peers, and reads the socket. */
void near_port_tick(struct near_port *port);

/*
 * port.c: executes a full barrier in this thread, and in all threads of
 * processes that are registered for membarrier. Other processes execute fences
 * instead (enum near_fence). False: membarrier has failed.
 */
bool near_port_barrier(struct near_port *port);
void near_log(const struct near_port *port, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Opens a port for near_open(), which initializes the message layer. */
int near_port_open(struct near_port **port, const struct near_attr *attr,
		   const struct near_messages *messages);

#endif /* NEAR_LINK_PORT_H */
