/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* Ports for near's unit tests (a "rig"). Their sinks record all events. */
#ifndef NEAR_UNIT_H
#define NEAR_UNIT_H

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "near/msg/large.h"
#include "suite.h"

#define RIG_EVENTS 8192
#define RIG_PAYLOAD 64

enum rig_kind { RIG_MSG, RIG_RNDV, RIG_RECEIVED, RIG_SENT, RIG_GONE };

struct rig_event {
	enum rig_kind kind;
	/* sender of a message; referenced until rig_close() */
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
	int reject; /* number of messages that the sink rejects with -EAGAIN */
	size_t idle;		/* memory after near_open(), bytes */
	int warnings;
	void (*on_forgotten)(struct rig *rig, struct near_peer *peer);
	LIST_ENTRY(rig) open;
};

/* Open a port. no_cma: without single copies. */
struct rig *rig_open(bool no_cma);
/* Fork a process with a port, which calls act(), writes *addr and waits. */
pid_t rig_child(void (*act)(struct rig *rig), bool no_cma,
		struct near_addr *addr);
/*
 * Send 8 bytes. While the ring is full, poll rig, and "other" if it is not
 * NULL.
 */
int rig_send_when(struct rig *rig, struct near_peer *peer, uint64_t tag,
		  struct rig *other);
/* Return the number of open descriptors of this process. */
unsigned int rig_files(void);
/* Open two ports; return b as a peer of a. */
struct near_peer *rig_pair(struct rig **a, struct rig **b, bool no_cma);
/* Open "count" ports. Each sends len bytes to "us", which receives them. */
void rig_connect_many(struct rig **other, struct near_peer **to, uint32_t count,
	       struct rig *us, size_t len);
/* Open a port with a ring budget of "memory" bytes. */
struct rig *rig_open_with(bool no_cma, size_t memory);
/* Close the port; the rig stays. */
void rig_stop(struct rig *rig);
void rig_close(struct rig *rig);
/* Close all open ports; a teardown for UNIT_CASE(). */
void rig_close_all(void);
/*
 * Poll rig, and "other" if it is not NULL, until rig has "count" events. Fail
 * after a minute.
 */
void rig_until(struct rig *rig, struct rig *other, uint32_t count);
void rig_poll(struct rig *rig, int times);
/*
 * Return the bytes allocated for a port's segment, and the pages of its rings
 * that the budget counts.
 */
size_t rig_taken(const struct rig *rig);
uint32_t rig_pages(const struct rig *rig);
/* Overfill the ring until the sender requests a resize; return the next tag. */
uint64_t rig_overfill(struct rig *rig, struct near_peer *peer, uint64_t tag);
/*
 * Poll for ms milliseconds of both real and CPU time: on a busy host, too, as
 * often as on a quiet one.
 */
void rig_poll_ms(struct rig *rig, unsigned int ms);
/* Return "other" as a peer of rig, with a reference. */
struct near_peer *rig_peer(struct rig *rig, const struct rig *other);
int rig_send(struct rig *rig, struct near_peer *peer, uint64_t tag,
	     const void *buf, size_t len);
int rig_send_large(struct rig *rig, struct near_peer *peer, uint64_t tag,
		   void *buf, size_t len, void *cookie);
/* Receive the message of event number "at" into "room" bytes at buf. */
void rig_take(struct rig *rig, uint32_t at, void *buf, size_t space);
/* Check that event number "at" is the end of a large message, with err. */
void rig_ended(const struct rig *rig, uint32_t at, enum rig_kind kind, int err);
uint32_t rig_sum(const void *buf, size_t len);
void rig_fill(void *buf, size_t len, unsigned int seed);
/* Return the rx ring of rig for the sender "other"; fail if there is none. */
struct near_rx_ring *rig_rx_ring(struct rig *rig, const struct rig *other);
/* Return the number of rx rings of rig. */
unsigned int rig_rx_rings(const struct rig *rig);

#define RIG_TIMEOUT_MS 60000 /* limit of a wait: only a hang reaches it */
#define RIG_GONE_MS 1000 /* limit of the time until a peer failure is found */
/*
 * Poll until event number "events", which must be RIG_GONE, within 1 s of CPU
 * time. Check that no resource of the peer is left.
 */
void rig_until_gone(struct rig *rig, uint32_t events);

#endif /* NEAR_UNIT_H */
