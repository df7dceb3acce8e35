/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* SPDX-FileCopyrightText: The ofi_duo authors */

/*
 * A port divides its ring budget among its senders. Each ring has at least a
 * page, and never shrinks. A new ring has the advertised size
 * (near_segment.adv), which leaves memory for further senders.
 *
 * After a request (link/resize.h) the port enlarges the ring to the even share:
 * the budget divided by the number of senders. If the ring has at least this
 * size already, it gets the next larger size class. If a message does not fit,
 * the ring gets the least size class that suffices. If the budget has too
 * little memory, the ring gets a smaller size or keeps its size. See
 * docs/near/design.md, *Ring sizes*.
 */
#ifndef NEAR_LINK_RING_BUDGET_H
#define NEAR_LINK_RING_BUDGET_H

#include <stdint.h>

#include "near/near.h"

struct near_rx_ring;

struct near_budget {
	uint32_t pages_max;	/* limit of all rings together, pages */
	uint32_t growing;	/* number of rings that can exceed one page */
	uint32_t peers;		/* number of peers, without the port itself */
	uint32_t rings;		/* number of rx rings */
	uint32_t extra;	/* pages of all rx rings, less their first pages */
};

void near_budget_init(struct near_budget *budget, size_t bytes);

/*
 * Adds a peer to the port's budget (more: 1), or subtracts it (more: -1).
 * Ignores the port's own address.
 */
void near_budget_peers(struct near_port *port, const struct near_addr *addr,
		       int more);
/* Sets near_segment.adv. Must be called after each change of port->budget. */
void near_budget_advertise(struct near_port *port);
/*
 * Adds an rx ring with its present size to the port's budget (more: 1), or
 * subtracts it (more: -1).
 */
void near_budget_rx_ring(struct near_port *port,
			 const struct near_rx_ring *ring, int more);

/*
 * Handles a RESIZE slot: resizes the ring and replies to its sender. more:
 * near_slot.resize.more, which may have any value.
 */
void near_rx_ring_resize(struct near_port *port, struct near_rx_ring *ring,
			 uint32_t more);

#endif /* NEAR_LINK_RING_BUDGET_H */
