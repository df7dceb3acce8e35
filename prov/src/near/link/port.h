/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Ports, their peers and rx rings. Embedders of near use near.h instead. */
#ifndef NEAR_LINK_PORT_H
#define NEAR_LINK_PORT_H

#include "near/link/list.h"
#include "near/link/resize.h"
#include "near/link/pool.h"
#include "near/link/segment.h"
#include "near/link/ring.h"
#include "near/link/ring_budget.h"

#define NEAR_TICK_POLLS 16	/* polls per tick, at most */
#define NEAR_TICK_QUICK 16	/* ticks until the polls per tick double */
#define NEAR_SWEEP_POLLS 1024	/* polls per sweep */
#define NEAR_ACTIVE_MIN 8	/* rings that stay active though idle */
#define NEAR_CHECK_MS 100	/* between two checks for failed peers */
#define NEAR_BURST 64		/* messages of one ring per poll */

enum near_peer_state {
	NEAR_PEER_NEW,		/* not connected yet */
	NEAR_PEER_OPEN,
	NEAR_PEER_CLOSED_OFF,	/* alive, but not reachable */
	NEAR_PEER_GONE,		/* failed or closed; final */
};

/* Descriptors of a peer in the fd exchange: link/fdx.h. */
enum near_fd_open {
	NEAR_FD_SEGMENT,
	NEAR_FD_WAKE,
	NEAR_FD_PIDFD,		/* kept as near_peer.pidfd */
	NEAR_FD_TABLE,		/* region table, if there is one */
	NEAR_FD_KINDS
};

/*
 * refs: one of the owner, one per rx ring, operation, and while expected. A
 * peer without references is freed, unless this port has a ring to it.
 */
struct near_peer {
	struct near_tx tx;
	void *user;		/* near tx: read with each message */
	enum near_peer_state state;
	bool dying;		/* draining: gone once its rings are empty */
	bool wanted;		/* near_peer_watch() was called */
	bool reads;		/* single copy to and from the peer works */
	bool coop;		/* single copy by the peer works, too */
	uint32_t index;		/* of this port's ring in the peer's segment */
	size_t ring_size;
	struct near_resize resize;
	bool told;		/* the connection error was logged */
	struct near_segment *segment;
	int pidfd;		/* -1: none */
	bool exited;		/* its process had ended when the peer failed */
	bool by_start;		/* monitored by its start time instead */
	bool far;		/* in another pid namespace */
	bool ask;		/* needs fd exchange */
	bool refused;		/* it has rejected fd exchange */
	bool expected;		/* near_peer_expect() */
	int fd[NEAR_FD_KINDS];	/* received or kept; -1: none */
	uint64_t asked_ms;	/* time of the last request, ms; 0: none sent */
	uint64_t waits_ms;	/* start of the wait to connect, ms; 0: none */
	int wake_fd;		/* its wake pipe; -1: not opened */
	uint32_t refs;
	struct near_addr addr;
	struct near_link link;	/* of port->peers */
	struct near_peer *same_hash;
	struct near_rx_ring *ring;	/* from the peer; NULL: none yet */
	struct near_rx_op *coop_op;	/* user of near_ctl.claims */
	struct near_link waiting;	/* receives that wait for coop_op */
	uint32_t round;		/* last round of near_ctl.claims */
	uint32_t large;		/* pending large messages to it */
	struct near_rma_peer *rma;	/* NULL: no RMA or atomics so far */
};

/* The receiver's private state of a ring. */
struct near_rx_ring {
	struct near_peer *peer;
	struct near_rx rx;
	uint32_t index;
	uint32_t active_at;	/* in port->active; NEAR_NOT_ACTIVE: idle */
	uint64_t mark;		/* head at the last sweep */
	uint32_t idle;		/* sweeps without a message */
	bool broken;		/* had an invalid value; not read again */
	uint8_t tier;		/* size class */
	uint32_t resizes;
	/* link/ring_budget.c: */
	bool shrink_asked;	/* a shrink was requested */
	bool starved;		/* a request for more was not granted */
	uint32_t idle_checks;	/* consecutive checks without a message */
	uint64_t seen;		/* head at the last check */
	uint64_t delegs;	/* delegated operations done: rma/delegate.c */
	bool refused;		/* a delegated operation was rejected */
};

/* The layer of messages, which opens a port: msg/control.c. */
struct near_messages {
	/* Ends all operations with a peer that is gone. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	/* Makes peers stop writing to this process's buffers. */
	void (*stop)(struct near_port *port);
	void (*close)(struct near_port *port);
};

/*
 * The layer of one-sided operations: near.h, rma/. request() and answered() get
 * the slots of their kinds; nonzero: the slot stays in the ring. Polls call
 * work() while port->onesided_work is not empty. work() sets *waits if all
 * work left waits for a slot, the poll word or the clock.
 */
struct near_onesided {
	int (*request)(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot, uint64_t word);
	int (*answered)(struct near_port *port, struct near_rx_ring *ring,
			const struct near_slot *slot);
	int (*work)(struct near_port *port, bool *waits);
	/* Replaces work() while all work waits: handles the poll word. */
	int (*advanced)(struct near_port *port);
	/* Ends the operations a draining peer executed; false: sink is full. */
	bool (*drained)(struct near_port *port, struct near_peer *peer);
	/* Ends all operations with the peer. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	void (*forget)(struct near_peer *peer);
	/* Prepares the close of the port; its peers still exist. */
	void (*stop)(struct near_port *port);
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
	const struct near_peer *run;	/* last receiver; reset by arrivals */
	uint8_t work;		/* NEAR_WORK_*: the three lists below */
	bool armed;		/* a thread may sleep: added work wakes it */
	/*
	 * Poll word, changed by a peer, and its last value. Until it changes,
	 * work that waits for it needs no step. No word: watch = &watched.
	 */
	const uint64_t *watch;
	uint64_t watched;
	struct near_link sending;
	struct near_link receiving;
	struct near_link onesided_work;
	void *ctx;
	const struct near_sink *sink;
	bool fence;		/* no membarrier */
	bool barrier_failed;	/* membarrier has failed; logged */
	bool reads;		/* single copy works, as far as is known */
	uint32_t dying;		/* number of draining peers */
	uint32_t tick_polls;	/* polls per tick */
	uint32_t tick_quick;	/* ticks since tick_polls changed */
	uint32_t swept;		/* value of polls at the last sweep */
	uint64_t ticked_ms;
	uint64_t checked_ms;
	uint64_t looked_ms;	/* last check of peers by system calls, ms */
	bool rings_due;		/* the next tick checks rings */
	uint64_t fdx_ms;	/* last read of the socket, ms */
	uint64_t asked_ms;	/* last request to any peer, ms */
	uint32_t timeout_ms;	/* of a wait to connect; 0: unlimited */
	struct near_pool tx_ops;
	struct near_pool rx_ops;
	/* near_fanout(): of the last send: buffer, receiver, value of polls */
	const void *fanout;
	const struct near_peer *fanout_to;
	uint32_t fanout_poll;
	uint32_t read_poll;	/* value of polls that read_left is for */
	size_t read_left;	/* bytes that this poll may still copy */
	const struct near_messages *messages;
	const struct near_onesided *onesided;	/* NULL: none */
	struct near_rma *rma;
	struct near_rx_ring **ring;	/* by index */
	uint32_t ring_count;
	struct near_link peers;
	struct near_peer *hash[NEAR_HASH];
	struct near_addr addr;
	struct near_budget budget;
	int fd;
	int epoll_fd;		/* pidfds, the socket, and the wake pipe */
	int wake[2];
	uint32_t sleeps;	/* number of the last sleep; never 0 */
	int fdx;		/* socket of the fd exchange; -1: none */
	int dir;		/* of the socket fdx; -1: abstract name */
	bool denied_fdx;	/* a rejected datagram was logged */
	void (*log)(int level, const char *text);
};

/* near_port.work */
#define NEAR_WORK_DUE 1u	/* work needs a step in each poll */
#define NEAR_WORK_WAITS 2u	/* work waits for the poll word or next tick */

static inline void near_port_watch(struct near_port *port,
				   const uint64_t *word, uint64_t now)
{
	port->watched = now;
	port->watch = word;
}

static inline void near_port_watch_none(struct near_port *port)
{
	port->watch = &port->watched;
}

static near_inline bool near_port_has_work(const struct near_port *port)
{
	return port->work & NEAR_WORK_DUE ||
	       __atomic_load_n(port->watch, __ATOMIC_RELAXED) != port->watched;
}

/* alive.c: wakes threads that sleep on the port, as a doorbell does. */
void near_port_wake(struct near_port *port);

/*
 * Wakes sleeping threads, whose near_arm() has not seen the added work. Must
 * follow each addition of work that needs polls.
 */
static near_inline void near_port_added(struct near_port *port, uint8_t work)
{
	port->work |= work;
	if (near_unlikely(port->armed))
		near_port_wake(port);
}

/* Adds an operation to one of the three lists of work for polls. */
static inline void near_port_work(struct near_port *port,
				  struct near_link *list,
				  struct near_link *link)
{
	near_list_append(list, link);
	near_port_added(port, NEAR_WORK_DUE);
}

/* Takes a reference, for near_peer_put(). */
static near_inline void near_peer_hold(struct near_peer *peer)
{
	peer->refs++;
}

/* near_peer_put(), inline for the case that other references remain. */
static near_inline void near_peer_unhold(struct near_port *port,
					 struct near_peer *peer)
{
	if (near_likely(peer->refs > 1))
		peer->refs--;
	else
		near_peer_put(port, peer);
}

/* peer.c */
int near_connect(struct near_port *port, struct near_peer *peer);
void near_disconnect(struct near_port *port, struct near_peer *peer);
/* Frees a peer; it must be in no list. */
void near_peer_free(struct near_port *port, struct near_peer *peer);
void near_doorbell_ring(struct near_peer *peer);
/* Keeps a peer that sent a request, or that has a ring here and must reply. */
void near_peer_expect(struct near_port *port, struct near_peer *peer,
		      bool expected);

/* fdx.c */
/* Sends a request. -EAGAIN: sent, wait; -ESRCH: failed; -EACCES: rejected. */
int near_ask(struct near_port *port, struct near_peer *peer);
/* Handles up to NEAR_FDX_BURST datagrams of the socket. */
void near_fdx_read(struct near_port *port);
void near_fd_drop(struct near_peer *peer, enum near_fd_open which);
void near_fd_drop_all(struct near_peer *peer);
/* True if the mark of a closed port is set in the peer's kept segment. */
bool near_fd_closed(const struct near_peer *peer);
/* Opens a peer's file: by its received descriptor, or by its number theirs. */
int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags);

/* fdx_socket.c */
void near_fdx_close(struct near_port *port);

/* rx_ring.c */
/* Handles all rings that are set in the doorbell. */
void near_port_doorbells(struct near_port *port);
/* Makes rings idle in which two sweeps have found no message. */
void near_port_sweep(struct near_port *port);
/*
 * Marks an open claim as refused: this port cannot open the sender's
 * descriptors, so the sender must not wait for a reply. The sender keeps the
 * ring until it closes the claim. False: the claim is not open.
 */
bool near_ring_refuse(struct near_port *port, uint32_t index);
void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring);
/* Frees private memory and mapping; the ring in the segment is unchanged. */
void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring);
void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring);
void near_rings_look(struct near_port *port);
void near_rx_ring_broken(struct near_port *port, struct near_rx_ring *ring,
			 const char *what, uint64_t value);

/* alive.c */
int near_epoll_add(struct near_port *port, int fd, void *ptr);
/* True if the peer is monitored. */
static inline bool near_watched(const struct near_peer *peer)
{
	return peer->pidfd >= 0 || peer->by_start;
}
/* Starts monitoring. -EAGAIN: retry after a reply; -ESRCH: peer failed. */
int near_watch(struct near_port *port, struct near_peer *peer);
void near_unwatch(struct near_port *port, struct near_peer *peer);
/* Makes a peer draining; polls end it once its messages are delivered. */
void near_peer_fail(struct near_port *port, struct near_peer *peer);
bool near_peer_alive(struct near_port *port, const struct near_peer *peer);
/* True if the process has exited. Cost: system calls. */
bool near_peer_left(const struct near_peer *peer);
/* True if process and port of a connected peer still exist. */
bool near_peer_there(const struct near_peer *peer);
void near_port_tick(struct near_port *port);

/* port.c */
/*
 * Executes a full barrier in this thread, and by membarrier one at some point
 * of each registered process; other senders fence themselves. False:
 * membarrier failed, and the caller must not rely on a barrier.
 */
bool near_port_barrier(struct near_port *port);
void near_log(const struct near_port *port, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Opens a port without the layer above; near_open() adds it. */
int near_port_open(struct near_port **port, const struct near_attr *attr,
		   const struct near_messages *messages);

#endif /* NEAR_LINK_PORT_H */
