/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Ports for near's unit tests ("rigs"). Their sinks record all events. */
#ifndef NEAR_UNIT_H
#define NEAR_UNIT_H

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "near/msg/large.h"
#include "suite.h"

/* 1: a sanitizer, which needs much address space, checks this program */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define RIG_EVENTS 8192
#define RIG_PAYLOAD 64

enum rig_kind { RIG_MSG, RIG_RNDV, RIG_RECEIVED, RIG_SENT, RIG_GONE };

struct rig_event {
	enum rig_kind kind;
	/* sender of a message, or failed peer; the event holds a reference */
	struct near_peer *peer;
	struct near_msg msg;
	uint8_t payload[RIG_PAYLOAD];
	uint32_t sum;		/* checksum of the payload */
	void *cookie;
	int err;
};

struct rig {
	struct near_port *port;
	struct near_addr addr;
	uint32_t count;
	struct rig_event event[RIG_EVENTS];
	/* number of next messages for which the sink returns -EAGAIN */
	int reject;
	size_t idle;		/* bytes allocated by near_open() */
	int warnings;
	void (*on_forgotten)(struct rig *rig, struct near_peer *peer);
	LIST_ENTRY(rig) open;
};

/* Opens a port. no_cma: without single copies. */
struct rig *rig_open(bool no_cma);
/*
 * Forks a process that opens a port, calls act() and waits. Stores the port's
 * address in *addr; returns the pid.
 */
pid_t rig_child(void (*act)(struct rig *rig), bool no_cma,
		struct near_addr *addr);
/* Sends 8 bytes. While the ring is full, polls rig and "other", if not NULL. */
int rig_send_when(struct rig *rig, struct near_peer *peer, uint64_t tag,
		  struct rig *other);
/* Prints that a test of near is skipped, and why. */
void rig_skip(const char *test, const char *reason);
/* Returns the number of open file descriptors of this process. */
unsigned int rig_files(void);
/* Opens two ports; returns b as a peer of a. */
struct near_peer *rig_pair(struct rig **a, struct rig **b, bool no_cma);
/* Opens "count" ports. Each sends len bytes to "us", which receives them. */
void rig_connect_many(struct rig **other, struct near_peer **to, uint32_t count,
	       struct rig *us, size_t len);
/* Opens a port with a ring budget of "memory" bytes. */
struct rig *rig_open_with(bool no_cma, size_t memory);
/* Closes the port; the rig stays. */
void rig_stop(struct rig *rig);
void rig_close(struct rig *rig);
/* Closes all open ports; a teardown for UNIT_CASE(). */
void rig_close_all(void);
/* Polls rig, and "other" if not NULL, until rig has "count" events. */
void rig_until(struct rig *rig, struct rig *other, uint32_t count);
/* rig_until(); asserts kind and error of the last of these events. */
void rig_until_event(struct rig *rig, struct rig *other, uint32_t count,
		     enum rig_kind kind, int err);
void rig_poll(struct rig *rig, int times);
/* Returns the bytes allocated for a port's segment. */
size_t rig_taken(const struct rig *rig);
/* Returns the pages of all rings; asserts that no others are allocated. */
uint32_t rig_pages(const struct rig *rig);
/*
 * Sends until the ring is full, and further, so that near requests a resize.
 * Returns the tag after the last message's.
 */
uint64_t rig_overfill(struct rig *rig, struct near_peer *peer, uint64_t tag);
/* Polls for ms milliseconds of real and of CPU time, even on a busy host. */
void rig_poll_ms(struct rig *rig, unsigned int ms);
/* Returns the peer with this address, with a reference. */
struct near_peer *rig_peer_at(struct rig *rig, const struct near_addr *addr);
struct near_peer *rig_peer(struct rig *rig, const struct rig *other);
int rig_send(struct rig *rig, struct near_peer *peer, uint64_t tag,
	     const void *buf, size_t len);
int rig_send_large(struct rig *rig, struct near_peer *peer, uint64_t tag,
		   void *buf, size_t len, void *cookie);
/* Receives the message of event number "at" into "space" bytes at buf. */
void rig_take(struct rig *rig, uint32_t at, void *buf, size_t space);
/* Asserts that event number "at" ends a large message with err. */
void rig_ended(const struct rig *rig, uint32_t at, enum rig_kind kind, int err);
uint32_t rig_sum(const void *buf, size_t len);
void rig_fill(void *buf, size_t len, unsigned int seed);
/* Returns the rx ring of rig for the sender "other", which must exist. */
struct near_rx_ring *rig_rx_ring(struct rig *rig, const struct rig *other);
unsigned int rig_rx_rings(const struct rig *rig);
/*
 * File descriptors for datagrams of the fd exchange: a port's memory, memory
 * that may shrink, a pipe, and a pidfd
 */
enum rig_fd { RIG_SEALED, RIG_UNSEALED, RIG_PIPE, RIG_PIDFD, RIG_FDS };
#define RIG_MAX_FDS 5	/* one more than a datagram may have */
void rig_fds(const struct rig *rig, int fd[RIG_FDS]);
/*
 * Sends a datagram of the fd exchange, which has n file descriptors, to a
 * port's socket. Returns the result of sendmsg().
 */
ssize_t rig_datagram(int from, const struct rig *to, void *data, size_t len,
		     const int *fd, uint32_t n);

#define RIG_TIMEOUT_MS 60000 /* limit of a wait: only a hang reaches it */
#define RIG_GONE_MS 1000 /* limit until a peer failure is found */
/* Polls rig while the condition is true; fails after RIG_TIMEOUT_MS. */
#define rig_poll_while(rig, condition) do {				\
	const uint64_t end_ms_ = duo_now_ms() + RIG_TIMEOUT_MS;		\
									\
	while (condition) {						\
		ck_assert_msg(duo_now_ms() < end_ms_, #condition);	\
		rig_poll(rig, 1);					\
	}								\
} while (0)
/*
 * Polls until rig has "events" events. Asserts that the last one is RIG_GONE,
 * that this took at most RIG_GONE_MS of CPU time, and that no resource of the
 * peer is left.
 */
void rig_until_gone(struct rig *rig, uint32_t events);

#endif /* NEAR_UNIT_H */
