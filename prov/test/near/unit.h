/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/* What the unit tests of near use: ports whose sink writes down all events. */
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
	struct near_peer *peer;	/* of messages: held until rig_close() */
	struct near_msg msg;
	uint8_t payload[RIG_PAYLOAD];
	uint32_t sum;		/* of the whole payload */
	void *cookie;
	int err;
};

struct rig {
	struct near_port *port;
	struct near_addr addr;
	uint32_t count;
	struct rig_event event[RIG_EVENTS];
	int refuse;		/* arrived() says -EAGAIN so many times */
	bool no_room;
	size_t idle;		/* bytes of memory at first */
	void (*on_room)(struct rig *rig);	/* when it is asked for */
	int warnings;
	void (*on_forgotten)(struct rig *rig, struct near_peer *peer);
	LIST_ENTRY(rig) open;
};

/* Opens a port; no_cma: it uses pieces only. */
struct rig *rig_open(bool no_cma);
/*
 * A process with a port of its own: calls act, sends its address, and waits to
 * be killed. Returns its pid.
 */
pid_t rig_child(void (*act)(struct rig *rig), bool no_cma,
		struct near_addr *addr);
/* Sends 8 bytes as soon as it may; polls other, too, if there is one. */
int rig_send_when(struct rig *rig, struct near_peer *peer, uint64_t tag,
		  struct rig *other);
/* How many descriptors this process has. */
unsigned int rig_files(void);
/* Two, and the second as a peer of the first. */
struct near_peer *rig_pair(struct rig **a, struct rig **b, bool no_cma);
/* Opens count ports, each of which has sent len bytes; us has taken them. */
void rig_crowd(struct rig **other, struct near_peer **to, uint32_t count,
	       struct rig *us, size_t len);
/* With so many bytes for its rings. */
struct rig *rig_open_with(bool no_cma, size_t memory);
void rig_close(struct rig *rig);
/* For UNIT_CASE(): those that are open still. */
void rig_close_all(void);
/* Polls rig and every other until rig has count events; fails after 10 s. */
void rig_until(struct rig *rig, struct rig *other, uint32_t count);
void rig_poll(struct rig *rig, int times);
/* Bytes of its region's memory; and pages of its rings, by its own account. */
size_t rig_taken(const struct rig *rig);
uint32_t rig_pages(const struct rig *rig);
/* Sends until there is no room, so often that more is asked for; the next tag. */
uint64_t rig_overfill(struct rig *rig, struct near_peer *peer, uint64_t tag);
/* As rig_poll(), for so long. */
void rig_poll_ms(struct rig *rig, unsigned int ms);
/* The peer that the other is, with a reference. */
struct near_peer *rig_peer(struct rig *rig, const struct rig *other);
int rig_send(struct rig *rig, struct near_peer *peer, uint64_t tag,
	     const void *buf, size_t len);
int rig_send_large(struct rig *rig, struct near_peer *peer, uint64_t tag,
		   void *buf, size_t len, void *cookie);
/* Receives the message that this event announces into room bytes. */
void rig_take(struct rig *rig, uint32_t at, void *buf, size_t room);
/* The event is the end of a large message. */
void rig_ended(const struct rig *rig, uint32_t at, enum rig_kind kind, int err);
uint32_t rig_sum(const void *buf, size_t len);
void rig_fill(void *buf, size_t len, unsigned int seed);
/* The lane by which the other sends to rig; fails without. */
struct near_rx_ring *rig_rx_ring(struct rig *rig, const struct rig *other);
/* How many lanes rig has. */
unsigned int rig_rx_rings(const struct rig *rig);

#define RIG_GONE_MS 1000	/* in which near finds a death, as promised */
/*
 * Polls until the last of that many events, the end of a peer, within a second of
 * processor time; then nothing of the peer is left.
 */
void rig_until_gone(struct rig *rig, uint32_t events);

#endif /* NEAR_UNIT_H */
