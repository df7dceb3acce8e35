/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A port, the peers it knows, and the lanes by which they send to it. For the
 * transport's own files and for msg/inline.h; who embeds near uses near.h.
 */
#ifndef NEAR_LINK_PORT_H
#define NEAR_LINK_PORT_H

#include "near/link/list.h"
#include "near/link/resize.h"
#include "near/link/pool.h"
#include "near/link/segment.h"
#include "near/link/ring.h"
#include "near/link/ring_budget.h"

#define NEAR_TICK_POLLS 16	/* per look at the clock, at most */
#define NEAR_TICK_QUICK 16	/* quick looks before they become rarer */
#define NEAR_SWEEP_POLLS 1024	/* per look for idle lanes */
#define NEAR_ACTIVE_MIN 8		/* so many lanes stay hot however idle */
#define NEAR_CHECK_MS 100	/* per look for dead peers */
#define NEAR_BURST 64		/* of one lane before the next has its turn */

enum near_peer_state {
	NEAR_PEER_NEW,		/* nothing was sent to it yet */
	NEAR_PEER_OPEN,
	NEAR_PEER_CLOSED_OFF,	/* lives, but cannot be sent to */
	NEAR_PEER_GONE,		/* never comes back: addresses are unique */
};

/* Descriptors that a peer gives us: link/fdx.h. */
enum near_fd_open {
	NEAR_FD_SEGMENT,
	NEAR_FD_WAKE,
	NEAR_FD_PIDFD, /* kept as near_peer.pidfd */
	NEAR_FD_TABLE, /* for one-sided operations, if it has them */
	NEAR_FD_KINDS
};

/*
 * refs: the owner's, one per lane, one per operation, one while expected. A
 * peer without, and without a ring of ours there, is forgotten.
 */
struct near_peer {
	struct near_tx tx;
	void *user;		/* beside what each message reads */
	enum near_peer_state state;
	bool dying;		/* ends when its lanes are empty */
	bool wanted;		/* somebody waits for its end to be told */
	bool reads;		/* we can read and write its memory by its pid */
	bool coop;		/* and it can write to ours */
	uint32_t index;		/* of our ring there */
	size_t ring_size;
	struct near_resize resize;
	bool told;		/* why it cannot be connected to */
	struct near_segment *segment;
	int pidfd;		/* -1: none */
	bool by_start;		/* watched without: by its start time */
	bool far;		/* its pid means nothing here */
	bool ask;		/* nor can its descriptors be opened by it */
	bool refused;		/* it gives none */
	bool expected;		/* near_peer_expect() */
	int fd[NEAR_FD_KINDS];	/* -1: none */
	uint64_t asked_ms;	/* when last; 0: not yet */
	uint64_t waits_ms;	/* since when we wait for descriptors to send; 0 */
	int wake_fd;		/* its, opened at the first need */
	uint32_t refs;
	struct near_addr addr;
	struct near_link link;	/* of port->peers */
	struct near_peer *same_hash;
	struct near_rx_ring *ring;	/* what it sends through; NULL: nothing yet */
	struct near_rx_op *coop_op;	/* has the lane's near_ctl.claims */
	struct near_link waiting;	/* receives that will, in order */
	uint32_t round;		/* of near_ctl.claims */
	uint32_t large;		/* our large messages that it has not */
	struct near_rma_peer *rma;	/* NULL: nothing one-sided so far */
};

/* A ring that a peer sends to us through. */
struct near_rx_ring {
	struct near_peer *peer;
	struct near_rx rx;
	uint32_t index;
	uint32_t active_at;	/* NEAR_NOT_ACTIVE: not polled */
	uint64_t mark;		/* head at the last sweep */
	uint32_t idle;		/* sweeps without a message */
	bool broken;		/* nothing in it is believed any more */
	uint8_t tier;		/* the ring's size */
	uint32_t resizes;		/* of sizes */
	/* link/ring_budget.c: */
	bool shrink_asked;		/* it is asked to give back */
	bool starved;		/* it has asked for more than there was */
	uint32_t idle_checks;	/* looks in a row at which no message had come */
	uint64_t seen;		/* head at the last look */
	uint64_t delegs;	/* that we are through with: rma/delegate.c */
	bool refused;		/* one of them */
};

/* Messages, the layer above, which opens a port: msg/control.c. */
struct near_messages {
	/* What is under way with a peer that is gone ends. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	/* From now on no peer writes to our buffers. */
	void (*stop)(struct near_port *port);
	void (*close)(struct near_port *port);
};

/*
 * One-sided operations, a layer above: near.h, rma/. request() and answered() are
 * given the slots of their kinds; nonzero: it stays. work() is called by polls while
 * port->onesided_work is not empty, and says of what is left there whether it
 * only waits: for a slot, for the word that it has watched, or for the clock.
 */
struct near_onesided {
	int (*request)(struct near_port *port, struct near_rx_ring *ring,
		       const struct near_slot *slot, uint64_t word);
	int (*answered)(struct near_port *port, struct near_rx_ring *ring,
			const struct near_slot *slot);
	int (*work)(struct near_port *port, bool *waits);
	/* Instead, where all only waits: what the watched word tells. */
	int (*resized)(struct near_port *port);
	/* Ends what a dying peer has done; false: the sink has no room. */
	bool (*drained)(struct near_port *port, struct near_peer *peer);
	/* All that is under way with the peer ends. */
	void (*fail)(struct near_port *port, struct near_peer *peer, int err);
	void (*forget)(struct near_peer *peer);
	/* The port is about to close, its peers are there still. */
	void (*stop)(struct near_port *port);
	void (*close)(struct near_port *port);
};

#define NEAR_NOT_ACTIVE UINT32_MAX
#define NEAR_HASH 1024

struct near_port {
	struct near_segment *segment;	/* what peers may write to */
	struct near_rx_ring **active;
	uint32_t active_count;
	uint32_t polls;
	uint32_t tick_at;	/* the poll that looks at the clock */
	const struct near_peer *run;	/* sent to since a message came */
	/* operations that want a step per poll: near_port_work() */
	uint8_t work;		/* NEAR_WORK_*: there may be some */
	bool armed;		/* near_arm(): work that is added wakes */
	/*
	 * A word that others change, and as it was when we looked: what waits
	 * for it alone needs no step before. Its own otherwise.
	 */
	const uint64_t *watch;
	uint64_t watched;
	struct near_link sending;
	struct near_link receiving;
	struct near_link onesided_work;
	void *ctx;
	const struct near_sink *sink;
	bool fence;		/* membarrier is refused */
	bool barrier_failed;	/* once, and that was said */
	bool reads;		/* peers' memory, as far as is known */
	uint32_t dying;		/* peers that are */
	uint32_t tick_polls;	/* from one look at the clock to the next */
	uint32_t tick_quick;	/* looks since that changed */
	uint32_t swept;		/* polls at the last sweep */
	uint64_t ticked_ms;
	uint64_t checked_ms;
	uint64_t looked_ms;	/* last look at peers by system calls */
	bool rings_due;		/* the look at rings is */
	uint64_t fdx_ms;	/* last look at the socket */
	uint64_t asked_ms;	/* last question of ours there */
	uint32_t timeout_ms;	/* with who does not answer; 0: any */
	struct near_pool tx_ops;
	struct near_pool rx_ops;
	/* near_fanout(): what was sent last, to whom, in which poll */
	const void *fanout;
	const struct near_peer *fanout_to;
	uint32_t fanout_poll;
	uint32_t read_poll;	/* the poll, as near_port.polls counts them, */
	size_t read_left;	/* that may still read so much */
	const struct near_messages *messages;
	const struct near_onesided *onesided;	/* NULL: none */
	struct near_rma *rma;
	struct near_rx_ring **ring;	/* by ring */
	uint32_t ring_count;
	struct near_link peers;
	struct near_peer *hash[NEAR_HASH];
	struct near_addr addr;
	struct near_budget budget;
	int fd;
	int epoll_fd;		/* pidfds, the socket, and the wake pipe */
	int wake[2];
	uint32_t sleeps;	/* number of the last: near_segment.armed */
	int fdx;		/* the socket; -1: none */
	int dir;		/* where it is; -1: it is no file */
	bool denied_fdx;	/* some, and that was said */
	void (*log)(int level, const char *text);
};

/* near_port.work */
#define NEAR_WORK_DUE 1u	/* with each poll */
#define NEAR_WORK_WAITS 2u	/* when something comes, or the clock is looked at */

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

/* alive.c: wakes the threads that sleep on the port's descriptor. */
void near_port_wake(struct near_port *port);

/*
 * After each addition of work that needs polls: near_arm() has not seen it, and
 * the caller may be another thread than the one that sleeps.
 */
static near_inline void near_port_added(struct near_port *port, uint8_t work)
{
	port->work |= work;
	if (near_unlikely(port->armed))
		near_port_wake(port);
}

/* Polls take steps with it from now on; list is one of the three. */
static inline void near_port_work(struct near_port *port,
				  struct near_link *list,
				  struct near_link *link)
{
	near_list_append(list, link);
	near_port_added(port, NEAR_WORK_DUE);
}

/* Another reference, for near_peer_put(). */
static near_inline void near_peer_hold(struct near_peer *peer)
{
	peer->refs++;
}

/* near_peer_put() where others refer to it, most likely. */
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
/* It is in no list any more. */
void near_peer_free(struct near_port *port, struct near_peer *peer);
void near_doorbell_ring(struct near_peer *peer);
/* It has asked for our descriptors, or we for those of a sender: it stays. */
void near_peer_expect(struct near_port *port, struct near_peer *peer,
		      bool expected);

/* meet.c */
/* -EAGAIN: asked; -ESRCH: it has ended; -EACCES: it refuses. */
int near_ask(struct near_port *port, struct near_peer *peer);
/* All that is at the socket. */
void near_fdx_read(struct near_port *port);
void near_fd_drop(struct near_peer *peer, enum near_fd_open which);
void near_fd_drop_all(struct near_peer *peer);
bool near_fd_closed(const struct near_peer *peer);
/* Opens a descriptor of the peer's: the one given, or its number theirs. */
int near_peer_open(const struct near_peer *peer, enum near_fd_open which,
		   int theirs, int flags);

/* hello.c */
void near_fdx_close(struct near_port *port);

/* lane.c */
void near_port_doorbells(struct near_port *port);
void near_port_sweep(struct near_port *port);
/*
 * Where we may not look into the peer's descriptors but it may look into ours
 * (its user namespace is above ours) it is told, lest it waits for an answer.
 * Its ring stays its own until it has left it. false: it has.
 */
bool near_ring_refuse(struct near_port *port, uint32_t index);
void near_rx_ring_release(struct near_port *port, struct near_rx_ring *ring);
/* Its memory here alone. */
void near_rx_ring_free(const struct near_port *port, struct near_rx_ring *ring);
void near_rx_ring_activate(struct near_port *port, struct near_rx_ring *ring);
void near_rings_look(struct near_port *port);
void near_rx_ring_broken(struct near_port *port, struct near_rx_ring *ring,
			 const char *what, uint64_t value);

/* alive.c */
int near_epoll_add(struct near_port *port, int fd, void *ptr);
/* Its end will be told. */
static inline bool near_watched(const struct near_peer *peer)
{
	return peer->pidfd >= 0 || peer->by_start;
}
/* -EAGAIN: when it has answered; -ESRCH: it has ended. */
int near_watch(struct near_port *port, struct near_peer *peer);
void near_unwatch(struct near_port *port, struct near_peer *peer);
void near_peer_fail(struct near_port *port, struct near_peer *peer);
bool near_peer_alive(struct near_port *port, const struct near_peer *peer);
/* True if the process has ended. It asks the kernel each time. */
bool near_peer_left(const struct near_peer *peer);
/* True if the port is open still, of one that is connected. */
bool near_peer_there(const struct near_peer *peer);
void near_port_tick(struct near_port *port);

/* port.c */
/*
 * A full barrier here, and at some point of each peer's program since the last
 * store: theirs fence by themselves where membarrier is refused. false: it has
 * failed, and nothing may rest on it.
 */
bool near_port_barrier(struct near_port *port);
void near_log(const struct near_port *port, int level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* near_open() but for what the layer above adds. */
int near_port_open(struct near_port **port, const struct near_attr *attr,
		   const struct near_messages *messages);

#endif /* NEAR_LINK_PORT_H */
