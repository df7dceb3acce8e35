/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * Sizes of rings: docs/near/design.md. The sender of a ring requests a larger
 * one if the ring is full often. The receiver divides its ring budget among all
 * senders.
 *
 * Cost: none for sends while the ring has space.
 */
#ifndef NEAR_LINK_RESIZE_H
#define NEAR_LINK_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct near_peer;
struct near_port;
struct near_rx_ring;

/* a sender requests a larger ring after its ring was full this many times */
#define NEAR_RESIZE_FULL 4

/* Resizes of a ring, at the sender: docs/near/design.md, *Resizing*. */
struct near_resize {
	uint64_t full_at;	/* near_tx.tail when the ring was last full */
	uint32_t count;		/* number of resizes so far */
	uint32_t full;	/* times the ring was full since the last resize */
	uint32_t backoff;	/* value of `full` that causes a request */
	uint32_t more;		/* near_slot.resize.more of the pending one */
	uint8_t tier;		/* size class of the ring */
	uint8_t most;		/* largest class that the ring can have */
	bool posted;		/* RESIZE is published; its reply is pending */
};

/* The ring budget, at the receiver: docs/near/design.md, *Ring sizes*. */
struct near_budget {
	uint32_t pages_max;	/* limit of all rings together, pages */
	/* limit of the number of rings that are longer than a page; constant */
	uint32_t growing;
	uint32_t peers;		/* number of peers, without the port itself */
	uint32_t rings;		/* number of rx rings */
	uint32_t extra;		/* pages of rx rings beyond one page per ring */
};

/* resize.c: initializes `resize` for a new ring. */
void near_resize_init(struct near_resize *resize, uint8_t tier, uint8_t most);
/*
 * Must be called when the ring to the peer has no space. Continues a pending
 * resize. If none is pending, and the ring was full often enough, requests one.
 * Returns -EAGAIN: poll and retry; or -ECONNRESET: the peer has failed.
 */
int near_full(struct near_port *port, struct near_peer *peer);
/*
 * Must be called if a message of len bytes would be eager in a larger ring.
 * Unless a resize is pending, adds NEAR_RESIZE_FULL to near_resize.full, and
 * requests a larger ring if the sum has reached near_resize.backoff.
 */
void near_too_small(struct near_port *port, struct near_peer *peer,
		    uint32_t len);

/* ring_budget.c: initializes `budget`. bytes: near_attr.memory. */
void near_budget_init(struct near_budget *budget, size_t bytes);
/* Adds (more: 1) or subtracts (-1) a peer, unless it is the port itself. */
void near_budget_peers(struct near_port *port, const struct near_peer *peer,
		       int more);
/* Adds (more: 1) or subtracts (-1) an rx ring with its present size. */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);
/* Sets near_segment.adv. Must be called after each change of port->budget. */
void near_budget_advertise(struct near_port *port);
/*
 * Handles a RESIZE slot: resizes the ring and replies. more: any value, loaded
 * from the slot. The caller need not check it.
 */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RESIZE_H */
