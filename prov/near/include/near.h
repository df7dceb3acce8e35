/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * near, the transport: messages between processes of one host and user over
 * shared memory. It knows no libfabric; it matches nothing and queues nothing.
 * Whoever embeds it gives it a struct near_sink and decides there where each
 * message goes. docs/near.md has the memory layout and the protocols.
 *
 * A port is not thread safe: its owner serialises all calls for it, and the
 * sink is called from within near_poll() only. Errors are negative errno
 * values. The two calls of the data path, near_send() and near_poll(), are
 * inline: proto/hot.h.
 */
#ifndef NEAR_H
#define NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define NEAR_IOV_MAX 4
#define NEAR_MEMORY (1008u << 10)	/* near_attr.memory, usually */

/* Of a message; they arrive as they were sent. */
#define NEAR_TAGGED 1u		/* which of the two kinds, see near_msg.tag */
#define NEAR_DATA 2u		/* near_msg.data means something */
#define NEAR_FLAGS 3u

/* near_send(): no room for this one in the ring; near_send_large() has. */
#define NEAR_LARGE 1

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
		       const struct near_msg *msg);
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
	uint32_t patience_ms;
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
void near_peer_hold(struct near_peer *peer);
void near_peer_put(struct near_port *port, struct near_peer *peer);
const struct near_addr *near_peer_addr(const struct near_peer *peer);
/* The owner's own pointer, NULL at first. */
void near_peer_set_user(struct near_peer *peer, void *user);

/*
 * A message of any size; sent() tells its end and the buffer is the caller's
 * until then. With copy it may be used again at once. -EAGAIN: poll and try
 * again. Without cookie nobody is told.
 */
struct near_large {
	const struct iovec *iov;
	size_t count;
	bool copy;
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
 * near_recv() is to be called.
 */
bool near_recv_now(struct near_port *port, struct near_peer *peer,
		   const struct near_rndv *rndv, void *buf, size_t len);

/*
 * Do the processes of the peers that the port knows, and ours, have more need
 * of our processors than there are? See near_crowd.h. endpoints: that there are
 * on this host; those that the port does not know count as processes of which
 * nothing is known. 0: nobody has counted.
 */
bool near_crowded(const struct near_port *port, size_t endpoints);

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

#endif /* NEAR_H */
